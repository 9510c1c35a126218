"""No command writes over what it reads, whatever the name."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from isotone.cli import main
from isotone.data.table import open_table, write_table
from isotone.files.locks import NAME, sole_use
from test_files import everything, write_inputs

# What is read and what is written, and a command that does; {0} is a folder.
COMMANDS = {
    "score, its table": ("t.csv", "s.csv", "score {0}/m.isotone {0}/t.csv --out {0}/s.csv"),
    "score, its model": ("m.isotone", "s.csv", "score {0}/m.isotone {0}/t.csv --out {0}/s.csv"),
    "score ROOT": ("m.isotone", "s.root", "score {0}/m.isotone {0}/t.csv --out {0}/s.root:new"),
    "score a directory, its model": (
        "m.isotone",
        "out/1.parquet",
        "score {0}/m.isotone {0}/tables --out {0}/out --workers 1",
    ),
    "score a directory, the note": (
        "m.isotone",
        "out/scored-with.json",
        "score {0}/m.isotone {0}/tables --out {0}/out --workers 1",
    ),
    "score a directory, another table": (
        "tables/2.parquet",
        "out/1.parquet",
        "score {0}/m.isotone {0}/tables --out {0}/out --workers 1",
    ),
    "export": ("m.isotone", "m.json", "export {0}/m.isotone --to json --out {0}/m.json"),
    "export a directory": (
        "m.isotone",
        "out/isotone.hpp",
        "export {0}/m.isotone --to cpp --out {0}/out",
    ),
    "explain, its table": ("t.csv", "r.csv", "explain {0}/m.isotone {0}/t.csv --out {0}/r.csv"),
    "explain, its background": (
        "v.csv",
        "r.csv",
        "explain {0}/m.isotone {0}/t.csv --background {0}/v.csv --out {0}/r.csv",
    ),
    "report, its table": ("t.csv", "r.html", "report {0}/m.isotone {0}/t.csv --out {0}/r.html"),
    "report, its model": ("m.isotone", "r.html", "report {0}/m.isotone --out {0}/r.html"),
    "report, its history": (
        "h.json",
        "r.html",
        "report {0}/m.isotone --history {0}/h.json --out {0}/r.html",
    ),
    "train": ("t.csv", "out/metrics.json", "train {0}/t.csv --target y --out {0}/out"),
    "train, the validation rows": (
        "v.csv",
        "out/model.isotone",
        "train {0}/t.csv --target y --validation {0}/v.csv --out {0}/out",
    ),
    "train, checkpoints": (
        "t.csv",
        "out/.isotone-checkpoints/scan",
        "train {0}/t.csv --target y --out {0}/out",
    ),
    "sweep": ("t.csv", "out/results.parquet", "sweep {0}/t.csv --target y --out {0}/out"),
    "transport": ("v.csv", "out/distance.json", "transport {0}/t.csv {0}/v.csv --out {0}/out"),
    "trigger": (
        "v.csv",
        "p.json",
        "trigger {0}/m.isotone {0}/t.csv {0}/v.csv --target y --event id --n-events 999"
        " --max-rate 1e7 --out {0}/p.json",
    ),
}


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_read_is_not_written(
    tmp_path: Path, command: str, link: object, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    (tmp_path / "v.csv").write_bytes((tmp_path / "t.csv").read_bytes())
    (tmp_path / "h.json").write_text("{}")
    read, written, words = COMMANDS[command]
    (tmp_path / written).parent.mkdir(parents=True, exist_ok=True)
    assert callable(link)
    link(tmp_path / read, tmp_path / written)
    before = everything(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(words.format(tmp_path).split())
    assert "outputs must not be inputs: choose another name" in capsys.readouterr().err
    assert everything(tmp_path) == before


def test_the_model_may_look_like_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    model = (tmp_path / "m.isotone").rename(tmp_path / "m.csv")
    before = everything(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(["score", str(model), str(tmp_path / "t.csv"), "--out", str(model)])
    assert "outputs must not be inputs" in capsys.readouterr().err
    assert everything(tmp_path) == before


def test_the_table_of_results_may_be_the_table_of_a_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"a": [1.0, 2.0] * 50, "y": [0, 1] * 50})
    write_table(tmp_path / "results.parquet", table.schema, table.to_batches())
    words = ["sweep", str(tmp_path / "results.parquet"), "--target", "y", "--out", str(tmp_path)]
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "outputs must not be inputs" in capsys.readouterr().err
    assert open_table(tmp_path / "results.parquet").columns == ("a", "y")


def test_a_lock_is_not_written_over_another_file(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / NAME).hardlink_to(tmp_path / "precious")
    foreign = r"is not a lock of isotone .*b'precious'.*rename it"
    with pytest.raises(ValueError, match=foreign), sole_use(tmp_path):
        pass
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), sole_use(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "precious"
