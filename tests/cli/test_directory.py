"""`isotone train DIR`: Parquet files as one table, streamed if they are many."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
import kills
from isotone import cli
from isotone.cli.table.target import read_target, target_values
from isotone.data import survey
from isotone.data.table import write_table
from isotone.training.streaming import chunks

N = 5000
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, N))
CITY = np.where(np.arange(N) == 4444, "Bern", np.where(RNG.random(N) < 0.5, "Oslo", "Rome"))
SCORE = A - 0.5 * B + (CITY == "Rome") + RNG.logistic(size=N)
COLUMNS: dict[str, Any] = {
    "a": A,
    "b": [None if i == 3210 else f"{b:.4f}" for i, b in enumerate(B)],
    "city": CITY,
    "size": np.where(SCORE > 1, "large", "small"),
    "y": np.where(SCORE > 0, "yes", "no"),
    "grade": np.where(SCORE > 1, 2, np.where(SCORE > -1, 1, 0)),
    "value": SCORE,
    "half": np.where(SCORE > 0, 1.5, 0.5),
    "truth": SCORE > 0,
    "w": RNG.lognormal(size=N),
}
QUICK = "--max-iter 3 --n-members 2 --hidden-layer-sizes 8,8 --lipschitz 2"
LONGER = "--max-iter 12 --lipschitz auto"
ALL = "--features a,b,city --categorical city --missing indicator"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "SMALL_ROWS", 1000)
    monkeypatch.setattr(survey, "SAMPLE_ROWS", 1200)
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", 10_000)


def write(folder: Path, **columns: Any) -> Path:
    folder.mkdir()
    table = pa.table(COLUMNS | columns)
    for k in range(2):
        part = table.slice(k * N // 2, N // 2)
        pa.parquet.write_table(part, folder / f"{k}.parquet", row_group_size=700)
    return folder


def train(table: Path, words: str, out: str = "out") -> int:
    arguments = ["train", str(table), *shlex.split(words), "--out", str(table.parent / out)]
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    return int(exit_.value.code or 0)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "metric", "least"),
    [
        (f"--target y --increasing a:yes --decreasing b:yes {ALL}", "accuracy", 0.62),
        (f"--target truth --increasing a {ALL} --weights w", "AUC", 0.7),
        (f"--target half --increasing a {ALL} --class-weight balanced", "accuracy", 0.6),
        (
            f"--target value --increasing a {ALL} --knots 8 --max-iter 12 --lipschitz auto",
            "R2",
            0.25,
        ),
        ("--target grade --loss cross_entropy --features a --increasing a:2", "accuracy", 0.4),
        ("--target y --features a,size --ordered small<large --increasing size:yes", "", 0),
        (f"--target value {ALL} --loss quantile:0.8 --lipschitz auto", "coverage, 0.8", 0.75),
    ],
)
def test_a_directory_is_streamed(tmp_path: Path, words: str, metric: str, least: float) -> None:
    words = words.replace("--ordered small<large", "--ordered 'size=small<large'")
    assert train(write(tmp_path / "rows"), f"{QUICK} {words}") == 0
    frozen = isotone.load(tmp_path / "out" / "model.isotone")
    assert isotone.certify(frozen).holds
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["validation rows"] > 900
    assert metrics.get(metric, 0) >= least
    assert frozen.provenance["table"] == "rows"
    assert frozen.provenance["rows"] == N - metrics["validation rows"]
    if "city" in words:
        assert frozen.inputs.column("city").describe() == "category: Bern, Oslo, Rome"
        assert "missing(b)" in frozen.inputs.encoded


def test_a_small_directory_is_a_table(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows")
    write_table(
        tmp_path / "rows.parquet",
        pa.table(COLUMNS).schema,
        pa.table(COLUMNS).to_batches(),
    )
    words = f"{QUICK} --target y --increasing a:yes {ALL}"
    for table, out in ((folder, "first"), (tmp_path / "rows.parquet", "second")):
        assert train(table, words, out) == 0
    models = [isotone.load(tmp_path / out / "model.isotone") for out in ("first", "second")]
    assert models[0].fingerprint == models[1].fingerprint


@pytest.mark.usefixtures("small")
def test_a_table_of_other_rows_judges(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows")
    other = pa.table(COLUMNS).slice(0, 300)
    write_table(tmp_path / "other.parquet", other.schema, other.to_batches())
    words = f"{QUICK} --target y {ALL} --validation {tmp_path / 'other.parquet'}"
    assert train(folder, words) == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["validation rows"] == 300
    assert isotone.load(tmp_path / "out" / "model.isotone").provenance["rows"] == N


@pytest.mark.usefixtures("small")
def test_groups_and_signed_weights_are_streamed(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    columns = {"event": np.arange(N) // 3, "sw": rng.choice([1.5, -0.5], N, p=[0.8, 0.2])}
    folder = write(tmp_path / "rows", **columns)
    words = f"{QUICK} --target y {ALL} --group-by event --weights sw --signed-weights"
    assert train(folder, words) == 0
    model = isotone.load(tmp_path / "out" / "model.isotone")
    assert "event" not in model.inputs.names
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["validation rows"] % 3 == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "columns", "message"),
    [
        ("--target y --features a,city", {}, "column 'city' holds text"),
        ("--target y --features a,b", {}, "missing in b (1) of"),
        ("--target y --features a,b", {}, "row 710 of"),
        ("--target y", {"a": [None] * N}, "is empty, and every feature needs some"),
        ("--target value --features a --log a", {}, "log(x + 0) is undefined"),
        ("--target value --features a --weights b", {}, "the weight 'b' is -"),
        ("--target y --features a", {"y": ["no"] * N}, "is no in all rows"),
        ("--target y --features a --positive maybe", {}, "names a class that 'y' does not hold"),
        ("--target y --features a --loss dynamic_hinge", {}, "or give rows in memory"),
        ("--target nope", {}, "has no column 'nope'"),
    ],
)
def test_what_cannot_be_learned_is_said(
    tmp_path: Path,
    words: str,
    columns: dict[str, Any],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = "--missing indicator --features a" if columns.get("a") else ""
    folder = write(tmp_path / "rows", **columns)
    assert train(folder, f"{QUICK} {words} {missing}") == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_an_empty_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows").mkdir()
    assert train(tmp_path / "rows", "--target y") == 2
    assert "there are no Parquet files in" in capsys.readouterr().err


def test_a_column_that_only_directories_have_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "rows")
    (folder / "year=2024").mkdir()
    (folder / "0.parquet").rename(folder / "year=2024" / "0.parquet")
    words = f"{QUICK} --target value --weights w --missing indicator --categorical city"
    assert train(folder, words) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "is partitioned by 'year', which only names of directories hold, such as" in said
    assert "or add `--features a,b,city," in said
    assert train(folder, f"{words} --features a,city --max-iter 1") == 0


@pytest.mark.usefixtures("small")
def test_a_counter_among_the_features_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "rows", id=np.arange(N) + 0.0)
    assert train(folder, f"{QUICK} --target value --features a,id") == 0
    captured = capsys.readouterr()
    assert "column 'id' counts the rows" in " ".join(captured.err.split())
    assert "scaling, knots and any choice of λ from" in " ".join(captured.out.split())


@pytest.mark.parametrize(
    ("cells", "loss"),
    [
        (["no", "yes", "no"], ""),
        ([True, False, True], ""),
        ([True, False, True], "squared_error"),
        ([0.5, 1.5, 0.5], ""),
        (["0.50", "1.5", "0.50"], ""),
        ([1, 0, 1], ""),
        ([3, 1, 2], "cross_entropy"),
        ([3.25, 1.0, 2.0], ""),
        (pa.array([3, 1, 3]).dictionary_encode(), ""),
        (["True", "False", "True"], ""),
    ],
)
def test_targets_of_other_rows_are_read_as_the_first_were(cells: Any, loss: str) -> None:
    column = pa.array(cells) if isinstance(cells, list) else cells
    target, y = read_target("y", column, loss, np.arange(3))
    found = target_values(target, column)
    assert found.tolist() == y.tolist()
    assert target_values(target, column.slice(1, 1)).tolist() == y[1:2].tolist()


COMMAND = f"""
{kills.PRELUDE}
import sys
from isotone import cli
from isotone.data import survey
from isotone.estimators.fitting import members
from isotone.training.streaming import chunks
survey.SMALL_ROWS, survey.SAMPLE_ROWS, chunks.CHUNK_NUMBERS = 1000, 1200, 2000
members.CHECKPOINT_SECONDS = 0.0
cli.main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_command_is_resumed_to_the_same_model(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows")
    words = shlex.split(f"{QUICK} --target y --increasing a:yes {ALL} --weights w --resume")

    def start(out: str, moment: str | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, "train", str(folder), *words, "--out", tmp_path / out],
            stdout=subprocess.PIPE,
            text=True,
            env=kills.surroundings(moment),
        )

    def finish(process: subprocess.Popen[str]) -> None:
        process.communicate(timeout=120)
        assert process.returncode == 0

    finish(start("undisturbed"))
    for moment in kills.MOMENTS[:2]:
        kills.expect_death(start("killed", moment))
    finish(start("killed"))
    models = [tmp_path / out / "model.isotone" for out in ("undisturbed", "killed")]
    assert len({isotone.load(model).fingerprint for model in models}) == 1
