"""The score of a frozen network once more, in NumPy: what the engine must agree with.

For auditors, who can read these lines and `isotone.frozen.steps` in place of a compiled program,
and for tests. In float64 the bits are those of `FrozenNetwork.score`; in float32 the engine may
fuse multiplications with additions, and both are within the certificate's E of the exact score.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.elementary import monotone_exp
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import accumulate, run
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
        result = accumulate(run(frozen.steps, u).copy(), residual, u)
    else:
        cells = copies.cells(table)
        result = copies.accumulate(copies.run(frozen.steps, cells).copy(), residual, cells)
    return result + np.zeros((), result.dtype)  # turns -0.0 into 0.0: sorting may mix them up
