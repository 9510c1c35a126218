"""The `.isotone` file: safetensors arrays and one JSON text, checked before anything is trusted.

Nothing in it is code, so loading a stranger's file cannot run any. What is checked, in this
order: that it is a regular file, the size of the header, the number and sizes of the arrays, their
bytes against the length of the file, the format version, and a SHA-256 over everything. The sizes
that are allowed are in `isotone.limits`.
"""

from __future__ import annotations

import hashlib
import json
import math
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone import limits
from isotone.files import write_whole
from isotone.files.untrusted import parse_json

Arrays = dict[str, NDArray[Any]]

FORMAT_VERSION = 2
READABLE = (1, 2)
# as safetensors calls them
_TYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4")}


def write(path: str | Path, content: dict[str, Any], arrays: Arrays) -> None:
    """Write `content` (JSON) and `arrays` to one file, whole or not at all."""
    text = _text_of(content)
    try:
        data = _pack(text, arrays)
    except ValueError as error:
        raise _error(path, "could not be read back", str(error)) from error
    write_whole(path, data)


def read(path: str | Path, file: BinaryIO, size: int) -> tuple[dict[str, Any], Arrays]:
    """Read what `write` wrote from the open file; anything else is refused at once."""
    text, places = _check_header(path, file, size)
    meta = _parse(text, path)
    data = file.read(size)
    if not isinstance(meta, dict) or type(meta.get("format")) is not int:
        raise _error(path, "has no format version", "was it written by `isotone`?")
    if meta["format"] not in READABLE:
        raise _error(
            path,
            f"has format version {meta['format']}; this isotone reads versions 1 and 2",
            "upgrade isotone, or save the model again with this version",
        )
    arrays = {place.name: place.cut(data) for place in places}
    if meta.get("checksum") != checksum(str(meta.get("content")), arrays):
        raise _error(
            path, "does not match its checksum", "it was altered or damaged; copy it again"
        )
    content = _parse(str(meta.get("content")), path)
    if not isinstance(content, dict):
        raise _error(path, "has no content", "save the model again")
    return content, arrays


def checksum(text: str, arrays: Arrays) -> str:
    """SHA-256 over a text and every array: names, types, shapes and numbers."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        little = _little(arrays[name])
        # as JSON writes it
        about = f'[{_quoted(name)}, "{little.dtype.str}", {list(little.shape)}]'
        digest.update(about.encode())
        digest.update(little.data)
    return digest.hexdigest()


def _text_of(content: dict[str, Any]) -> str:
    try:
        return json.dumps(content, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"`provenance` cannot be saved ({error}); it must hold plain JSON: text, finite "
            "numbers, lists and dictionaries"
        ) from error


def _pack(text: str, arrays: Arrays) -> bytes:
    """The bytes of a file, within the limits of `read`."""
    limits.TENSORS.check(len(arrays))
    limits.BYTES.check(sum(array.nbytes for array in arrays.values()))
    parse_json(text)
    # The content is a text within the text, so that the checksum is about every character of it.
    meta = {"format": FORMAT_VERSION, "checksum": checksum(text, arrays), "content": text}
    header: dict[str, Any] = {"__metadata__": {"isotone": json.dumps(meta)}}
    parts, end = [], 0
    for name in sorted(arrays, key=lambda name: (-arrays[name].itemsize, name)):  # stays aligned
        little = _little(arrays[name])
        start, end = end, end + little.nbytes
        kind = f"F{8 * little.itemsize}"
        header[name] = {"dtype": kind, "shape": little.shape, "data_offsets": [start, end]}
        parts.append(little.data)
    written = json.dumps(header, separators=(",", ":")).encode()
    written += b" " * (-len(written) % 8)
    limits.HEADER.check(len(written))
    return b"".join([len(written).to_bytes(8, "little"), written, *parts])


def _little(array: NDArray[Any]) -> NDArray[Any]:
    """The array as files hold it."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


class _Place(NamedTuple):
    """Where in a file the numbers of an array are, and what they are."""

    name: str
    kind: np.dtype[Any]
    shape: list[int]
    n_bytes: int
    start: int
    end: int

    def cut(self, data: bytes) -> NDArray[Any]:
        """The array, whose numbers stay where they are in `data` if they can."""
        flat = np.frombuffer(data, self.kind, math.prod(self.shape), self.start)
        return np.asarray(flat.reshape(self.shape), self.kind.newbyteorder("="))


def _check_header(path: str | Path, file: BinaryIO, size: int) -> tuple[str, list[_Place]]:
    """Check the header against all limits, before arrays are read: its text, and their places."""
    length = _header_length(path, file, size)
    header = _parse(file.read(length), path)
    if not isinstance(header, dict):
        raise _error(path, "has a header that is not an object", "it is not an .isotone file")
    metadata = header.pop("__metadata__", None)
    if len(header) > limits.TENSORS.largest:
        raise _error(
            path,
            f"has {len(header)} arrays; at most {limits.TENSORS.largest} are read",
            "it was not written by isotone",
        )
    places = [_place(path, name, entry) for name, entry in header.items()]
    _check_places(path, places, size - 8 - length)
    text = metadata.get("isotone") if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise _error(path, "has no isotone metadata", "it is a safetensors file of another kind")
    return text, places


def _check_places(path: str | Path, places: list[_Place], size: int) -> None:
    """The arrays must follow one another and fill the file, which may not be too large."""
    declared = sum(place.n_bytes for place in places)
    if declared > limits.BYTES.largest:
        raise _error(
            path,
            f"declares {declared} bytes of numbers",
            f"at most {limits.BYTES.largest} are read",
        )
    if declared != size:
        raise _error(
            path,
            f"declares {declared} bytes of numbers but holds {size}",
            "it was cut off or altered; copy it again",
        )
    end = 0
    for place in sorted(places, key=lambda place: place.start):
        if place.start != end or place.end != end + place.n_bytes:
            what = f"is damaged (the array {place.name!r:.50} is not where the one before it ends)"
            raise _error(path, what, "copy or save it again")
        end = place.end


def _header_length(path: str | Path, file: BinaryIO, size: int) -> int:
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) == 8 and length > limits.HEADER.largest:
        raise _error(
            path,
            f"is not a model file: it begins with {start!r}, which would be a header of {length} "
            f"bytes; at most {limits.HEADER.largest} are read",
            "give the .isotone file that `isotone train` or `save` wrote",
        )
    if length > size - 8:
        raise _error(path, "is too short for its header", "it was cut off; copy it again")
    return length


def _place(path: str | Path, name: str, entry: Any) -> _Place:
    """Where an array is as its header entry says, within the limits."""
    try:
        kind, shape, (start, end) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        whole = isinstance(shape, list) and set(map(type, (*shape, start, end))) == {int}
    except (KeyError, TypeError, ValueError) as error:
        raise _error(path, f"has a malformed entry for {name!r:.50}", "it is damaged") from error
    fits = whole and len(shape) in (1, 2) and min(shape) >= 1
    if not fits or max(shape) > limits.MATRIX.largest:
        what = f"declares an array {name!r:.50} of shape {shape!r:.50}"
        raise _error(path, what, "no isotone model has such an array")
    return _Place(name, kind, shape, kind.itemsize * math.prod(shape), start, end)


def _parse(text: str | bytes, path: str | Path) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise _error(
            path, f"has unreadable text ({error})", "it is not an .isotone file"
        ) from error


def _error(path: str | Path, what: str, advice: str) -> ValueError:
    return ValueError(f"model file {str(path)!r} {what}; {advice}")
