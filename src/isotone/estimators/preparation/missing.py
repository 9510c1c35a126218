"""Missing values with a direction: what stands in for them, and what the promise takes.

"A missing income is never better than any income" needs a fill from which no value can do worse.
Along a column with a direction that is an end of its values: the lowest if more is better. A
network has to know this end, so columns of numbers get knots, beyond which scores are
constant, unless a logarithm has its floor there. Without a direction of the column the fill
stands in the middle, and the indicator needs a least slope: as much as the score can change from
there to any value. The same holds for categories, of which missing is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isotone.certificate.missing import value_range
from isotone.estimators.columns import fills_of
from isotone.estimators.preparation.knots import column_knots
from isotone.estimators.preparation.view import View
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, Ordered, missing_name
from isotone.typing import Floats, Signs

N_TILES = 8  # of columns with a direction; others have two, as the least slope grows with them
_SURPLUS = 1.0 + 2.0**-5  # of a least slope: inputs are rounded to a grid of at most 2⁻⁶


@dataclass(frozen=True, eq=False)
class Completed:
    """Columns with fills, their features, and where columns of numbers must have knots."""

    inputs: Inputs
    X: Floats
    knots: Mapping[str, Floats]


def complete(
    inputs: Inputs,
    X: Floats,
    weight: Floats,
    directions: Signs,
    missing: Signs,
    n_tiles: Mapping[str, int],
) -> Completed:
    """Give every column a fill that needs one: the median, or where a direction wants it.

    Parameters
    ----------
    X : (n_rows, n_features), features without indicators, NaN where values are missing
    directions, missing : (n_outputs, n_columns), of the columns and of their missing values
    n_tiles : by name, of columns that are to have tiles
    """
    inputs, X = _with_categories(inputs, X, missing)
    fills, knots = fills_of(inputs, X, weight), {}
    for i in np.flatnonzero(missing.any(axis=0)).tolist():
        column, place = inputs.columns[i], _place(directions[:, i], missing[:, i])
        if isinstance(column, Ordered):
            fills[column.name] = (len(column.categories) - 1) * place
        elif isinstance(column, Number):
            x = X[:, inputs.uncompleted.index(column.name)]
            present = ~np.isnan(x) & (weight > 0)
            most = 2 if place == 0.5 else n_tiles.get(column.name, N_TILES)
            own = column_knots(x[present], weight[present], most)
            knots[column.name] = own
            fills[column.name] = float(own[round((len(own) - 1) * place)])
    inputs = inputs.with_fills(fills)
    return Completed(inputs, np.column_stack(inputs.complete(list(X.T))), knots)


def refuse_directed(missing: Signs, names: Sequence[str]) -> None:
    """Raise `ValueError` if missing values have a direction, where they are refused."""
    if missing.any():
        name = names[int(missing.any(axis=0).argmax())]
        raise ValueError(
            f"`monotonic_cst` gives a direction to 'missing({name})', but missing='error' refuses "
            "missing values; set missing='indicator', or leave the direction out"
        )


def _place(directions: Signs, missing: Signs) -> float:
    """Where the fill stands among the values: at 0, the lowest, at 1, the highest, or between."""
    wanted = set((directions * missing)[missing != 0].tolist())
    return (wanted.pop() + 1) / 2 if len(wanted) == 1 else 0.5


def _with_categories(inputs: Inputs, X: Floats, missing: Signs) -> tuple[Inputs, Floats]:
    """A category for missing values where these have a direction and training has none."""
    columns = list(inputs.columns)
    for i in np.flatnonzero(missing.any(axis=0)).tolist():
        column = columns[i]
        if isinstance(column, Category) and None not in column.categories:
            place = sum(len(c.features) for c in columns[:i]) + len(column.categories)
            columns[i] = replace(column, categories=(*column.categories, None))
            X = np.insert(X, place, 0.0, axis=1)
    return Inputs(tuple(columns)), X


def reaches(view: View, inputs: Inputs, directions: Signs, missing: Signs) -> dict[int, Floats]:
    """How far inputs may be moved when a value is taken away that has no direction.

    For the input of every indicator that needs a least slope, (n_values, n_inputs), in units
    of 1/λ. Where the fill is in the middle although some outputs have a direction along the
    column, their residuals move differences of logits by another λ each.
    """
    found = {}
    for i in np.flatnonzero(missing.any(axis=0)).tolist():
        column = inputs.columns[i]
        if isinstance(column, Category) or _place(directions[:, i], missing[:, i]) == 0.5:
            feature = inputs.encoded.index(missing_name(column.name))
            own = int(np.searchsorted(view.sources, feature))
            n_directed = min(int(np.count_nonzero(directions[:, i])), 2)
            found[own] = (1 + n_directed) * _moves(view, inputs, column, own)
    return found


def _moves(view: View, inputs: Inputs, column: Column, indicator: int) -> Floats:
    u = view.transform(_missing_rows(inputs, column))
    moves: Floats = np.abs(u[1:] - u[0]) * _SURPLUS
    moves[:, indicator] = 0.0
    return moves


def _missing_rows(inputs: Inputs, column: Column) -> Floats:
    """Features of a row in which the value is missing, and of others; all else is 0.

    The others have the lowest and the highest value of the column, or every category.
    """
    encoded = inputs.encoded
    indicator = encoded.index(missing_name(column.name))
    if isinstance(column, Category):
        own = [encoded.index(name) for name in column.features]
        rows = np.eye(len(encoded))
        return rows[[indicator, *(k for k in own if k != indicator)]]
    rows = np.zeros((3, len(encoded)))
    rows[0, indicator] = 1.0
    rows[:, encoded.index(column.name)] = column.fill, *value_range(column)
    return rows
