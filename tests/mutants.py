"""Model files changed at random, most of them with checksums that fit again."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isotone.frozen.modelfile import checksum

_TYPES = {"F64": "<f8", "F32": "<f4"}
_VALUES: list[Any] = [
    *(None, True, False, "", "x", "0.5", [], {}, [1], {"kind": "sort"}, "é\n", "\ud800"),
    *(0, 1, -1, 2, 16, 2**53, 2**70, 10**310, 0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 1.5, 3e8),
    *(5e-324, 1e-310, 1.7976931348623157e308, 2.0**-20, 2.0**-60, 2.0**64, 2.0**65),
    *("values", "logits", "float32", "float64", "1", "2", "inf", "relu", "leaky_relu", "abs"),
    *("hardtanh", "tanh", "dense", "sort", "pointwise", "members", "number", "category"),
]
_FACTORS = [1 + 2.0**-52, 1 - 2.0**-53, 1.0001, 0.9999, 1.5, 0.5, 2.0, -1.0, 0.0, 1e300, 1e-300]
_TEXTS = [
    ("{", '{"clip": 1.0, "clip": 2.0, '),
    ("1.0", "NaN"),
    ("1.0", "Infinity"),
    ("1.0", "1e400"),
    ("1.0", "1"),
    ("1.0", "01.0"),
    ("1.0", "1.0000000000000001"),
    ("0", "-0"),
    (", ", ",\n\t "),
    ("[", "[" * 100),
    ("null", "nul"),
    ("}", "} x"),
    ("}", ",}"),
]


@dataclass
class File:
    """The parts of a model file, to be changed and packed again."""

    content: Any
    arrays: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    text: str | None = None

    @classmethod
    def unpack(cls, raw: bytes) -> File:
        (length,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + length])
        meta = json.loads(header.pop("__metadata__")["isotone"])
        arrays = {}
        for name, entry in header.items():
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(raw[begin:end], _TYPES[entry["dtype"]])
            arrays[name] = flat.reshape(entry["shape"]).copy()
        return cls(json.loads(meta["content"]), arrays)

    def pack(self) -> bytes:
        text = json.dumps(self.content) if self.text is None else self.text
        meta = {"format": 2, "checksum": _sum(text, self.arrays), "content": text} | self.meta
        header: dict[str, Any] = {"__metadata__": {"isotone": json.dumps(meta)}}
        end = 0
        for name, array in self.arrays.items():
            kind = "F64" if array.itemsize == 8 else "F32"
            places = [end, end := end + array.nbytes]
            header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": places}
        written = json.dumps(header | self.header).encode()
        data = b"".join(array.tobytes() for array in self.arrays.values())
        return struct.pack("<Q", len(written)) + written + data


def _sum(text: str, arrays: dict[str, Any]) -> str:
    try:
        return checksum(text, arrays)
    except UnicodeEncodeError:
        return ""


def mutate(raw: bytes, rng: np.random.Generator) -> bytes:
    """The file with one to three changes."""
    file = File.unpack(raw)
    kinds: list[Callable[[File, np.random.Generator], None]]
    kinds = [_content, _content, _content, _number, _number, _shape, _text, _meta, _header]
    for _ in range(int(rng.integers(1, 4))):
        kinds[rng.integers(len(kinds))](file, rng)
    packed = file.pack()
    return _bytes(packed, rng) if rng.random() < 0.05 else packed


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key of a JSON value."""
    keys = value if isinstance(value, dict) else range(len(value))
    found = []
    for key in list(keys):
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += _places(value[key])
    return found


def _content(file: File, rng: np.random.Generator) -> None:
    places = _places(file.content)
    if not places:
        return
    container, key = places[rng.integers(len(places))]
    old, way = container[key], rng.integers(5)
    if way == 0:
        del container[key]
    elif way == 1 and isinstance(container, list):
        container.insert(key, copy.deepcopy(old))
    elif way <= 3 and type(old) in (int, float):
        container[key] = old * _FACTORS[rng.integers(len(_FACTORS))]
    else:
        container[key] = copy.deepcopy(_VALUES[rng.integers(len(_VALUES))])


def _number(file: File, rng: np.random.Generator) -> None:
    names = sorted(file.arrays)
    flat = file.arrays[names[rng.integers(len(names))]].reshape(-1)
    k = rng.integers(flat.size)
    special = [np.nan, np.inf, 0.0, -0.0, 5e-324, 1e308, 1.0, -1.0]
    with np.errstate(all="ignore"):
        if rng.random() < 0.3:
            flat[k] = special[rng.integers(len(special))]
        elif rng.random() < 0.5:
            flat[k] *= _FACTORS[rng.integers(len(_FACTORS))]
        else:
            flat *= _FACTORS[rng.integers(5)]


def _shape(file: File, rng: np.random.Generator) -> None:
    names = sorted(file.arrays)
    name = names[rng.integers(len(names))]
    array, way = file.arrays[name], rng.integers(6)
    if way == 0:
        file.arrays[name] = array.reshape(-1)
    elif way == 1:
        file.arrays[name] = np.ascontiguousarray(array.T)
    elif way == 2:
        with np.errstate(all="ignore"):
            file.arrays[name] = array.astype("<f4" if array.itemsize == 8 else "<f8")
    elif way == 3 and len(names) > 1:
        del file.arrays[name]
    elif way == 4:
        file.arrays[f"{name}x"] = array
    else:
        file.arrays[name] = array[:1]


def _text(file: File, rng: np.random.Generator) -> None:
    old, new = _TEXTS[rng.integers(len(_TEXTS))]
    text = json.dumps(file.content)
    file.text = text.replace(old, new, 1) if rng.random() < 0.7 else text.replace(old, new)


def _meta(file: File, rng: np.random.Generator) -> None:
    key = ["format", "checksum", "content"][rng.integers(3)]
    value = [None, 1, 3, True, "x", 2.0][rng.integers(6)]
    if rng.random() < 0.3:
        file.meta[key] = value


def _header(file: File, rng: np.random.Generator) -> None:
    if rng.random() < 0.7:
        return
    names = ["__metadata__", *sorted(file.arrays)]
    name = names[rng.integers(len(names))]
    wrong: list[Any] = [
        *(None, {}, {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}),
        *({"dtype": "I8", "shape": [8], "data_offsets": [0, 8]}, {"isotone": "{}"}),
        *({"dtype": "F64", "shape": [-1], "data_offsets": [0, -8]}, {"isotone": 1}),
        *({"dtype": "F64", "shape": [2**60, 2**60], "data_offsets": [0, 2**123]},),
        *({"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]},),
        *({"dtype": "F64", "shape": [], "data_offsets": [0, 8]},),
    ]
    file.header[name] = wrong[rng.integers(len(wrong))]


def _bytes(raw: bytes, rng: np.random.Generator) -> bytes:
    way, k = rng.integers(4), int(rng.integers(len(raw)))
    if way == 0:
        return raw[:k]
    if way == 1:
        return raw + b"\0"
    data = bytearray(raw)
    data[k if way == 2 else k % 8] ^= 1 << int(rng.integers(8))
    return bytes(data)
