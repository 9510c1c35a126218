"""The terminal: where commands print to, and how names, numbers and tables look there."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Literal, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from isotone.frozen.network import FrozenNetwork
from isotone.frozen.notebook import quoted, visible


class _Terminal(Console):
    """A console whose reader may leave: that is no verdict, so the exit code is not 1."""

    def on_broken_pipe(self) -> None:
        try:
            super().on_broken_pipe()
        except SystemExit as error:
            raise SystemExit(2) from error


output = _Terminal(highlight=False)
errors = _Terminal(stderr=True, highlight=False)


def printable(text: object) -> Text:
    """Text from a file, taken literally: no markup, nothing that could steer the terminal."""
    return Text(visible(text))


def say(text: object) -> None:
    """Print one line, however long."""
    output.print(printable(text), soft_wrap=True)


def warn(text: object, kind: Literal["warning", "note"] = "warning") -> None:
    """Print one line on stderr that begins with what it is."""
    errors.print(f"{kind}: ", style="bold yellow" if kind == "warning" else "bold", end="")
    errors.print(printable(text), soft_wrap=True)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Within the block, a `UserWarning` of the library is printed as `warn` prints."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, UserWarning):
                warn(message)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


@contextmanager
def progress(count: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A bar on stderr, if that is a terminal; gives what updates it, see rich's `Progress`."""
    columns = BarColumn(), TextColumn(count), TimeRemainingColumn()
    shown = errors.is_terminal
    with Progress(*columns, console=errors, disable=not shown, transient=True) as bar:
        yield partial(bar.update, bar.add_task("", total=total))


def indented(content: RenderableType) -> Padding:
    """What holds names from a file: no line of it begins where ours do."""
    return Padding(content, (0, 0, 0, 2))


def print_stated(entries: Mapping[str, object]) -> None:
    """What a file says of itself: quoted, in lines that all begin with a bar."""
    for name, value in entries.items():
        line = Text(f"{quoted(name)}: {quoted(value)}")
        for part in line.wrap(output, max(output.width - 4, 20), overflow="fold"):
            output.print(Text.assemble("  │ ", part), soft_wrap=True)


def columns(*headers: str) -> Table:
    """An empty table with these headers; long names are folded, never cut."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def facts(**entries: object) -> Table:
    """Names and values, one pair in a row; a `Text` keeps its style."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in entries.items():
        shown = value if isinstance(value, Text) else printable(value)
        table.add_row(printable(name), shown)
    return table


def verdict(holds: bool) -> Text:
    """The word for what a certificate says, in its color."""
    return Text("HOLDS", style="bold green") if holds else Text("FAILS", style="bold red")


def describe_directions(frozen: FrozenNetwork) -> dict[str, str]:
    """What directions are about, as an entry of `facts`; with several outputs tables say it."""
    if frozen.n_outputs > 1 or not frozen.monotonic_cst.any():
        return {}
    rather = f", rather than of {frozen.classes[0]}" if frozen.classes else ""
    return {"directions": f"of the {frozen.about(0)}{rather}"}


def describe_arithmetic(frozen: FrozenNetwork) -> str:
    grid = "not rounded" if frozen.grid is None else f"rounded to 2^{math.log2(frozen.grid):.0f}"
    knots = ", copies between knots to ±1," if (frozen.inputs.counts > 1).any() else ""
    return f"{frozen.precision}; scaled inputs are clamped to ±{frozen.clip:g}{knots} and {grid}"
