"""Untrusted: files, JSON and TOML from strangers, opened and parsed with care.

A path may name a pipe that nobody writes to, and JSON may be too deep, too long or ambiguous. The
worst that happens here is a `ValueError` (or an `OSError` from the system).
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import tomllib
from collections import Counter
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

from isotone import limits

_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # pipes would wait
_NESTED = {dict, list}
_MOST_DIGITS = 300
_MOST_TOML = 2**20
_MANY = b"0" * 200  # with an exponent of two digits it is below the largest float64
_LARGE = b"e000"
# digits as "0", exponents as "e", anything else as a blank
_DIGITS = bytes(48 if 48 <= c < 58 else 101 if c in b"eE" else 32 for c in range(256))
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: str | Path) -> tuple[BufferedReader, int]:
    """A regular file, open for reading, and its size; anything else is refused without waiting."""
    refuse_special(path)
    file = os.fdopen(os.open(path, os.O_RDONLY | _AT_ONCE), "rb")
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):  # it is another file by now
        file.close()
    _refuse_special(path, found.st_mode)
    return file, found.st_size


def refuse_special(path: str | Path) -> None:
    """Raise `ValueError` for a pipe, a device or the like, which a reader may wait for forever."""
    _refuse_special(path, Path(path).stat().st_mode)


def read_json(path: str | Path, limit: limits.Limit | None = None) -> Any:
    """The content of a JSON file of no more bytes than `limit` allows, by default `TEXT`."""
    file, size = open_regular(path)
    with file:
        (limit or limits.TEXT).check(size)
        return parse_json(file.read(size))


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file, which people write: at most a megabyte."""
    file, size = open_regular(path)
    with file:
        if size > _MOST_TOML:
            raise ValueError(
                f"{str(path)!r} has {size} bytes; a TOML file has at most {_MOST_TOML}: shorten it"
            )
        text = file.read(size)
    try:
        return tomllib.loads(text.decode("utf-8"))
    except ValueError as error:  # of TOML and UTF-8
        raise ValueError(f"{str(path)!r} cannot be read ({error}); correct it") from error


def begins_as_json(start: bytes) -> bool:
    """Whether a file that starts so is a JSON object, and not one that says how long it is."""
    return start[:64].lstrip()[:1] == b"{" and 0 not in start[:8]


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says, if it can mean only one thing.

    A name that an object has twice, a number that float64 cannot hold, NaN, and deep nesting are
    refused: readers differ in what they make of them.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")  # and in no other encoding, as `json` would guess
    decoder = _CAREFUL_DECODER if _has_large_numbers(text) else _DECODER
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_nesting(value)
    return value


def _refuse_special(path: str | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise ValueError(f"{str(path)!r} is {kind}; it must be a regular file: copy it to one")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has the name {twice!r:.50} twice")
    return result


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text:.20} is too large for float64")
    return value


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a whole number has {len(text)} digits")
    return int(text)


def _has_large_numbers(text: str) -> bool:
    """Whether a whole number may be too long, or another one beyond float64."""
    digits = text.encode(errors="surrogatepass").translate(_DIGITS, b"+")
    return _MANY in digits or _LARGE in digits


_HOOKS: dict[str, Any] = {"object_pairs_hook": _object, "parse_constant": _refuse_constant}
_DECODER = json.JSONDecoder(**_HOOKS)
_CAREFUL_DECODER = json.JSONDecoder(**_HOOKS, parse_float=_float, parse_int=_integer)


def _check_nesting(value: Any) -> None:
    layer: list[Any] = [[value]]
    depth = -1
    while layer:
        limits.NESTING.check(depth)
        inside = (outer.values() if type(outer) is dict else outer for outer in layer)
        entries = chain.from_iterable(inside)
        layer, depth = [entry for entry in entries if type(entry) in _NESTED], depth + 1
