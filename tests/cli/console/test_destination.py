"""`--out` means what its name says: a model file, or a directory for all results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import isotone
from isotone import cli
from isotone.cli.console.destination import Destination

ROWS = "\n".join(f"{i},{i % 7},{i % 2}" for i in range(30))
TRAIN = (
    "train table.csv --target y --max-iter 2 --n-members 1 --hidden-layer-sizes 4 --lipschitz 1"
)


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(f"a,b,y\n{ROWS}\n")


def run(words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main(words.split())
    return int(exit_.value.code or 0)


def everything() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.name != "table.csv")


@pytest.mark.parametrize("name", ["loans.isotone", "LOANS.ISOTONE"])
def test_a_name_of_a_model_is_a_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{TRAIN} --out {name}") == 0
    assert everything() == [name]
    assert f"written: {name}" in capsys.readouterr().out
    assert isotone.certify(isotone.load(name)).holds
    assert run(f"certify {name}") == 0


def test_directories_on_the_way_are_made() -> None:
    assert run(f"{TRAIN} --out models/new/loans.isotone") == 0
    assert everything() == ["models", "models/new", "models/new/loans.isotone"]


def test_any_other_name_is_a_directory() -> None:
    assert run(f"{TRAIN} --out run.v2") == 0
    names = ["certificate.json", "history.json", "metrics.json", "model.isotone"]
    assert everything() == ["run.v2", *(f"run.v2/{name}" for name in names)]


def test_both_ways_write_the_same_model() -> None:
    assert run(f"{TRAIN} --out loans.isotone") == 0
    assert run(f"{TRAIN} --out results") == 0
    assert Path("loans.isotone").read_bytes() == Path("results/model.isotone").read_bytes()


def test_runs_for_two_files_keep_different_checkpoints() -> None:
    places = [Destination.of(Path(name), "model.isotone") for name in ("a.isotone", "b.isotone")]
    assert places[0].checkpoints != places[1].checkpoints
    assert places[0].checkpoints.parent == Path()


def test_a_history_of_another_model_is_not_reported() -> None:
    assert run(f"{TRAIN} --out results") == 0
    assert run("report results/model.isotone --out with.html") == 0
    assert run(f"{TRAIN} --random-state 1 --out results/model.isotone") == 0
    assert run("report results/model.isotone --out without.html") == 0
    told = json.loads(Path("results/history.json").read_text())
    assert told["fingerprint"] != isotone.load("results/model.isotone").fingerprint
    assert len(Path("with.html").read_text()) > len(Path("without.html").read_text())


def test_a_transport_may_write_its_critic_alone() -> None:
    words = "transport table.csv table.csv --columns a,b --steps 20 --out"
    assert run(f"{words} critic.isotone") == 0
    assert everything() == ["critic.isotone"]
    assert run(f"{words} both") == 0
    assert everything() == ["both", "both/critic.isotone", "both/distance.json", "critic.isotone"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{TRAIN} --out results.csv", "is the name of a file, but a directory is written; give"),
        (f"{TRAIN} --out model.json", "such as model, or of a model, as model.isotone"),
        (f"{TRAIN} --out table.csv", "`--out table.csv` is a file; give the name of a directory"),
        (f"{TRAIN} --out there.isotone", "is a directory, but a name that ends in .isotone must"),
        ("sweep table.csv --target y --out grid.isotone", "such as grid"),
        ("sweep table.csv --target y --out grid.parquet", "a directory is written"),
        ("transport table.csv table.csv --out distance.json", "such as distance"),
    ],
)
def test_names_that_mislead_are_refused_before_training(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.isotone").mkdir()
    assert run(words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert everything() == ["there.isotone"]
