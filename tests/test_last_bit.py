"""Part of `make prove-bits`: no computed score moves the wrong way, by default."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bench.proofs import last_bit
from isotone import FrozenNetwork, freeze
from programs import need


@cache
def cases() -> list[last_bit.Case]:
    return list(last_bit.cases())


def violations(frozen: FrozenNetwork, n: int = 50_000) -> dict[str, int]:
    counts = last_bit.compare(frozen, frozen.score, n, seed=1)
    assert sum(count.comparisons for count in counts.values()) == n * len(last_bit.RAISES)
    return {name: count.violations for name, count in counts.items()}


@pytest.mark.parametrize("k", range(7))
def test_no_violation_by_default(k: int) -> None:
    found = violations(last_bit.stored(cases()[k].freeze()))
    assert found == dict.fromkeys(found, 0)


@pytest.mark.parametrize("k", range(6))
def test_no_violation_in_exact_float32(k: int) -> None:
    found = violations(cases()[k].freeze(precision="float32", exact=True))
    assert found == dict.fromkeys(found, 0)


def test_the_compiled_header_has_the_bits_of_the_file() -> None:
    need("c++")
    frozen = last_bit.stored(cases()[0].freeze())
    rows = last_bit.base_rows(frozen, np.random.default_rng(0), 5000)
    assert np.array_equal(last_bit.compiled(frozen)(rows), frozen.score(rows))


def test_float32_on_too_fine_a_grid_can_fail() -> None:
    """The test above is not empty: a finer grid than can be proved is violated."""
    exact = cases()[2].freeze(precision="float32", exact=True)
    assert exact.grid is not None
    assert sum(violations(replace(exact, grid=exact.grid * 2.0**-9), 20_000).values()) > 10


def test_the_comparison_can_fail() -> None:
    """Without snapping, rounding errors do violate monotonicity: the test above is not empty."""
    frozen = freeze(last_bit.adversarial([4, 20, 20, 1], 0), grid=None)
    assert violations(frozen, 2000)["1e-9"] > 100


def test_adversarial_networks_do_cancel_the_residual() -> None:
    frozen: FrozenNetwork = freeze(last_bit.adversarial([4, 20, 20, 1], 0))
    X = np.random.default_rng(0).normal(size=(1000, 4))
    for feature in (0, 1, 3):
        higher = X.copy()
        higher[:, feature] += 1.0
        assert np.abs(frozen.score(higher) - frozen.score(X)).max() < 1e-3
