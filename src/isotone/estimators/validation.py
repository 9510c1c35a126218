"""Validation: raw tables as scikit-learn checks them, with advice for what is not a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from isotone.inputs.frames import categorical_columns, column_names
from isotone.typing import Floats

_LARGEST = 1e100


def validate(estimator: BaseEstimator, X: Any, *args: Any, **options: Any) -> Any:
    """What `validate_data` gives, with advice for categories and text."""
    refuse_categories(X)
    try:
        return validate_data(
            estimator,
            na_as_nan(X),
            *args,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            **options,
        )
    except (TypeError, ValueError) as error:
        names = text_columns(X)
        text = "could not convert string" in str(error)
        if not names and not text:
            raise
        which = f"the columns {', '.join(names)}" if names else "some columns"
        raise ValueError(
            f"{which} of `X` are not numeric ({str(error)[:80]}); features must be: leave them "
            "out, or encode them, as with OneHotEncoder in a ColumnTransformer"
        ) from error


def text_columns(X: Any) -> list[str]:
    """Names of the columns of a frame that hold text, or other things than numbers."""
    names = column_names(X)
    return [str(name) for name in names if np.asarray(X[name]).dtype.kind not in "biuf"]


def na_as_nan(X: Any) -> Any:
    """A pandas frame with NaN for NA, which scikit-learn cannot read in columns of objects."""
    is_pandas = hasattr(X, "isna") and hasattr(X, "columns")
    has_objects = is_pandas and "object" in map(str, X.dtypes)
    return X.where(X.notna(), np.nan) if has_objects else X


def refuse_categories(X: Any) -> None:
    """Raise `ValueError` if a frame has columns of categories, also of categories like 1 and 2."""
    names = categorical_columns(X)
    if names:
        raise ValueError(
            f"the columns {', '.join(names)} of `X` hold categories, which have no size even "
            "where they are written as numbers; features must be numbers: encode them, as with "
            "OneHotEncoder in a ColumnTransformer, or convert them with astype(float) if they "
            "are quantities"
        )


def refuse_huge(name: str, table: Floats, columns: Sequence[str]) -> None:
    """Raise `ValueError` for numbers whose squares are near overflow."""
    largest = np.abs(np.nan_to_num(table)).max(axis=0, initial=0.0)
    if np.any(largest > _LARGEST):
        column = int(largest.argmax())
        raise ValueError(
            f"`{name}` reaches {largest[column]:g} in {columns[column]!r}; numbers up to "
            f"{_LARGEST:g} can be learned from: choose other units, or drop such rows"
        )
