"""Validation: raw tables as scikit-learn checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from isotone.typing import Floats

_LARGEST = 1e100


def validate_names(estimator: BaseEstimator, X: Any, reset: bool) -> None:
    """Remember the columns of a table, or check that they are the same."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def validate(estimator: BaseEstimator, X: Any, *args: Any, **options: Any) -> Any:
    """An array of numbers as `validate_data` checks it, with advice for text."""
    kind = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
    try:
        return validate_data(estimator, X, *args, **kind | options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"some columns of `X` are not numeric ({str(error)[:80]}); an array must hold "
            "numbers: give a data frame, whose columns of text are learned as categories"
        ) from error


def refuse_huge(name: str, table: Floats, columns: Sequence[str]) -> None:
    """Raise `ValueError` for numbers whose squares are near overflow."""
    largest = np.abs(np.nan_to_num(table)).max(axis=0, initial=0.0)
    if np.any(largest > _LARGEST):
        column = int(largest.argmax())
        raise ValueError(
            f"`{name}` reaches {largest[column]:g} in {columns[column]!r}; numbers up to "
            f"{_LARGEST:g} can be learned from: choose other units, or drop such rows"
        )
