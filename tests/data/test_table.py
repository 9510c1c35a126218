"""Tables: what is written is read back, in bounded memory, and every bad cell is named."""

from __future__ import annotations

import decimal
import gzip
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import awkward
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import uproot
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.data.table import SUFFIXES, Table, numbers, open_table, write_table

N_ROWS = 200_000
NAMES = ["pt", "eta", "id"]
ALL = pytest.mark.parametrize("suffix", SUFFIXES)


def content(n_rows: int, seed: int = 0) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    columns = {"pt": rng.exponential(size=n_rows), "eta": rng.normal(size=n_rows)}
    return pa.record_batch(columns | {"id": np.arange(n_rows)})


def write(path: Path, batch: pa.RecordBatch) -> Path:
    pieces = [batch.slice(start, 30_000) for start in range(0, batch.num_rows, 30_000)]
    assert write_table(path, batch.schema, pieces) == batch.num_rows
    return path


def read(table: Table, columns: list[str]) -> Any:
    arrays, first_row = [np.empty((0, len(columns)))], 0
    for batch in table.batches(columns):
        arrays.append(numbers(batch, columns, first_row))
        first_row += batch.num_rows
    return np.concatenate(arrays)


def csv(path: Path, text: str) -> Table:
    path.write_text(text)
    return open_table(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tables")
    return {suffix: write(folder / f"large{suffix}", content(N_ROWS)) for suffix in SUFFIXES}


@ALL
def test_what_is_written_is_read_back_bit_by_bit(files: dict[str, Path], suffix: str) -> None:
    table = open_table(files[suffix])
    assert table.columns == tuple(NAMES)
    assert table.n_rows == (None if "csv" in suffix else N_ROWS)
    expected = numbers(content(N_ROWS), ["id", "pt"])
    assert np.array_equal(read(table, ["id", "pt"]), expected)
    assert table.schema(["id", "pt"]).types == [pa.int64(), pa.float64()]


@ALL
def test_batches_are_small(files: dict[str, Path], suffix: str) -> None:
    batches = open_table(files[suffix]).batches(NAMES, n_rows=1000)
    rows = [batch.num_rows for batch in batches]
    assert max(rows) <= 1000
    assert sum(rows) == N_ROWS


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_memory_does_not_grow_with_the_file(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isotone.data.csv._BUFFER_BYTES", 2**14)  # so that small files show it
    peaks = []
    for n_rows in (100_000, 400_000):
        column = pa.record_batch({"x": np.random.default_rng(0).normal(size=n_rows)})
        write_table(tmp_path / f"x{suffix}", column.schema, [column])
        del column
        before = pa.total_allocated_bytes()
        batches = open_table(tmp_path / f"x{suffix}").batches(["x"], n_rows=4096)
        peaks.append(max(pa.total_allocated_bytes() - before for _ in batches))
    assert peaks[1] < 1.5 * peaks[0]


@ALL
def test_tables_without_rows(tmp_path: Path, suffix: str) -> None:
    table = open_table(write(tmp_path / f"empty{suffix}", content(0)))
    assert table.columns == tuple(NAMES)
    assert read(table, ["eta"]).shape == (0, 1)
    assert table.schema(["id"]).names == ["id"]


@ALL
def test_a_column_asked_for_twice_comes_once(files: dict[str, Path], suffix: str) -> None:
    batch = next(open_table(files[suffix]).batches(["eta", "pt", "eta"]))
    assert batch.schema.names == ["eta", "pt"]


def test_no_columns_give_no_columns(files: dict[str, Path]) -> None:
    for path in files.values():
        assert all(batch.num_columns == 0 for batch in open_table(path).batches([]))


def test_capital_suffix(tmp_path: Path) -> None:
    assert open_table(write(tmp_path / "A.PARQUET", content(3))).n_rows == 3


# Numbers


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2], pa.uint8()),
        pa.array([True, False]),
        pa.array(np.array([1.5, 2.0], np.float16)),
        pa.array([decimal.Decimal("1.25"), decimal.Decimal("2")]),
        pa.array(["1.5", " -2e3 "]),
        pa.array([2**60 + 1, 0]),
    ],
    ids=lambda values: str(values.type),
)
def test_all_kinds_of_numbers_are_numbers(values: pa.Array) -> None:
    result = numbers(pa.record_batch({"x": values}), ["x"])
    assert result.dtype == np.float64
    assert result[:, 0].tolist() == [float(value) for value in values.to_pylist()]


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (pa.array([1.0, None]), "is missing in row 8 "),
        (pa.array([1, None]), "is missing in row 8 "),
        (pa.array([1.0, np.nan]), "is nan in row 8 "),
        (pa.array([1.0, -np.inf]), "is -inf in row 8 "),
        (pa.array(["1.0", "high"]), "holds the text 'high' in row 8 "),
        (pa.array(["1.0", "nan"]), "holds the text 'nan' in row 8 "),
        (pa.array(["1.0", "1e400"]), "holds the text '1e400' in row 8 "),
        (pa.array(["1.0", None]), "is missing in row 8 "),
        (pa.array(["1.0", "1_000"]), "holds the text '1_000' in row 8 "),
        (pa.array(["1.0", "2"]).dictionary_encode(), "is stored as categories"),
        (pa.array([1.5, 2.5]).dictionary_encode(), "is stored as categories (dictionary<val"),
        (pa.array([b"1.0", b"\xff"]), "holds the text b'\\xff' in row 8 "),
        (pa.array(["1.0", "y" * 100]), f"holds the text '{'y' * 40}' in row 8 "),
        (pa.array([[1.0], [2.0]]), "has type list<item: double>; it must hold numbers"),
        (pa.array([1, 2], pa.timestamp("s")), "has type timestamp[s]; it must hold numbers"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value.type),
)
def test_what_is_not_a_finite_number_is_named(values: pa.Array, complaint: str) -> None:
    batch = pa.record_batch({"fine": [1, 2], "x": values})
    with pytest.raises(ValueError, match=re.escape(f"column 'x' {complaint}")):
        numbers(batch, ["fine", "x"], first_row=7)


