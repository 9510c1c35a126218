"""Bounds on slopes and on rounding errors, from the stored numbers of a frozen network alone.

Both are about how much a change can grow on its way through the steps. A change of the units is
followed in two norms at once, the sum and the largest of its absolute entries; GroupSort enlarges
neither, and a dense step with matrix W obeys

    one' ≤ min(one · max column sum, inf · sum of all entries)
    inf' ≤ min(inf · max row sum, one · max entry)

so that the 1-norm chain of the paper, Eq. 6, and the ∞ chain are both contained, whichever the
network was trained with, and the better one counts. A sum of members changes by at most the sum of
their changes, each times its weight: the bound of a mean is the mean of the bounds. All arithmetic
is rounded upward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import (
    Dense,
    Members,
    Pointwise,
    Sort,
    Steps,
    change_last,
    ends_dense,
)
from isotone.rounding import MatrixNorms, add, divide, gamma, multiply, root, total, totals
from isotone.typing import Floats, Metric

# unit roundoff, bound on an underflow, and where overflow is near
_ARITHMETIC = {
    "float64": (2.0**-53, 2.0**-1022, 2.0**1022),
    "float32": (2.0**-24, 2.0**-126, 2.0**126),
}


def slopes(steps: Steps, n_features: int) -> Floats:
    r"""Bounds on the slope :math:`|\partial g_j / \partial x_i|`, (n_outputs, n_features)."""
    return _Growth().run(steps, _Single.of(n_features)).rows()


def rival_slopes(steps: Steps, n_features: int, k: int) -> Floats:
    r"""Bounds on :math:`|\partial (g_k - g_l) / \partial x_i|` for all l, (n_outputs, n_features).

    Outputs that read the same units differ less than the sum of their slopes.
    """
    each = slopes(steps, n_features)
    apart = add(each[k], each)
    if not ends_dense(steps):
        return apart
    try:
        differences = change_last(steps, lambda step: _difference(step, k))
    except OverflowError:
        return apart
    return np.minimum(apart, slopes(differences, n_features))


def _difference(step: Dense, k: int) -> Dense:
    """A step whose rows bound those of row k less each."""
    weight = step.weight.astype(np.float64)
    with np.errstate(over="ignore"):
        difference = add(np.abs(weight[k] - weight), np.abs(weight[k] - weight) * 2.0**-52)
    if not np.all(np.isfinite(difference)):
        raise OverflowError
    return Dense(difference, np.zeros(len(weight)))


def constants(steps: Steps, lipschitz: Floats, metric: Metric) -> Floats:
    r"""Bounds on every output's Lipschitz constant when inputs are measured in units of 1/λᵢ.

    The smallest :math:`c_j` found with :math:`|g_j(x) - g_j(y)| \le c_j \|\Lambda(x - y)\|_p`;
    a network respects what it claims if all are at most 1.
    """
    if metric == "1":
        largest: Floats = divide(slopes(steps, len(lipschitz)), lipschitz).max(axis=1)
        return largest
    return _Growth().run(steps, _Ball.of(lipschitz, metric)).rows()[:, 0]


def layer_bounds(steps: Steps) -> list[tuple[str, float, float]]:
    """Name, 1-norm and ∞-norm bound of every step."""
    in_one, in_inf = Change(np.ones(1), np.ones(1)), Change(np.full(1, math.inf), np.ones(1))
    result = []
    for step in steps:
        if isinstance(step, Dense):
            bound = float(step.norms.column_sum.max()), float(step.norms.row_sum.max())
        else:
            one, inf = (_Growth().run((step,), Motion(c, 1)).change for c in (in_one, in_inf))
            bound = float(one.one[0]), float(inf.inf[0])
        result.append((str(step), *bound))
    return result


@dataclass(frozen=True, eq=False)
class Change:
    """Bounds on the 1-norm and ∞-norm of a change of the units; arrays hold several changes."""

    one: Floats
    inf: Floats

    def __add__(self, other: Change) -> Change:
        return Change(add(self.one, other.one), add(self.inf, other.inf))

    def __mul__(self, factor: float) -> Change:
        return Change(multiply(factor, self.one), multiply(factor, self.inf))

    def through(self, norms: MatrixNorms) -> Change:
        """The largest change after a matrix."""
        column, row = norms.column_sum.max(), norms.row_sum.max()
        return Change(
            np.minimum(multiply(column, self.one), multiply(norms.sum, self.inf)),
            np.minimum(multiply(row, self.inf), multiply(norms.max, self.one)),
        )

    def rows(self, norms: MatrixNorms) -> Floats:
        """The largest change of every single unit after a matrix, (n_out, n_changes)."""
        by_one = multiply(norms.row_max[:, None], np.atleast_1d(self.one))
        by_inf = multiply(norms.row_sum[:, None], np.atleast_1d(self.inf))
        return np.minimum(by_one, by_inf)


def _each(value: float, width: int) -> Change:
    """The same change of every unit."""
    return Change(multiply(width, value), np.asarray(value))


def _weigh(weights: tuple[float, ...], parts: list[Change]) -> Change:
    """The change of a weighted sum."""
    scaled = (part * abs(w) for w, part in zip(weights, parts, strict=True))
    return reduce(Change.__add__, scaled)


def _weigh_rows(weights: tuple[float, ...], parts: list[Floats]) -> Floats:
    return reduce(add, (multiply(abs(w), part) for w, part in zip(weights, parts, strict=True)))


class Motion:
    """How far the units can move: together, and each by itself, (n_units, n_changes)."""

    def __init__(
        self, change: Change, width: int, rows: Callable[[], Floats] | None = None
    ) -> None:
        self.change, self.width = change, width
        self.rows = rows or self._alike

    def _alike(self) -> Floats:
        """No unit moves further than all together."""
        return np.tile(np.minimum(self.change.one, self.change.inf), (self.width, 1))

    def through(self, step: Dense) -> Motion:
        """After a dense step."""
        norms, change = step.norms, self.change
        return Motion(change.through(norms), len(step.bias), lambda: change.rows(norms))


class _Single(Motion):
    """One feature at a time moves by one."""

    @classmethod
    def of(cls, n_features: int) -> _Single:
        ones = np.ones(n_features)
        return cls(Change(ones, ones), n_features)

    def through(self, step: Dense) -> Motion:
        change = Change(step.norms.column_sum, step.norms.column_max)
        return Motion(change, len(step.bias), lambda: np.abs(step.weight.astype(np.float64)))


class _Ball(Motion):
    """All features move together, by one as the metric measures them in units of 1/λᵢ."""

    lipschitz: Floats
    metric: Metric

    @classmethod
    def of(cls, lipschitz: Floats, metric: Metric) -> _Ball:
        unit = divide(np.ones((1, len(lipschitz))), lipschitz)
        ball = cls(Change(_dual_norms(unit, metric), unit.max(axis=1)), len(lipschitz))
        ball.lipschitz, ball.metric = lipschitz, metric
        return ball

    def through(self, step: Dense) -> Motion:
        rows = _dual_norms(divide(np.abs(step.weight), self.lipschitz), self.metric)
        change = Change(np.array([total(rows)]), np.array([rows.max()]))
        return Motion(change, len(step.bias), lambda: rows[:, None])


def _dual_norms(rows: Floats, metric: Metric) -> Floats:
    """The largest sum of every row times a vector that is 1 in the 2- or ∞-norm."""
    return root(totals(multiply(rows, rows))) if metric == "2" else totals(rows)


class _Growth(Language[Motion]):
    """How far the units can move after a step."""

    def dense(self, step: Dense, h: Motion) -> Motion:
        return h.through(step)

    def sort(self, step: Sort, h: Motion) -> Motion:
        return Motion(h.change, h.width)

    def pointwise(self, step: Pointwise, h: Motion) -> Motion:
        return Motion(h.change * step.constant, h.width)

    def members(self, step: Members, h: Motion, copies: bool) -> Motion:
        parts, weights = self.parts(step, h, copies), step.weights
        change = _weigh(weights, [part.change for part in parts])
        rows = lambda: _weigh_rows(weights, [part.rows() for part in parts])  # noqa: E731
        return Motion(change, parts[0].width, rows)


def rounding_errors(frozen: FrozenNetwork) -> Floats:
    """Bound E on how far a computed score is from the exact one, for every output.

    Valid for every input within `clip` and every order of summation, with or without fused
    multiply-add. Infinite where an overflow cannot be excluded, even of an intermediate number.
    """
    try:
        return _rounding_errors(frozen)
    except OverflowError:
        return np.full(frozen.n_outputs, math.inf)


def _rounding_errors(frozen: FrozenNetwork) -> Floats:
    n, copies = frozen.n_features, frozen.copies
    reach = np.full(n, frozen.clip) if copies is None else copies.reach
    n_roundings = n + (1 if copies is None else 2)  # see `_Rounding.dense`
    size = Change(np.asarray(total(reach)), reach.max())
    none = np.zeros(())
    numbers = Numbers(size, Change(none, none), n, reach, none, copies is not None)
    g = _Rounding(frozen.precision).run(frozen.steps, numbers, copies is not None)
    unit, tiny, _ = _ARITHMETIC[frozen.precision]
    sizes = add(g.sizes, totals(multiply(np.abs(frozen.residual), reach)))
    fresh = add(multiply(gamma(n_roundings, unit), sizes), n_roundings * tiny)
    errors = add(fresh, g.errors)
    _refuse_overflow(add(sizes, errors), frozen.precision)
    return np.broadcast_to(errors, (frozen.n_outputs,))


def _refuse_overflow(size: Floats, precision: str) -> None:
    if not np.all(size < _ARITHMETIC[precision][2]):
        raise OverflowError


@dataclass(frozen=True, eq=False)
class Numbers:
    """What is known of the computed units.

    Parameters
    ----------
    size, error : of all of them together
    width : how many they are
    sizes, errors : of every single one, or one number for all
    copies : whether they are copies of columns
    """

    size: Change
    error: Change
    width: int
    sizes: Floats
    errors: Floats
    copies: bool = False


class _Rounding(Language[Numbers]):
    """Sizes and errors of the units that are computed in a precision."""

    def __init__(self, precision: str) -> None:
        self.precision = precision
        self.unit, self.tiny, _ = _ARITHMETIC[precision]

    def dense(self, step: Dense, h: Numbers) -> Numbers:
        """Size |W| |h| + |b|, and γ times that is what rounding adds to the error.

        A look-up adds twice per column with copies, of which there are two or more, and the sum of
        the copies that do not move, at most that of their |W_j|, was rounded once, in float32
        twice: one rounding more.
        """
        n_out, n_in = step.weight.shape
        n_roundings = n_in + (2 if h.copies else 1)
        g, underflow = gamma(n_roundings, self.unit), n_roundings * self.tiny
        bias = np.abs(step.bias.astype(np.float64))
        exact = add(h.size.rows(step.norms)[:, 0], bias)
        if h.copies:
            exact = np.minimum(exact, add(totals(multiply(np.abs(step.weight), h.sizes)), bias))
        fresh = add(multiply(g, exact), underflow)
        sizes, errors = add(exact, fresh), add(h.error.rows(step.norms)[:, 0], fresh)
        # all outputs together: the 1-norm is often better bounded as a whole
        grown = h.size.through(step.norms)
        exact_one = np.minimum(total(exact), add(grown.one, total(bias)))
        fresh_one = add(multiply(g, exact_one), multiply(n_out, underflow))
        error_one = add(h.error.through(step.norms).one, fresh_one)
        _refuse_overflow(sizes, self.precision)
        size, error = add(exact_one, fresh_one), Change(error_one, errors.max())
        return Numbers(Change(size, sizes.max()), error, n_out, sizes, errors)

    def sort(self, step: Sort, h: Numbers) -> Numbers:
        return self._alike(h.size, h.error, h.width)

    def pointwise(self, step: Pointwise, h: Numbers) -> Numbers:
        activation = ACTIVATIONS[step.name]
        size = h.size * step.constant + _each(activation.at_zero, h.width)
        # a float64 computation that may round a product, then one rounding to the precision
        rounding = size * (2 * self.unit) + _each(activation.error + 4 * self.tiny, h.width)
        return self._alike(size + rounding, h.error * step.constant + rounding, h.width)

    def members(self, step: Members, h: Numbers, copies: bool) -> Numbers:
        """A term is rounded as a product, then once in every sum that it enters: S times."""
        n, weights = len(step.members), step.weights
        g, underflow = gamma(n + 1, self.unit), (n + 1) * self.tiny
        parts = self.parts(step, h, copies)
        exact = _weigh_rows(weights, [part.sizes for part in parts])
        fresh = add(multiply(g, exact), underflow)
        sizes = add(exact, fresh)
        errors = add(_weigh_rows(weights, [part.errors for part in parts]), fresh)
        together = _weigh(weights, [part.size for part in parts])
        rounding = together * g + _each(underflow, parts[0].width)
        error = _weigh(weights, [part.error for part in parts]) + rounding
        _refuse_overflow(sizes, self.precision)
        return Numbers(together + rounding, error, parts[0].width, sizes, errors)

    def _alike(self, size: Change, error: Change, width: int) -> Numbers:
        _refuse_overflow(size.inf, self.precision)
        return Numbers(size, error, width, size.inf, error.inf)
