"""Tables as files that nobody should have written: kinds of columns, and changes of their bytes.

An input is a line with the suffix of the file and then the file. Everything depends on a seed.
"""

from __future__ import annotations

import decimal
import gzip
import io
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import uproot

Rng = np.random.Generator

CELLS = (
    *("", "0", "-0", "1", "1.5", "1e5", "1e400", "-1e-400", "nan", "NaN", "inf", "-Infinity"),
    *("0x10", "1_000", "1,5", " 7 ", "\t2", "+3", "--4", "٣", "true", "FALSE", "yes", "None"),
    *("NULL", "N/A", "é", "\x00", "a\x00b", "😀", "00123", "9" * 19, "9" * 25, "1" * 400, "-"),
    *('"', '""', "'", "a b", "2024-01-01", "1/2", "1e", "e1", ".", "0.1", "5e-324", "x" * 300),
)
NAMES = ("a", "b", "a", "", " ", "é", "a.b", "x\x00y", "1", "[0]", "a,b", 'q"q', "n\nn", "a" * 500)
CONTENTS: dict[str, Callable[[Rng, int], pa.Array]] = {
    "float64": lambda rng, n: pa.array(rng.normal(size=n)),
    "float32": lambda rng, n: pa.array(rng.normal(size=n).astype("f4")),
    "float16": lambda rng, n: pa.array(rng.normal(size=n).astype("f2")),
    "huge": lambda rng, n: pa.array(rng.choice([1e308, -1e308, 5e-324, np.inf, np.nan], n)),
    "int64": lambda rng, n: pa.array(rng.integers(-(2**63), 2**63 - 1, n)),
    "uint64": lambda rng, n: pa.array(rng.integers(0, 2**64 - 1, n, np.uint64)),
    "int8": lambda rng, n: pa.array(rng.integers(-128, 127, n, np.int8)),
    "bool": lambda rng, n: pa.array(rng.random(n) < 0.5),
    "gaps": lambda rng, n: pa.array([None if v < 0.3 else v for v in rng.random(n).tolist()]),
    "null": lambda rng, n: pa.nulls(n),
    "text": lambda rng, n: pa.array([CELLS[k] for k in rng.integers(len(CELLS), size=n)]),
    "binary": lambda rng, n: pa.array([rng.bytes(3) for _ in range(n)]),
    "category": lambda rng, n: pa.array([f"c{k}" for k in rng.integers(3, size=n)]),
    "date": lambda rng, n: pa.array(rng.integers(0, 2**40, n)).cast(pa.timestamp("ms")),
    "decimal": lambda rng, n: pa.array(
        [decimal.Decimal(int(k)) / 100 for k in rng.integers(0, 9999, n)], pa.decimal128(20, 4)
    ),
    "list": lambda rng, n: pa.array(
        [rng.random(k).tolist() for k in rng.integers(0, 4, n)], pa.list_(pa.float64())
    ),
    "struct": lambda rng, n: pa.array(
        [{"p": float(k), "q": int(k)} for k in rng.integers(9, size=n)],
        pa.struct([("p", pa.float64()), ("q", pa.int64())]),
    ),
}


def draw_table(seed: int) -> bytes:
    """A file of some format with columns of any kind; most of them can be read."""
    rng = np.random.default_rng([seed, 7])
    makers = (_csv, _csv, _gzipped, _parquet, _parquet, _root)
    suffix, raw = makers[seed % len(makers)](rng)
    return suffix.encode() + b"\n" + raw


def mutate(data: bytes, rng: Rng) -> bytes:
    """The input with one to four changes of its bytes, or of the text of a CSV file."""
    suffix, _, raw = data.partition(b"\n")
    ways = [_flip, _flip, _cut, _insert, _repeat, _erase, _number]
    packed = suffix == b".csv.gz" and rng.random() < 0.7
    if packed:
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            packed = False
    if packed or suffix == b".csv":
        ways += [_recode, _line, _cell, _cell, _cell, _separator]
    for _ in range(int(rng.integers(1, 5))):
        raw = ways[int(rng.integers(len(ways)))](raw, rng) if raw else raw
    return suffix + b"\n" + (gzip.compress(raw, mtime=0) if packed else raw)


# ---- files --------------------------------------------------------------------------------


def _columns(rng: Rng, kinds: list[str]) -> tuple[list[str], list[pa.Array]]:
    n = int(rng.choice([0, 1, 2, 9, 40]))
    chosen = [kinds[k] for k in rng.integers(len(kinds), size=rng.integers(1, 6))]
    usual = [f"{kind}{i}" for i, kind in enumerate(chosen)]
    names = [str(rng.choice(NAMES)) if rng.random() < 0.1 else name for name in usual]
    return names, [CONTENTS[kind](rng, n) for kind in chosen]


def _csv(rng: Rng) -> tuple[str, bytes]:
    flat = ["float64", "huge", "int64", "bool", "gaps", "text", "category"]
    names, arrays = _columns(rng, flat)
    cells = [array.cast(pa.string()).to_pylist() for array in arrays]
    end = str(rng.choice(["\n", "\n", "\r\n", "\r"]))
    lines = [
        ",".join(_quoted(text or "", rng) for text in row) for row in zip(*cells, strict=True)
    ]
    header = ",".join(_quoted(name, rng) for name in names)
    return ".csv", (end.join([header, *lines]) + end).encode()


def _quoted(text: str, rng: Rng) -> str:
    special = any(mark in text for mark in ',"\n\r')
    if special or rng.random() < 0.1:
        return '"' + text.replace('"', '""') + '"'
    return text


def _gzipped(rng: Rng) -> tuple[str, bytes]:
    return ".csv.gz", gzip.compress(_csv(rng)[1], mtime=0)