def test_the_first_bad_row_of_all_columns_is_named() -> None:
    batch = pa.record_batch({"a": ["1", "2", "bad"], "b": ["1", "worse", "3"]})
    message = r"'b' holds the text 'worse' in row 1 \(data rows, counted from 0\); .*drop or fill"
    with pytest.raises(ValueError, match=message):
        numbers(batch, ["a", "b"])


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_text_of_a_float_is_that_float(values: list[float]) -> None:
    batch = pa.record_batch({"x": [repr(value) for value in values]})
    assert numbers(batch, ["x"])[:, 0].tolist() == values


# CSV


def test_text_deep_in_a_csv_file(files: dict[str, Path], tmp_path: Path) -> None:
    lines = files[".csv"].read_text().splitlines()
    lines[1 + 150_000] = "1.5,unknown,3"
    table = csv(tmp_path / "bad.csv", "\n".join(lines))
    with pytest.raises(ValueError, match="column 'eta' holds the text 'unknown' in row 150000 "):
        read(table, ["pt", "eta"])
    assert len(read(table, ["pt"])) == N_ROWS


def test_csv_cells(tmp_path: Path) -> None:
    table = csv(tmp_path / "a.csv", 'x,"a b",t\n 1.5,2,"p\nq"\n\n"3",4,"say ""hi"", you"\n')
    assert read(table, ["x", "a b"]).tolist() == [[1.5, 2.0], [3.0, 4.0]]
    text = [value for batch in table.batches(["t"]) for value in batch["t"].to_pylist()]
    assert text == ["p\nq", 'say "hi", you']


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2", ""], pa.int64()),
        (["1", "2.5"], pa.float64()),
        (["1", "nan", "1e5"], pa.float64()),
        (["1", "x"], pa.string()),
        (["007", "1"], pa.string()),
        (["12345678901234567890"], pa.string()),
        (["0", "0.5"], pa.float64()),
    ],
)
def test_type_of_a_csv_column(tmp_path: Path, cells: list[str], kind: pa.DataType) -> None:
    table = csv(tmp_path / "a.csv", "x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    assert table.schema(["x"]).field("x").type == kind


def test_type_of_a_csv_column_takes_the_whole_file(tmp_path: Path) -> None:
    table = csv(tmp_path / "a.csv", "x\n" + "1\n" * 1_000_000 + "last\n")
    assert table.schema(["x"]).types == [pa.string()]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")), min_size=1))
def test_csv_text_survives(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("text") / "a.csv"
    batch = pa.record_batch({"x": texts, 'name, "quoted"': range(len(texts))})
    write_table(path, batch.schema, [batch])
    table = open_table(path)
    assert table.columns == ("x", 'name, "quoted"')
    found = [value or "" for rows in table.batches(["x"]) for value in rows["x"].to_pylist()]
    assert found == texts


def test_csv_has_quotes_only_where_needed(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": ["1.50", None, "a,b"], "y": [0.1, 2.0, 3.0]})
    write_table(tmp_path / "a.csv", batch.schema, [batch])
    assert (tmp_path / "a.csv").read_text() == 'x,y\n1.50,0.1\n,2\n"a,b",3\n'


def test_compressed_csv_is_compressed(tmp_path: Path) -> None:
    write(tmp_path / "a.csv.gz", content(2))
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"pt,eta,id\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "Empty CSV file"),
        (b"x,y\n\xff,2\n", "invalid UTF8"),
    ],
)
def test_malformed_csv(tmp_path: Path, text: bytes, reason: str) -> None:
    (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(ValueError, match=rf"cannot read '.*a\.csv' \(.*{reason}.*\); it must be"):
        read(open_table(tmp_path / "a.csv"), ["x"])


@pytest.mark.parametrize(
    ("text", "row", "cells"),
    [
        (b"x,y\n1,2\n3\n", 1, 1),
        (b"x,y\n\n1,2\n\n3,4,5\n", 1, 3),  # empty lines are no rows
        (b'x,y\n"a\nb",2\n1,2\n3,4,5\n', 2, 3),  # and a row may have several lines
        (b"x,y\n" + b"1,2\n" * 600_000 + b"3\n", 600_000, 1),  # in a later piece
    ],
)
def test_a_row_that_is_too_short_or_long_is_counted_as_all_rows(
    tmp_path: Path, text: bytes, row: int, cells: int
) -> None:
    (tmp_path / "a.csv").write_bytes(text)
    message = (
        rf"row {row} of '.*a\.csv' \(data rows, counted from 0\) has {cells} cells; the first"
    )
    with pytest.raises(ValueError, match=message):
        read(open_table(tmp_path / "a.csv"), ["x"])


# Parquet and ROOT


def test_parquet_names_with_dots(tmp_path: Path) -> None:
    batch = pa.record_batch({"jet": [1.0], "jet.pt": [2.0]})
    table = open_table(write(tmp_path / "a.parquet", batch))
    assert read(table, ["jet.pt", "jet"]).tolist() == [[2.0, 1.0]]
    assert next(table.batches(["jet"])).schema.names == ["jet"]


@pytest.fixture
def two_trees(tmp_path: Path) -> Path:
    with uproot.recreate(tmp_path / "two.root") as file:
        for name in ("signal", "inner/background"):
            tree = file.mktree(name, {"x": "float32", "a-b": "bool", "hits": "var * float64"})
            hits = awkward.Array([[1.0], [], [2.0, 3.0]])
            tree.extend({"x": np.arange(3), "a-b": np.arange(3) > 1, "hits": hits})
    return tmp_path / "two.root"


def test_a_named_tree(two_trees: Path) -> None:
    table = open_table(f"{two_trees}:inner/background")
    assert table.n_rows is None  # it depends on the columns
    assert read(table, ["a-b", "x"]).tolist() == [[0, 0], [0, 1], [1, 2]]
    assert next(table.batches(["hits"]))["hits"].to_pylist() == [1.0, 2.0, 3.0]


def test_which_tree(two_trees: Path) -> None:
    message = r"two\.root' has 2 trees; .*\['signal', 'inner/background'\].*two\.root:name'"
    with pytest.raises(ValueError, match=message):
        open_table(two_trees)
    with pytest.raises(ValueError, match=r"two\.root' has no tree 'other'; .*'signal'"):
        open_table(f"{two_trees}:other")


def test_rntuple(tmp_path: Path) -> None:
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mkrntuple("events", {"x": np.arange(5.0), "label": awkward.Array(list("abcde"))})
    table = open_table(tmp_path / "a.root")
    assert read(table, ["x"])[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert next(table.batches(["label"]))["label"].to_pylist() == list("abcde")


def test_root_output_is_what_uproot_reads(tmp_path: Path) -> None:
    batch = pa.record_batch({"n": pa.array([1, 2], pa.int32()), "ok": [True, False]})
    write_table(f"{tmp_path / 'a.root'}:scores", batch.schema, [batch, batch])
    with uproot.open(tmp_path / "a.root") as file:
        arrays = file["scores"].arrays(library="np")
    assert arrays["n"].tolist() == [1, 2, 1, 2]
    assert arrays["ok"].tolist() == [True, False, True, False]


def test_without_uproot(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uproot", None)
    message = r"needs uproot, which is not installed; run: pip install uproot awkward xxhash, or"
    with pytest.raises(ImportError, match=message):
        open_table(files[".root"])
    with pytest.raises(ImportError, match=message):
        write_table(tmp_path / "a.root", content(1).schema, [])


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".root"])
def test_damaged_files(files: dict[str, Path], tmp_path: Path, suffix: str) -> None:
    whole = files[suffix].read_bytes()
    garbled = bytearray(whole)
    garbled[2000:-2000] = bytes(len(whole) - 4000)
    for damaged in (whole[: len(whole) // 2], whole[:10], bytes(garbled)):
        (tmp_path / f"a{suffix}").write_bytes(damaged)
        with pytest.raises(
            ValueError, match=rf"cannot read '.*a{suffix}' \(.+\); it must be a complete"
        ):
            read(open_table(tmp_path / f"a{suffix}"), ["pt"])


# Names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pT", "has no column 'pT'; did you mean 'pt'?"),
        ("ETA", "has no column 'ETA'; did you mean 'eta'?"),
        ("mass", "has no column 'mass'; give one of its columns: pt, eta, id"),
    ],
)
def test_missing_columns(files: dict[str, Path], name: str, message: str) -> None:
    table = open_table(files[".parquet"])
    for use in (table.batches, table.schema):
        with pytest.raises(ValueError, match=re.escape(message)):
            use(["eta", name])


def test_repeated_names(tmp_path: Path) -> None:
    table = csv(tmp_path / "a.csv", "x,x,y\n1,2,3\n")
    with pytest.raises(ValueError, match="has 2 columns named 'x'; names must differ: rename"):
        table.batches(["x"])
    assert read(table, ["y"]).tolist() == [[3.0]]


def test_unknown_suffix(tmp_path: Path) -> None:
    message = (
        r"'.*a\.xlsx' has an unknown suffix; .*\.csv, \.csv\.gz, \.parquet, \.pq, \.root: rename"
    )
    with pytest.raises(ValueError, match=message):
        open_table(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match=message):
        write_table(tmp_path / "a.xlsx", content(1).schema, [])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_pipe_is_refused_without_waiting(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"x{suffix}")
    with pytest.raises(ValueError, match="is a pipe; it must be a regular file: copy it to one"):
        open_table(tmp_path / f"x{suffix}")


@ALL
def test_no_file(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FileNotFoundError, match=rf"there is no file '.*nothing{suffix}'; give"):
        open_table(tmp_path / f"nothing{suffix}")


# Writing, whole or not at all


@ALL
def test_a_failing_write_changes_nothing(tmp_path: Path, suffix: str) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield content(1000)
        raise ValueError("row 1000 is bad")

    for name in ("new", "old"):
        path = tmp_path / f"{name}{suffix}"
        if name == "old":
            path.write_text("precious")
        with pytest.raises(ValueError, match="row 1000 is bad"):
            write_table(path, content(0).schema, failing())
    assert [path.name for path in tmp_path.iterdir()] == [f"old{suffix}"]
    assert (tmp_path / f"old{suffix}").read_text() == "precious"


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"there is no directory '.*missing'; create it first"
    ):
        write_table(tmp_path / "missing" / "a.csv", content(0).schema, [])


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("a.root", pa.array(["a"]), "column 'x' has type string; a ROOT file is written with"),
        ("a.root", pa.array([None], pa.int32()), "column 'x' has missing values; a ROOT file"),
        ("a.csv", pa.array([[1.0]]), "column 'x' has type list<item: double>; a CSV file holds"),
    ],
)
def test_what_a_format_cannot_hold(
    tmp_path: Path, name: str, column: pa.Array, message: str
) -> None:
    batch = pa.record_batch({"x": column})
    with pytest.raises(ValueError, match=re.escape(message)):
        write_table(tmp_path / name, batch.schema, [batch])
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_a_model_needs_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pt,eta\n1,2\n")
    open_table(path).require(["eta", "pt"])
    message = "no column 'mass', which the model needs; add it, or rename one of its columns: pt"
    with pytest.raises(ValueError, match=message):
        open_table(path).require(["pt", "mass"])
    with pytest.raises(ValueError, match=r"'ETAS', which the model needs; did you mean 'eta'\?"):
        open_table(path).require(["ETAS"])
