"""Knots of columns of numbers, for a network that sees their copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isotone.checks import is_count
from isotone.estimators.directions import spread
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Number
from isotone.inputs.knots import Knots, place_knots
from isotone.typing import Floats

_CLOSE = 1e-12  # values that differ by less, relative to their size, are one


def check_knots(value: Any, inputs: Inputs) -> dict[str, int]:
    """Numbers of tiles by column, of the columns that have knots: `knots` of an estimator.

    "auto" gives none; they are chosen where λ is, too.
    """
    if value is None or (isinstance(value, str) and value == "auto"):
        return {}
    names = inputs.names
    several = isinstance(value, Mapping) or np.ndim(value) > 0
    entries = spread("knots", value, names, None) if several else [value] * len(names)
    if not all(entry is None or (is_count(entry) and entry > 1) for entry in entries):
        raise ValueError(
            f"`knots={value!r}` must be 'auto', None or whole numbers of at least 2: one, one per "
            "feature, or a dictionary by feature name; choose 32"
        )
    wanted = {n: entry for n, entry in zip(names, entries, strict=True) if entry is not None}
    text = [c.name for c in inputs.columns if not isinstance(c, Number) and c.name in wanted]
    if text and several:
        raise ValueError(
            f"`knots` names the column {text[0]!r}, which holds categories; knots are for columns "
            "of numbers: leave it out"
        )
    return {name: count for name, count in wanted.items() if name not in text}


def knots_of(
    inputs: Inputs, X: Floats, weight: Floats, wanted: Mapping[str, int]
) -> dict[str, Floats]:
    """Knots of the columns that are wanted, but for constant ones.

    Parameters
    ----------
    X : (n_rows, n_features), complete
    weight : (n_rows,), positive
    """
    found = {}
    for name, count in wanted.items():
        x = X[:, inputs.encoded.index(name)]
        if x.min() < x.max():
            found[name] = column_knots(x, weight, count)
    return found


def column_knots(x: Floats, weight: Floats, n_tiles: int) -> Floats:
    """Knots of two or more tiles, from the lowest value to the highest."""
    values, place = np.unique(x, return_inverse=True)
    low, high = (values[0], values[-1]) if len(values) else (0.0, 0.0)
    size = max(abs(low), abs(high))
    if high - low <= max(_CLOSE * size, 1e-290):
        return np.array([low - max(size, 1.0), low, low + max(size, 1.0)])
    total, order = np.zeros(len(values)), np.argsort(weight)  # sums of any order of the rows
    np.add.at(total, place[order], weight[order])
    knots = place_knots(values, total, n_tiles)
    enough = Knots.at([knots]).n_copies > 1
    return knots if enough else np.array([low, low / 2 + high / 2, high])
