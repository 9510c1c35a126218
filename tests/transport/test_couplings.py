"""Couplings: every plan is feasible, so that its cost is at least the distance."""

from __future__ import annotations

from typing import Any

import numpy as np
import ot
import pytest
from scipy.spatial.distance import cdist

from isotone.transport import couplings
from isotone.transport.clouds import Cloud
from isotone.transport.couplings import Plan, cost_bound, quantile_plan, upper_bound

METRICS: dict[Any, str] = {"1": "cityblock", "2": "euclidean", "inf": "chebyshev"}


def clouds(seed: int, weighted: bool) -> tuple[Cloud, Cloud]:
    rng = np.random.default_rng(seed)
    n, m, d = (int(k) for k in rng.integers([1, 1, 1], [60, 60, 5]))
    P = rng.normal(size=(n, d)) + 1.0
    Q = rng.normal(size=(m if weighted else n, d))
    if not weighted:
        return Cloud.of(P), Cloud.of(Q)
    return Cloud.of(P, rng.random(n)), Cloud.of(Q, rng.random(m))


def exact(P: Cloud, Q: Cloud, metric: Any) -> float:
    cost = cdist(P.points, Q.points, METRICS[metric])
    return float(ot.emd2(P.shares(), Q.shares(), cost))


@pytest.mark.parametrize("metric", list(METRICS))
@pytest.mark.parametrize("weighted", [False, True])
def test_a_plan_costs_at_least_the_distance_and_not_much_more(metric: Any, weighted: bool) -> None:
    for seed in range(4):
        P, Q = clouds(seed, weighted)
        truth, found = exact(P, Q, metric), upper_bound(P, Q, metric)
        assert truth * (1 - 1e-12) <= found <= truth * 1.05


def test_small_blocks_come_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couplings, "BLOCK", 20)
    P, Q = (Cloud.of(np.random.default_rng(k).normal(size=(300, 2)) + k) for k in (0, 1))
    truth = exact(P, Q, "2")
    assert truth <= upper_bound(P, Q, "2") < 1.1 * truth


def test_the_plan_of_quantiles_moves_all_mass_and_is_best_in_one_dimension() -> None:
    rng = np.random.default_rng(0)
    P = Cloud.of(rng.normal(size=(30, 1)), rng.random(30))
    Q = Cloud.of(rng.normal(size=(20, 1)), rng.random(20))
    plan = quantile_plan(P, Q)
    assert np.bincount(plan.source, plan.mass, 30) == pytest.approx(P.shares())
    assert np.bincount(plan.target, plan.mass, 20) == pytest.approx(Q.shares())
    assert cost_bound(plan, P, Q, "2") == pytest.approx(exact(P, Q, "2"), rel=1e-9)


def test_what_a_plan_leaves_behind_is_paid_for() -> None:
    """Mass that a plan forgets costs the diameter, so that the bound still holds."""
    P, Q = Cloud.of([[0.0], [1.0]]), Cloud.of([[5.0], [6.0]])
    whole = Plan(np.array([0, 1]), np.array([0, 1]), np.array([0.5, 0.5]))
    half = Plan(np.array([0]), np.array([0]), np.array([0.5]))
    assert cost_bound(whole, P, Q, "2") == pytest.approx(5.0, rel=1e-12)
    assert cost_bound(half, P, Q, "2") >= 5.0
