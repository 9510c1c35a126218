"""The tables that a command is given: with a target each, or of one class each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from isotone.data.several import expand, join, open_tables, with_class
from isotone.data.table import Table, is_url, split_tree
from isotone.frozen.notebook import file_name

CLASS = "signal"  # the column that says of which class a table is: 1, or 0 for background

TablePaths = Annotated[
    list[str] | None,
    typer.Argument(
        help="CSV, Parquet, ROOT (file.root:tree), a directory; several, or 'a*.root'."
    ),
]
SignalPaths = Annotated[
    list[str] | None, typer.Option(help="A table of signal alone; may be repeated.")
]
BackgroundPaths = Annotated[
    list[str] | None, typer.Option(help="A table of background alone; may be repeated.")
]


@dataclass(frozen=True)
class Given:
    """Paths of tables, patterns replaced by what they match.

    Parameters
    ----------
    tables : those that have the target
    signal, background : those of one class
    target : the column of the target, or that which is to hold the class
    """

    tables: tuple[str, ...]
    signal: tuple[str, ...]
    background: tuple[str, ...]
    target: str

    @classmethod
    def of(
        cls,
        tables: Sequence[str] | None,
        signal: Sequence[str] | None,
        background: Sequence[str] | None,
        target: str | None,
    ) -> Given:
        """What a command was told; `ValueError` if it says too little."""
        if not (tables or signal or background):
            raise ValueError(
                "no table was given; at least one is needed: give its path, or `--signal FILE "
                "--background FILE` for tables of one class each"
            )
        if tables and target is None:
            raise ValueError(
                f"`--target` is missing; {tables[0]!r} needs a column to learn or to judge by: "
                "name it, or give tables of one class each with `--signal` and `--background`"
            )
        if not tables and not (signal and background):
            known, other = ("signal", "background") if signal else ("background", "signal")
            raise ValueError(
                f"`--{known}` was given without `--{other}`; both classes are needed: add "
                f"`--{other} FILE`"
            )
        return cls(_expanded(tables), _expanded(signal), _expanded(background), target or CLASS)

    @property
    def paths(self) -> list[str]:
        return [*self.tables, *self.signal, *self.background]

    @property
    def local_files(self) -> list[Path]:
        """The files on this machine; a URL is none."""
        return [split_tree(path)[0] for path in self.paths if not is_url(path)]

    def describe(self) -> dict[str, str]:
        """What provenance says about them."""
        return {"table": ", ".join(map(file_name, self.paths)), "target": self.target}

    def open(self) -> Table:
        """One table of all, with the target in every row."""
        kinds = (self.background, 0), (self.signal, 1)
        found = [open_tables(self.tables)] if self.tables else []
        found += [with_class(open_tables(paths), self.target, k) for paths, k in kinds if paths]
        return join(found)


def _expanded(patterns: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(path for pattern in patterns or () for path in expand(pattern))
