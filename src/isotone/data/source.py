"""The source: what is learned from a data set, read batch by batch.

Every batch holds the features, the target and the weight of its rows. Features are numbers, NaN
where they are missing, texts, or ordered categories; rows of weight 0 are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from isotone.data.dataset import Dataset
from isotone.data.groups import keys_of
from isotone.data.holdout import GROUP
from isotone.inputs.cells import finite_or_blank, is_text, labels
from isotone.inputs.frames import is_category
from isotone.typing import Integers


def plain_feature(column: pa.Array, name: str, first_row: int) -> pa.Array:
    """Cells of a feature by the type of their column: texts, ordered categories, or numbers."""
    if is_category(column.type):
        return column if column.type.ordered else labels(column, name)
    if is_text(column.type):
        return column.cast(pa.string())
    if column.type == pa.float32():
        column = column.cast(pa.float64())
    return pa.array(finite_or_blank(column, name, first_row))


@dataclass(frozen=True, eq=False)
class Source:
    """Columns of a data set, and how they are read.

    Parameters
    ----------
    features, target, weight : names of columns, without repetition
    group : names of columns that tell groups apart, see `isotone.data.groups`; none of them is a
        feature
    signed : whether weights may be negative
    categories : features whose cells are read as texts, each of them a category, even where they
        are numbers
    feature : gives the cells of any other feature, from a column, its name, and the number of its
        first row within the file
    """

    dataset: Dataset
    features: tuple[str, ...]
    target: str
    weight: str | None = None
    categories: frozenset[str] = frozenset()
    feature: Callable[[pa.Array, str, int], pa.Array] = field(default=plain_feature)
    group: tuple[str, ...] = ()
    signed: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are read from files."""
        return list(dict.fromkeys([*self.cells, *self.group]))

    @property
    def cells(self) -> list[str]:
        """Names of features, target and weight."""
        return [*self.features, self.target, *([self.weight] if self.weight else [])]

    @property
    def names(self) -> list[str]:
        """Names of what `read` gives: `cells`, and the keys of groups if there are any."""
        return [*self.cells, *([GROUP] if self.group else [])]

    def read(
        self, batch: pa.RecordBatch, path: str, first_row: int
    ) -> tuple[pa.RecordBatch, Integers]:
        """The rows of a batch that count, and their places in it.

        Parameters
        ----------
        path : of the file, for messages
        first_row : number of the first row within the file
        """
        with in_file(path):
            columns = [self._feature(batch.column(n), n, first_row) for n in self.features]
            columns.append(self._target(batch.column(self.target), first_row))
            if self.weight is not None:
                columns.append(self._weight(batch.column(self.weight), first_row))
            if self.group:
                columns.append(pa.array(keys_of(batch, self.group, first_row)))
        rows = pa.RecordBatch.from_arrays(columns, names=self.names)
        if self.weight is None:
            return rows, np.arange(len(batch))
        counted = np.flatnonzero(rows.column(self.weight).to_numpy() != 0)
        return rows if len(counted) == len(batch) else rows.take(counted), counted

    def _feature(self, column: pa.Array, name: str, first_row: int) -> pa.Array:
        if name in self.categories:
            return labels(column, name)
        return self.feature(column, name, first_row)

    def _target(self, column: pa.Array, first_row: int) -> pa.Array:
        blank = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        if blank.any():
            raise ValueError(
                f"the target {self.target!r} is missing in row {first_row + int(blank.argmax())} "
                "(data rows, counted from 0); nothing can be learned from such rows: drop them"
            )
        return column

    def _weight(self, column: pa.Array, first_row: int) -> pa.Array:
        assert self.weight is not None
        values = finite_or_blank(column, self.weight, first_row)
        bad = np.isnan(values) if self.signed else ~(values >= 0)
        if bad.any():
            row, least = int(bad.argmax()), "numbers" if self.signed else "0 or more"
            raise ValueError(
                f"the weight {self.weight!r} is {values[row]:g} in row {first_row + row} (data "
                f"rows, counted from 0); weights must be {least}: correct or drop such rows, or, "
                "if negative ones are intended, as in sWeights, set signed_weights=True "
                "(`--signed-weights`)"
            )
        return pa.array(values)


@contextmanager
def in_file(path: str, several: bool = True) -> Iterator[None]:
    """Name the file in messages about its cells, if there are several."""
    try:
        yield
    except ValueError as error:
        if not several:
            raise
        raise ValueError(f"{path}: {error}") from error
