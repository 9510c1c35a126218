"""Columns of a raw table, as an estimator takes them: numbers, categories, ordered categories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isotone.checks import is_count, suggest
from isotone.estimators.pooling import Rarity
from isotone.inputs.cells import arrow_of, is_text, labels, numbers_of
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, Ordered, missing_name
from isotone.inputs.frames import column_names, is_category
from isotone.typing import Floats, Signs

MAX_CATEGORIES = 64


def find_inputs(
    X: Any,
    names: Sequence[str],
    rarity: Rarity,
    categories: Collection[str] | None = (),
) -> Inputs:
    """What every column of a table holds.

    Parameters
    ----------
    rarity : which categories are pooled
    categories : columns that hold categories, whatever their type; None if no column may
    """
    cells = zip((X[label] for label in column_names(X)), names, strict=True)
    columns = tuple(_column(column, name, categories or (), rarity) for column, name in cells)
    if categories is None:
        _refuse_categories(columns)
    return Inputs(columns)


def _column(cells: Any, name: str, categories: Collection[str], rarity: Rarity) -> Column:
    """Ordered categories if the type says so, numbers if there is no other text, categories."""
    kind = getattr(cells, "type", getattr(cells, "dtype", ""))
    column = arrow_of(cells, name)
    if name in categories:
        return _category(column, name, rarity)
    if is_category(kind):
        if column.type.ordered:
            return Ordered(name, tuple(labels(column.dictionary, name).to_pylist()))
        return _category(column, name, rarity)
    if not is_text(column.type) or not np.isinf(numbers_of(column.unique(), name)).any():
        return Number(name)
    return _category(column, name, rarity)


def _refuse_categories(columns: Sequence[Column]) -> None:
    for column in columns:
        if isinstance(column, Category):
            raise ValueError(
                f"column {column.name!r} holds categories, but `categorical_features=None` says "
                "that no column does; drop it, turn it into numbers, or use 'from_dtype'"
            )


def check_categories(
    value: Any, labels: Sequence[Any] | None, features: Sequence[str]
) -> frozenset[str] | None:
    """Names of the columns that `categorical_features` lists; None if none may hold categories.

    Parameters
    ----------
    labels : of the columns of a frame; None for an array, whose columns have positions only
    """
    if value is None:
        return None
    if isinstance(value, str) and value == "from_dtype":
        return frozenset()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(
            f"`categorical_features={value!r}` must be 'from_dtype', None, or a list of names, of "
            f"positions, or of True and False for every column; give a list, such as [{value!r}]"
        )
    entries = list(value)
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        return _masked(entries, features)
    places = (position("categorical_features", entry, labels, features) for entry in entries)
    return frozenset(features[place] for place in places)


def _masked(mask: Sequence[Any], features: Sequence[str]) -> frozenset[str]:
    if len(mask) != len(features):
        raise ValueError(
            f"`categorical_features` has {len(mask)} entries of True and False but `X` has "
            f"{len(features)} columns; give one per column, or a list of names or positions"
        )
    return frozenset(name for name, chosen in zip(features, mask, strict=True) if chosen)


def position(name: str, entry: Any, labels: Sequence[Any] | None, features: Sequence[str]) -> int:
    """Where a column stands that a parameter names; in a frame with numbers as names by those."""
    known = list(labels or ())
    if entry in known:
        return known.index(entry)
    numbered = any(isinstance(label, Integral) for label in known)
    if is_count(entry, least=0) and not numbered and entry < len(features):
        return int(entry)
    if isinstance(entry, str) and labels is None:
        raise ValueError(
            f"`{name}` names the column {entry!r} but `X` is an array, whose "
            f"{len(features)} columns have no names; give positions, or a frame"
        )
    hint = "use these." if numbered else f"use these, or positions from 0 to {len(features) - 1}."
    if isinstance(entry, str):
        hint = suggest(entry, features, hint, cutoff=0.5)
    raise ValueError(
        f"`{name}` holds {entry!r}, which is not a column of `X`; its "
        f"{len(features)} columns are {', '.join(features[:20])}: {hint}"
    )


def _category(column: pa.Array, name: str, rarity: Rarity) -> Category:
    """Texts in alphabetical order, then None for a missing value, and how many are pooled."""
    cells = labels(column, name)
    found = set(pc.unique(cells).to_pylist())
    if found <= {None}:
        raise ValueError(f"column {name!r} is empty, so nothing can be learned from it; drop it")
    rare = rarity.rare(cells, name)
    kept = found - rare
    if len(kept) + bool(rare) > MAX_CATEGORIES:
        raise ValueError(
            f"column {name!r} holds more than {MAX_CATEGORIES} categories, each of which would "
            "become a feature; leave it out, or pool rare categories with a larger "
            "`min_frequency`, on the command line `--min-frequency`"
        )
    texts = sorted(text for text in kept if text is not None)
    return Category(name, (*texts, *([None] if None in found else [])), len(rare))


def fills_of(inputs: Inputs, X: Floats, weight: Floats) -> dict[str, float]:
    """Medians of the columns with missing values among rows that count, by name.

    Parameters
    ----------
    X : (n_rows, n_features), features without indicators
    """
    counts, fills, place = weight > 0, {}, 0
    for column in inputs.columns:
        x = X[counts, place]
        place += len(column.features)
        if not isinstance(column, Category) and np.isnan(x).any():
            fills[column.name] = _median(x, weight[counts])
    return fills


def _median(x: Floats, weight: Floats) -> float:
    present = np.argsort(weight)  # so that the order of the rows changes no sum of weights
    present = present[~np.isnan(x[present])]
    if len(present) == 0:
        return 0.0
    quantile = np.quantile(x[present], 0.5, method="inverted_cdf", weights=weight[present])
    return float(quantile)


def refuse_missing(inputs: Inputs, X: Floats) -> None:
    """Raise `ValueError` if a value is missing."""
    for k, name in enumerate(inputs.uncompleted):
        column = inputs.owner(k)
        own = isinstance(column, Category) and name == missing_name(column.name)
        gaps = X[:, k] > 0 if own else np.isnan(X[:, k])
        if gaps.any():
            raise ValueError(
                f"`X` has {gaps.sum()} missing values (NaN) in feature {column.name!r}, the first "
                f"in row {int(gaps.argmax())} (counted from 0); missing='error' refuses them: "
                "fill or drop such rows, or set missing='indicator'"
            )


def spread_directions(directions: Signs, missing: Signs, inputs: Inputs) -> Signs:
    """Directions of columns and of their missing values as those of all features.

    Parameters
    ----------
    directions, missing : (n_outputs, n_columns)
    """
    for i, column in enumerate(inputs.columns):
        if isinstance(column, Category) and directions[:, i].any():
            raise ValueError(
                f"`monotonic_cst` gives a direction to {column.name!r}, but {column.name!r} holds "
                "categories without an order; make it an ordered category, as with "
                "pandas.CategoricalDtype([...], ordered=True), or leave the direction out"
            )
    names, flags = inputs.encoded, [missing_name(name) for name in inputs.names]
    is_flag = [name == flags[owner] for name, owner in zip(names, inputs.owners, strict=True)]
    return np.where(is_flag, missing[:, inputs.owners], directions[:, inputs.owners])
