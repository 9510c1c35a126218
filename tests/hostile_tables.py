"""What must hold for any file that claims to be a table: refused in words, or read rightly."""

from __future__ import annotations

import csv
import gzip
import io
import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import uproot

from isotone import FrozenNetwork
from isotone.data.table import Table, index_columns, numbers, open_table
from isotone.frozen.scoring import Scoring
from networks import small

_LARGEST = 60  # columns that are compared


def examine(data: bytes) -> str:
    """Open, read and score a table; raises if anything but a refusal in words goes wrong.

    Gives "read" with the number of columns that are numbers, or why it is refused. What is read
    agrees with another reader, if that reads it as well.
    """
    suffix, _, raw = data.partition(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{suffix.decode()}"
        path.write_bytes(raw)
        try:
            table = open_table(path)
            cells = _read(table)
        except (ValueError, OSError) as error:
            return f"{path.suffix} refused: {_in_words(error, path)}"
        _compare(path, table, cells)
        n_numbers = sum(_are_numbers(table, name) for name in _names(table))
        _score(table, path)
        return f"{path.suffix} read: {n_numbers} columns of numbers"


def _in_words(error: Exception, path: Path, *others: str) -> str:
    """The message of a refusal, without what differs from case to case; it must be one of ours."""
    said = str(error)
    assert type(error) in (ValueError, OSError, FileNotFoundError), f"{type(error)}: {said}"
    named = str(path) in said or "column" in said or "branch" in said
    assert named, f"names neither the file nor a column: {said}"
    assert ";" in said or ":" in said, f"does not say what to do: {said}"
    assert "Traceback" not in said, said
    return said.replace(repr(str(path)), "the file")


def _names(table: Table) -> list[str]:
    """Columns that have a name of their own."""
    return [n for n in dict.fromkeys(table.columns) if table.columns.count(n) == 1][:_LARGEST]


def _read(table: Table) -> dict[str, list[Any]]:
    """All cells by column, read in small pieces."""
    index_columns(table)
    names = _names(table)
    table.schema(names)
    cells: dict[str, list[Any]] = {name: [] for name in names}
    for batch in table.batches(names, n_rows=7) if names else ():
        assert batch.schema.names == names
        assert batch.num_rows <= 7
        for name in names:
            cells[name] += _plain(batch.column(name)).to_pylist()
    assert len({len(column) for column in cells.values()}) <= 1
    return cells


def _plain(column: pa.Array) -> pa.Array:
    """Times as numbers: Python has none for most of them."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _are_numbers(table: Table, name: str) -> bool:
    """Whether a column is one of finite numbers; they are those that Python reads."""
    first = 0
    for batch in table.batches([name]):
        try:
            found = numbers(batch, [name], first)[:, 0].tolist()
        except ValueError as error:
            _in_words(error, Path(table.path))
            return False
        assert all(map(math.isfinite, found))
        for value, cell in zip(found, batch.column(name).to_pylist(), strict=True):
            assert value == _number(cell), (value, cell)
        first += batch.num_rows
    return True


def _number(cell: Any) -> float:
    """What a cell says, as Python reads it."""
    if isinstance(cell, str | bytes):
        text = (cell.decode() if isinstance(cell, bytes) else cell).strip().lower()
        return {"true": 1.0, "false": 0.0}.get(text, math.nan) if text.isalpha() else float(text)
    return float(cell)


@cache
def _model() -> FrozenNetwork:
    return small((1, -1, 0))


def _score(table: Table, path: Path) -> None:
    """A model that takes its columns scores them, or says why not."""
    names = [n for n in _names(table) if n][:3]
    if len(names) < 3:
        return
    scoring = Scoring(replace(_model(), features=tuple(names)), on_unseen="skip")
    out = path.with_name("scores.parquet")
    try:
        scored = scoring.score(str(path), str(out))
    except (ValueError, OSError) as error:
        _in_words(error, path)
        assert not out.exists()
        return
    assert pa.parquet.read_metadata(out).num_rows == scored.n


# ---- other readers ------------------------------------------------------------------------


def _compare(path: Path, table: Table, cells: dict[str, list[Any]]) -> None:
    """The cells are those that another program reads, if it reads the file at all."""
    readers: dict[str, Callable[[Path], dict[str, list[Any]] | None]] = {
        ".csv": _by_python,
        ".gz": _by_python,
        ".parquet": _by_polars,
        ".root": _by_uproot,
    }
    try:
        others = readers[path.suffix](path)
    except BaseException as error:  # polars panics
        if isinstance(error, KeyboardInterrupt):
            raise
        return
    for name, expected in (others or {}).items():
        if name in cells:
            assert _alike(cells[name], expected), (name, cells[name], expected)


def _alike(found: Any, expected: Any) -> bool:
    if isinstance(found, list | tuple) and isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(_alike, found, expected))
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            _alike(found[k], expected[k]) for k in found
        )
    if isinstance(found, float) and isinstance(expected, float):
        return found == expected or (math.isnan(found) and math.isnan(expected))
    return bool(found == expected)


def _by_python(path: Path) -> dict[str, list[Any]] | None:
    """The csv module, for tables that have no quotes in the middle of cells, which it keeps."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    header, *rows = [row for row in csv.reader(io.StringIO(text, ""), strict=True) if row]
    if "" in header or any(len(row) != len(header) for row in rows):
        return None
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return {n: [c or None for c in column] for n, column in zip(header, columns, strict=True)}


def _by_polars(path: Path) -> dict[str, list[Any]]:
    frame = polars.read_parquet(path, use_statistics=False)
    times = frame.with_columns(polars.selectors.datetime().to_physical())
    return times.to_dict(as_series=False)


def _by_uproot(path: Path) -> dict[str, list[Any]]:
    with uproot.open(path) as file:
        trees = [k for k, kind in file.classnames(cycle=False).items() if "T" in kind]
        arrays = file[trees[0]].arrays(library="np")
    flat = {n: a for n, a in arrays.items() if a.ndim == 1 and a.dtype != object}
    return {n: a.tolist() for n, a in flat.items()} if len(flat) == len(arrays) else {}
