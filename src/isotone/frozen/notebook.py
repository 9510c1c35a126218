"""Card: what a notebook shows of a model, a few facts and a table as HTML.

Every text is escaped: names of features and classes come from files of strangers. `visible` and
`quoted` are for every place that shows such text, terminals and pages too.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PureWindowsPath  # which knows both kinds of slashes

DIRECTIONS = {1: "rises", 0: "free", -1: "falls"}
_LEFT = ' style="text-align:left"'  # notebooks align cells to the right


def visible(text: object) -> str:
    """Text without characters that could steer a terminal, break a line or reorder a page.

    Examples
    --------
    >>> visible("name\\nHOLDS")
    'name\ufffdHOLDS'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def quoted(value: object, most: int = 2000) -> str:
    r"""A value from a file as JSON, in one line: between quotes if it is a text, and escaped.

    Examples
    --------
    >>> print(quoted("one\nHOLDS \x1b[31m"))
    "one\nHOLDS \u001b[31m"
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return plain if len(plain) <= most else f"{plain[:most]}… ({len(plain):,} characters)"


def file_name(path: str) -> str:
    """The last part of a path: its folders tell about someone's machine.

    Examples
    --------
    >>> file_name("/home/ann/loans.csv"), file_name("/data/run.root:signal/tree")
    ('loans.csv', 'run.root:signal/tree')
    """
    file, mark, tree = path.rpartition(".root:")
    return PureWindowsPath(file if mark else path).name + mark + (tree if mark else "")


def describe_directions(signs: Sequence[int], outputs: Sequence[str]) -> str:
    """The direction along one feature; if there are several outputs, for which of them.

    Examples
    --------
    >>> describe_directions([-1], ["0"])
    'falls'
    >>> describe_directions([1, 0, -1], ["good", "fair", "bad"])
    'good rises, bad falls'
    """
    if len(signs) == 1 or not any(signs):
        return DIRECTIONS[signs[0]]
    return ", ".join(f"{n} {DIRECTIONS[s]}" for n, s in zip(outputs, signs, strict=True) if s)


def card(
    title: str, facts: Mapping[str, str], head: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """A title, facts by name and a table.

    Examples
    --------
    >>> print(card("a < b", {"shape": "2-1"}, ["feature"], [["x"]]))
    <div><strong>a &lt; b</strong>
    <table><tr><th>shape</th><td style="text-align:left">2-1</td></tr></table>
    <table><tr><th>feature</th></tr><tr><td>x</td></tr></table></div>
    """
    lines = "".join(
        f"<tr>{_cells('th', [name])}{_cells('td', [text], _LEFT)}</tr>"
        for name, text in facts.items()
    )
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return (
        f"<div><strong>{html.escape(visible(title))}</strong>\n<table>{lines}</table>\n"
        f"<table><tr>{_cells('th', head)}</tr>{body}</table></div>"
    )


def badge(holds: bool, text: str) -> str:
    """A verdict with a mark, in white on a color, which can be read in light and dark notebooks.

    Examples
    --------
    >>> print(badge(True, "HOLDS")[-16:])
    ✓ HOLDS</strong>
    """
    mark, color = ("✓", "#00694c") if holds else ("✗", "#b3261e")
    look = f"background:{color};color:#fff;border-radius:999px;padding:2px 12px"
    look += ";display:inline-block;margin:2px 0 6px"
    return f'<strong style="{look}">{mark} {html.escape(visible(text))}</strong>'


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns for a terminal, the first to the left, the others to the right.

    Examples
    --------
    >>> print(text_table(["row", "up"], [["0", "1.5"], ["1", "inf"]]))
    row   up
    0    1.5
    1    inf
    """
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(_padded(line, widths)) for line in lines)


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    right = [text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)]
    return [line[0].ljust(widths[0]), *right]


def _cells(tag: str, texts: Iterable[str], look: str = "") -> str:
    return "".join(f"<{tag}{look}>{html.escape(visible(text))}</{tag}>" for text in texts)
