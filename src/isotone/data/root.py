"""The ROOT file: trees (TTree or RNTuple) read and written in pieces with uproot, if installed.

An entry is a row. If a branch that is read has several values per entry, jagged or of a fixed
number, there is a row for each of them, a candidate of the event; branches with one value per
entry repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isotone.extras import lacking

_KINDS = ("TTree", "ROOT::RNTuple")
_SEVERAL = re.compile(r"\[|vector|array|RVec")  # in the type of a branch with several values


@dataclass(frozen=True)
class Tree:
    """A tree of an open ROOT file, as a table."""

    entries: Any

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.entries.keys(recursive=False))

    @property
    def n_rows(self) -> int | None:
        """Number of entries; None if that of rows depends on which branches are read."""
        kinds = (str(self.entries[name].typename) for name in self.columns)
        return None if any(map(_SEVERAL.search, kinds)) else int(self.entries.num_entries)

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        # a filter, because uproot would take a name such as "a-b" for a formula
        entry = 0
        for entries in self.entries.iterate(filter_name=columns.__contains__, step_size=n_rows):
            batch = _arrow(entries, columns)
            rows = explode(batch, entry)
            entry += batch.num_rows
            for start in range(0, rows.num_rows, n_rows):
                yield rows.slice(start, n_rows)

    def schema(self, columns: list[str]) -> pa.Schema:
        rows = self.entries.arrays(filter_name=columns.__contains__, entry_stop=1)
        return explode(_arrow(rows, columns)).schema


def explode(batch: pa.RecordBatch, first_entry: int = 0) -> pa.RecordBatch:
    """A row for every element of the lists in a batch; what is not a list is repeated.

    Parameters
    ----------
    first_entry : number of the first entry within the tree, for messages

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"event": [7, 8], "pt": [[1.5, 2.5], [0.5]]})
    >>> explode(batch).to_pydict()
    {'event': [7, 7, 8], 'pt': [1.5, 2.5, 0.5]}
    """
    lists = [field.name for field in batch.schema if _is_list(field.type)]
    if not lists:
        return batch
    counts = {name: _lengths(batch.column(name)) for name in lists}
    _check_alike(counts, first_entry)
    parents = pa.array(np.repeat(np.arange(batch.num_rows), counts[lists[0]]))
    columns = [
        _flat(batch.column(name), name) if name in lists else batch.column(name).take(parents)
        for name in batch.schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _is_list(kind: pa.DataType) -> bool:
    is_list: bool = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_list or bool(pa.types.is_fixed_size_list(kind))


def _lengths(column: pa.Array) -> Any:
    return pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)


def _check_alike(counts: dict[str, Any], first_entry: int) -> None:
    (first, known), *others = counts.items()
    for name, count in others:
        if not np.array_equal(count, known):
            row = int((count != known).argmax())
            raise ValueError(
                f"branch {first!r} has {known[row]} values and {name!r} has {count[row]} in entry "
                f"{first_entry + row} (counted from 0); a candidate needs one of each, so the "
                "branches that are used must have equally many per entry: leave one of them out"
            )


def _flat(column: pa.Array, name: str) -> pa.Array:
    values = pc.list_flatten(column)
    if _is_list(values.type):
        raise ValueError(
            f"branch {name!r} holds lists of lists; one list per entry can be used, with a value "
            "for every candidate: leave it out, or flatten it"
        )
    return values


@contextmanager
def open_tree(path: str, name: str | None) -> Iterator[Tree]:
    """The tree of that name, or without a name the only one, of a file or of a URL."""
    with _open(path) as file:
        trees = _trees(file)
        if name is None and len(trees) == 1:
            name = trees[0]
        if name not in trees:
            found = f"{len(trees)} trees" if name is None else f"no tree {name!r}"
            raise ValueError(
                f"{path!r} has {found}; one of them must be named: choose from {trees} and "
                f"give the path as '{path}:name'"
            )
        entries = file[name]
        for part in ("header", "footer"):
            _check_sum(entries, part, path)
        yield Tree(entries)


def _check_sum(entries: Any, part: str, path: str) -> None:
    """Raise `ValueError` if a part of an RNTuple is damaged.

    uproot compares the sum after it has read the part, and a wrong number in there can keep it
    reading without end in sight.
    """
    prepare = getattr(entries, f"_prepare_{part}_chunk", None)
    if prepare is None:  # a TTree has no sums
        return
    import xxhash

    prepare()
    raw = getattr(entries, f"_{part}_chunk").raw_data.tobytes()
    if xxhash.xxh3_64_intdigest(raw[:-8]) != int.from_bytes(raw[-8:], "little"):
        raise ValueError(
            f"cannot read {path!r} (the checksum of the {part} of its RNTuple does not fit); it "
            "must be a complete .root file: copy or write it again"
        )


def tree_names(path: str) -> list[str]:
    """Names of all trees of a file, also of those in directories."""
    with _open(path) as file:
        return _trees(file)


def _trees(file: Any) -> list[str]:
    kinds = file.classnames(recursive=True, cycle=False)
    return [key for key, kind in kinds.items() if kind in _KINDS]


def _open(path: str) -> Any:
    uproot = _uproot()
    try:
        return uproot.open(path)
    except ImportError as error:  # the package of a protocol
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ImportError(
            f"{path!r} cannot be opened ({reason}); its protocol needs a package: run pip install "
            "fsspec-xrootd xrootd for root://, pip install aiohttp requests for https://, or copy "
            "the file to this machine"
        ) from error


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
