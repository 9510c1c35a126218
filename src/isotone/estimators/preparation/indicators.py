"""Indicators: neighboring columns of zeros and ones of which at most one is 1 in any row.

One-hot encoders make them. Members learn each such run as they learn a column of categories: what
it adds is looked up, at the cost of one column. The model knows nothing of it, and scores rows in
which several of them are 1.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Number
from isotone.typing import Floats


def runs_of(inputs: Inputs, X: Floats, without: Collection[str]) -> tuple[range, ...]:
    """Runs of two or more features that are indicators.

    Parameters
    ----------
    X : (n_rows, n_features), complete
    without : columns that are not to be part of any
    """
    is_bit = ((X == 0) | (X == 1)).all(axis=0)
    taken, found = np.zeros(len(X), bool), [range(0)]
    for k in range(len(inputs.uncompleted)):
        column, is_one = inputs.owner(k), X[:, k] == 1
        usable = is_bit[k] and isinstance(column, Number) and column.fill is None
        if not usable or column.name in without:
            found.append(range(0))
        elif found[-1] and not np.any(taken & is_one):
            found[-1] = range(found[-1].start, k + 1)
            taken |= is_one
        else:
            found.append(range(k, k + 1))
            taken = is_one
    return tuple(run for run in found if len(run) > 1)


def is_run(X: Floats, run: range) -> bool:
    """Whether columns are indicators of these rows, too."""
    own = X[:, run.start : run.stop]
    return bool(np.all((own == 0) | (own == 1)) and np.all(own.sum(axis=1) <= 1))
