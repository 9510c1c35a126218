"""Part of `make prove-bits`: no computed score moves the wrong way, by default."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from bench.proofs import last_bit
from isotone import FrozenNetwork, freeze


@cache
def networks() -> Any:
    return list(last_bit.networks())


@pytest.mark.parametrize("k", range(5))
def test_no_violation_by_default(k: int) -> None:
    _, network, scaling = networks()[k]
    counts = last_bit.compare(freeze(network, scaling=scaling), 50_000, seed=1)
    assert {name: count.violations for name, count in counts.items()} == dict.fromkeys(counts, 0)
    assert sum(count.comparisons for count in counts.values()) == 50_000 * len(last_bit.RAISES)


@pytest.mark.parametrize("k", range(5))
def test_no_violation_in_exact_float32(k: int) -> None:
    _, network, scaling = networks()[k]
    frozen = freeze(network, scaling=scaling, precision="float32", exact=True)
    counts = last_bit.compare(frozen, 50_000, seed=1)
    assert {name: count.violations for name, count in counts.items()} == dict.fromkeys(counts, 0)


def test_float32_on_too_fine_a_grid_can_fail() -> None:
    """The test above is not empty: a finer grid than can be proved is violated."""
    exact = freeze(networks()[2][1], precision="float32", exact=True)
    assert exact.grid is not None
    counts = last_bit.compare(replace(exact, grid=exact.grid * 2.0**-9), 20_000, seed=1)
    assert sum(count.violations for count in counts.values()) > 10


def test_the_comparison_can_fail() -> None:
    """Without snapping, rounding errors do violate monotonicity: the test above is not empty."""
    frozen = freeze(last_bit.adversarial([4, 20, 20, 1], 0), grid=None)
    assert last_bit.compare(frozen, 2000, seed=1)["1e-9"].violations > 100


def test_adversarial_networks_do_cancel_the_residual() -> None:
    frozen: FrozenNetwork = freeze(last_bit.adversarial([4, 20, 20, 1], 0))
    X = np.random.default_rng(0).normal(size=(1000, 4))
    for feature in (0, 1, 3):
        higher = X.copy()
        higher[:, feature] += 1.0
        assert np.abs(frozen.score(higher) - frozen.score(X)).max() < 1e-3
