"""Potentials: what they prove is true, and for small clouds it is nearly the whole distance."""

from __future__ import annotations

from typing import Any

import numpy as np
import ot
import pytest
from scipy.spatial.distance import cdist

from isotone.transport import potentials
from isotone.transport.clouds import Cloud
from isotone.transport.couplings import NAMES
from isotone.transport.potentials import Potentials, couple, refine
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
    monkeypatch.setattr(potentials, "program", lambda *_, **__: None)
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


@pytest.mark.parametrize("metric", ["1", "2", "inf"])
def test_plans_move_all_mass_at_nearly_the_least_cost(metric: Any) -> None:
    """From any start: marginals are right, potentials break no constraint, and they agree."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, m = (int(k) for k in rng.integers(1, 80, 2))
        P = Cloud.of(rng.normal(size=(n, 2)), rng.random(n) + 1e-3)
        Q = Cloud.of(rng.normal(size=(m, 2)) + rng.normal(size=2), rng.random(m) + 1e-3)
        found = couple(P, Q, metric, 10.0 * rng.normal(size=n))
        assert found is not None
        truth = exact(P, Q, metric)
        assert truth * (1 - 1e-7) <= found.cost <= 1.001 * truth
        plan, length = found.plan, cdist(P.points, Q.points, NAMES[metric])
        assert plan.mass @ length[plan.source, plan.target] == pytest.approx(found.cost, rel=1e-6)
        assert np.bincount(plan.source, plan.mass, n) == pytest.approx(P.shares(), abs=1e-7)
        assert np.bincount(plan.target, plan.mass, m) == pytest.approx(Q.shares(), abs=1e-7)
        assert np.all(found.f[:, None] - found.g <= length + 1e-12)
        assert P.shares() @ found.f - Q.shares() @ found.g >= 0.998 * truth


def test_equal_clouds_stay_where_they_are() -> None:
    P = Cloud.of(np.random.default_rng(0).normal(size=(30, 2)))
    found = couple(P, P, "2", np.zeros(30))
    assert found is not None
    assert abs(found.cost) < 1e-9
    assert np.array_equal(found.plan.source, found.plan.target)
