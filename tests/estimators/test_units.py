"""Units of targets come off before training and go back on exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import MonotonicNetwork
from isotone.estimators.preparation.units import TargetUnits, sort_outputs
from isotone.freezing.margin import certified


@given(st.integers(-390, 390), st.integers(0, 1000))
def test_restoring_multiplies_every_computed_score_exactly(power: int, seed: int) -> None:
    frozen = isotone.freeze(MonotonicNetwork([2, 8, 2], monotonic_cst=[1, -1]))
    units = TargetUnits(np.array([2.0**power, 4.0]), np.zeros(2))
    restored, certificate = certified(units.restore(frozen))
    X = np.random.default_rng(seed).normal(size=(20, 2))
    assert certificate.holds
    np.testing.assert_array_equal(restored.score(X), frozen.score(X) * units.scale)


def test_the_center_is_added_before_the_margin_is_taken() -> None:
    network = MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 0])
    x = np.random.default_rng(0).normal(size=(20, 2))
    before = isotone.freeze(network).score(x)
    TargetUnits(np.ones(1), np.array([1e6])).add_center([network])
    frozen = isotone.freeze(network)
    assert isotone.certify(frozen).holds
    np.testing.assert_allclose(frozen.score(x) - 1e6, before, atol=0.1)


@pytest.mark.parametrize("spread", [0.0, 1e-100, 1.0, 1e100])
def test_scales_are_powers_of_two_near_the_deviation(spread: float) -> None:
    y = spread * np.array([[-1.0], [1.0]])
    units = TargetUnits.fit(y, np.ones(2))
    assert np.frexp(units.scale)[0] == 0.5
    assert 0.7 < units.deviation < 1.5
    assert np.all(np.abs(units.standardize(y)) < 1.5)


def test_targets_that_hardly_vary_are_refused() -> None:
    with pytest.raises(ValueError, match=r"deviation 1e-130; it must be at least 4e-121 .*units"):
        TargetUnits.fit(np.array([[-1e-130, -1.0], [1e-130, 1.0]]), np.ones(2))


def test_sorted_outputs_keep_the_certificate() -> None:
    frozen = isotone.freeze(MonotonicNetwork([2, 8, 3], monotonic_cst=[1, -1], lipschitz=3.0))
    ordered, certificate = certified(sort_outputs(frozen))
    X = np.random.default_rng(0).normal(size=(500, 2)) * 10
    assert certificate.holds
    assert np.all(np.diff(ordered.score(X), axis=1) >= 0)
    np.testing.assert_allclose(ordered.score(X), np.sort(frozen.score(X), axis=1), atol=1e-9)


def test_a_network_that_breaks_its_promise_is_not_returned() -> None:
    frozen = isotone.freeze(MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1]))
    with pytest.raises(RuntimeError, match="fails its certificate"):
        certified(replace(frozen, residual=-frozen.residual))
