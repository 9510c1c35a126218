"""Bounds of slopes and of rounding errors, from the stored numbers of a frozen network alone.

Both are about how far a change can grow on its way through the steps. A change of the units is
followed in two norms at once, the sum and the largest of its absolute entries; GroupSort enlarges
neither, and a dense step with matrix W obeys

    one' ≤ min(one · max column sum, inf · sum of all entries)
    inf' ≤ min(inf · max row sum, one · max entry)

so that the 1-norm chain of the paper, Eq. 6, and the ∞ chain are both contained, whichever the
network was trained with, and the better one counts. All arithmetic is rounded upward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import ACTIVATIONS, Blend, Dense, Pointwise, Sort, Step, width_after
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


def slopes(steps: tuple[Step, ...], n_features: int) -> Floats:
    r"""Bounds of the slope :math:`|\partial g_j / \partial x_i|`, (n_outputs, n_features)."""
    return _leave(steps, _single_features(steps, n_features), width_after(steps, n_features))


def rival_slopes(steps: tuple[Step, ...], n_features: int, k: int) -> Floats:
    r"""Bounds of :math:`|\partial (g_k - g_l) / \partial x_i|` for all l, (n_outputs, n_features).

    Outputs that read the same units differ less than the sum of their slopes.
    """
    each = slopes(steps, n_features)
    apart, last = add(each[k], each), steps[-1]
    if not isinstance(last, Dense):
        return apart
    weight = last.weight.astype(np.float64)
    with np.errstate(over="ignore"):
        difference = add(np.abs(weight[k] - weight), np.abs(weight[k] - weight) * 2.0**-52)
    if not np.all(np.isfinite(difference)):
        return apart
    joint = slopes((*steps[:-1], Dense(difference, np.zeros(len(weight)))), n_features)
    return np.minimum(apart, joint)


def constants(steps: tuple[Step, ...], lipschitz: Floats, metric: Metric) -> Floats:
    r"""Bounds of every output's Lipschitz constant when inputs are measured in units of 1/λᵢ.

    The smallest :math:`c_j` found with :math:`|g_j(x) - g_j(y)| \le c_j \|\Lambda(x - y)\|_p`;
    a network keeps what it claims if all are at most 1.
    """
    if metric == "1":
        largest: Floats = divide(slopes(steps, len(lipschitz)), lipschitz).max(axis=1)
        return largest
    first = steps[0]
    if not isinstance(first, Dense):
        raise ValueError(
            f"a certificate in the {metric}-metric needs a dense first step; got {first}"
        )
    unit = divide(np.abs(first.weight), lipschitz)
    rows = root(totals(multiply(unit, unit))) if metric == "2" else totals(unit)
    if len(steps) == 1:
        return rows
    start = Change(np.array([total(rows)]), np.array([rows.max()]))
    return _leave(steps, start, width_after(steps, len(lipschitz)))[:, 0]


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
    g_size, g_error = reach, zero
    for step in frozen.steps:
        g_size, g_error, numbers = _compute(step, numbers, frozen.precision)
    unit, tiny, _ = _ARITHMETIC[frozen.precision]
    size = add(g_size, multiply(totals(np.abs(frozen.residual)), reach))
    error = add(add(multiply(gamma(n + 1, unit), size), (n + 1) * tiny), g_error)
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


def _single_features(steps: tuple[Step, ...], n_features: int) -> Change:
    """The change of the units after the first step when one feature at a time moves by one."""
    if isinstance(steps[0], Dense):
        return Change(steps[0].norms.column_sum, steps[0].norms.column_max)
    return _grow(steps[0], Change(np.ones(n_features), np.ones(n_features)))


def _leave(steps: tuple[Step, ...], change: Change, n_outputs: int) -> Floats:
    """Follow changes from the second step to the outputs: (n_outputs, n_changes)."""
    first, last = steps[0], steps[-1]
    if len(steps) == 1 and isinstance(first, Dense):
        return np.abs(first.weight.astype(np.float64))
    for step in steps[1:-1]:
        change = _grow(step, change)
    if len(steps) > 1 and isinstance(last, Dense):
        return _rows(last.norms, change)
    change = _grow(last, change) if len(steps) > 1 else change
    return np.tile(np.minimum(change.one, change.inf), (n_outputs, 1))


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
            branch = change
            for inner in steps:
                branch = _grow(inner, branch)
            return _sum(_scale(change, abs(keep)), _scale(branch, abs(weight)))


def _scale(change: Change, factor: float) -> Change:
    return Change(multiply(factor, change.one), multiply(factor, change.inf))


def _sum(a: Change, b: Change) -> Change:
    return Change(add(a.one, b.one), add(a.inf, b.inf))


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
    _refuse_overflow(after.size.inf, precision)
    return after.size.inf, after.error.inf, after


def _compute_dense(step: Dense, before: Numbers, precision: str) -> tuple[Floats, Floats, Numbers]:
    unit, tiny, _ = _ARITHMETIC[precision]
    n_out, n_in = step.weight.shape
    bias = np.abs(step.bias.astype(np.float64))
    g, underflow = gamma(n_in + 1, unit), (n_in + 1) * tiny
    # every output: |W_j| · |h| + |b_j|, then gamma times that is what rounding adds
    exact = add(_rows(step.norms, before.size)[:, 0], bias)
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
    branch = before
    for inner in step.steps:
        branch = _compute(inner, branch, precision)[2]
    keep, weight = abs(step.keep), abs(step.add)
    size = _sum(_scale(before.size, keep), _scale(branch.size, weight))
    rounding = _sum(_scale(size, gamma(2, unit)), _each(3 * tiny, before.width))
    error = _sum(_scale(before.error, keep), _scale(branch.error, weight))
    return Numbers(_sum(size, rounding), _sum(error, rounding), before.width)


def _each(value: float, width: int) -> Change:
    """The same change of every unit."""
    return Change(multiply(width, value), np.asarray(value))
