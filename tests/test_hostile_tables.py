"""What the fuzzer of tables found stays found: its corpus runs again, and some changed tables."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import uproot

import hostile_tables
from bench.fuzz import corpus
from hostile_tables import examine
from isotone.data.table import open_table
from table_mutants import draw_table, mutate

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries that read damaged files


def test_no_table_of_the_corpus_does_harm(tmp_path: Path) -> None:
    corpus.unpack("tables", tmp_path)
    ends = [examine(path.read_bytes()) for path in sorted(tmp_path.iterdir())]
    for suffix in (".csv", ".gz", ".parquet", ".root"):
        assert {end.split()[1].strip(":") for end in ends if end.startswith(f"{suffix} ")} == {
            "read",
            "refused",
        }
    assert len(set(ends)) > 30


@pytest.mark.parametrize("seed", range(12))
def test_no_changed_table_does_harm(seed: int) -> None:
    rng, data = np.random.default_rng(seed), draw_table(seed)
    examine(data)
    for _ in range(6):
        examine(mutate(data, rng))


def test_a_table_that_is_read_wrongly_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b".csv\na,b\n1,2\n3,4\n"
    assert examine(data) == ".csv read: 2 columns of numbers"
    monkeypatch.setattr(hostile_tables, "_by_python", lambda path: {"a": ["1", "4"]})
    with pytest.raises(AssertionError, match=r"\('a', \['1', '3'\], \['1', '4'\]"):
        examine(data)


def test_text_of_a_parquet_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    table = pa.table({"x": ["aaaa", "bbbb"]})
    pa.parquet.write_table(table, tmp_path / "a.parquet", compression="none", use_dictionary=False)
    raw = (tmp_path / "a.parquet").read_bytes()
    path = tmp_path / "b.parquet"
    path.write_bytes(raw.replace(b"aaaa\4\0\0\0bbbb", b"aaaa\4\0\0\0b\xffbb"))
    with pytest.raises(ValueError, match=r"b.parquet' \(.*Invalid UTF8.*copy or write it again"):
        list(open_table(path).batches(["x"]))


def test_what_is_no_root_file_is_refused_in_our_words(tmp_path: Path) -> None:
    path = tmp_path / "a.root"
    path.write_bytes(b"nonsense" * 100)
    with pytest.raises(ValueError, match=r"cannot read .*a.root' \(.*must be a complete .root"):
        open_table(path)


def test_a_damaged_ntuple_is_refused_before_its_numbers_are_believed(tmp_path: Path) -> None:
    path = tmp_path / "a.root"
    with uproot.recreate(path) as file:
        file.mkrntuple("events", {"x": np.arange(3.0)})
    raw = path.read_bytes()
    place = raw.index(b"\x01\0\0\0x") - 16  # the number of fields comes before the first of them
    assert place > 0
    found = [k for k in range(place - 40, place) if raw[k : k + 4] == struct.pack("<I", 1)]
    path.write_bytes(raw[: found[0]] + struct.pack("<I", 2**32 - 1) + raw[found[0] + 4 :])
    with pytest.raises(ValueError, match="checksum of the header of its RNTuple does not fit"):
        open_table(path)


def test_a_table_of_very_many_columns_is_read(tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(20_000)]
    path = tmp_path / "wide.csv"
    path.write_text(f"{','.join(names)}\n{','.join('1' for _ in names)}\n")
    table = open_table(path)
    assert len(table.columns) == 20_000
    (batch,) = table.batches(["c0", "c19999"])
    assert batch.to_pydict() == {"c0": ["1"], "c19999": ["1"]}
