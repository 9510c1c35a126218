"""Frames: what pandas, polars and Arrow say of a table, read without importing any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def has_names(X: Any) -> bool:
    """Whether `X` is a data frame, an Arrow table or a dictionary of columns."""
    return is_dictionary(X) or hasattr(X, "column_names") or hasattr(X, "columns")


def is_dictionary(X: Any) -> bool:
    """Whether `X` is a dictionary of columns; some sparse matrices of SciPy are dictionaries."""
    return isinstance(X, Mapping) and not hasattr(X, "shape")


def column_names(X: Any) -> list[Any]:
    """Names of the columns of a frame, an Arrow table or a dictionary; none for anything else."""
    if is_dictionary(X):
        return list(X)
    return list(X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ()))


def categorical_columns(X: Any) -> list[str]:
    """Names of the columns that hold categories, whatever the categories look like.

    A category written 3 is a name, not a quantity, so such a column is never read as numbers.
    """
    kinds = X.schema.types if hasattr(X, "column_names") else getattr(X, "dtypes", ())
    return [str(n) for n, kind in zip(column_names(X), kinds, strict=False) if is_category(kind)]


def is_category(kind: Any) -> bool:
    """Whether a column of this type holds categories; told by name, so that nothing is imported.

    >>> [is_category(kind) for kind in ("category", "dictionary<values=int64, ...>", "float64")]
    [True, True, False]
    """
    # pandas, polars twice, Arrow, and pandas with types of Arrow
    return str(kind).lower().startswith(("category", "categorical", "enum", "dictionary"))
