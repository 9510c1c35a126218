"""Validation: raw tables as scikit-learn checks them, dense or sparse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from isotone import limits
from isotone.inputs.cells import arrow_of
from isotone.inputs.frames import column_names, is_dictionary, of_one_length
from isotone.typing import Floats, Reals

MOST_DENSE = 2**31  # bytes of a sparse table to learn from, once it is dense; copies come on top
_CELLS = 2**22  # of a sparse table to be scored that are dense at a time


@dataclass(frozen=True, eq=False, slots=True)
class SparseTable:
    """Sparse rows as a table like those of Arrow, of which a few rows at a time are dense."""

    rows: csr_array | csr_matrix
    column_names: list[str]

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, pa.float64()) for name in self.column_names])

    def select(self, names: list[str]) -> SparseTable:
        """The table itself, of which all columns are used."""
        assert names == self.column_names
        return self

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        step = max(_CELLS // len(self.column_names), 1)
        for start in range(0, len(self), step):
            dense = self.rows[start : start + step].toarray() + 0.0
            yield pa.RecordBatch.from_arrays(list(map(pa.array, dense.T)), self.column_names)


def densified(X: Any) -> Any:
    """A sparse table of SciPy as an array, if that is small enough; others as they are."""
    if not issparse(X):
        return X
    needed = 8 * int(np.prod(X.shape, dtype=object))
    if needed > MOST_DENSE:
        raise ValueError(
            f"`X` is sparse and of shape {X.shape}; learning needs all of its entries, which "
            f"would take {needed / 2**30:.1f} GiB of memory as float64, but at most "
            f"{MOST_DENSE / 2**30:g} GiB are allowed: select columns or rows, or reduce the "
            "columns, as sklearn.decomposition.TruncatedSVD does"
        )
    return X.toarray()


def framed(X: Any) -> Any:
    """A dictionary of columns as a table of Arrow; anything else as it is, but no path."""
    if isinstance(X, str | Path):
        raise TypeError(
            f"`X` is the path {str(X)!r}; only `fit` reads files: give a table, or score files "
            "with `isotone score`"
        )
    if not is_dictionary(X):
        return X
    names = [str(name) for name in X]
    columns = of_one_length(dict(zip(names, X.values(), strict=True)))
    return pa.table([arrow_of(c, n) for c, n in zip(columns, names, strict=True)], names=names)


def by_names(X: Floats, names: Sequence[str]) -> dict[str, Floats]:
    """An array as a dictionary of columns, some of which hold numbers as categories."""
    return dict(zip(names, (X + 0.0).T, strict=True))  # -0.0 and 0.0 are one category


def validate_names(estimator: BaseEstimator, X: Any, reset: bool) -> None:
    """Remember the columns of a table, or check that they are the same."""
    names = column_names(X)
    if not names:
        raise ValueError("`X` has no columns; it must have some: select columns to learn from")
    if len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise ValueError(
            f"column {twice!r} occurs {names.count(twice)} times in `X`; every column needs a "
            "name of its own: rename or drop the others"
        )
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


def row_weights(estimator: Any, X: Any, sample_weight: Any) -> Floats:
    """A weight for every row, none of them negative unless the estimator takes such."""
    if not _num_samples(X):
        raise ValueError("`X` has no rows; it must have some: check how they were selected")
    weight: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if not estimator.signed_weights and np.any(weight < 0):
        row = int(np.argmax(weight < 0))
        raise ValueError(
            f"Negative values in `sample_weight`: {weight[row]:g} in row {row} (counted from 0); "
            "a weight says how often a row counts, so it must be at least 0: correct it, or set "
            "signed_weights=True if negative weights are intended, as in sWeights"
        )
    return weight


def refuse_missing_classes(y: Any) -> None:
    """Raise `ValueError` if some class is None or the NA of pandas, which do not sort."""
    labels = np.asarray(y)
    known = labels.dtype != object or labels.ndim != 1
    kinds = [] if known else [type(label).__name__ for label in labels]
    row = next((k for k, kind in enumerate(kinds) if kind in ("NoneType", "NAType")), None)
    if row is not None:
        raise ValueError(
            f"`y` is {labels[row]} in row {row} (counted from 0); a classifier learns "
            "from rows whose class is known: drop the others, or give 'unknown' as their class"
        )


def refuse_infinite(table: Reals, columns: Sequence[str]) -> None:
    """Raise `ValueError` for infinite numbers."""
    bad = np.isinf(table)
    if bad.any():
        row, column = (int(index) for index in np.argwhere(bad)[0])
        raise ValueError(
            f"column {columns[column]!r} is {table[row, column]} in row {row} (counted from 0); "
            "only finite numbers can be used: drop such rows, or set the value to missing"
        )


def refuse_huge(name: str, table: Floats, columns: Sequence[str]) -> None:
    """Raise `ValueError` for numbers whose squares are near overflow."""
    largest = np.fmax.reduce(np.abs(table), axis=0, initial=0.0)  # of those that are not missing
    if np.any(largest > limits.NUMBER):
        column = int(largest.argmax())
        raise ValueError(
            f"`{name}` reaches {largest[column]:g} in {columns[column]!r}; numbers up to "
            f"{limits.NUMBER:g} can be used: choose other units, or drop such rows"
        )
