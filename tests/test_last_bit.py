"""Part of `make prove-bits`: no computed score moves the wrong way, by default."""

from __future__ import annotations

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
