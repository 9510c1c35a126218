r"""Potentials: one number per point, which for small clouds prove the whole distance.

The linear program of transport has a dual without networks: for all f and g,

.. math:: f_i - g_j \le \|x_i - y_j\|_p \ \text{for all}\ i, j
          \quad\Longrightarrow\quad \sum_i p_i f_i - \sum_j q_j g_j \le W_1(P, Q),

since every plan π moves at the cost :math:`\sum \pi_{ij} \|x_i - y_j\| \ge \sum \pi_{ij} (f_i -
g_j)`. A critic gives such numbers, its scores. They are raised in two ways. A *c-transform*,
:math:`f_i = \min_j (g_j + \|x_i - y_j\|)` or :math:`g_j = \max_i (f_i - \|x_i - y_j\|)`, lifts
each as far as the others allow. Then the program itself is solved on few pairs of points: those
that the present numbers nearly forbid, which hold nearly all of the best plan. New numbers come
out, are c-transformed, and point to other pairs. When the plan costs what the numbers prove, both
are the distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.spatial.distance import cdist

from isotone.rounding import add, gamma, subtract_down
from isotone.transport.clouds import Cloud
from isotone.transport.couplings import NAMES, Plan, lengths, quantile_plan
from isotone.transport.duality import DualValue
from isotone.typing import Floats, Integers, Metric

PAIRS = 2**22  # pairs of points up to which clouds are small
_AT_ONCE = 2**18  # pairs whose distances are held at a time
_NEAREST = 8  # pairs that every point brings into the program
_ROUNDS = 20
_CLOSE = 1e-4  # of the distance; between the cost of the plan and what is proved
_NEAR = 1e-3  # the same, where only the plan is asked for


@dataclass(frozen=True, eq=False)
class Program:
    """A linear program that was solved: the cost of its plan, and its potentials (n,) and (m,)."""

    cost: float
    plan: Plan
    f: Floats
    g: Floats


@dataclass(frozen=True, eq=False)
class Potentials:
    """Numbers f (n,) and g (m,) of two clouds whose coordinates are smaller than 2 apart."""

    P: Cloud
    Q: Cloud
    metric: Metric
    f: Floats
    g: Floats

    @property
    def value(self) -> float:
        return float(self.P.shares() @ self.f - self.Q.shares() @ self.g)

    def transformed(self, g: Floats) -> Potentials:
        r"""Given g: the largest f, then the smallest g, then f once more, rounded down.

        The last of them makes every constraint hold *exactly*. A computed length D is at most
        1 + 2 γ times the exact one, with γ = γ(d + 8) for differences, powers, sum and root, or
        too large by less than 2⁻⁵⁰⁰ where squares underflow; none overflow, since coordinates
        differ by less than 2. Hence D (1 − 8 γ) − 2⁻⁵⁰⁰, even as computed, is at most the exact
        length, and a sum moved down to the next number is at most the exact sum:
        fᵢ ≤ gⱼ + ‖xᵢ − yⱼ‖ for all i and j. ∎
        """
        g = g - g.mean()
        f = self._each(self.P, self.Q, g)
        g = -self._each(self.Q, self.P, -f)
        return replace(self, f=self._each(self.P, self.Q, g), g=g)

    def _each(self, left: Cloud, right: Cloud, numbers: Floats) -> Floats:
        """At every point of one cloud the least number + length of the other, rounded down."""
        parts = [(length + numbers).min(axis=1) for _, length in _blocks(left, right, self.metric)]
        least: Floats = np.nextafter(np.concatenate(parts), -np.inf)
        return least

    def tight(self) -> Integers:
        """For every point of P and of Q, the pairs that the constraints leave least room."""
        m, found = len(self.Q), []
        for rows, length in _blocks(self.P, self.Q, self.metric):
            near = _least(length + self.g)
            found.append((rows[:, None] * m + near).ravel())
        for rows, length in _blocks(self.Q, self.P, self.metric):
            near = _least(length - self.f)
            found.append((near * m + rows[:, None]).ravel())
        return np.unique(np.concatenate(found))

    def proved(self) -> DualValue:
        """The value, and what is certain of it in spite of rounding; see `Cloud.mean`."""
        (mean_p, error_p), (mean_q, error_q) = self.P.mean(self.f), self.Q.mean(self.g)
        least = float(subtract_down(subtract_down(mean_p, mean_q), add(error_p, error_q)))
        return DualValue(mean_p - mean_q, max(least, 0.0))


def refine(P: Cloud, Q: Cloud, metric: Metric, start: Floats) -> DualValue:
    """The distance of two small clouds from below, beginning with potentials of Q, (m,).

    Zero where all points lie within 10⁻¹⁵⁰.
    """
    span = max(
        float(max(x.max(), y.max()) - min(x.min(), y.min()))
        for x, y in zip(P.points.T, Q.points.T, strict=True)
    )
    if span < 1e-150:
        return DualValue(0.0, 0.0)
    unit = math.ldexp(1.0, -math.frexp(span)[1])  # a power of two, at most 10¹⁵⁰: exact
    P, Q = (Cloud(cloud.points * unit, cloud.weights) for cloud in (P, Q))
    nothing = Potentials(P, Q, metric, np.zeros(len(P)), np.zeros(len(Q)))
    proved = _ascend(nothing, start * unit).proved()
    bound = math.nextafter(proved.lower_bound / unit, 0.0)
    return DualValue(proved.value / unit, bound)


def _ascend(potentials: Potentials, g: Floats) -> Potentials:
    """Programs on few pairs, until the plan costs what the potentials prove."""
    P, Q = potentials.P, potentials.Q
    plan = quantile_plan(P, Q)  # one that moves all mass, or else there might be none
    feasible = plan.source * len(Q) + plan.target
    best = now = potentials.transformed(g)
    used = feasible
    for _ in range(_ROUNDS):
        pairs = np.unique(np.concatenate([feasible, used, now.tight(), best.tight()]))
        length = lengths(P.points[pairs // len(Q)], Q.points[pairs % len(Q)], best.metric)
        solved = program(P.shares(), Q.shares(), pairs, length, best.value)
        if solved is None:
            break
        used = solved.plan.source * len(Q) + solved.plan.target
        g = solved.g - solved.g.mean()
        tries = [best.transformed(best.g + step * (g - best.g)) for step in (1.0, 0.3)]
        now = max(tries, key=lambda one: one.value)
        best = now if now.value > best.value else best
        if solved.cost - best.value <= _CLOSE * solved.cost:
            break
    return best


def program(
    p: Floats, q: Floats, pairs: Integers, length: Floats, scale: float, *, presolve: bool = True
) -> Program | None:
    r"""Transport of shares p (n,) to q (m,) on pairs only, each of a length; None if it fails.

    .. math:: \min_\pi \sum_{ij} \pi_{ij} \|x_i - y_j\|
              \quad\text{with}\quad \sum_j \pi_{ij} = p_i, \ \sum_i \pi_{ij} = q_j, \ \pi \ge 0
    """
    n, m = len(p), len(q)
    i, j, column = pairs // m, pairs % m, np.arange(len(pairs))
    unit = max(scale, 1e-9 * float(length.max())) or 1.0
    sums = coo_array(
        (np.ones(2 * len(pairs)), (np.r_[i, n + j], np.r_[column, column])),
        shape=(n + m, len(pairs)),
    ).tocsr()
    masses = n * np.concatenate([p, q])
    found = linprog(
        length / unit,
        A_eq=sums[:-1],
        b_eq=masses[:-1],
        method="highs-ds",
        options={"presolve": presolve},
    )
    if found.x is None or not np.all(np.isfinite(found.eqlin.marginals)):
        return None
    used, numbers = found.x > 0, unit * np.append(found.eqlin.marginals, 0.0)
    plan = Plan(i[used], j[used], found.x[used] / n)
    return Program(found.fun * unit / n, plan, numbers[:n], -numbers[n:])


def couple(P: Cloud, Q: Cloud, metric: Metric, f: Floats) -> Program | None:
    r"""The best plan and potentials of two small clouds, beginning with potentials f (n,) of P.

    Programs on few pairs, as above, but about the room :math:`\|x_i - y_j\| - f_i + g_j \ge 0` and
    not the length, to which all plans add the same: with good f one of them is enough, and it
    begins near its end. Pairs that its potentials forbid least, or break, come into the next. The
    plan costs at most a thousandth more than the potentials prove, or else 20 programs were not
    enough. All distances are held at once: for clouds of some thousand points.
    """
    length, p, q = cdist(P.points, Q.points, NAMES[metric]), P.shares(), Q.shares()
    plan = quantile_plan(P, Q)
    pairs, (f, g), solved = plan.source * len(Q) + plan.target, _transform(length, f), None
    for _ in range(_ROUNDS):
        room, value = length + g - f[:, None], float(p @ f - q @ g)
        pairs = np.union1d(pairs, _roomless(room))
        unit = max(value, 1e-3 * float(length.mean()))
        found = program(p, q, pairs, room.ravel()[pairs], unit, presolve=False)
        if found is None:
            break
        pairs = np.union1d(pairs, _roomless(room + found.g - found.f[:, None]))
        tries = [_transform(length, f + step * found.f) for step in (0.0, 0.3, 1.0)]
        f, g = max(tries, key=lambda pair: float(p @ pair[0] - q @ pair[1]))
        solved = Program(value + found.cost, found.plan, f, g)
        if solved.cost - float(p @ f - q @ g) <= _NEAR * max(solved.cost, _NEAR * unit):
            break
    return solved


def _transform(length: Floats, f: Floats) -> tuple[Floats, Floats]:
    """The smallest g that f allows, and the largest f that this one allows."""
    g: Floats = (f[:, None] - length).max(axis=0)
    return (length + g).min(axis=1), g


def _roomless(room: Floats) -> Integers:
    """The pairs of least room in every row and in every column."""
    n, m = room.shape
    rows = np.arange(n)[:, None] * m + _least(room)
    columns = _least(room.T) * m + np.arange(m)[:, None]
    return np.concatenate([rows.ravel(), columns.ravel()])


def _blocks(left: Cloud, right: Cloud, metric: Metric) -> Iterator[tuple[Integers, Floats]]:
    """Rows of one cloud, and lower bounds on their distances to all points of the other."""
    n, step = len(left), max(1, _AT_ONCE // len(right))
    factor = 1.0 - 8.0 * gamma(left.n_features + 8, 2.0**-53)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        length = cdist(left.points[rows], right.points, NAMES[metric])
        yield rows, length * factor - 2.0**-500


def _least(table: Floats) -> Integers:
    """Columns of the few smallest numbers of every row."""
    k = min(_NEAREST, table.shape[1])
    return np.argpartition(table, k - 1, axis=1)[:, :k]
