"""Fields: features that are of one column, and of which one counts in any row.

They are copies of a column between its knots, of which one moves, or indicators of its categories,
of which one is not zero. The fused trainer looks up what the others add, see
`cpp/trainer/look_up.hpp`, so that knots and categories cost little more than plain columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.typing import Reals


class Field(NamedTuple):
    """How many features are of one column: copies, or indicators of categories."""

    n_features: int
    is_category: bool = False


class Usual(NamedTuple):
    """What most rows have in a field, such as the zero of a column that is mostly zero.

    Parameters
    ----------
    cells, values : (n_fields,); a cell is -1 where rows differ too much
    begins : (n_rows + 1,), where what a row has instead begins among the following
    other_fields, other_cells, other_values : row by row
    """

    cells: NDArray[np.int32]
    values: Reals
    begins: NDArray[np.int64]
    other_fields: NDArray[np.int32]
    other_cells: NDArray[np.int32]
    other_values: Reals


class Visited(NamedTuple):
    """Rows as the fused trainer reads them: fields with a usual cell have no column.

    It adds up what is usual once per batch, and visits only what differs.
    """

    cells: NDArray[np.int32] | None
    values: Reals
    usual: Usual | None


@dataclass(frozen=True, eq=False)
class Looked:
    """Rows by what counts in them.

    Parameters
    ----------
    cells : (n_rows, n_fields), which feature counts, by its number among all
    values : (n_rows, n_fields), its value
    fields : of all features
    """

    cells: NDArray[np.int32]
    values: Reals
    fields: tuple[Field, ...]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Looked:
        return Looked(self.cells[rows], self.values[rows], self.fields)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the rows as a table of features."""
        return len(self.values), sum(field.n_features for field in self.fields)

    @cached_property
    def visited(self) -> Visited:
        """The rows, without what is usual if that leaves less than half of the work."""
        whole = Visited(self.cells, self.values, None)
        if not len(self):
            return whole
        cells, values = _medians(self.cells), _medians(self.values)
        differs = (self.cells != cells) | (self.values != values)
        shares = np.count_nonzero(differs, axis=0) / len(self)
        is_usual = shares < 1 / 3
        # what differs is looked up, and what is usual taken back
        if np.where(is_usual, 1.5 * shares, 1.0).mean() > 0.5:
            return whole
        differs &= is_usual
        begins = np.concatenate([[0], np.cumsum(np.count_nonzero(differs, axis=1))])
        fields = np.nonzero(differs)[1].astype(np.int32)
        usual = np.where(is_usual, cells, -1).astype(np.int32)
        others = Usual(usual, values, begins, fields, self.cells[differs], self.values[differs])
        own_cells = np.ascontiguousarray(self.cells[:, ~is_usual])
        return Visited(own_cells, np.ascontiguousarray(self.values[:, ~is_usual]), others)

    def tobytes(self) -> bytes:
        return self.cells.tobytes() + self.values.tobytes()


def _medians(table: NDArray[Any]) -> NDArray[Any]:
    """Of columns, in up to 1000 rows: what most rows have, if most have the same."""
    some = table[:: -(-len(table) // 1000)]
    middle: NDArray[Any] = np.partition(some, len(some) // 2, axis=0)[len(some) // 2]
    return middle


def first_features(fields: Sequence[Field]) -> list[int]:
    """The number of the first feature of every field."""
    return [0, *accumulate(field.n_features for field in fields)][: len(fields)]


def compress(x: Reals, fields: Sequence[Field]) -> Looked:
    """What counts in rows of features.

    Parameters
    ----------
    x : (n_rows, n_features); of the copies of a field those before the one that moves are 1, those
        after it -1. A field of one feature may have any values

    Examples
    --------
    >>> rows = np.array([[1.0, 0.5, -1.0, 7.0, 0.0, 1.0], [-0.2, -1.0, -1.0, 8.0, 0.0, 0.0]])
    >>> looked = compress(rows, [Field(3), Field(1), Field(2, is_category=True)])
    >>> looked.cells.tolist(), looked.values.tolist()
    ([[1, 3, 5], [0, 3, 4]], [[0.5, 7.0, 1.0], [-0.2, 8.0, 0.0]])
    """
    cells = np.empty((len(x), len(fields)), np.int32)
    values = np.empty((len(x), len(fields)), x.dtype)
    for f, (first, field) in enumerate(zip(first_features(fields), fields, strict=True)):
        own = x[:, first : first + field.n_features]
        last = field.n_features - 1
        place = (
            (own != 0).argmax(axis=1)
            if field.is_category
            else np.minimum((own >= 1).sum(axis=1), last)
        )
        cells[:, f] = first + place
        values[:, f] = np.take_along_axis(own, place[:, None], axis=1)[:, 0]
        if last and not np.array_equal(own, _expand(place, values[:, f], field)):
            kind = (
                "indicators of one column, of which one is not zero; encode its categories"
                if field.is_category
                else "copies of one column, of which one moves between -1 and 1 at a time; "
                "transform the rows with isotone.Knots"
            )
            raise ValueError(f"features {first} to {first + last} are not {kind}")
    return Looked(cells, values, tuple(fields))


def _expand(place: NDArray[np.intp], values: Reals, field: Field) -> Reals:
    order = np.arange(field.n_features) < place[:, None]
    features = np.where(order, 1.0, -1.0) * (not field.is_category)
    features = features.astype(values.dtype)
    np.put_along_axis(features, place[:, None], values[:, None], axis=1)
    return features