def _parquet(rng: Rng) -> tuple[str, bytes]:
    names, arrays = _columns(rng, list(CONTENTS))
    arrays = [a.dictionary_encode() if rng.random() < 0.1 and _plain(a) else a for a in arrays]
    table = pa.Table.from_arrays(arrays, names=names)
    notes = [b"", b"{}", b"[1]", b'{"columns": 3}', b'{"index_columns": [{}, 1, "a"]}', b"\xff"]
    if rng.random() < 0.3:
        table = table.replace_schema_metadata({b"pandas": notes[rng.integers(len(notes))]})
    file = io.BytesIO()
    pa.parquet.write_table(
        table,
        file,
        compression=str(rng.choice(["none", "snappy", "zstd", "gzip"])),
        row_group_size=int(rng.choice([1, 7, 1000])),
        use_dictionary=bool(rng.random() < 0.5),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
    )
    return ".parquet", file.getvalue()


def _plain(array: pa.Array) -> bool:
    return not pa.types.is_nested(array.type) and not pa.types.is_null(array.type)


def _root(rng: Rng) -> tuple[str, bytes]:
    kinds = ["float64", "float32", "huge", "int64", "int8", "bool", "list"]
    names, arrays = _columns(rng, kinds)
    unique = {
        f"{name}{i}" if name in names[:i] else name: a
        for i, (name, a) in enumerate(zip(names, arrays, strict=True))
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.root"
        with uproot.recreate(path) as file:
            _fill(file, {_identifier(n): _branch(a) for n, a in unique.items()}, rng)
        return ".root", path.read_bytes()


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name)[:40] or "_"


def _branch(array: pa.Array) -> Any:
    import awkward

    if pa.types.is_list(array.type):
        lists = array.to_pylist()
        counts = np.array([len(part) for part in lists], int)
        flat = np.array([number for part in lists for number in part], float)
        return awkward.unflatten(flat, counts)
    return array.to_numpy(zero_copy_only=False).astype(array.type.to_pandas_dtype())


def _fill(file: Any, branches: dict[str, Any], rng: Rng) -> None:
    for tree in ["events", "more"][: 1 + (rng.random() < 0.1)]:
        if rng.random() < 0.3 and not any(hasattr(b, "layout") for b in branches.values()):
            file.mkrntuple(tree, branches)
        else:
            file[tree] = branches


# ---- changes of bytes ---------------------------------------------------------------------


def _flip(raw: bytes, rng: Rng) -> bytes:
    data = bytearray(raw)
    for k in rng.integers(len(data), size=int(rng.choice([1, 1, 1, 8]))):
        data[k] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _cut(raw: bytes, rng: Rng) -> bytes:
    k = int(rng.integers(len(raw)))
    return raw[:k] if rng.random() < 0.8 else raw[k:]


def _insert(raw: bytes, rng: Rng) -> bytes:
    k = int(rng.integers(len(raw)))
    return raw[:k] + rng.bytes(int(rng.choice([1, 4, 100]))) + raw[k:]


def _repeat(raw: bytes, rng: Rng) -> bytes:
    i, k = sorted(int(j) for j in rng.integers(len(raw), size=2))
    return raw[:k] + raw[i : min(k, i + 4000)] * int(rng.choice([1, 2, 30])) + raw[k:]


def _erase(raw: bytes, rng: Rng) -> bytes:
    i, n = int(rng.integers(len(raw))), int(rng.choice([1, 4, 16, 200]))
    return raw[:i] + b"\0" * len(raw[i : i + n]) + raw[i + n :]


def _number(raw: bytes, rng: Rng) -> bytes:
    """A number of four or eight bytes, as formats have them for sizes and places."""
    order, size = str(rng.choice(["little", "big"])), int(rng.choice([4, 8]))
    value = int(rng.choice([0, 1, 2**7, 2**15, 2**28, 2**31 - 1, 2**31, 2**32 - 1]))
    i = int(rng.integers(len(raw)))
    return raw[:i] + value.to_bytes(size, order)[: len(raw) - i] + raw[i + size :]  # type: ignore[arg-type]


# ---- changes of text ----------------------------------------------------------------------


def _recode(raw: bytes, rng: Rng) -> bytes:
    text = raw.decode("utf-8", "replace")
    codes = ("utf-16", "utf-16-le", "latin-1", "utf-8-sig", "utf-32", "cp037")
    half = len(text) // 2 if rng.random() < 0.3 else 0
    code = str(rng.choice(codes))
    return text[:half].encode() + text[half:].encode(code, "replace")


def _lines(raw: bytes) -> list[bytes]:
    return raw.split(b"\n")


def _line(raw: bytes, rng: Rng) -> bytes:
    lines = _lines(raw)
    k, way = int(rng.integers(len(lines))), int(rng.integers(4))
    if way == 0:
        del lines[k]
    elif way == 1:
        lines.insert(k, b"")
    elif way == 2:
        lines[k] += b",1"
    else:
        lines.insert(k, lines[0])
    return b"\n".join(lines)


def _cell(raw: bytes, rng: Rng) -> bytes:
    lines = _lines(raw)
    k = int(rng.integers(len(lines)))
    cells = lines[k].split(b",")
    cells[int(rng.integers(len(cells)))] = str(rng.choice(CELLS)).encode()
    lines[k] = b",".join(cells)
    return b"\n".join(lines)


def _separator(raw: bytes, rng: Rng) -> bytes:
    old, new = (str(rng.choice([",", ";", "\t", "\n", "\r", '"', " "])) for _ in range(2))
    return raw.replace(old.encode(), new.encode(), int(rng.choice([1, 3, -1])))
