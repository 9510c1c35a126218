"""Frames: what pandas, polars and Arrow say about a table, read without importing any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def has_names(X: Any) -> bool:
    """Whether `X` is a data frame, an Arrow table or a dictionary of columns.

    What only describes a table, is a part of one, or holds it row by row, raises `TypeError`.
    """
    if hasattr(X, "to_frame") and getattr(X, "ndim", 1) == 1:  # of pandas or polars
        raise TypeError(
            f"`X` is one column or one row, of type {type(X).__name__}; it must be a table: give "
            "X.to_frame(), or X.to_frame().T if X is a row"
        )
    if type(X).__name__ == "LazyFrame":
        raise TypeError("`X` is a LazyFrame, which holds no rows yet; it must: collect() it first")
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        raise TypeError(
            "`X` is a list of records; a table must come column by column: give a data frame, "
            "such as pandas.DataFrame(X)"
        )
    return is_dictionary(X) or _is_arrow(X) or hasattr(X, "columns")


def is_dictionary(X: Any) -> bool:
    """Whether `X` is a dictionary of columns; some sparse matrices of SciPy are dictionaries."""
    return isinstance(X, Mapping) and not hasattr(X, "shape")


def _is_arrow(X: Any) -> bool:
    """Whether `X` is a table like those of Arrow; a frame may have a column of that name."""
    return hasattr(type(X), "column_names")


def column_names(X: Any) -> list[Any]:
    """Names of the columns of a frame, an Arrow table or a dictionary; none for anything else."""
    if is_dictionary(X):
        return list(X)
    return list(X.schema.names if _is_arrow(X) else getattr(X, "columns", ()))


def of_one_length(columns: Mapping[str, Any]) -> list[Any]:
    """The columns, by name, if each holds as many values as the first."""
    for name, values in columns.items():
        refuse_scalars(values, name)
    lengths = {name: len(values) for name, values in columns.items()}
    first = next(iter(lengths), "")
    for name, length in lengths.items():
        if length != lengths[first]:
            raise ValueError(
                f"column {name!r} has {length} values but column {first!r} has "
                f"{lengths[first]}; a row needs one of each: give columns of one length"
            )
    return list(columns.values())


def refuse_scalars(values: Any, name: str) -> None:
    """Raise `ValueError` unless there is one value per row."""
    is_list = hasattr(values, "__len__") and getattr(values, "ndim", 1) == 1
    if isinstance(values, str | bytes) or not is_list:
        raise ValueError(
            f"column {name!r} is {values!r:.50}; a column must hold one value per row: give a "
            "list, even for one row"
        )


def categorical_columns(X: Any) -> list[str]:
    """Names of the columns that hold categories, whatever the categories look like.

    A category written 3 is a name, not a quantity, so such a column is never read as numbers.
    """
    kinds = X.schema.types if _is_arrow(X) else getattr(X, "dtypes", ())
    return [str(n) for n, kind in zip(column_names(X), kinds, strict=False) if is_category(kind)]


def is_category(kind: Any) -> bool:
    """Whether a column of this type holds categories; told by name, so that nothing is imported.

    >>> [is_category(kind) for kind in ("category", "dictionary<values=int64, ...>", "float64")]
    [True, True, False]
    """
    if isinstance(kind, np.dtype):  # whose name takes microseconds
        return False
    # pandas, polars twice, Arrow, and pandas with types of Arrow
    return str(kind).lower().startswith(("category", "categorical", "enum", "dictionary"))
