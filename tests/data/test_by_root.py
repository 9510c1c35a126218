"""Files that ROOT itself wrote (`by_root/write.py`): leaf lists, vectors, arrays, an RNTuple."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isotone import cli
from isotone.data.table import open_table
from networks import small

FOLDER = Path(__file__).parent / "by_root"
N = 40
COUNTS = np.arange(N) % 4
TREES = {
    "leaves": "leaves.root:Hlt/Candidates",
    "vectors": "vectors.root:Hlt/Candidates",
    "snapshot": "snapshot.root",
    "rntuple": "rntuple.root",
    "fixed": "fixed.root:Hlt/Candidates",
}


def counts(name: str) -> np.ndarray:
    return np.full(N, 2) if name == "fixed" else COUNTS


@pytest.mark.parametrize("name", TREES)
def test_a_file_of_root_has_a_row_for_every_candidate(name: str) -> None:
    table = open_table(f"{FOLDER}/{TREES[name]}")
    columns = ["run", "event", "charge", "ok", "mass", "pt", "ip"]
    (batch,) = table.batches(columns)
    found = {column: batch.column(column).to_numpy(zero_copy_only=False) for column in columns}
    entry = np.repeat(np.arange(N), counts(name))
    place = np.concatenate([np.arange(n) for n in counts(name)])
    assert found["pt"].tolist() == (entry + place / 8).tolist()
    assert found["ip"].tolist() == (2 * found["pt"]).tolist()
    assert found["event"].tolist() == (2**40 + entry).tolist()
    assert found["run"].tolist() == (300_000 + entry % 3).tolist()
    assert found["charge"].tolist() == np.where(entry % 2, -1, 1).tolist()
    assert found["ok"].astype(bool).tolist() == (entry % 2 == 1).tolist()
    assert found["mass"].tolist() == (5 + entry / 64).tolist()


@pytest.mark.parametrize("name", TREES)
def test_commands_take_files_of_root(name: str, tmp_path: Path) -> None:
    small(features=["pt", "ip", "mass"]).save(tmp_path / "m.isotone")
    tree, out = f"{FOLDER}/{TREES[name]}", tmp_path / "point.json"
    words = ["trigger", tmp_path / "m.isotone", "--signal", tree, "--background", tree]
    words += ["--event", "run,event", "--n-events", 1000, "--max-rate", 3e5, "--out", out]
    _run(*words, "--rate-by", "run")
    found = json.loads(out.read_text())
    assert found["groups"]["all"]["events"] == [int((counts(name) > 0).sum())]
    _run("score", tmp_path / "m.isotone", tree, "--out", tmp_path / "s.csv")
    assert len((tmp_path / "s.csv").read_text().splitlines()) == counts(name).sum() + 1


def _run(*words: object) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([str(word) for word in words])
    assert not left.value.code
