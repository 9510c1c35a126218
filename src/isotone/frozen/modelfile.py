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
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from isotone import limits
from isotone.files import replacing
from isotone.untrusted import open_regular, parse_json

Arrays = dict[str, NDArray[Any]]

FORMAT_VERSION = 2
READABLE = (1, 2)
_ITEM_BYTES = {"F64": 8, "F32": 4}


def write(path: str | Path, content: dict[str, Any], arrays: Arrays) -> None:
    """Write `content` (JSON) and `arrays` to one file, whole or not at all."""
    text = _text_of(content)
    try:
        data = _pack(text, arrays)
    except ValueError as error:
        raise _error(path, "could not be read back", str(error)) from error
    with replacing(Path(path)) as temporary:
        temporary.write_bytes(data)


def read(path: str | Path) -> tuple[dict[str, Any], Arrays]:
    """Read what `write` wrote; anything else raises `ValueError` at once."""
    path = Path(path)
    file, size = open_regular(path)
    with file:
        meta = _parse(_check_header(path, file, size), path)
        file.seek(0)
        data = file.read(size)
    if not isinstance(meta, dict) or type(meta.get("format")) is not int:
        raise _error(path, "has no format version", "was it written by `isotone`?")
    if meta["format"] not in READABLE:
        raise _error(
            path,
            f"has format version {meta['format']}; this isotone reads versions 1 and 2",
            "upgrade isotone, or save the model again with this version",
        )
    try:
        arrays = dict(safetensors.numpy.load(data))
    except Exception as error:  # the library has its own exception type, not exported
        raise _error(path, f"is damaged ({error})", "copy or save it again") from error
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
        array = arrays[name]
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        digest.update(json.dumps([name, little.dtype.str, array.shape]).encode())
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
    data: bytes = safetensors.numpy.save(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()},
        metadata={"isotone": json.dumps(meta)},
    )
    limits.HEADER.check(int.from_bytes(data[:8], "little"))
    return data


def _check_header(path: Path, file: BinaryIO, size: int) -> str:
    """Check the header against all limits without reading the arrays; give its JSON text."""
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
    declared = sum(_declared_bytes(path, name, entry) for name, entry in header.items())
    if declared > limits.BYTES.largest:
        raise _error(
            path,
            f"declares {declared} bytes of numbers",
            f"at most {limits.BYTES.largest} are read",
        )
    if declared != size - 8 - length:
        raise _error(
            path,
            f"declares {declared} bytes of numbers but holds {size - 8 - length}",
            "it was cut off or altered; copy it again",
        )
    text = metadata.get("isotone") if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise _error(path, "has no isotone metadata", "it is a safetensors file of another kind")
    return text


def _header_length(path: Path, file: BinaryIO, size: int) -> int:
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) == 8 and length > limits.HEADER.largest:
        raise _error(
            path,
            f"is not a model file: it begins with {start!r}, which would be a header of {length} "
            f"bytes; at most {limits.HEADER.largest} are read",
            "give the .isotone file that `isotone train` or `save` wrote",
        )
    if len(start) < 8 or length > size - 8:
        raise _error(path, "is too short for its header", "it was cut off; copy it again")
    return length


def _declared_bytes(path: Path, name: str, entry: Any) -> int:
    """Bytes of one array as its header entry says, within the limits."""
    try:
        shape, item = entry["shape"], _ITEM_BYTES[entry["dtype"]]
        whole = all(type(n) is int for n in shape)
    except (KeyError, TypeError) as error:
        raise _error(path, f"has a malformed entry for {name!r:.50}", "it is damaged") from error
    if not whole or len(shape) > 2 or any(not 0 < n <= limits.MATRIX.largest for n in shape):
        what = f"declares an array {name!r:.50} of shape {shape!r:.50}"
        raise _error(path, what, "no isotone model has such an array")
    return int(item * math.prod(shape))


def _parse(text: str | bytes, path: Path) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise _error(
            path, f"has unreadable text ({error})", "it is not an .isotone file"
        ) from error


def _error(path: str | Path, what: str, advice: str) -> ValueError:
    return ValueError(f"model file {str(path)!r} {what}; {advice}")
