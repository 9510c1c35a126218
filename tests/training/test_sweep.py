"""Sweeps: every run once, whatever dies on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from distributed import Client

from clusters import QUIET, cluster
from isotone import cli
from isotone.cli.console.options import counts_of, numbers_of
from isotone.cli.table.columns import choose_columns
from isotone.data.table import open_table
from isotone.training import sweep
from isotone.training.rows import Rows
from isotone.training.sweep import Grid, Problem
from isotone.training.train import Recipe
from isotone.workers import Processes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = (X.sum(axis=1) > 0).astype(float)
RECIPE = Recipe(epochs=2, batch_size=100)
PROBLEM = Problem(Rows(X[:200], Y[:200]), Rows(X[200:], Y[200:]), (1, 0), RECIPE)
HERE = Processes(1)
GRID = Grid(
    seeds=(0, 1, 2), lipschitz=(1.0, 2.0), hidden_layer_sizes=((4,), (6, 6)), losses=("hinge:0.5",)
)


def sorted_runs(table: pa.Table) -> Any:
    return table.sort_by(
        [(name, "ascending") for name in ("hidden_layer_sizes", "loss", "lipschitz", "seed")]
    )


def test_every_combination_is_run_once(tmp_path: Path) -> None:
    results = sweep.sweep(PROBLEM, GRID, tmp_path, HERE, shard_size=4)
    runs = {(r["hidden_layer_sizes"], r["lipschitz"], r["seed"]) for r in results.to_pylist()}
    assert results.num_rows == len(runs) == len(GRID) == 12
    assert pa.parquet.read_table(tmp_path / "results.parquet").equals(results)


def test_shards_do_not_change_results(tmp_path: Path) -> None:
    small = sweep.sweep(PROBLEM, GRID, tmp_path / "a", HERE, shard_size=1)
    large = sweep.sweep(PROBLEM, GRID, tmp_path / "b", HERE, shard_size=100)
    for a, b in zip(sorted_runs(small).to_pylist(), sorted_runs(large).to_pylist(), strict=True):
        assert a["validation_loss"] == pytest.approx(b["validation_loss"], rel=1e-4)


def test_finished_shards_are_not_run_again(tmp_path: Path) -> None:
    first = sweep.sweep(PROBLEM, GRID, tmp_path, HERE, shard_size=4)
    files = sorted((tmp_path / "shards").iterdir())
    times = [file.stat().st_mtime_ns for file in files]
    files[0].unlink()
    seen: list[tuple[int, int]] = []
    again = sweep.sweep(
        PROBLEM, GRID, tmp_path, HERE, shard_size=4, on_done=lambda *n: seen.append(n)
    )
    assert seen == [(3, 4), (4, 4)]
    assert [file.stat().st_mtime_ns for file in files[1:]] == times[1:]
    assert sorted_runs(again).equals(sorted_runs(first))


def test_features_of_no_common_group_do_not_interact(table: Path, tmp_path: Path) -> None:
    """Where y = ab there is nothing to learn, and then the loss is its variance, 1."""
    a, b = RNG.normal(size=(2, 400))
    pa.csv.write_csv(pa.table({"a": a, "b": b, "y": a * b}), table)
    grid = "--lipschitz 4 --seeds 0:2 --hidden-layer-sizes 16-16 --group-size 4 --workers 1"
    words = f"{table} --target y --loss squared_error {grid} --out {tmp_path}".split()
    best = []
    for option in ([], ["--interaction-cst", "no_interactions"], ["--interaction-cst", "a,b"]):
        with pytest.raises(SystemExit) as exit_:
            cli.main(["sweep", *words, *option])
        assert exit_.value.code in (0, None)
        best.append(pa.parquet.read_table(tmp_path / "results.parquet")["validation_loss"])
    assert max(best[0].to_pylist()) < 0.5 < min(best[1].to_pylist())
    assert best[0] == best[2]


def test_another_problem_has_other_shards() -> None:
    shard = next(GRID.shards(4))
    other = Problem(PROBLEM.training, PROBLEM.validation, (1, 1), RECIPE)
    assert PROBLEM.key(shard) != other.key(shard)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_is_tolerated(tmp_path: Path) -> None:
    expected = sweep.sweep(PROBLEM, GRID, tmp_path / "expected", HERE, shard_size=1)
    with cluster(tmp_path, 2) as (address, workers), Client(address, timeout=60) as remote:

        def kill_one(done: int, total: int) -> None:
            if done == 2:
                workers[0].send_signal(signal.SIGKILL)

        results = sweep.sweep(
            PROBLEM, GRID, tmp_path / "out", remote, shard_size=1, on_done=kill_one
        )
        assert workers[0].wait(10) == -signal.SIGKILL
    assert sorted_runs(results).equals(sorted_runs(expected))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    pa.csv.write_csv(pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y}), path)
    return path


def command(table: Path, out: Path) -> list[str]:
    grid = "--seeds 0:6 --lipschitz 1,2 --hidden-layer-sizes 4 --max-iter 3 --batch-size 50"
    words = f"sweep {table} --target y --increasing a,b --workers 1 {grid} --out {out}"
    words += " --shard-size 1"
    return words.split()


@pytest.mark.slow
def test_a_killed_command_goes_on_to_the_same_results(table: Path, tmp_path: Path) -> None:
    def run(out: str) -> subprocess.Popen[bytes]:
        code = "import sys; from isotone.cli import main; main(sys.argv[1:])"
        words = [sys.executable, "-c", code, *command(table, tmp_path / out)]
        return subprocess.Popen(
            words, stdout=subprocess.DEVNULL, env=QUIET, start_new_session=True
        )

    assert run("undisturbed").wait(120) == 0
    for n_done in (2, 7):
        process = run("killed")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if len(list((tmp_path / "killed").glob("shards/*.parquet"))) >= n_done:
                break
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert run("killed").wait(120) == 0
    tables = [
        pa.parquet.read_table(tmp_path / o / "results.parquet") for o in ("undisturbed", "killed")
    ]
    assert sorted_runs(tables[0]).equals(sorted_runs(tables[1]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--target z", "has no column 'z'"),
        ("--target y --features a,bb", "has no column 'bb'; did you mean 'b'"),
        ("--target y --features a --increasing b", "`--features a,b`"),
        ("--target y --increasing a --decreasing a", "both increasing and decreasing"),
        ("--target y --features a,y", "'y', which is the target and cannot be a feature too"),
        ("--target y --seeds x", "must be whole numbers"),
        ("--target y --lipschitz x", "must be numbers separated by commas"),
        ("--target y --loss rms", "choose from 'cross_entropy'"),
        ("--target y --seeds 3:3", "has no numbers"),
        ("--target y --shard-size 0", "greater than or equal to 1"),
        ("--target a --features b", "needs a target of 0 and 1 but 'a' holds"),
        ("--target y --log a", "column 'a' has a minimum of -"),
        ("--target y --increasing a:1", "leave out ':1', or use isotone train"),
        ("--target y --hidden-layer-sizes 4-x", "must be whole numbers of at least 1"),
        ("--target y --interaction-cst a,c", "`--interaction-cst` names 'c', which is not a"),
        ("--target y --interaction-cst no_interactions", "has one sort of 20 units but there"),
    ],
)
def test_bad_arguments_are_explained(
    table: Path, tmp_path: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["sweep", str(table), *words.split(), "--out", str(tmp_path / "out")])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_rows_that_cannot_be_learned_give_one_message_and_no_traceback(
    table: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    huge = tmp_path / "huge.csv"
    pa.csv.write_csv(pa.table({"a": X[:, 0], "y": 1e30 * X[:, 1]}), huge)
    words = [str(huge), "--target", "y", "--loss", "squared_error", "--seeds", "0:2"]
    with pytest.raises(SystemExit) as exit_:
        cli.main(["sweep", *words, "--workers", "1", "--out", str(tmp_path / "out")])
    assert exit_.value.code == 2
    error = capfd.readouterr().err
    assert "the runs with hidden_layer_sizes 20-20, loss squared_error, λ 1, 2, 4 fail" in error
    assert "Traceback" not in error
    assert error.count("error") == 1 + error.count("squared_error")


def test_a_scheduler_that_is_not_there_is_explained(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("timed out")

    monkeypatch.setattr("distributed.Client", refuse)
    words = [str(table), "--target", "y", "--scheduler", "tcp://127.0.0.1:9"]
    with pytest.raises(SystemExit):
        cli.main(["sweep", *words, "--out", str(tmp_path / "out")])
    assert "no Dask scheduler answers at" in capsys.readouterr().err


def test_columns_default_to_all_but_the_target(table: Path) -> None:
    columns = choose_columns(open_table(table), "y", None, "a", "b", "b")
    assert columns.features == ("a", "b")
    assert columns.monotonic_cst == (1, -1)
    assert columns.scaling == {"a": "auto", "b": "log"}
    assert counts_of("2:5", "seeds") == (2, 3, 4)
    assert numbers_of("1, 2.5", "lipschitz") == (1.0, 2.5)
