"""The data set: Parquet files that are one table, of any size.

It is read from its first row to its last as any table is, or row group by row group. Row groups
are what training shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet

from isotone.data import parquet as parquetfile
from isotone.data.table import Table, open_table, reading

SUFFIXES = (".parquet", ".pq")

_BUFFER_BYTES = 2**18  # per column of a row group, of which several are read side by side


class Group(NamedTuple):
    """A row group: its file, its number there, where its rows begin, and how many there are.

    `first_row` counts the rows of the file, `start` those of the data set.
    """

    path: str
    number: int
    first_row: int
    start: int
    n_rows: int


@dataclass(frozen=True)
class Dataset(Table):
    """Parquet files with the same columns, as one table.

    Parameters
    ----------
    path : of the directory, for messages
    columns : those of the first file; the others must have those that are read
    groups : all row groups, in the order of their rows
    """

    files: tuple[Table, ...] = ()
    groups: tuple[Group, ...] = ()
    _notes: dict[str, pyarrow.parquet.FileMetaData] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def parts(self) -> tuple[Table, ...]:
        return self.files

    @property
    def sizes(self) -> list[int]:
        """Bytes of every file."""
        return [path.stat().st_size for path in self._paths]

    def refuse_partitions(self, advice: str) -> None:
        """Raise `ValueError` if names of directories, as in year=2024, hold what no column does.

        Parameters
        ----------
        advice : how to leave it out
        """
        own = (p.relative_to(self.path) for p in self._paths if p.is_relative_to(self.path))
        folders = (folder for path in own for folder in path.parts[:-1] if "=" in folder)
        for folder in folders:
            name = folder.partition("=")[0]
            if name not in self.columns:
                raise ValueError(
                    f"{self.path!r} is partitioned by {name!r}, which only names of directories "
                    f"hold, such as {folder!r}; only columns of the files are learned from: write "
                    f"the files with that column, or {advice} to leave it out"
                )

    @property
    def _paths(self) -> list[Path]:
        return [Path(file.path) for file in self.files]

    def absolute(self) -> Dataset:
        """The same by paths that are true wherever a process works."""
        paths = {file.path: str(Path(file.path).absolute()) for file in self.files}
        return replace(
            self,
            files=tuple(replace(file, path=paths[file.path]) for file in self.files),
            groups=tuple(group._replace(path=paths[group.path]) for group in self.groups),
            _notes={paths[path]: note for path, note in self._notes.items()},
        )

    @property
    def noted_categories(self) -> frozenset[str]:
        """Columns that were categories, ordered or not, when some of the files were written."""
        noted = (parquetfile.noted_categories(note.metadata) for note in self._notes.values())
        return frozenset().union(*noted)

    def group_batches(
        self, group: Group, columns: Sequence[str], n_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read columns of one row group, at most `n_rows` rows at a time."""
        notes = self._notes[group.path]
        with reading(group.path), parquetfile.open_file(group.path, notes, _BUFFER_BYTES) as file:
            yield from parquetfile.batches(file, list(columns), n_rows, [group.number])

    def find(self, columns: Sequence[str]) -> list[str]:
        """`columns` without repetitions, if every file has each of them exactly once."""
        for file in self.files:
            file.find(columns)
        return list(dict.fromkeys(columns))

    def _read(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            yield from file.batches(columns, n_rows)

    def _types(self, columns: list[str]) -> pa.Schema:
        return self.files[0].schema(columns)


def open_dataset(path: str | Path, files: Sequence[str | Path] | None = None) -> Dataset:
    """The Parquet files below a directory, in the order of their names, or these files.

    Examples
    --------
    >>> dataset = open_dataset("events/")  # doctest: +SKIP
    >>> dataset.n_rows  # doctest: +SKIP
    100000000
    """
    found = tables_in(Path(path)) if files is None else [Path(file) for file in files]
    if not found:
        raise ValueError(f"there are no Parquet files in {str(path)!r}; give another directory")
    tables = tuple(open_table(file) for file in found)
    notes = {str(file): pyarrow.parquet.read_metadata(file) for file in found}
    groups: list[Group] = []
    start = 0
    for file, content in notes.items():
        first_row = 0
        for i in range(content.num_row_groups):
            n_rows = content.row_group(i).num_rows
            if n_rows:
                groups.append(Group(file, i, first_row, start, n_rows))
            first_row, start = first_row + n_rows, start + n_rows
    return Dataset(str(path), tables[0].columns, start, tables, tuple(groups), notes)


def tables_in(source: Path) -> list[Path]:
    """The Parquet files below a directory."""
    return sorted(p for p in source.rglob("*") if p.suffix.lower() in SUFFIXES)
