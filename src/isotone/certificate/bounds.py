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
from numpy.typing import ArrayLike

from isotone.certificate.stack import side_by_side
from isotone.certificate.widths import find_widths
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
from isotone.typing import Floats, Metric, Precision

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
        return steepest(slopes(steps, len(lipschitz)), lipschitz)
    return _Growth().run(steps, _Ball.of(lipschitz, metric)).rows()[:, 0]


def steepest(slope_bounds: Floats, lipschitz: Floats) -> Floats:
    """The `constants` of the 1-norm, from bounds on the slopes, (n_outputs,)."""
    largest: Floats = divide(slope_bounds, lipschitz).max(axis=1)
    return largest


@dataclass(frozen=True)
class Layer:
    """Bounds of one step as a map of the 1-norm and of the ∞-norm."""

    name: str
    one: float
    inf: float


def layer_bounds(steps: Steps) -> tuple[Layer, ...]:
    """Of every step."""
    in_one_and_inf = Change(np.array([[1.0, math.inf], [1.0, 1.0]]))
    result = []
    for step in steps:
        if isinstance(step, Dense):
            growth = step.norms.growth
        else:
            growth = _Growth().run((step,), Motion(in_one_and_inf, 1)).change.both
        result.append(Layer(str(step), float(growth[0, 0]), float(growth[1, 1])))
    return tuple(result)


@dataclass(frozen=True, eq=False)
class Change:
    """Bounds on the 1-norms and on the ∞-norms of changes of the units, (2, n_changes).

    Here and below, arrays about several members at once have a leading axis for them.
    """

    both: Floats

    @classmethod
    def of(cls, one: ArrayLike, inf: ArrayLike) -> Change:
        return cls(_pair(np.atleast_1d(one), np.atleast_1d(inf)))

    @property
    def first(self) -> Change:
        return Change(self.both[..., :1])

    def __add__(self, other: Change) -> Change:
        return Change(add(self.both, other.both))

    def __mul__(self, factor: float) -> Change:
        return Change(multiply(factor, self.both))

    def through(self, norms: MatrixNorms) -> Change:
        """The largest changes after a matrix."""
        growth = norms.growth[..., None]
        return Change(multiply(growth, self.both[..., None, :, :]).min(axis=-2))

    def rows(self, norms: MatrixNorms) -> Floats:
        """The largest changes of every single unit after a matrix, (n_out, n_changes)."""
        return self.of_outputs(norms.row_growth)

    def of_outputs(self, growth: Floats) -> Floats:
        """The largest changes of what grows so much from the 1-norm and from the ∞-norm."""
        least: Floats = multiply(growth[..., None], self.both[..., None, :]).min(axis=-3)
        return least


def _pair(a: Floats, b: Floats) -> Floats:
    """Two arrays as the rows of one."""
    return np.array([a, b]).swapaxes(0, -2)


def _each(value: ArrayLike, width: int) -> Change:
    """The same change, or changes, of every unit."""
    return Change.of(multiply(width, value), value)


def _weigh(weights: tuple[float, ...], parts: list[Floats]) -> Floats:
    """Bounds on a weighted sum, from those on its parts, (n_a, n_b) each, or on all at once."""
    each = np.array(parts).reshape(len(weights), *parts[0].shape[-2:])
    return reduce(add, multiply(np.abs(weights)[:, None, None], each))


class Motion:
    """How far the units can move: together, and each by itself, (n_units, n_changes)."""

    def __init__(
        self, change: Change, width: int, rows: Callable[[], Floats] | None = None
    ) -> None:
        self.change, self.width = change, width
        self.rows = rows or self._alike

    def _alike(self) -> Floats:
        """No unit moves further than all together."""
        return np.repeat(self.change.both.min(axis=-2, keepdims=True), self.width, axis=-2)

    def through(self, step: Dense) -> Motion:
        """After a dense step."""
        norms, change = step.norms, self.change
        return Motion(change.through(norms), step.bias.shape[-1], lambda: change.rows(norms))


class _Single(Motion):
    """One feature at a time moves by one."""

    @classmethod
    def of(cls, n_features: int) -> _Single:
        return cls(Change(np.ones((2, n_features))), n_features)

    def through(self, step: Dense) -> Motion:
        change = Change.of(step.norms.column_sum, step.norms.column_max)
        return Motion(change, step.bias.shape[-1], lambda: np.abs(step.weight.astype(np.float64)))


class _Ball(Motion):
    """All features move together, by one as the metric measures them in units of 1/λᵢ."""

    lipschitz: Floats
    metric: Metric

    @classmethod
    def of(cls, lipschitz: Floats, metric: Metric) -> _Ball:
        unit = divide(np.ones((1, len(lipschitz))), lipschitz)
        ball = cls(Change.of(_dual_norms(unit, metric), unit.max(axis=1)), len(lipschitz))
        ball.lipschitz, ball.metric = lipschitz, metric
        return ball

    def through(self, step: Dense) -> Motion:
        rows = _dual_norms(divide(np.abs(step.weight), self.lipschitz), self.metric)
        change = Change.of(totals(rows)[..., None], rows.max(axis=-1, keepdims=True))
        return Motion(change, step.bias.shape[-1], lambda: rows[..., None])


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
        parts, weights = self.parts(side_by_side(step), h, copies), step.weights
        change = Change(_weigh(weights, [part.change.both for part in parts]))
        rows = lambda: _weigh(weights, [part.rows() for part in parts])  # noqa: E731
        return Motion(change, parts[0].width, rows)


