"""Encoding: how the columns of a table become the features of a network.

Numbers stay as they are. A column of categories becomes one feature per category, 1 in the rows
that have it and 0 in others. A gap in a column of numbers is filled, and flagged by an indicator
behind all other features, as in `isotone.inputs.missing`; a gap among categories is one more
category.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isotone.data.table import Table, decoded, floats
from isotone.elementary import Floats
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.cells import truths_as_numbers
from isotone.inputs.missing import Missing

MAX_CATEGORIES = 64
# How people write that there is no number.
_BLANK = pa.array(["", "-", "?", "na", "n/a", "#n/a", "nan", "null", "none"])


@dataclass(frozen=True)
class Encoding:
    """What a row of a table must go through before a network can score it.

    Parameters
    ----------
    columns : of the table, in the order of the features
    categories : those of every column that holds categories, None for a gap
    fills : what stands in for a gap, for the columns of numbers that may have gaps
    """

    columns: tuple[str, ...]
    categories: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    fills: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def fit(cls, table: Table, columns: Sequence[str], categorical: Sequence[str]) -> Encoding:
        """Find the categories of some columns; this reads them once."""
        found: dict[str, set[str | None]] = {name: set() for name in categorical}
        for batch in table.batches(categorical) if categorical else ():
            for name, seen in found.items():
                seen |= set(pc.unique(labels(batch.column(name))).to_pylist())
                _check_number(name, len(seen))
        return cls(tuple(columns), {name: _in_order(seen) for name, seen in found.items()})

    @classmethod
    def of(cls, frozen: FrozenNetwork) -> Encoding:
        """What a model file says about its table; columns of numbers if it says nothing."""
        stored = frozen.provenance.get("encoding")
        if stored is None:
            return cls(frozen.features)
        try:
            encoding = cls(
                tuple(stored["columns"]),
                {name: tuple(found) for name, found in stored["categories"].items()},
                {name: float(fill) for name, fill in stored["fills"].items()},
            )
            fits = encoding.features == frozen.features
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"the model's encoding cannot be read ({error!r})") from error
        if not fits:
            raise ValueError(
                f"the model's encoding gives {len(encoding.features)} features, which are not "
                f"the {frozen.n_features} of its network; train it again"
            )
        return encoding

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "categories": {name: list(found) for name, found in self.categories.items()},
            "fills": dict(self.fills),
        }

    @property
    def is_plain(self) -> bool:
        """Whether the features are the columns as they are."""
        return not self.categories and not self.fills

    @property
    def uncompleted(self) -> tuple[str, ...]:
        """Names of the features before gaps are filled and flagged."""
        return tuple(name for column in self.columns for name in self.expand(column))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features of the network."""
        return (*self.uncompleted, *self._missing.indicators)

    def expand(self, column: str) -> list[str]:
        """Names of the features that a column becomes."""
        if column not in self.categories:
            return [column]
        return [
            f"missing({column})" if category is None else f"{column}={category}"
            for category in self.categories[column]
        ]

    def encode(self, batch: pa.RecordBatch, first_row: int = 0) -> Floats:
        """Features of the rows of a batch, (n_rows, n_features), all of them finite.

        Parameters
        ----------
        first_row : number of the first row of the batch within the table, for messages
        """
        X = self.read(batch, first_row)
        missing = self._missing
        known = np.isin(np.arange(X.shape[1]), list(missing.fills))
        strange = np.argwhere(np.isnan(X) & ~known)
        if len(strange):
            row, column = strange[0]
            raise ValueError(
                f"column {self.uncompleted[column]!r} is missing in row {first_row + row} (data "
                "rows, counted from 0); the model was trained without missing values there: drop "
                "or fill such rows"
            )
        return missing.complete(X)

    def read(self, batch: pa.RecordBatch, first_row: int = 0) -> Floats:
        """The same without indicators, and with NaN for gaps among numbers."""
        return np.column_stack(list(self._columns(batch, first_row)))

    def _columns(self, batch: pa.RecordBatch, first_row: int) -> Iterator[Floats]:
        for name in self.columns:
            if name in self.categories:
                yield _one_hot(batch.column(name), name, self.categories[name], first_row)
            else:
                yield numbers_with_gaps(batch.column(name), name, first_row)[:, None]

    @property
    def _missing(self) -> Missing:
        names = self.uncompleted
        return Missing(names, {names.index(name): fill for name, fill in self.fills.items()})


def numbers_with_gaps(column: pa.Array, name: str, first_row: int = 0) -> Floats:
    """A column as numbers, with NaN where it has none; text raises `ValueError`."""
    values = floats(truths_as_numbers(column), name)
    bad = ~np.isfinite(values)
    bad[bad] = ~is_blank(column.filter(pa.array(bad)))
    if bad.any():
        row = int(bad.argmax())
        cell = column[row].as_py()
        what = f"holds the text {cell[:40]!r}" if isinstance(cell, str) else f"is {cell}"
        raise ValueError(
            f"column {name!r} {what} in row {first_row + row} (data rows, counted from 0); every "
            "row needs a finite number, or nothing: correct or drop such rows"
        )
    return values


def is_blank(column: pa.Array) -> NDArray[np.bool_]:
    """Where a column says nothing: null, NaN, or a text such as NA."""
    if pa.types.is_floating(column.type):
        return np.asarray(np.isnan(column.to_numpy(zero_copy_only=False)), dtype=np.bool_)
    blank = pc.is_null(column)
    column = decoded(column)
    if column.type in (pa.string(), pa.large_string()):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column)).cast(pa.string())
        blank = pc.or_(blank, pc.is_in(words, value_set=_BLANK))
    return np.asarray(blank.to_numpy(zero_copy_only=False), dtype=np.bool_)


def labels(column: pa.Array) -> pa.Array:
    """A column as texts without spaces around them; empty ones become null."""
    column = decoded(column)
    try:
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise ValueError(
            f"a column of type {column.type} cannot be read as text; choose another column, or "
            "convert it"
        ) from error
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _one_hot(
    column: pa.Array, name: str, categories: tuple[str | None, ...], first_row: int
) -> Floats:
    texts = labels(column)
    index = pc.index_in(texts, value_set=pa.array(categories, pa.string()))
    if index.null_count:
        row = int(np.argmax(pc.is_null(index).to_numpy(zero_copy_only=False)))
        text = texts[row].as_py()
        what = "is missing" if text is None else f"holds {text[:40]!r}"
        shown = ", ".join(category for category in categories[:10] if category is not None)
        raise ValueError(
            f"column {name!r} {what} in row {first_row + row} (data rows, counted from 0), which "
            f"no training row has; its categories are {shown}: correct or drop such rows, or "
            "train with some of them"
        )
    hot: Floats = np.eye(len(categories))[index.to_numpy(zero_copy_only=False)]
    return hot


def _in_order(found: set[str | None]) -> tuple[str | None, ...]:
    """Texts in alphabetical order, and then None for a gap."""
    gap = (None,) if None in found else ()
    return (*sorted(text for text in found if text is not None), *gap)


def _check_number(name: str, n_categories: int) -> None:
    if n_categories > MAX_CATEGORIES:
        raise ValueError(
            f"column {name!r} holds more than {MAX_CATEGORIES} categories, each of which would "
            "become a feature; leave it out, or merge rare ones"
        )
