"""`isotone train`: from a table to a certified model, with advice for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import isotone
import kills
from isotone import cli
from isotone.cli.console.options import pieces_of
from isotone.estimators.fitting import members
from isotone.training.learners import FusedLearner

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 400))
C = RNG.lognormal(size=400)
COLUMNS: dict[str, Any] = {
    "a": A,
    "b": B,
    "c": C,
    "y": (A + np.log(C) - 0.5 * B + 0.3 * RNG.normal(size=400) > 0).astype(int),
    "value": 2 * A + np.log(C),
    "w": RNG.uniform(0.5, 2, 400),
    "name": ["x"] * 400,
}
QUICK = "--max-iter 5 --n-members 2 --hidden-layer-sizes 8,8 --lipschitz 2"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    pa.csv.write_csv(pa.table(COLUMNS), path)
    return path


def train(table: Path, words: str, out: str = "out") -> int:
    folder = table.parent / out
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", str(table), *words.split(), "--out", str(folder)])
    return int(exit_.value.code or 0)


@pytest.mark.parametrize(
    ("words", "outputs", "metric"),
    [
        ("--target y --features a,b,c --increasing a,c --decreasing b --log c", "logits", "AUC"),
        ("--target y --features a,b,c --increasing a --weights w", "logits", "log loss"),
        ("--target y --features a,c --loss hinge --increasing a,c", "logits", "accuracy"),
        ("--target value --features a,b,c --increasing a,c", "values", "R2"),
        ("--target value --features a,c --loss quantile:0.9", "values", "coverage, 0.9"),
    ],
)
def test_a_table_becomes_a_certified_model(
    table: Path, words: str, outputs: str, metric: str
) -> None:
    assert train(table, f"{words} {QUICK}") == 0
    frozen = isotone.load(table.parent / "out" / "model.isotone")
    assert frozen.outputs == outputs
    assert frozen.features == tuple(words.split("--features ")[1].split()[0].split(","))
    assert isotone.certify(frozen).holds
    assert frozen.certificate is not None
    assert frozen.certificate["fingerprint"] == frozen.fingerprint
    assert frozen.provenance["target"] in ("y", "value")
    metrics = json.loads((table.parent / "out" / "metrics.json").read_text())
    assert metric in metrics
    assert metrics["validation rows"] == 80
    certificate = json.loads((table.parent / "out" / "certificate.json").read_text())
    assert certificate["fingerprint"] == frozen.fingerprint
    assert json.loads((table.parent / "out" / "history.json").read_text())["training"]


def test_a_quantile_is_judged_as_one(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(table, f"--target value --features a,c --loss quantile:0.9 {QUICK}") == 0
    assert "quantile 0.9 of value" in " ".join(capsys.readouterr().out.split())
    metrics = json.loads((table.parent / "out" / "metrics.json").read_text())
    assert list(metrics) == ["validation rows", "pinball loss, 0.9", "coverage, 0.9"]
    assert 0.5 < metrics["coverage, 0.9"] <= 1
    assert metrics["pinball loss, 0.9"] > 0
    frozen = isotone.load(table.parent / "out" / "model.isotone")
    assert frozen.provenance["quantiles"] == [0.9]
    with pytest.raises(SystemExit, match="0"):
        cli.main(["show", str(table.parent / "out" / "model.isotone")])
    assert "quantiles: [0.9]" in capsys.readouterr().out.replace('"', "")


def test_directions_are_kept(table: Path) -> None:
    words = f"--target y --features a,b,c --increasing a,c --decreasing b {QUICK}"
    assert train(table, words) == 0
    frozen = isotone.load(table.parent / "out" / "model.isotone")
    assert frozen.monotonic_cst.tolist() == [[1, -1, 1]]
    X = np.column_stack([A, B, C])
    assert np.all(frozen.score(X + np.array([1, 0, 0])) >= frozen.score(X))
    assert np.all(frozen.score(X + np.array([0, 1, 0])) <= frozen.score(X))


def test_the_same_seed_gives_the_same_model(table: Path) -> None:
    words = f"--target y --features a,b {QUICK}"
    for out, seed in (("first", 1), ("second", 1), ("third", 2)):
        assert train(table, f"{words} --random-state {seed}", out) == 0
    prints = [
        isotone.load(table.parent / out / "model.isotone").fingerprint
        for out in ("first", "second", "third")
    ]
    assert prints[0] == prints[1] != prints[2]


def test_a_killed_run_is_resumed_to_the_same_model(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = "--n-members 2 --hidden-layer-sizes 8"
    words = f"--target y --features a,b --max-iter 6 {size} --lipschitz auto"
    assert train(table, words, "undisturbed") == 0
    monkeypatch.setattr(members, "CHECKPOINT_SECONDS", 0.0)
    learn, learned = FusedLearner.learn, []

    def killed(self: Any, rows: Any, epoch: int, recipe: Any) -> Any:
        learned.append(epoch)
        if len(learned) in (2, 9, 26):  # in the first candidate, the second and the last
            raise RuntimeError("killed")
        return learn(self, rows, epoch, recipe)

    monkeypatch.setattr(FusedLearner, "learn", killed)
    for _ in range(3):
        assert train(table, f"{words} --resume", "killed") == 2
    assert train(table, f"{words} --resume", "killed") == 0
    # every epoch of four candidates, and three kills
    assert len(learned) == 4 * 6 + 3
    assert not (table.parent / "killed" / ".isotone-checkpoints").exists()
    models = [table.parent / out / "model.isotone" for out in ("undisturbed", "killed")]
    assert isotone.load(models[0]).fingerprint == isotone.load(models[1]).fingerprint


COMMAND = f"""
{kills.PRELUDE}
import sys
import isotone.estimators.fitting.members
from isotone.cli import main
isotone.estimators.fitting.members.CHECKPOINT_SECONDS = 0.0
main(sys.argv[1:])
"""


def test_a_command_killed_at_any_moment_is_resumed(table: Path) -> None:
    size = "--n-members 2 --hidden-layer-sizes 8"
    words = f"--target y --features a,b --max-iter 20 {size} --lipschitz 2 --resume"

    def run(out: str, moment: str | None = None) -> subprocess.Popen[str]:
        command = ["train", str(table), *words.split(), "--out", str(table.parent / out)]
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, *command],
            stdout=subprocess.PIPE,
            text=True,
            env=kills.surroundings(moment),
        )

    undisturbed = run("undisturbed")
    undisturbed.communicate(timeout=300)
    assert undisturbed.returncode == 0
    for moment in kills.MOMENTS[1:3]:
        kills.expect_death(run("killed", moment))
    last = run("killed")
    last.communicate(timeout=300)
    assert last.returncode == 0
    models = [table.parent / out / "model.isotone" for out in ("undisturbed", "killed")]
    assert isotone.load(models[0]).fingerprint == isotone.load(models[1]).fingerprint


def test_nothing_of_the_users_is_removed(table: Path) -> None:
    precious = table.parent / "out" / "checkpoints" / "precious.pt"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    other = table.parent / "out" / ".isotone-checkpoints" / "note"
    other.parent.mkdir()
    other.write_text("mine too")
    assert train(table, f"--target y --features a,b {QUICK}") == 0
    assert precious.read_text() == "mine"
    assert other.read_text() == "mine too"


def test_metrics_that_do_not_exist_are_left_out(table: Path) -> None:
    other = table.with_name("other.parquet")
    positive = pa.table(COLUMNS).filter(pa.array(COLUMNS["y"] == 1))
    pa.parquet.write_table(positive, other)
    assert train(table, f"--target y --features a,b --validation {other} {QUICK}") == 0
    metrics = json.loads((table.parent / "out" / "metrics.json").read_text())
    assert "AUC" not in metrics
    assert "accuracy" in metrics


def test_a_validation_table_may_be_given(table: Path) -> None:
    other = table.with_name("other.parquet")
    pa.parquet.write_table(pa.table(COLUMNS).slice(0, 50), other)
    assert train(table, f"--target y --features a,b --validation {other} {QUICK}") == 0
    metrics = json.loads((table.parent / "out" / "metrics.json").read_text())
    assert metrics["validation rows"] == 50


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--target yy", "has no column 'yy'; did you mean 'y'"),
        ("--target y", "column 'name' holds text, such as 'x'"),
        ("--target y --features a,bb", "has no column 'bb'; did you mean 'b'"),
        ("--target y --features a --increasing b", "`--features a,b`"),
        ("--target y --features a --loss rms", "`--loss rms` is unknown; choose from"),
        (
            "--target value --features a --loss hinge",
            "needs classes but 'value' holds 400",
        ),
        ("--target y --features a,b --lipschitz a=1", "lacks 'b'; give λ for every feature"),
        ("--target y --features a --lipschitz x", "such as 2, or a=2,b=0.5, or auto"),
        ("--target y --features a --group-size x", "must be numbers"),
        ("--target y --features a --validation 2", "must lie between 0 and 1"),
        ("--target y --features a --validation no.csv", "there is no file 'no.csv'"),
        ("--target y --features a --weights ww", "has no column 'ww'"),
        (
            "--target y --features a,w --weights w",
            "leave it out, as in `--features a`",
        ),
        ("--target y --features a --weights y", "both the target and the weights"),
        ("--target y --features a,a", "names the column 'a' twice"),
        ("--target y --features a --loss hinge:0.1", "only quantile takes one"),
        ("--target value --features a --loss quantile:", "must be a single number"),
        ("--target value --features a --loss quantile:0.1,0.9", "must be a single number"),
        ("--target y --features a --group-size ,", "must be a single number"),
        (
            "--target y --features a --lipschitz a=1,c=2",
            "names c (choose from a)",
        ),
        ("--target y --features a,b --lipschitz a=1,a=5,b=2", "names a feature twice"),
    ],
)
def test_mistakes_are_explained(
    table: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(table, words) == 2
    assert message in capsys.readouterr().err
    assert not (table.parent / "out").exists()


def test_missing_numbers_are_named(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = table.read_text().splitlines()
    lines[11] = "," + lines[11].partition(",")[2]
    table.write_text("\n".join(lines) + "\n")
    assert train(table, "--target y --features a,b") == 2
    assert "values are missing in a (1)" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1", "many", "-4", "2.5"])
def test_bad_knots_are_explained(text: str) -> None:
    with pytest.raises(ValueError, match=rf"`--knots {text}` must be a whole number of at least"):
        pieces_of(text)


def test_knots_are_a_number_none_or_auto() -> None:
    assert [pieces_of(text) for text in ("32", "none", "auto")] == [32, None, "auto"]