def rounding_errors(frozen: FrozenNetwork) -> Floats:
    """Bound E on how far a computed score is from the exact one, for every output.

    Valid for every input within `clip` and every order of summation, with or without fused
    multiply-add. Infinite where an overflow cannot be excluded, even of an intermediate number;
    zero where no number is rounded, see `isotone.certificate.widths`.
    """
    if find_widths(frozen):
        return np.zeros(frozen.n_outputs)
    n, copies = frozen.n_features, frozen.copies
    reach = np.full(n, frozen.clip) if copies is None else copies.reach
    numbers = _inputs(reach, copies=copies is not None)
    return _errors_or_infinity(frozen.steps, frozen.residual, numbers, frozen.precision)


def rounding_errors_within(
    steps: Steps, residual: Floats, reach: Floats, precision: Precision
) -> Floats:
    """E of g + r·x, as above, for inputs of at most `reach` each, (n_features,)."""
    return _errors_or_infinity(steps, residual, _inputs(reach, apart=True), precision)


def _inputs(reach: Floats, copies: bool = False, apart: bool = False) -> Numbers:
    size = Change.of([total(reach), 0.0], [reach.max(), 0.0])
    return Numbers(size, np.array([reach, np.zeros(len(reach))]), copies, copies or apart)


def _errors_or_infinity(
    steps: Steps, residual: Floats, inputs: Numbers, precision: Precision
) -> Floats:
    try:
        return _rounding_errors(steps, residual, inputs, precision)
    except OverflowError:
        return np.full(len(residual), math.inf)


def _rounding_errors(
    steps: Steps, residual: Floats, inputs: Numbers, precision: Precision
) -> Floats:
    n_roundings = inputs.width + (2 if inputs.copies else 1)  # see `_Rounding.dense`
    g = _Rounding(precision).run(steps, inputs, inputs.copies)
    unit, tiny, _ = _ARITHMETIC[precision]
    sizes = add(g.each[0], totals(multiply(np.abs(residual), inputs.each[0])))
    fresh = add(multiply(gamma(n_roundings, unit), sizes), n_roundings * tiny)
    errors = add(fresh, g.each[1])
    _refuse_overflow(add(sizes, errors), precision)
    return errors


def _refuse_overflow(size: Floats, precision: str) -> None:
    if not (size < _ARITHMETIC[precision][2]).all():
        raise OverflowError


@dataclass(frozen=True, eq=False)
class Numbers:
    """What is known of the computed units.

    Parameters
    ----------
    together : their size and error as two changes
    each : size and error of every single one, (2, n_units)
    copies : whether they are copies of columns
    apart : whether what is known of each says more than what is known of all together
    """

    together: Change
    each: Floats
    copies: bool = False
    apart: bool = False

    @property
    def width(self) -> int:
        return int(self.each.shape[-1])


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
        n_out, n_in = step.weight.shape[-2:]
        n_roundings = n_in + (2 if h.copies else 1)
        g, underflow = gamma(n_roundings, self.unit), n_roundings * self.tiny
        bias = np.abs(step.bias.astype(np.float64))
        # after the outputs all of them together: the 1-norm is often better bounded as a whole
        size, error = np.moveaxis(h.together.of_outputs(step.norms.each_and_sum), -1, 0)
        exact = add(size, np.append(bias, totals(bias)[..., None], axis=-1))
        if h.apart:
            products = multiply(np.abs(step.weight), h.each[..., :1, :])
            exact[..., :-1] = np.minimum(exact[..., :-1], add(totals(products), bias))
        exact[..., -1] = np.minimum(exact[..., -1], totals(exact[..., :-1]))
        fresh = add(multiply(g, exact), underflow * np.append(np.ones(n_out), n_out))
        every = add(_pair(exact, error), fresh[..., None, :])
        each = every[..., :-1]
        _refuse_overflow(each[..., 0, :], self.precision)
        return Numbers(Change.of(every[..., -1], each.max(axis=-1)), each)

    def sort(self, step: Sort, h: Numbers) -> Numbers:
        return self._alike(h.together, h.width)

    def pointwise(self, step: Pointwise, h: Numbers) -> Numbers:
        activation = ACTIVATIONS[step.name]
        size = h.together * step.constant + _each([activation.at_zero, 0.0], h.width)
        # a float64 computation that may round a product, then one rounding to the precision
        fresh = size.first * (2 * self.unit) + _each(activation.error + 4 * self.tiny, h.width)
        return self._alike(size + fresh, h.width)

    def members(self, step: Members, h: Numbers, copies: bool) -> Numbers:
        """A term is rounded as a product, then once in every sum that it enters: S times."""
        n, weights = len(step.members), step.weights
        g, underflow = gamma(n + 1, self.unit), (n + 1) * self.tiny
        parts = self.parts(side_by_side(step), h, copies)
        exact = _weigh(weights, [part.each for part in parts])
        each = add(exact, add(multiply(g, exact[0]), underflow))
        together = Change(_weigh(weights, [part.together.both for part in parts]))
        fresh = together.first * g + _each(underflow, parts[0].width)
        _refuse_overflow(each[0], self.precision)
        return Numbers(together + fresh, each)

    def _alike(self, together: Change, width: int) -> Numbers:
        largest = together.both[..., 1, :]
        _refuse_overflow(largest[..., 0], self.precision)
        return Numbers(together, np.repeat(largest[..., None], width, axis=-1))
