"""ROOT files as other programs write them: types, compression, directories, jagged branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pyarrow as pa
import pytest
import uproot

from isotone.data.root import explode
from isotone.data.table import is_url, open_table, read_numbers, split_address

EVENTS = {
    "run": np.array([1, 1, 2, 2], np.int32),
    "event": np.array([7, 2**63 + 1, 7, 9], np.uint64),
    "ok": np.array([True, False, True, True]),
    "charge": np.array([-1, 1, 1, -1], np.int8),
    "mass": np.array([5.25, 5.5, 0.125, 1.0], np.float32),
    "Σp_T": np.array([1.0, 2.0, 3.0, 4.0]),
}
PT = [[3.0, 1.0], [], [2.0], [5.0, 4.0, 0.5]]
FLAT = [3.0, 1.0, 2.0, 5.0, 4.0, 0.5]
PARENT = [0, 0, 2, 3, 3, 3]


def write(path: Path, kind: str, compression: Any = None) -> str:
    """A tree in a directory with scalar, jagged and fixed-size branches."""
    columns = EVENTS | {"pt": ak.Array(PT), "eta": ak.Array(PT) * 2}
    columns["hits"] = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    with uproot.recreate(path, compression=compression) as file:
        if kind == "TTree":
            types: dict[str, Any] = {name: column.dtype for name, column in EVENTS.items()}
            types |= {"pt": "var * float64", "eta": "var * float64", "hits": ("f4", (2,))}
            file.mktree("Hlt/Candidates", types).extend(columns)
        else:
            arrays = columns | {"hits": ak.to_regular(ak.Array(columns["hits"]), axis=1)}
            file.mkrntuple("Hlt", ak.Array(arrays))
    return f"{path}:Hlt/Candidates" if kind == "TTree" else f"{path}:Hlt"


@pytest.fixture(params=["TTree", "RNTuple"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return write(tmp_path / "events.root", request.param)


@pytest.mark.parametrize("kind", ["TTree", "RNTuple"])
@pytest.mark.parametrize(
    "compression", [None, uproot.ZLIB(4), uproot.LZMA(5), uproot.LZ4(4), uproot.ZSTD(4)]
)
def test_numbers_of_all_types_and_compressions_are_read_exactly(
    tmp_path: Path, kind: str, compression: Any
) -> None:
    table = open_table(write(tmp_path / "a.root", kind, compression))
    (batch,) = table.batches(list(EVENTS))
    for name, column in EVENTS.items():
        assert batch.column(name).to_pylist() == column.tolist()


def test_there_is_a_row_for_every_element_and_scalars_are_repeated(tree: str) -> None:
    table = open_table(tree)
    (batch,) = table.batches(["event", "pt", "Σp_T", "eta"])
    assert batch.column("pt").to_pylist() == FLAT
    assert batch.column("eta").to_pylist() == [2 * x for x in FLAT]
    for name in ("event", "Σp_T"):
        assert batch.column(name).to_pylist() == EVENTS[name][PARENT].tolist()
    assert table.schema(["event", "pt"]).types == [pa.uint64(), pa.float64()]
    assert table.n_rows is None  # it depends on the columns


def test_a_branch_of_a_fixed_size_has_as_many_candidates(tree: str) -> None:
    values = read_numbers(tree, ["run", "hits"])
    assert values.tolist() == [[r, 2 * i + k] for i, r in enumerate([1, 1, 2, 2]) for k in (0, 1)]


def test_scalar_branches_alone_are_rows_as_they_are(tree: str) -> None:
    assert read_numbers(tree, ["mass"]).ravel().tolist() == EVENTS["mass"].tolist()


@pytest.mark.parametrize("n_rows", [1, 2, 3, 100])
def test_the_size_of_batches_does_not_matter(tree: str, n_rows: int) -> None:
    batches = list(open_table(tree).batches(["run", "pt"], n_rows))
    assert all(0 < len(batch) <= n_rows for batch in batches)
    assert [x for batch in batches for x in batch.column("pt").to_pylist()] == FLAT


def test_branches_of_different_multiplicity_are_refused_by_name(tree: str) -> None:
    message = r"branch 'pt' has 0 values and 'hits' has 2 in entry 1 .*; a candidate needs one"
    with pytest.raises(ValueError, match=message):
        read_numbers(tree, ["pt", "hits"])
    with pytest.raises(ValueError, match="in entry 1 "):  # whatever the batches are
        list(open_table(tree).batches(["pt", "hits"], 1))


def test_lists_of_lists_are_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [[[1.0], [2.0]]]})
    with pytest.raises(ValueError, match="branch 'x' holds lists of lists; one list per entry"):
        explode(batch)


def test_an_empty_tree_has_columns_and_no_rows(tmp_path: Path) -> None:
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mktree("T", {"x": "f8", "pt": "var * float32"})
    table = open_table(tmp_path / "a.root")
    assert "x" in table.columns
    assert list(table.batches(["x", "pt"])) == []
    assert table.schema(["x", "pt"]).types == [pa.float64(), pa.float32()]


@pytest.mark.parametrize(
    ("path", "file", "name"),
    [
        ("root://eos:1094//lhcb/a.root", "root://eos:1094//lhcb/a.root", None),
        ("root://eos//lhcb/a.root:dir/T", "root://eos//lhcb/a.root", "dir/T"),
        ("https://host/a.root:T", "https://host/a.root", "T"),
        ("a.root:T", "a.root", "T"),
    ],
)
def test_urls_are_left_intact(path: str, file: str, name: str | None) -> None:
    assert split_address(path) == (file, name)
    assert is_url(path) == ("://" in path)


def test_a_url_is_handed_to_uproot_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, opened = write(tmp_path / "a.root", "TTree").split(":")[0], []
    original = uproot.open
    monkeypatch.setattr(uproot, "open", lambda path: opened.append(path) or original(local))
    table = open_table("root://eos:1094//lhcb//a.root:Hlt/Candidates")
    assert sum(map(len, table.batches(["pt"]))) == len(FLAT)
    assert set(opened) == {"root://eos:1094//lhcb//a.root"}
    assert table.local_files == []


def test_the_package_of_a_protocol_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise ImportError("Install fsspec-xrootd to access xrootd.\nMore words.")

    monkeypatch.setattr(uproot, "open", fail)
    message = r"'root://eos//a.root' cannot be opened \(Install fsspec-xrootd to access xrootd\); "
    with pytest.raises(ImportError, match=message + r".*pip install fsspec-xrootd xrootd for"):
        open_table("root://eos//a.root:T")


def test_only_root_files_are_read_from_urls() -> None:
    with pytest.raises(ValueError, match=r"is a URL of a \.csv file; only ROOT files are read"):
        open_table("https://host/a.csv")
