"""Dispatch: workers learn from a stream what one process does, whatever their number."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
from clusters import QUIET, cluster
from isotone import MonotonicClassifier, MonotonicRegressor
from isotone.data import survey
from isotone.estimators.fitting import dispatch, members, search
from isotone.estimators.fitting.dispatch import joined, own_checkpoint
from isotone.training.checkpoint import CheckpointError
from isotone.training.recipe import History
from isotone.training.streaming import chunks
from isotone.training.streaming.chunks import ChunkLearner
from isotone.workers import ALONE, Workers, run, workers_of

N = 4000
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, N))
SCORE = A - 0.5 * B + RNG.logistic(size=N)
COLUMNS: dict[str, Any] = {
    "a": A,
    "b": np.where(np.arange(N) == 3210, np.nan, B),
    "city": np.where(RNG.random(N) < 0.5, "Oslo", "Rome"),
    "y": np.where(SCORE > 0, "yes", "no"),
    "w": RNG.lognormal(size=N),
}
OPTIONS: dict[str, Any] = {
    "lipschitz": 2.0,
    "hidden_layer_sizes": (8, 8),
    "missing": "indicator",
    "max_iter": 3,
    "n_members": 3,
    "random_state": 0,
    "batch_size": 64,
}


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that counts as large."""
    monkeypatch.setattr(survey, "SMALL_ROWS", 1000)
    monkeypatch.setattr(survey, "SAMPLE_ROWS", 1200)
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", 4000)
    folder, table = tmp_path / "rows", pa.table(COLUMNS)
    folder.mkdir()
    for k in range(2):
        part = table.slice(k * N // 2, N // 2)
        pa.parquet.write_table(part, folder / f"{k}.parquet", row_group_size=700)
    return folder


@pytest.fixture
def nearby(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Workers do their work in this process; what they tell."""
    news: list[Any] = []

    @contextmanager
    def hearing(workers: Workers, on_news: Any) -> Iterator[Any]:
        yield lambda new: (news.append(new), on_news(new))

    def here(workers: Workers, *arguments: Any) -> Any:
        return run(ALONE, *arguments)

    monkeypatch.setattr(dispatch, "hearing", hearing)
    monkeypatch.setattr(dispatch, "run", here)
    monkeypatch.setattr(search, "hand_out", here)
    return news


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"knots": 8, "lipschitz": "learned"},
        {"lipschitz": "auto"},
        {"early_stopping": True, "max_iter": 12, "n_iter_no_change": 2, "tol": 0.01},
        {"loss": "hinge", "class_weight": "balanced"},
    ],
    ids=str,
)
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.usefixtures("nearby")
def test_members_that_learn_apart_are_those_of_a_stack(
    rows: Path, options: dict[str, Any], weight: str | None
) -> None:
    """To the last bit, and so are their losses."""
    model = MonotonicClassifier({"a": 1}, **OPTIONS | options)
    prints, histories = [], []
    for workers in (None, 2):
        model.fit(rows, "y", weight, workers=workers)
        prints.append(model.network_.fingerprint)
        histories.append(model.history_)
    assert prints[0] == prints[1]
    assert histories[0].best_epoch == histories[1].best_epoch
    assert histories[0].n_epochs == histories[1].n_epochs
    if not options.get("early_stopping"):
        assert histories[0].training == histories[1].training


def test_members_that_learn_apart_resume_where_they_were(
    rows: Path, nearby: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = MonotonicClassifier({"a": 1}, **OPTIONS).fit(rows, "y")
    monkeypatch.setattr(members, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(dispatch, "_SECONDS", 0.0)
    learn_chunk, done = ChunkLearner._learn_chunk, []

    def killed(self: Any, *args: Any) -> None:
        done.append(args)
        if len(done) == 40:
            raise KeyboardInterrupt
        learn_chunk(self, *args)

    monkeypatch.setattr(ChunkLearner, "_learn_chunk", killed)
    model = MonotonicClassifier({"a": 1}, **OPTIONS).keep_checkpoints(rows.parent / "kept")
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows, "y", workers=2)
    assert len({k for k, *_ in nearby}) == 2  # the second of three members was learning
    model.fit(rows, "y", workers=3)
    assert model.network_.fingerprint == undisturbed.network_.fingerprint
    latest = {k: epochs for k, epochs, *_ in nearby}
    assert latest == dict.fromkeys(range(3), 3.0)
    n_chunks = len(done) - 1  # one of them was learned twice
    assert n_chunks % 9 == 0


@pytest.mark.parametrize("first", [None, 2])
@pytest.mark.usefixtures("nearby")
def test_a_run_resumes_as_it_began(
    rows: Path, monkeypatch: pytest.MonkeyPatch, first: int | None
) -> None:
    monkeypatch.setattr(members, "CHECKPOINT_SECONDS", 0.0)
    model = MonotonicClassifier(**OPTIONS | {"max_iter": 1}).keep_checkpoints(rows.parent / "kept")
    model.fit(rows, "y", workers=first)
    message = "was written by workers" if first else "was written by a run without workers"
    with pytest.raises(CheckpointError, match=message):
        model.fit(rows, "y", workers=None if first else 2)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        model.set_params(max_iter=2).fit(rows, "y", workers=first)


SCRIPT = """
import sys
from isotone import cli
from isotone.data import survey
from isotone.estimators.fitting import members
from isotone.training.streaming import chunks
survey.SMALL_ROWS, survey.SAMPLE_ROWS, chunks.CHUNK_NUMBERS = 1000, 1200, 4000
members.CHECKPOINT_SECONDS = 0.0  # processes that are started read this, too
if __name__ == "__main__":
    cli.main(sys.argv[1:])
"""


def command(rows: Path, out: str, *words: object) -> list[str]:
    script = rows.parent / "script.py"
    script.write_text(SCRIPT)
    quick = "--target y --missing indicator --categorical city --max-iter 6 --n-members 2"
    sizes = "--hidden-layer-sizes 8,8 --lipschitz 2 --increasing a:yes --weights w"
    fixed = [*quick.split(), *sizes.split(), "--out", str(rows.parent / out)]
    return [sys.executable, str(script), "train", str(rows), *fixed, *map(str, words)]


@pytest.mark.slow
def test_a_killed_command_with_workers_resumes_to_the_model_of_one_process(rows: Path) -> None:
    """Relative paths, real processes, and nothing of the workers is left."""
    subprocess.run(command(rows, "alone"), check=True, capture_output=True, env=QUIET)
    words = command(rows, "killed", "--workers", 2, "--resume")
    words[words.index(str(rows))] = rows.name
    process = subprocess.Popen(words, cwd=rows.parent, env=QUIET, stdout=subprocess.DEVNULL)
    kept = rows.parent / "killed" / ".isotone-checkpoints"
    deadline = time.monotonic() + 120
    while not own_checkpoint(kept / "members", 0).exists() and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert list(kept.glob("members-*"))
    done = subprocess.run(words, cwd=rows.parent, env=QUIET, capture_output=True, check=True)
    assert b"certificate" in done.stdout
    assert not kept.exists()
    models = [isotone.load(rows.parent / out / "model.isotone") for out in ("alone", "killed")]
    assert models[0].fingerprint == models[1].fingerprint


@pytest.mark.slow
def test_a_cluster_learns_what_one_process_learns(
    rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = MonotonicClassifier({"a": 1}, **OPTIONS | {"lipschitz": "auto", "max_iter": 2})
    expected = model.fit(rows, "y").network_.fingerprint
    folder = rows.parent / "cluster"
    folder.mkdir()
    with cluster(folder, 2) as (address, _), workers_of(address, 1) as client:
        capsys.readouterr()
        model.set_params(verbose=True).fit(rows, "y", workers=client)
        assert model.network_.fingerprint == expected
        said = capsys.readouterr().out
        assert said.count("loss on rows not learned from") == 3
        assert "loss 0." in said.splitlines()[-1]  # beside the bar
        unseen = MonotonicRegressor(**OPTIONS).keep_checkpoints(rows.parent / "kept")
        (rows.parent / "kept").rmdir()
        with pytest.raises(ValueError, match=r"cannot train member . .there is no directory"):
            unseen.fit(rows, "w", workers=client)


def test_of_members_that_end_earlier_the_last_losses_are_repeated() -> None:
    short = History([[3.0], [2.0]], [[5.0], [4.0]], [1], 2.0)
    long = History([[6.0], [5.0], [4.0]], [[9.0], [8.0], [7.0]], [2], 1.0)
    both = joined([short, long])
    assert both.training == [[3.0, 6.0], [2.0, 5.0], [2.0, 4.0]]
    assert both.validation == [[5.0, 9.0], [4.0, 8.0], [4.0, 7.0]]
    assert (both.best_epoch, both.seconds) == ([1, 2], 2.0)


def test_workers_that_cannot_help_are_refused(rows: Path) -> None:
    model, table = MonotonicRegressor(**OPTIONS), pa.table(COLUMNS).select(["a"])
    with pytest.raises(ValueError, match="are for data sets on disk but `X` is in memory, where"):
        model.fit(table, A, workers=2)
    with pytest.raises(ValueError, match="`callbacks` are called after an epoch of all members"):
        model.fit(rows, "w", workers=2, callbacks=[print])
    with pytest.raises(TypeError, match="`workers='two'` must be a number of processes, or a das"):
        model.fit(rows, "w", workers="two")
    with pytest.raises(ValueError, match="`--workers 0` must be at least 1"):
        model.fit(rows, "w", workers=0)
    assert model.fit(table, A, workers=1).n_iter_ == 3
    words = command(rows, "out", "--workers", 3)
    words[words.index(str(rows))] = str(rows / "0.parquet")
    found = subprocess.run(words, capture_output=True, text=True, env=QUIET | os.environ)
    assert found.returncode == 2
    assert "`--workers 3` is for directories" in " ".join(found.stderr.split())
