"""Bounds of slopes and of rounding errors, from the stored numbers of a frozen network alone.

Both are about how far a change can grow on its way through the steps. A change of the units is
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
from dataclasses import dataclass
from functools import reduce

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import (
    ACTIVATIONS,
    Blend,
    Dense,
    Members,
    Pointwise,
    Sort,
    Step,
    width_after,
)
from isotone.rounding import MatrixNorms, add, divide, gamma, multiply, root, total, totals
from isotone.typing import Floats, Metric

# unit roundoff, bound of an underflow, and where overflow is near
_ARITHMETIC = {
    "float64": (2.0**-53, 2.0**-1022, 2.0**1022),
    "float32": (2.0**-24, 2.0**-126, 2.0**126),
}


@dataclass(frozen=True, eq=False)
class Change:
    """Bounds of the 1-norm and ∞-norm of a change of the units; arrays hold several changes."""

    one: Floats
    inf: Floats


@dataclass(frozen=True, eq=False)
class Numbers:
    """What is known of the computed units: their size, their error, how many they are."""

    size: Change
    error: Change
    width: int
    reach: Floats | None = None  # of copies of columns: the largest size of each


def slopes(steps: tuple[Step, ...], n_features: int) -> Floats:
    r"""Bounds of the slope :math:`|\partial g_j / \partial x_i|`, (n_outputs, n_features)."""
    return _outputs(steps, _Single(n_features), n_features)


def rival_slopes(steps: tuple[Step, ...], n_features: int, k: int) -> Floats:
    r"""Bounds of :math:`|\partial (g_k - g_l) / \partial x_i|` for all l, (n_outputs, n_features).

    Outputs that read the same units differ less than the sum of their slopes.
    """
    each = slopes(steps, n_features)
    apart, differences = add(each[k], each), _differences(steps, k)
    if differences is None:
        return apart
    return np.minimum(apart, slopes(differences, n_features))


def _differences(steps: tuple[Step, ...], k: int) -> tuple[Step, ...] | None:
    """Steps whose slopes bound those of g_k - g_l; None if the last step is not dense."""
    last = steps[-1]
    if isinstance(last, Members):
        members = tuple(_differences(member, k) for member in last.members)
        found = tuple(member for member in members if member is not None)
        return (*steps[:-1], Members(last.weights, found)) if len(found) == len(members) else None
    if not isinstance(last, Dense):
        return None
    weight = last.weight.astype(np.float64)
    with np.errstate(over="ignore"):
        difference = add(np.abs(weight[k] - weight), np.abs(weight[k] - weight) * 2.0**-52)
    if not np.all(np.isfinite(difference)):
        return None
    return (*steps[:-1], Dense(difference, np.zeros(len(weight))))


def constants(steps: tuple[Step, ...], lipschitz: Floats, metric: Metric) -> Floats:
    r"""Bounds of every output's Lipschitz constant when inputs are measured in units of 1/λᵢ.

    The smallest :math:`c_j` found with :math:`|g_j(x) - g_j(y)| \le c_j \|\Lambda(x - y)\|_p`;
    a network keeps what it claims if all are at most 1.
    """
    if metric == "1":
        largest: Floats = divide(slopes(steps, len(lipschitz)), lipschitz).max(axis=1)
        return largest
    return _outputs(steps, _Ball(lipschitz, metric), len(lipschitz))[:, 0]


def rounding_errors(frozen: FrozenNetwork) -> Floats:
    """Bound E of how far a computed score is from the exact one, for every output.

    Valid for every input within `clip` and every order of summation, with or without fused
    multiply-add. Infinite where an overflow cannot be excluded, even of an intermediate number.
    """
    try:
        return _rounding_errors(frozen)
    except OverflowError:
        return np.full(frozen.n_outputs, math.inf)


def _rounding_errors(frozen: FrozenNetwork) -> Floats:
    n = frozen.n_features
    reach = np.array(frozen.clip)
    zero = np.zeros(())
    numbers = Numbers(Change(multiply(n, reach), reach), Change(zero, zero), n)
    coefficients, n_roundings = np.abs(frozen.residual), n + 1
    of_residual = multiply(totals(coefficients), reach)
    if frozen.copies is not None:
        each, n_roundings = frozen.copies.reach, n + 2
        sizes = Change(np.asarray(total(each)), each.max())
        numbers = Numbers(sizes, Change(zero, zero), n, each)
        of_residual = totals(multiply(coefficients, each))
    g_size, g_error, _ = _compute_all(frozen.steps, numbers, frozen.precision)
    unit, tiny, _ = _ARITHMETIC[frozen.precision]
    size = add(g_size, of_residual)
    fresh = add(multiply(gamma(n_roundings, unit), size), n_roundings * tiny)
    error = add(fresh, g_error)
    _refuse_overflow(add(size, error), frozen.precision)
    return np.broadcast_to(error, (frozen.n_outputs,))


def _refuse_overflow(size: Floats, precision: str) -> None:
    if not np.all(size < _ARITHMETIC[precision][2]):
        raise OverflowError


def layer_bounds(steps: tuple[Step, ...]) -> list[tuple[str, float, float]]:
    """Name, 1-norm and ∞-norm bound of every step."""
    in_one, in_inf = Change(np.ones(1), np.ones(1)), Change(np.full(1, math.inf), np.ones(1))
    result = []
    for step in steps:
        match step:
            case Dense():
                bound = float(step.norms.column_sum.max()), float(step.norms.row_sum.max())
            case _:
                bound = float(_grow(step, in_one).one[0]), float(_grow(step, in_inf).inf[0])
        result.append((_name(step), *bound))
    return result


def _name(step: Step) -> str:
    match step:
        case Dense(weight=weight):
            return f"dense {weight.shape[1]}→{weight.shape[0]}"
        case Sort(group_size):
            return f"sort in groups of {group_size}"
        case Pointwise(name):
            return name
        case Blend(steps=steps):
            return f"blend with {' · '.join(_name(inner) for inner in steps)}"
        case Members(members=members):
            chain = " · ".join(_name(inner) for inner in members[0])
            return f"sum of {len(members)} members such as {chain}"


@dataclass(frozen=True, eq=False)
class _Single:
    """One feature at a time moves by one."""

    n_features: int

    def through(self, step: Step) -> Change:
        """The change of the units after the first step."""
        if isinstance(step, Dense):
            return Change(step.norms.column_sum, step.norms.column_max)
        ones = np.ones(self.n_features)
        return _grow(step, Change(ones, ones))

    def rows(self, step: Dense) -> Floats:
        """The same for every single unit."""
        return np.abs(step.weight.astype(np.float64))


@dataclass(frozen=True, eq=False)
class _Ball:
    """All features move together, by one as the metric measures it."""

    lipschitz: Floats
    metric: Metric

    def through(self, step: Step) -> Change:
        if not isinstance(step, Dense):
            raise ValueError(
                f"a certificate in the {self.metric}-metric needs a dense first step; got {step}"
            )
        rows = self.rows(step)[:, 0]
        return Change(np.array([total(rows)]), np.array([rows.max()]))

    def rows(self, step: Dense) -> Floats:
        unit = divide(np.abs(step.weight), self.lipschitz)
        found = root(totals(multiply(unit, unit))) if self.metric == "2" else totals(unit)
        return found[:, None]


_Moves = _Single | _Ball


def _enter(steps: tuple[Step, ...], moves: _Moves) -> Change:
    """The change after `steps` when the features make their moves."""
    first = steps[0]
    if isinstance(first, Members):
        parts = [_enter(member, moves) for member in first.members]
        return _follow(steps[1:], _weigh(first.weights, parts))
    return _follow(steps[1:], moves.through(first))


def _outputs(steps: tuple[Step, ...], moves: _Moves, n_in: int) -> Floats:
    """The change of every output: (n_outputs, n_moves)."""
    first = steps[0]
    if len(steps) > 1:
        return _leave(steps[1:], _enter(steps[:1], moves), first.width(n_in))
    if isinstance(first, Members):
        return _weigh_rows(first, [_outputs(member, moves, n_in) for member in first.members])
    if isinstance(first, Dense):
        return moves.rows(first)
    return _tile(moves.through(first), first.width(n_in))


def _leave(steps: tuple[Step, ...], change: Change, n_in: int) -> Floats:
    """The change of every output of `steps`, given the change before them."""
    change, last = _follow(steps[:-1], change), steps[-1]
    n_in = width_after(steps[:-1], n_in)
    if isinstance(last, Members):
        return _weigh_rows(last, [_leave(member, change, n_in) for member in last.members])
    if isinstance(last, Dense):
        return _rows(last.norms, change)
    return _tile(_grow(last, change), last.width(n_in))


def _tile(change: Change, n_outputs: int) -> Floats:
    return np.tile(np.minimum(change.one, change.inf), (n_outputs, 1))


def _follow(steps: tuple[Step, ...], change: Change) -> Change:
    for step in steps:
        change = _grow(step, change)
    return change


def _weigh(weights: tuple[float, ...], parts: list[Change]) -> Change:
    """The change of a weighted sum."""
    return reduce(_sum, (_scale(p, abs(w)) for w, p in zip(weights, parts, strict=True)))


def _weigh_rows(step: Members, parts: list[Floats]) -> Floats:
    return reduce(add, (multiply(abs(w), p) for w, p in zip(step.weights, parts, strict=True)))


def _rows(norms: MatrixNorms, change: Change) -> Floats:
    """Bound of the change of every output of a dense step: (n_out, n_changes)."""
    by_one = multiply(norms.row_max[:, None], np.atleast_1d(change.one))
    by_inf = multiply(norms.row_sum[:, None], np.atleast_1d(change.inf))
    return np.minimum(by_one, by_inf)


def _grow(step: Step, change: Change) -> Change:
    """The largest change after `step`, given the change before it."""
    match step:
        case Dense(norms=norms):
            column, row = norms.column_sum.max(), norms.row_sum.max()
            return Change(
                np.minimum(multiply(column, change.one), multiply(norms.sum, change.inf)),
                np.minimum(multiply(row, change.inf), multiply(norms.max, change.one)),
            )
        case Sort():
            return change
        case Pointwise():
            return _scale(change, step.constant)
        case Blend(keep, weight, steps):
            branch = _follow(steps, change)
            return _sum(_scale(change, abs(keep)), _scale(branch, abs(weight)))
        case Members(weights, members):
            return _weigh(weights, [_follow(member, change) for member in members])


def _scale(change: Change, factor: float) -> Change:
    return Change(multiply(factor, change.one), multiply(factor, change.inf))


def _sum(a: Change, b: Change) -> Change:
    return Change(add(a.one, b.one), add(a.inf, b.inf))


def _compute_all(
    steps: tuple[Step, ...], before: Numbers, precision: str
) -> tuple[Floats, Floats, Numbers]:
    size, error, after = before.size.inf, before.error.inf, before
    for step in steps:
        size, error, after = _compute(step, after, precision)
    return size, error, after


def _compute(step: Step, before: Numbers, precision: str) -> tuple[Floats, Floats, Numbers]:
    """Size and error of every computed output of a step, and what is known of them together."""
    match step:
        case Dense():
            return _compute_dense(step, before, precision)
        case Sort():
            after = before
        case Pointwise():
            after = _compute_pointwise(step, before, precision)
        case Blend():
            after = _compute_blend(step, before, precision)
        case Members():
            return _compute_members(step, before, precision)
    _refuse_overflow(after.size.inf, precision)
    return after.size.inf, after.error.inf, after


def _compute_dense(step: Dense, before: Numbers, precision: str) -> tuple[Floats, Floats, Numbers]:
    unit, tiny, _ = _ARITHMETIC[precision]
    n_out, n_in = step.weight.shape
    bias = np.abs(step.bias.astype(np.float64))
    # A look-up adds twice per column with copies, of which there are two or more, and the sum of
    # the copies that do not move, at most that of their |W_j|, was rounded once, in float32 twice.
    n_roundings = n_in + 1 if before.reach is None else n_in + 2
    g, underflow = gamma(n_roundings, unit), n_roundings * tiny
    # every output: |W_j| · |h| + |b_j|, then gamma times that is what rounding adds
    exact = add(_rows(step.norms, before.size)[:, 0], bias)
    if before.reach is not None:
        exact = np.minimum(exact, add(totals(multiply(np.abs(step.weight), before.reach)), bias))
    fresh = add(multiply(g, exact), underflow)
    size, error = add(exact, fresh), add(_rows(step.norms, before.error)[:, 0], fresh)
    # all outputs together: the 1-norm is often better bounded as a whole
    grown = _grow(step, before.size)
    exact_one = np.minimum(total(exact), add(grown.one, total(bias)))
    fresh_one = add(multiply(g, exact_one), multiply(n_out, underflow))
    error_one = add(_grow(step, before.error).one, fresh_one)
    _refuse_overflow(size, precision)
    after = Numbers(
        Change(add(exact_one, fresh_one), size.max()), Change(error_one, error.max()), n_out
    )
    return size, error, after


def _compute_pointwise(step: Pointwise, before: Numbers, precision: str) -> Numbers:
    unit, tiny, _ = _ARITHMETIC[precision]
    activation = ACTIVATIONS[step.name]
    size = _sum(_scale(before.size, step.constant), _each(activation.at_zero, before.width))
    # a float64 computation that may round a product, then one rounding to the precision
    rounding = _sum(_scale(size, 2 * unit), _each(activation.error + 4 * tiny, before.width))
    error = _sum(_scale(before.error, step.constant), rounding)
    return Numbers(_sum(size, rounding), error, before.width)


def _compute_blend(step: Blend, before: Numbers, precision: str) -> Numbers:
    unit, tiny, _ = _ARITHMETIC[precision]
    branch = _compute_all(step.steps, before, precision)[2]
    keep, weight = abs(step.keep), abs(step.add)
    size = _sum(_scale(before.size, keep), _scale(branch.size, weight))
    rounding = _sum(_scale(size, gamma(2, unit)), _each(3 * tiny, before.width))
    error = _sum(_scale(before.error, keep), _scale(branch.error, weight))
    return Numbers(_sum(size, rounding), _sum(error, rounding), before.width)


def _compute_members(
    step: Members, before: Numbers, precision: str
) -> tuple[Floats, Floats, Numbers]:
    """A term is rounded as a product, then once in every sum that it enters: S times at most."""
    unit, tiny, _ = _ARITHMETIC[precision]
    n = len(step.members)
    g, underflow = gamma(n + 1, unit), (n + 1) * tiny
    parts = [_compute_all(member, before, precision) for member in step.members]
    width = parts[0][2].width
    exact = _weigh_rows(step, [size for size, _, _ in parts])
    fresh = add(multiply(g, exact), underflow)
    size = add(exact, fresh)
    error = add(_weigh_rows(step, [error for _, error, _ in parts]), fresh)
    together = _weigh(step.weights, [numbers.size for _, _, numbers in parts])
    rounding = _sum(_scale(together, g), _each(underflow, width))
    errors = _sum(_weigh(step.weights, [numbers.error for _, _, numbers in parts]), rounding)
    _refuse_overflow(size, precision)
    return size, error, Numbers(_sum(together, rounding), errors, width)


def _each(value: float, width: int) -> Change:
    """The same change of every unit."""
    return Change(multiply(width, value), np.asarray(value))
