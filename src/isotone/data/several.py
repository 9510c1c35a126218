"""Several tables as one: files, trees and patterns one after the other, with or without classes.

`open_tables` opens what a user names. A table that holds one class only, as files of signal and of
background do, gets a column that says so from `with_class`, and `join` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path

import pyarrow as pa

from isotone.data import root as rootfile
from isotone.data.dataset import SUFFIXES, open_dataset
from isotone.data.table import Table, is_url, open_table, split_address, suffix_of


@dataclass(frozen=True)
class Several(Table):
    """Tables one after the other; each must have the columns that are read, in any order.

    Parameters
    ----------
    path : of all of them, for messages
    columns : those of the first
    """

    tables: tuple[Table, ...] = ()

    @property
    def parts(self) -> tuple[Table, ...]:
        return tuple(part for table in self.tables for part in table.parts)

    def find(self, columns: Sequence[str]) -> list[str]:
        for table in self.tables:
            table.find(columns)
        return list(dict.fromkeys(columns))

    def require(self, columns: Sequence[str]) -> None:
        for table in self.tables:
            table.require(columns)

    def _read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        for table in self.tables:
            yield from table.batches(columns, n_rows)

    def _types(self, columns: list[str]) -> pa.Schema:
        return pa.schema([self._type(name) for name in columns])

    def _type(self, name: str) -> pa.Field:
        """The type that holds the cells of all tables."""
        fields = [table.schema([name]).field(name).remove_metadata() for table in self.tables]
        try:
            return pa.unify_schemas(
                [pa.schema([field]) for field in fields], promote_options="permissive"
            ).field(name)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            kinds = sorted({str(field.type) for field in fields})
            raise ValueError(
                f"column {name!r} is of type {kinds[0]} in some tables and {kinds[1]} in others; "
                "types must agree: convert it, or leave it out"
            ) from error


@dataclass(frozen=True)
class OfClass(Table):
    """A table with one more column, which holds the same number in all rows."""

    table: Table
    name: str
    value: int

    @property
    def parts(self) -> tuple[Table, ...]:
        own = self.table.parts
        return (
            (self,) if len(own) == 1 else tuple(replace(self, path=p.path, table=p) for p in own)
        )

    def _read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        others = [name for name in columns if name != self.name]
        for batch in self.table.batches(others or self.table.columns[:1], n_rows):
            known = pa.array([self.value], pa.int64()).take(pa.array([0] * batch.num_rows))
            arrays = [known if name == self.name else batch.column(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, columns)

    def _types(self, columns: list[str]) -> pa.Schema:
        others = self.table.schema([name for name in columns if name != self.name])
        own = pa.field(self.name, pa.int64())
        return pa.schema([own if name == self.name else others.field(name) for name in columns])


def open_tables(paths: Sequence[str]) -> Table:
    """One table of all that is named: files, trees, directories of Parquet files, and patterns.

    A pattern such as ``data/2024*.root:DecayTree`` stands for the files that match it, in the
    order of their names, and ``file.root:*`` for the trees of a file that match. Parquet files
    alone are a data set, which may be larger than memory.

    Examples
    --------
    >>> table = open_tables(["signal/*.root:DecayTree"])  # doctest: +SKIP
    """
    found = [path for pattern in paths for path in expand(pattern)]
    if len(found) == 1:
        return open_dataset(found[0]) if Path(found[0]).is_dir() else open_table(found[0])
    if all(not Path(path).is_dir() and suffix_of(path) in SUFFIXES for path in found):
        return open_dataset(shown(found), found)
    return join([open_dataset(p) if Path(p).is_dir() else open_table(p) for p in found])


def with_class(table: Table, name: str, value: int) -> Table:
    """The table with a column of its class, which it must not have yet."""
    if name in table.columns:
        raise ValueError(
            f"{table.path!r} has a column {name!r} already, which is to hold the class; names "
            "must differ: choose another with `--target`"
        )
    return OfClass(table.path, (*table.columns, name), table.n_rows, table, name, value)


def join(tables: Sequence[Table]) -> Table:
    """The rows of all tables, one after the other."""
    if len(tables) == 1:
        return tables[0]
    numbers = [table.n_rows for table in tables]
    known = [n for n in numbers if n is not None]
    n_rows = sum(known) if len(known) == len(numbers) else None
    path = shown([table.path for table in tables])
    return Several(path, tables[0].columns, n_rows, tuple(tables))


def shown(paths: Sequence[str]) -> str:
    """Paths in a message: the first, and how many there are.

    >>> shown(["a.root", "b.root", "c.root"])
    'a.root and 2 more'
    """
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


def expand(path: str) -> list[str]:
    """The paths that a pattern stands for, sorted; a path without a pattern stands for itself."""
    file, tree = split_address(path)
    files = [file]
    if has_magic(file) and not is_url(file) and not Path(file).exists():
        files = sorted(glob(file, recursive=True))  # noqa: PTH207
        if not files:
            raise FileNotFoundError(
                f"no file matches {file!r}; a pattern must match at least one: give another"
            )
    return [named for name in files for named in _with_trees(name, tree)]


def _with_trees(file: str, tree: str | None) -> list[str]:
    if tree is None or not has_magic(tree):
        return [file if tree is None else f"{file}:{tree}"]
    known = rootfile.tree_names(file)
    names = [name for name in known if fnmatchcase(name, tree)]
    if not names:
        raise ValueError(
            f"no tree of {file!r} matches {tree!r}; a pattern must match at least one: choose "
            f"from {known}"
        )
    return [f"{file}:{name}" for name in names]
