r"""Couplings: feasible plans, whose cost is an upper bound on the Wasserstein distance.

.. math:: W_1(P, Q) \le \sum_k m_k \|x_{i_k} - y_{j_k}\|_p

for every plan that takes mass m_k from point i_k to point j_k and moves all of P onto all of Q.
The first plan matches points in the order of a coordinate. It is improved in blocks: the points of
a few hundred entries are matched again, optimally, and blocks are cut along another direction each
time. Every plan on the way is feasible, none is worse than the one before, and a single block is
the exact solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import coo_array
from scipy.spatial.distance import cdist

from isotone.rounding import add, gamma, multiply, root, total
from isotone.transport.clouds import Cloud
from isotone.typing import Floats, Indices, Metric

BLOCK = 1000  # pairs matched anew at a time, where all masses are alike
WEIGHTED_BLOCK = 40  # entries, where they are not
_PATIENCE = 4  # sweeps that gain less than a thousandth, after which to stop
NAMES = {"1": "cityblock", "2": "euclidean", "inf": "chebyshev"}


@dataclass(frozen=True, eq=False)
class Plan:
    """Entries (k,): `mass` goes from point `source` of P to point `target` of Q."""

    source: Indices
    target: Indices
    mass: Floats


def upper_bound(P: Cloud, Q: Cloud, metric: Metric, *, sweeps: int = 20, seed: int = 0) -> float:
    """Cost of a feasible plan, rounded up: W₁(P, Q) is at most this."""
    rng = np.random.default_rng(seed)
    if len(P) == len(Q) and np.ptp(P.weights) == 0 and np.ptp(Q.weights) == 0:
        return _uniform(P, Q, metric, sweeps, rng)
    return _weighted(P, Q, metric, sweeps, rng)


def _uniform(P: Cloud, Q: Cloud, metric: Metric, sweeps: int, rng: np.random.Generator) -> float:
    """A permutation: its marginals are exact."""
    n = len(P)
    size = BLOCK if n <= 4 * BLOCK else BLOCK // 4  # small blocks are faster by the pair
    source = np.argsort(P.points[:, 0], kind="stable")
    target = np.argsort(Q.points[:, 0], kind="stable")
    cost = lengths(P.points[source], Q.points[target], metric)
    idle, before = 0, math.inf
    for _ in range(sweeps):
        order = _along(P.points[source] + Q.points[target], size, rng)
        for start in range(0, n, size):
            block = order[start : start + size]
            x, y = P.points[source[block]], Q.points[target[block]]
            new = linear_sum_assignment(cdist(x, y, NAMES[metric]))[1]
            target[block] = target[block][new]
        cost = lengths(P.points[source], Q.points[target], metric)
        idle = idle + 1 if cost.sum() > 0.999 * before else 0
        before = float(cost.sum())
        if n <= size or idle == _PATIENCE:
            break
    return float(multiply(total(cost), 1.0 / n * (1.0 + 2.0**-51)))


def _weighted(P: Cloud, Q: Cloud, metric: Metric, sweeps: int, rng: np.random.Generator) -> float:
    plan = quantile_plan(P, Q)
    idle, before = 0, math.inf
    for _ in range(sweeps):
        plan = _sweep(plan, P, Q, metric, rng)
        value = float(plan.mass @ lengths(P.points[plan.source], Q.points[plan.target], metric))
        idle = idle + 1 if value > 0.999 * before else 0
        before = value
        if len(plan.mass) <= WEIGHTED_BLOCK or idle == _PATIENCE:
            break
    return cost_bound(plan, P, Q, metric)


def quantile_plan(P: Cloud, Q: Cloud) -> Plan:
    """The plan that keeps the order along the first coordinate: in one dimension the best."""
    orders = [np.argsort(cloud.points[:, 0], kind="stable") for cloud in (P, Q)]
    ends = [np.cumsum(c.shares()[order]) for c, order in zip((P, Q), orders, strict=True)]
    cuts = np.unique(np.minimum(np.concatenate(ends), 1.0))
    middle = cuts - 0.5 * np.diff(cuts, prepend=0.0)
    source, target = (
        order[np.minimum(np.searchsorted(end, middle), len(order) - 1)]
        for order, end in zip(orders, ends, strict=True)
    )
    return Plan(source, target, np.diff(cuts, prepend=0.0))


def _sweep(plan: Plan, P: Cloud, Q: Cloud, metric: Metric, rng: np.random.Generator) -> Plan:
    """Match the points of every block of entries again."""
    order = _along(P.points[plan.source] + Q.points[plan.target], WEIGHTED_BLOCK, rng)
    parts = []
    for start in range(0, len(order), WEIGHTED_BLOCK):
        block = order[start : start + WEIGHTED_BLOCK]
        entries = Plan(plan.source[block], plan.target[block], plan.mass[block])
        parts.append(_rematch(entries, P, Q, metric))
    return Plan(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.mass for part in parts]),
    )


def _rematch(plan: Plan, P: Cloud, Q: Cloud, metric: Metric) -> Plan:
    """The cheapest plan between the same masses at the same points: a small linear program."""
    i, row = np.unique(plan.source, return_inverse=True)
    j, column = np.unique(plan.target, return_inverse=True)
    cost = cdist(P.points[i], Q.points[j], NAMES[metric])
    size = plan.mass.sum()
    masses = [np.bincount(k, plan.mass / size) for k in (row, column)]
    n, m = cost.shape
    cells = np.arange(n * m)
    sums = coo_array(
        (np.ones(2 * n * m), (np.r_[cells // m, n + cells % m], np.r_[cells, cells])),
        shape=(n + m, n * m),
    ).tocsr()
    scale = cost.max() or 1.0
    found = linprog(cost.ravel() / scale, A_eq=sums[:-1], b_eq=np.concatenate(masses)[:-1])
    if found.x is None or found.fun * scale > (plan.mass / size) @ cost[row, column]:
        return plan
    used = np.flatnonzero(found.x > 0)
    return Plan(i[used // m], j[used % m], found.x[used] * size)


def cost_bound(plan: Plan, P: Cloud, Q: Cloud, metric: Metric) -> float:
    r"""Upper bound on the cost of a plan whose marginals are only nearly those of P and Q.

    Cut the plan down to rows and columns that are not too heavy; what is then missing is at most
    the sum D of all deviations of rows and columns (and of the total), and moving it costs at
    most the diameter each: W₁ ≤ cost + 2 D · diameter.
    """
    length = lengths(P.points[plan.source], Q.points[plan.target], metric)
    cost = total(multiply(plan.mass, length))
    deviation = 0.0
    for cloud, index in ((P, plan.source), (Q, plan.target)):
        sums = np.bincount(index, plan.mass, minlength=len(cloud))
        # a row sum of k entries, and a share, are each off by a few units in the last place
        slack = (len(plan.mass) + 4.0) * 2.0**-52 * (sums + cloud.shares())
        deviation += total(np.abs(sums - cloud.shares()) + slack)
    return float(add(cost, multiply(2.0 * deviation, _diameter(P, Q, metric))))


def _diameter(P: Cloud, Q: Cloud, metric: Metric) -> float:
    """Upper bound on the distance of any two points."""
    low = np.minimum(P.points.min(axis=0), Q.points.min(axis=0))
    high = np.maximum(P.points.max(axis=0), Q.points.max(axis=0))
    return float(lengths(low[None], high[None], metric)[0])


def lengths(x: Floats, y: Floats, metric: Metric) -> Floats:
    """Upper bounds on the distances of pairs of points (k, d)."""
    gap = np.abs(x - y)
    if metric == "inf":
        length = gap.max(axis=1)
    elif metric == "1":
        length = gap.sum(axis=1)
    else:
        largest = gap.max(axis=1, keepdims=True)
        safe = np.where(largest > 0, largest, 1.0)
        length = root(np.square(gap / safe).sum(axis=1)) * safe[:, 0]
    return multiply(length, 1.0 + 4.0 * gamma(x.shape[1] + 4, 2.0**-53))


def _along(points: Floats, block: int, rng: np.random.Generator) -> Indices:
    """An order whose blocks are compact: slabs along one direction, each ordered along another."""
    n, d = points.shape
    first, second = rng.normal(size=(2, d))
    slabs = math.isqrt(n // block) + 1
    rank = np.argsort(np.argsort(points @ first, kind="stable"), kind="stable")
    return np.lexsort((points @ second, rank * slabs // n))
