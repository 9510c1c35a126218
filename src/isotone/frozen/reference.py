"""Reference: the score of a frozen network again, in NumPy, which the engine must agree with.

For auditors, who can read these lines in place of a compiled program, and for tests. In float64
the bits are those of `FrozenNetwork.score`; in float32 the engine may fuse multiplications with
additions, and both are within the certificate's E of the exact score.

A batch is held with one row per unit and one column per event. Every number is computed by the
same sequence of elementwise operations whatever the batch, so the score of an event never depends
on its neighbors; a matrix product of a library would not give that.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.elementary import monotone_exp
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.lookup import Cells, Copies
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.typing import Floats, Reals

_BLOCK = 1024  # rows at a time


@ieee_arithmetic()
def score(frozen: FrozenNetwork, X: Any) -> Reals:
    """Score raw rows, as `FrozenNetwork.score` does."""
    table = frozen.encode(X)
    scores = np.empty((len(table), frozen.n_outputs), frozen.precision)
    for start in range(0, len(table), _BLOCK):
        rows = slice(start, start + _BLOCK)
        scores[rows] = _forward(frozen, table[rows]).T
    return scores[:, 0] if frozen.n_outputs == 1 else scores


@ieee_arithmetic()
def probability(logits: Reals) -> Floats:
    """Logistic function of logits (n_rows,), softmax of (n_rows, n_classes)."""
    z = logits.astype(np.float64)
    if z.ndim == 1:
        return 1.0 / (1.0 + monotone_exp(-z))
    probabilities = np.empty_like(z)
    for k in range(z.shape[1]):
        total = np.zeros(len(z))
        for other in range(z.shape[1]):
            total = total + monotone_exp(z[:, other] - z[:, k])
        probabilities[:, k] = 1.0 / total
    return probabilities


def _forward(frozen: FrozenNetwork, table: Reals) -> Reals:
    residual, copies = frozen.residual.astype(frozen.precision), frozen.copies
    if copies is None:
        u = np.ascontiguousarray(frozen.snap(table).T)
        units = Units(in_parts=sums_in_parts(frozen))
        result = units.add_residual(units.run(frozen.steps, u).copy(), residual, u)
    else:
        cells = copies.cells(table)
        units = Units(copies, cells, sums_in_parts(frozen))
        g = units.run(frozen.steps, cells.phi, copies=True)
        result = accumulate_cells(g.copy(), residual, copies, cells)
    return result + np.zeros((), result.dtype)  # turns -0.0 into 0.0: sorting may mix them up


class Units(Language[Reals]):
    """The numbers of the units, (n_units, n_rows).

    Parameters
    ----------
    copies, cells : where dense steps on copies of columns look up what to add
    in_parts : see `sums_in_parts`
    """

    def __init__(
        self, copies: Copies | None = None, cells: Cells | None = None, in_parts: bool = False
    ) -> None:
        self.copies, self.cells, self.in_parts = copies, cells, in_parts

    def dense(self, step: Dense, h: Reals) -> Reals:
        """Within a part input after input, the first one from the bias on; then the parts."""
        result = _repeat(step.bias, h)
        n_out, n_in = step.weight.shape
        for part in parts_of(n_in, n_out, self.in_parts):
            start = np.zeros_like(result) if part.start else result
            found = accumulate(start, step.weight[:, part], h[part])
            result = result + found if part.start else found
        return result

    def add_residual(self, g: Reals, residual: Reals, u: Reals) -> Reals:
        """g + r u: input after input, or the sum of the inputs first."""
        if self.in_parts:
            return g + accumulate(np.zeros_like(g), residual, u)
        return accumulate(g, residual, u)

    def look_up(self, step: Dense, h: Reals) -> Reals:
        assert self.copies is not None
        assert self.cells is not None
        return accumulate_cells(_repeat(step.bias, h), step.weight, self.copies, self.cells)

    def sort(self, step: Sort, h: Reals) -> Reals:
        groups = h.reshape(-1, step.group_size, h.shape[1])
        return np.sort(groups, axis=1).reshape(h.shape)

    def pointwise(self, step: Pointwise, h: Reals) -> Reals:
        wide = h.astype(np.float64)
        return ACTIVATIONS[step.name].function(wide, step.negative_slope).astype(h.dtype)

    def members(self, step: Members, h: Reals, copies: bool) -> Reals:
        parts = zip(step.weights, self.parts(step, h, copies), strict=True)
        return reduce(np.add, (np.multiply(w, part, dtype=h.dtype) for w, part in parts))


def sums_in_parts(frozen: FrozenNetwork) -> bool:
    """Whether long sums are formed in parts, which errs less: in float32, if there is a grid."""
    return frozen.precision == "float32" and frozen.grid is not None


def parts_of(n_in: int, n_out: int, in_parts: bool) -> list[slice]:
    """The inputs of a dense step in equal parts: two or more of at most 32.

    Of at most 8 if there is one output, as these cost little; only one if there are 8 inputs.
    """
    most = 8 if n_out == 1 else 32
    n_parts = max(2, -(-n_in // most)) if in_parts and n_in > 8 else 1
    size = -(-n_in // n_parts)
    return [slice(start, min(start + size, n_in)) for start in range(0, n_in, size)]


def _repeat(bias: Reals, h: Reals) -> Reals:
    return np.repeat(bias[:, None], h.shape[1], axis=1)


def accumulate(result: Reals, weight: Reals, h: Reals) -> Reals:
    """Add W h to `result` in place, input after input, in the same order for every event."""
    product = np.empty_like(result)
    for k in range(weight.shape[1]):
        np.multiply(weight[:, k, None], h[k], out=product)
        result += product
    return result


def accumulate_cells(result: Reals, weight: Reals, copies: Copies, cells: Cells) -> Reals:
    """Add W φ to `result` in place, column after column, C before the copy that moves."""
    table = copies.sums(weight)
    for s, several in enumerate(copies.is_several):
        if several:
            result += table[:, cells.index[s]]
        result += weight[:, cells.index[s]] * cells.phi[s]
    return result
