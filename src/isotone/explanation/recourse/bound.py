r"""Bound: the least that any change that flips a decision can cost, by the certificate.

Moved by d, column i changes the score by at most :math:`W_i(d)`, its certified coordinate, so that
a flip needs :math:`\sum_i W_i(d_i) \ge g` for the gap g to the threshold, less rounding errors.
Divide g into Q levels, and let :math:`c_i(q)` be the least cost at which column i alone can reach
level q. Rounding the share of each of n columns down to a level loses less than n levels in all:

.. math:: \text{cost} \ge \min \Bigl\{ \sum_i c_i(q_i) : \sum_i q_i \ge Q - n + 1 \Bigr\},

which dynamic programming finds. For a single column Q is 1 and nothing is lost.
"""

from __future__ import annotations

import numpy as np

from isotone.certificate.coordinates import SHORTEN, Coordinates
from isotone.certificate.robustness import Decisions
from isotone.explanation.recourse.changes import AllowedChange, ColumnMoves
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category
from isotone.typing import Bools, Floats

_LEVELS = 16  # for every column


def least_costs(
    decisions: Decisions,
    inputs: Inputs,
    changes: dict[str, AllowedChange],
    features: Floats,
    score: Floats,
    movable: Bools,
) -> Floats:
    """Lower bounds on what a flip costs, (n_rows,); infinite where no change can flip.

    Parameters
    ----------
    features : of rows that lie on one side of the threshold
    movable : (n_rows, n_columns), the columns of a model whose values are present
    """
    if not len(features):
        return np.empty(0)
    accepted, gap = decisions.gap(score)
    _, below, above = decisions.sides(accepted)[0 if accepted[0] else 1]
    n = len(changes)
    n_levels = 1 if n == 1 else _LEVELS * n
    levels = np.arange(1, n_levels + 1) / n_levels * (gap * SHORTEN)[:, None]
    moves = ColumnMoves.of(inputs, changes)
    tables = list(_of_moves(moves, below, above, features, levels, movable[:, moves.numbers]))
    for name, change in changes.items():
        if isinstance(inputs.column(name), Category):
            tables.append(_of_category(inputs, name, change, below, above, features, levels))
    cheapest = _combine(tables, n_levels)[:, n_levels - n + 1]
    return np.where(gap > 0, cheapest * SHORTEN, 0.0)


def _of_moves(
    moves: ColumnMoves,
    below: Coordinates,
    above: Coordinates,
    features: Floats,
    levels: Floats,
    movable: Bools,
) -> Floats:
    """Least costs of every level for every column of numbers, (n_columns, n_rows, n_levels)."""
    n_rows, n_levels = levels.shape
    repeated = np.repeat(features, n_levels, axis=0)
    x = features[:, moves.places]
    least = np.full((n_rows, n_levels, len(moves)), np.inf)
    for side, coordinates in ((-1, below), (1, above)):
        distance = coordinates.distance(repeated, levels.ravel(), side)[:, moves.places]
        distance = distance.reshape(least.shape)
        in_steps = moves.whole & (x == np.rint(x))
        steps = np.where(in_steps[:, None], np.ceil(distance * SHORTEN), distance)
        far = np.where(movable, moves.far(x, side), 0.0)[:, None]
        reachable = (distance <= far) & (far > 0)
        least = np.minimum(least, np.where(reachable, steps * moves.cost, np.inf))
    return np.moveaxis(least, 2, 0)


def _of_category(
    inputs: Inputs,
    name: str,
    change: AllowedChange,
    below: Coordinates,
    above: Coordinates,
    features: Floats,
    levels: Floats,
) -> Floats:
    """Least costs of every level for a column of categories, (n_rows, n_levels)."""
    column, first = inputs.column(name), inputs.places[inputs.names.index(name)]
    own = slice(first, first + len(column.features))
    ends = np.zeros((2, features.shape[1]))
    ends[1] = 1.0
    rise, fall = (side.change(ends[:1], ends[1:])[0, own] for side in (above, below))
    gain = features[:, own] @ fall + rise.max()  # from its category to the one that helps most
    return np.where(gain[:, None] / SHORTEN >= levels, change.cost, np.inf)


def _combine(tables: list[Floats], n_levels: int) -> Floats:
    """The least cost at which all columns together reach a level, (n_rows, n_levels + 1)."""
    best = np.full((len(tables[0]), n_levels + 1), np.inf)
    best[:, 0] = 0.0
    for costs in tables:
        found = best.copy()
        for level in range(1, n_levels + 1):
            # with this many levels from one column the others need as many fewer
            before = best[:, np.maximum(np.arange(n_levels + 1) - level, 0)]
            found = np.minimum(found, before + costs[:, level - 1 : level])
        best = found
    return best
