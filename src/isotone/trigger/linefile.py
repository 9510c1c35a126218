"""The file of several lines: TOML or JSON, with a model, a threshold and a prescale for each.

.. code-block:: toml

    [[line]]
    name = "two-track"
    model = "model.isotone"    # from the folder of this file
    max_rate = 660e3           # Hz after the prescale; or: threshold = 2.34
    prescale = 1.0             # the share of events that is kept
    event_size = 100e3         # bytes
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from isotone.files.untrusted import open_regular, parse_json, read_toml

_MOST_BYTES = 2**20


@dataclass(frozen=True)
class Line:
    """One line: exactly one of `threshold` and `max_rate` is given."""

    name: str
    model: Path
    threshold: float | None = None
    max_rate: float | None = None
    prescale: float = 1.0
    event_size: float = 0.0

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.max_rate is None):
            raise self._error("must have a threshold or a max_rate, and only one of them")
        for name in ("threshold", "max_rate", "prescale", "event_size"):
            value = getattr(self, name)
            is_number = type(value) in (int, float) and math.isfinite(value)
            if value is not None and not is_number:
                raise self._error(f"has {name} = {value!r:.50}, which is not a number")
        if self.event_size < 0 or not 0 < self.prescale <= 1:
            raise self._error(
                "must have a prescale above 0 and at most 1 (for one event in ten 0.1), and an "
                "event_size of at least 0"
            )

    def _error(self, what: str) -> ValueError:
        return ValueError(f"line {self.name!r:.50} {what}; correct it")


def read_lines(path: str | Path) -> tuple[Line, ...]:
    """The lines of a file; their models lie relative to its folder."""
    content = _parse(path)
    entries = content.get("line") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ValueError(
            f"{str(path)!r} has no lines; it must hold a list `line`: write [[line]] before each"
        )
    lines = tuple(_line(entry, Path(path).parent) for entry in entries)
    names = [line.name for line in lines]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two lines are called {name!r:.50}; names must differ: rename one")
    return lines


def _parse(path: str | Path) -> Any:
    if Path(path).suffix.lower() == ".toml":
        return read_toml(path)
    file, size = open_regular(path)
    with file:
        if size > _MOST_BYTES:
            raise ValueError(
                f"{str(path)!r} has {size} bytes; a file of lines has at most {_MOST_BYTES}: "
                "give another"
            )
        text = file.read(size)
    try:
        return parse_json(text)
    except ValueError as error:  # of JSON and UTF-8
        raise ValueError(f"{str(path)!r} cannot be read ({error}); correct it") from error


def _line(entry: Any, folder: Path) -> Line:
    known = [field.name for field in fields(Line)]
    if not isinstance(entry, dict) or not {"name", "model"} <= set(entry) <= set(known):
        raise ValueError(
            f"a line is {entry!r:.100}; it must have a name and a model, and may have "
            f"{', '.join(known[2:])}: correct it"
        )
    if not all(isinstance(entry[key], str) and entry[key] for key in ("name", "model")):
        raise ValueError(f"a line is {entry!r:.100}; name and model must be text: correct it")
    return Line(**entry | {"model": folder / entry["model"]})
