"""The ROOT file: trees (TTree or RNTuple) read and written in pieces with uproot, if installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from isotone.extras import lacking

_KINDS = ("TTree", "ROOT::RNTuple")


@dataclass(frozen=True)
class Tree:
    """A tree of an open ROOT file, as a table."""

    entries: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.entries.keys(recursive=False))

    @property
    def n_rows(self) -> int:
        return int(self.entries.num_entries)

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        # a filter, because uproot would take a name such as "a-b" for a formula
        for rows in self.entries.iterate(filter_name=columns.__contains__, step_size=n_rows):
            yield _arrow(rows, columns)

    def schema(self, columns: list[str]) -> pa.Schema:
        rows = self.entries.arrays(filter_name=columns.__contains__, entry_stop=1)
        return _arrow(rows, columns).schema


@contextmanager
def open_tree(path: Path, name: str | None) -> Iterator[Tree]:
    """The tree of that name, or without a name the only one."""
    with _uproot().open(str(path)) as file:
        kinds = file.classnames(recursive=True, cycle=False)
        trees = [key for key, kind in kinds.items() if kind in _KINDS]
        if name is None and len(trees) == 1:
            name = trees[0]
        if name not in trees:
            found = f"{len(trees)} trees" if name is None else f"no tree {name!r}"
            raise ValueError(
                f"{str(path)!r} has {found}; one of them must be named: choose from {trees} and "
                f"give the path as '{path}:name'"
            )
        yield Tree(file[name])


def write(path: Path, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write a TTree of numbers and give the number of rows."""
    kinds = {field.name: _dtype(field) for field in schema}
    n_rows = 0
    with _uproot().recreate(str(path)) as file:
        tree = file.mktree(name, kinds)
        for batch in batches:
            tree.extend({column: _values(batch, column) for column in kinds})
            n_rows += batch.num_rows
    return n_rows


def _arrow(rows: Any, columns: list[str]) -> pa.RecordBatch:
    import awkward

    table = awkward.to_arrow_table(rows, extensionarray=False).select(columns)
    batches = table.replace_schema_metadata().combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)


def _dtype(field: pa.Field) -> Any:
    kind = field.type
    whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    if whole or kind in (pa.float32(), pa.float64()):
        return kind.to_pandas_dtype()
    raise ValueError(
        f"column {field.name!r} has type {kind}; a ROOT file is written with numbers only: leave "
        "the column out, or write .csv or .parquet"
    )


def _values(batch: pa.RecordBatch, name: str) -> Any:
    column = batch.column(name)
    if column.null_count:
        raise ValueError(
            f"column {name!r} has missing values; a ROOT file needs a number in every row: leave "
            "the column out, or write .csv or .parquet"
        )
    return column.to_numpy(zero_copy_only=False)


def _uproot() -> Any:
    try:
        import uproot
    except ImportError as error:
        raise ImportError(lacking("a ROOT file", "uproot", "root")) from error
    return uproot
