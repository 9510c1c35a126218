"""Potentials: what they prove is true, and for small clouds it is nearly the whole distance."""

from __future__ import annotations

from typing import Any

import numpy as np
import ot
import pytest
from scipy.spatial.distance import cdist

from isotone import potentials
from isotone.clouds import Cloud
from isotone.couplings import NAMES
from isotone.potentials import Potentials, refine
from transports import random_problem


def clouds(seed: int) -> tuple[Cloud, Cloud]:
    P, Q, p, q = random_problem(seed)
    return Cloud.of(P, p), Cloud.of(Q, q)


def exact(P: Cloud, Q: Cloud, metric: Any) -> float:
    cost = cdist(P.points, Q.points, NAMES[metric])
    return float(ot.emd2(P.shares(), Q.shares(), cost / cost.max())) * float(cost.max())


@pytest.mark.parametrize("metric", ["1", "2", "inf"])
def test_bounds_never_exceed_the_distance_and_nearly_reach_it(metric: Any) -> None:
    for seed in range(67):
        P, Q = clouds(seed)
        truth = exact(P, Q, metric)
        start = np.random.default_rng(seed).normal(size=len(Q)) * truth
        found = refine(P, Q, metric, start)
        assert 0.9998 * truth <= found.lower_bound <= truth * (1 + 1e-12)  # POT rounds, too
        assert found.lower_bound <= found.value <= truth * (1 + 1e-12)


@pytest.mark.parametrize("metric", ["1", "2", "inf"])
def test_constraints_hold_in_exact_arithmetic(metric: Any) -> None:
    """f ≤ g + length, with fractions; for the Euclidean length by its square."""
    from fractions import Fraction

    P, Q = clouds(5)
    unit = 2.0 ** -np.ceil(np.log2(np.abs(np.r_[P.points, Q.points]).max()))
    near = [Cloud(cloud.points * unit, cloud.weights) for cloud in (P, Q)]
    g = np.random.default_rng(0).normal(size=len(Q))
    found = Potentials(*near, metric, np.zeros(len(P)), g).transformed(g)
    for f, x in zip(found.f, found.P.points, strict=True):
        for h, y in zip(found.g, found.Q.points, strict=True):
            gaps = [abs(Fraction(a) - Fraction(b)) for a, b in zip(x, y, strict=True)]
            room = Fraction(f) - Fraction(h)
            if metric == "2":
                assert room <= 0 or room**2 <= sum(gap**2 for gap in gaps)
            else:
                assert room <= (sum(gaps) if metric == "1" else max(gaps))


def test_blocks_of_distances_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    P, Q = clouds(3)
    whole = refine(P, Q, "2", np.zeros(len(Q)))
    monkeypatch.setattr(potentials, "_AT_ONCE", 50)
    assert refine(P, Q, "2", np.zeros(len(Q))) == whole


def test_a_program_without_an_answer_leaves_what_was_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    P, Q = clouds(3)
    monkeypatch.setattr(potentials, "_solve", lambda *_: None)
    found = refine(P, Q, "2", np.zeros(len(Q)))
    assert 0 < found.lower_bound <= exact(P, Q, "2")


@pytest.mark.parametrize("size", [1e-140, 1e99])
def test_extreme_units(size: float) -> None:
    P, Q = Cloud.of([[0.0, size], [size, 0.0]]), Cloud.of([[size, size]])
    found = refine(P, Q, "2", np.zeros(1))
    assert size * (1 - 1e-12) < found.lower_bound <= size


def test_weights_and_distances_of_very_different_sizes() -> None:
    """A far point of hardly any weight must not spoil the rest."""
    P = Cloud.of([[0.0], [1.0], [1e9]], [1.0, 1.0, 1e-12])
    Q = Cloud.of([[0.0], [2.0]])
    truth = exact(P, Q, "2")
    assert 0 <= refine(P, Q, "2", np.zeros(2)).lower_bound <= truth * (1 + 1e-9)
    far = refine(Cloud.of([[0.0], [1.0], [1e9]]), Q, "2", np.zeros(2))
    assert far.lower_bound == pytest.approx(1e9 / 3, rel=1e-6)
    nothing = refine(Cloud.of([[7.0]]), Cloud.of([[7.0]]), "2", np.zeros(1))
    assert nothing.lower_bound == 0.0
