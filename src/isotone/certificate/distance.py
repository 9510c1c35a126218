r"""Distance: how far a network in fixed point can be from the one that it was made of.

Both are followed step by step. If their units differ by at most d and W, b became W', b',

.. math:: |W h + b - W' h' - b'| \le |W - W'|\,|h'| + |W|\,d + |b - b'|

where the largest sizes of h' are those of `isotone.certificate.widths`. The bound holds for every
row whose scaled inputs lie within the clip of the network in fixed point, as computed: the
rounding error of the other network, both grids, and inputs in float32 are included. All arithmetic
is rounded upward.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from isotone.certificate import bounds
from isotone.certificate.widths import Whole, WholeNumbers, inputs_of
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, Steps
from isotone.rounding import MatrixNorms, add, multiply, subtract_down, total, totals
from isotone.typing import Floats


def distances(frozen: FrozenNetwork, steps: Steps, fixed: FrozenNetwork) -> Floats:
    """Bounds on how far scores of `frozen` and `fixed` are apart, (n_outputs,).

    Parameters
    ----------
    steps : those of `frozen`, one for each of `fixed`
    """
    inputs, n = inputs_of(fixed), frozen.n_features
    start = _Apart(inputs, np.zeros(n), 0.0)
    g = _Apartness(steps).run(fixed.steps, start)
    of_residual = totals(multiply(_apart(frozen.residual, fixed.residual), inputs.each))
    slopes = add(bounds.slopes(frozen.steps, n), np.abs(frozen.residual))
    # exact: a clip in float32 has 24 bits, and at most 2^51 cells
    moved = _half_a_cell(frozen.grid, fixed.grid) + _by_cast(frozen, inputs.each)
    shifted = totals(multiply(slopes, moved))
    return add(add(g.each, of_residual), add(shifted, bounds.rounding_errors(frozen)))


def _half_a_cell(*grids: float | None) -> float:
    """How far a number on one of two grids is from the same on the other, at most.

    Both are powers of two: the finer one has the borders between cells of the coarser one, if it
    is not the same, and rounding to it crosses none.
    """
    return max(grid for grid in grids if grid) / 2.0


def _by_cast(frozen: FrozenNetwork, sizes: Floats) -> Floats:
    """How far inputs of these sizes move, at most, when they are rounded to float32; exactly."""
    return sizes * 2.0**-24 if frozen.precision == "float32" else np.zeros_like(sizes)


def _apart(a: ArrayLike, b: ArrayLike) -> Floats:
    """Upper bound on |a - b|."""
    return np.maximum(-subtract_down(a, b), -subtract_down(b, a))


@dataclass(frozen=True, eq=False)
class _Apart:
    """Units in fixed point, and how far each is from the other network's, and all together."""

    whole: Whole
    each: Floats
    one: float


class _Apartness(Language[_Apart]):
    """Walks over the steps in fixed point; those of the other network come in the same order."""

    def __init__(self, steps: Steps) -> None:
        self.numbers = WholeNumbers("float64")
        self.others = _in_order(steps)

    def dense(self, step: Dense, h: _Apart) -> _Apart:
        other = next(self.others)
        assert isinstance(other, Dense)
        bias = _apart(other.bias, step.bias)
        lost = MatrixNorms.of(_apart(other.weight, step.weight))
        rounded = _through(_apart(other.weight, step.weight), lost, h.whole.each, h.whole.one)
        carried = _through(np.abs(other.weight), other.norms, h.each, h.one)
        each = add(add(rounded[0], carried[0]), bias)
        one = add(add(rounded[1], carried[1]), total(bias))
        return _Apart(self.numbers.dense(step, h.whole), each, float(one))

    def sort(self, step: Sort, h: _Apart) -> _Apart:
        next(self.others)
        largest = h.each.reshape(-1, step.group_size).max(axis=1)
        each = np.repeat(largest, step.group_size)
        return _Apart(self.numbers.sort(step, h.whole), each, h.one)

    def pointwise(self, step: Pointwise, h: _Apart) -> _Apart:
        other = next(self.others)
        assert isinstance(other, Pointwise)
        rounded = multiply(_apart(other.negative_slope, step.negative_slope), h.whole.each)
        each = add(multiply(other.constant, h.each), rounded)
        one = add(multiply(other.constant, h.one), total(rounded))
        return _Apart(self.numbers.pointwise(step, h.whole), each, float(one))

    def members(self, step: Members, h: _Apart, copies: bool) -> _Apart:
        other = next(self.others)
        assert isinstance(other, Members)
        parts, sizes = self.parts(step, h, copies), np.abs(other.weights)
        lost = _apart(np.array(other.weights), np.array(step.weights))
        each = [
            add(multiply(size, part.each), multiply(less, part.whole.each))
            for size, less, part in zip(sizes, lost, parts, strict=True)
        ]
        whole = WholeNumbers("float64").members(step, h.whole, copies)
        summed: Floats = reduce(add, each)
        return _Apart(whole, summed, total(summed))


def _through(size: Floats, norms: MatrixNorms, each: Floats, one: float) -> tuple[Floats, float]:
    """The most that a matrix makes of units: of every one, and of their sum."""
    found = np.minimum(totals(multiply(size, each)), multiply(norms.row_max, one))
    return found, min(total(found), float(multiply(norms.column_sum.max(), one)))


def _in_order(steps: Steps) -> Iterator[Step]:
    """The steps in the order of the walk, those within one after it."""
    for step in steps:
        yield step
        for inside in step.inside:
            yield from _in_order(inside)
