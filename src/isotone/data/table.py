"""Tables on disk: CSV, Parquet and ROOT, read and written in pieces, so that any size fits.

`open_table` reads, `numbers` turns what was read into a checked array, `write_table` writes. Rows
are counted from 0, the first row of data; the header and empty lines of a CSV file do not count.
"""

from __future__ import annotations

import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from isotone.checks import suggest
from isotone.data import csv as csvfile
from isotone.data import parquet as parquetfile
from isotone.data import root as rootfile
from isotone.files import replacing
from isotone.files.untrusted import refuse_special
from isotone.inputs.cells import describe_cell, floats, truths_as_numbers
from isotone.typing import Floats

BATCH_ROWS = 65536
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq", ".root")

# What pandas calls an index without a name: in Parquet, in CSV, and when it reads such a CSV.
_UNNAMED = re.compile(r"__index_level_\d+__|\s*|Unnamed: \d+(_level_\d+)?")


@dataclass(frozen=True)
class Table(ABC):
    """A table on disk, of which a few rows at a time are in memory.

    Parameters
    ----------
    path : of the file; for ROOT followed by a colon and the name of the tree
    columns : names, in the order of the file
    n_rows : None if only reading the file would tell (CSV)
    """

    path: str
    columns: tuple[str, ...]
    n_rows: int | None

    @property
    def parts(self) -> tuple[Table, ...]:
        """The tables of single files that it consists of."""
        return (self,)

    @property
    def first_file(self) -> str:
        """Path of the file, or of the first one, if there are several."""
        return self.parts[0].path

    @property
    def local_files(self) -> list[Path]:
        """The files on this machine that are read; a URL is none."""
        return [split_tree(part.path)[0] for part in self.parts if not is_url(part.path)]

    def batches(
        self, columns: Sequence[str], n_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Read the named columns, in that order, at most `n_rows` rows at a time."""
        return self._read(self.find(columns), n_rows)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        """Names and types of the named columns. For CSV this reads the file once."""
        return self._types(self.find(columns))

    def find(self, columns: Sequence[str]) -> list[str]:
        """`columns` without repetitions, if the file has each of them exactly once."""
        for name in columns:
            if name not in self.columns:
                raise ValueError(f"{self.path!r} has no column {name!r}; {self._suggest(name)}")
            if self.columns.count(name) > 1:
                raise ValueError(
                    f"{self.path!r} has {self.columns.count(name)} columns named {name!r}; names "
                    "must differ: rename all but one"
                )
        return list(dict.fromkeys(columns))

    def require(self, columns: Sequence[str]) -> None:
        """Raise `ValueError` if the file lacks a column that a model needs."""
        for name in columns:
            if name not in self.columns:
                advice = self._suggest(name, "add it, or rename one of its columns")
                raise ValueError(
                    f"{self.path!r} has no column {name!r}, which the model needs; {advice}"
                )

    def _suggest(self, name: str, otherwise: str = "give one of its columns") -> str:
        if len(self.columns) == 1 and any(mark in self.columns[0] for mark in ";\t|"):
            return f"its only column is {self.columns[0]!r}: separate the columns with commas"
        shown = ", ".join(self.columns[:20]) + (", …" if len(self.columns) > 20 else "")
        return suggest(name, self.columns, f"{otherwise}: {shown}")

    @abstractmethod
    def _read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]: ...

    @abstractmethod
    def _types(self, columns: list[str]) -> pa.Schema: ...


def open_table(path: str | Path) -> Table:
    """Open a table; the format follows from the suffix, one of `SUFFIXES`.

    For ROOT, "file.root:name" picks one of several trees (TTree or RNTuple), "file.root:dir/name"
    one in a directory, and a URL such as "root://host//file.root:name" is left to uproot.

    Examples
    --------
    >>> table = open_table("events.parquet")  # doctest: +SKIP
    >>> for batch in table.batches(["pt", "mass"]):  # doctest: +SKIP
    ...     x = numbers(batch, ["pt", "mass"])
    """
    file, _ = split_tree(path)
    suffix = suffix_of(path)
    if is_url(path):
        return _open_url(str(path), suffix)
    if file.exists() and not file.is_dir():
        refuse_special(file)
    if not file.is_file():
        others = [f.name for f in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = suggest(file.name, others, "give the path of a table", cutoff=0.8)
        raise FileNotFoundError(f"there is no file {str(file)!r}; {hint}")
    with reading(str(path)):
        if suffix == ".root":
            return _open_root(str(path))
        if suffix in (".parquet", ".pq"):
            return _open_parquet(str(path))
        return _open_csv(str(path))


def numbers(batch: pa.RecordBatch, columns: Sequence[str], first_row: int = 0) -> Floats:
    """Columns of a batch as finite numbers, (n_rows, n_columns).

    Integers, booleans, decimals and numbers written as text are rounded to the nearest float64,
    so that their order is kept; the texts true and false are 1 and 0. Anything else raises
    `ValueError` with the name of the column and the first row where it occurs.

    Parameters
    ----------
    columns : names, in the order of the result
    first_row : number of the first row of the batch within the table
    """
    values = np.empty((batch.num_rows, len(columns)))
    for i, name in enumerate(columns):
        values[:, i] = floats(truths_as_numbers(batch.column(name)), name)
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(index) for index in np.argwhere(bad)[0])
        name = columns[column]
        raise ValueError(
            f"column {name!r} {describe_cell(batch.column(name)[row].as_py())} in row "
            f"{first_row + row} (data rows, counted from 0); every row needs a finite number: "
            "drop or fill such rows"
        )
    return values


def read_numbers(path: str | Path, columns: Sequence[str]) -> Floats:
    """Columns of a whole table as finite numbers, (n_rows, n_columns), checked as by `numbers`."""
    parts, n_rows = [], 0
    for batch in open_table(path).batches(columns):
        parts.append(numbers(batch, columns, n_rows))
        n_rows += batch.num_rows
    return np.concatenate(parts) if parts else np.empty((0, len(columns)))


def write_table(path: str | Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches to a file, whole or not at all, and give the number of rows.

    While writing, the rows are in a temporary file next to `path`, so a failure leaves neither a
    part of a file nor a changed one. ROOT holds numbers only, in a tree named "tree" unless the
    path is "file.root:name".
    """
    file, tree = split_tree(path)
    suffix = suffix_of(path)
    with replacing(file) as temporary:
        if suffix == ".root":
            return rootfile.write(temporary, tree or "tree", schema, batches)
        if suffix in (".parquet", ".pq"):
            return parquetfile.write(temporary, schema, batches)
        return csvfile.write(temporary, suffix.endswith(".gz"), schema, batches)


def index_columns(table: Table) -> tuple[str, ...]:
    """Columns that pandas wrote as an index: named so in a Parquet file, or without a name.

    They name rows instead of describing them. In rows sorted by what is learned, such a column
    predicts it perfectly, and means nothing.
    """
    is_parquet = suffix_of(table.first_file) in (".parquet", ".pq")
    noted = parquetfile.noted_index(table.first_file) if is_parquet else ()
    found = (n for n in table.columns if n in noted or _UNNAMED.fullmatch(n))
    return tuple(dict.fromkeys(found))


def is_url(path: str | Path) -> bool:
    """Whether a path begins with a protocol, as in "root://host//file.root"."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", str(path)) is not None


def split_tree(path: str | Path) -> tuple[Path, str | None]:
    """The file and the tree of "file.root:tree"; no tree for any other path.

    A URL has no file, and what is given for it does not exist; see `split_address`.
    """
    file, tree = split_address(path)
    return Path(file), tree


def split_address(path: str | Path) -> tuple[str, str | None]:
    """The same, for a path or a URL of which every character counts.

    >>> split_address("root://host:1094//store/file.root:dir/tree")
    ('root://host:1094//store/file.root', 'dir/tree')
    """
    file, mark, tree = str(path).rpartition(".root:")
    return (file + ".root", tree) if mark else (str(path), None)


def suffix_of(path: str | Path) -> str:
    """Which of `SUFFIXES` the path of a table has."""
    name = split_tree(path)[0].name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise ValueError(
        f"{str(path)!r} has an unknown suffix; a table must end in one of {', '.join(SUFFIXES)}: "
        "rename or convert the file"
    )


# CSV: read as text, because a reader that guesses types from the first rows fails on later ones
# without naming the column or the row.


@dataclass(frozen=True)
class _CsvTable(Table):
    def _read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        if not columns:  # for Arrow, no names would mean all
            return
        convert = pyarrow.csv.ConvertOptions(
            include_columns=columns,
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        )
        with reading(self.path), csvfile.open_reader(self.path, convert) as reader:
            for block in reader:
                for start in range(0, block.num_rows, n_rows):
                    yield block.slice(start, n_rows)

    def _types(self, columns: list[str]) -> pa.Schema:
        kinds = dict.fromkeys(columns, pa.int64())
        for batch in self._read(columns, BATCH_ROWS):
            for name in columns:
                kinds[name] = csvfile.narrowest_type(batch.column(name), kinds[name])
        return pa.schema(kinds.items())


def _open_csv(path: str) -> Table:
    with csvfile.open_reader(path, pyarrow.csv.ConvertOptions()) as reader:
        return _CsvTable(path, tuple(reader.schema.names), None)


# Parquet


@dataclass(frozen=True)
class _ParquetTable(Table):
    def _read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        with reading(self.path), parquetfile.open_file(self.path) as file:
            yield from parquetfile.batches(file, columns, n_rows)

    def _types(self, columns: list[str]) -> pa.Schema:
        with parquetfile.open_file(self.path) as file:
            return pa.schema([file.schema_arrow.field(name) for name in columns])


def _open_parquet(path: str) -> Table:
    with parquetfile.open_file(path) as file:
        return _ParquetTable(path, tuple(file.schema_arrow.names), file.metadata.num_rows)


# ROOT


@dataclass(frozen=True)
class _RootTable(Table):
    def _read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        with reading(self.path), rootfile.open_tree(*split_address(self.path)) as tree:
            yield from tree.batches(columns, n_rows)

    def _types(self, columns: list[str]) -> pa.Schema:
        with reading(self.path), rootfile.open_tree(*split_address(self.path)) as tree:
            return tree.schema(columns)


def _open_root(path: str) -> Table:
    with rootfile.open_tree(*split_address(path)) as tree:
        return _RootTable(path, tree.columns, tree.n_rows)


def _open_url(path: str, suffix: str) -> Table:
    if suffix != ".root":
        raise ValueError(
            f"{path!r} is a URL of a {suffix} file; only ROOT files are read from URLs: copy it "
            "to this machine"
        )
    with reading(path):
        return _open_root(path)


# Files


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Name the file in the errors of the libraries that read it."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # a damaged ROOT file makes uproot raise almost anything
        if type(error) is ValueError and _is_ours(error):
            raise
        if ragged := csvfile.describe_ragged(str(error), path):
            raise ValueError(ragged) from error
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(
            f"cannot read {path!r} ({reason}); it must be a complete {suffix_of(path)} file, with "
            "text in UTF-8: copy or write it again"
        ) from error


def _is_ours(error: Exception) -> bool:
    """Whether it was raised by this package, and says what must hold and what to do."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("isotone.")
