"""Chunks: every row once a pass, weights without bias, the same bits after a kill."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

import kills
from isotone import Knots, MonotonicNetwork, Recipe, Scaling
from isotone.data.dataset import open_dataset
from isotone.losses import CrossEntropy, SquaredError
from isotone.training.recipe import fit
from isotone.training.rows import Rows
from isotone.training.streaming import ParquetRows, shards, train_stream
from isotone.training.streaming import chunks as module
from isotone.training.streaming.chunks import ChunkLearner, Chunks, visits
from isotone.training.streaming.lanes import ahead, plan_chunks

RECIPE = Recipe(epochs=3, batch_size=40, seed=3)
N = 1000


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_NUMBERS", 300)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x, numbers = rng.normal(size=N), np.arange(N)
    weight = rng.pareto(0.8, N) * (numbers % 7 > 0)  # of a large spread, and some of them 0
    columns = {"x": x, "i": numbers, "y": x + rng.normal(size=N), "w": weight}
    table = pa.table(columns)
    for k, part in enumerate((table.slice(0, 330), table.slice(330))):
        pa.parquet.write_table(part, tmp_path / f"{k}.parquet", row_group_size=70)
    return tmp_path


def convert(batch: pa.RecordBatch, path: str, first_row: int, weighted: bool = False) -> Rows:
    x, y, i = (batch.column(name).to_numpy() for name in "xyi")
    start = first_row + (330 if path.endswith("1.parquet") else 0)
    assert 0 <= i[0] - start <= 1  # one row may have been left out
    weight = batch.column("w").to_numpy() if weighted else None
    return Rows(np.stack([x, i], axis=1).astype(np.float32), y[:, None], weight)


def rows_of(folder: Path, weighted: bool = False, **options: Any) -> Chunks:
    dataset = open_dataset(folder)
    if weighted:
        weights = np.concatenate([b.column("w").to_numpy() for b in dataset.batches(["w"])])
        options["mean_weight"] = weights.mean()
    return Chunks(
        dataset, ("x", "i", "y", "w"), partial(convert, weighted=weighted), width=2, **options
    )


def visited(chunks: Chunks, epoch: int, first: int = 0) -> list[list[int]]:
    """Numbers of the rows that every chunk visits."""
    return [
        chunk.x[chunk.order, 1].astype(int).tolist()
        for chunk in chunks.read(epoch, RECIPE, first, ())
    ]


@pytest.mark.parametrize("n_lanes", [1, 3, 8, 100])
def test_a_plan_has_every_row_once_and_whole_batches(n_lanes: int) -> None:
    lengths = [5, 1, 70, 200, 33, 64]
    plan = plan_chunks(lengths, 32, seed=1, epoch=2, n_lanes=n_lanes)
    pieces = [piece for chunk in plan for piece in chunk]
    rows = [(p.group, p.start + k) for p in pieces for k in range(p.n_rows)]
    assert sorted(rows) == [(g, k) for g, n in enumerate(lengths) for k in range(n)]
    assert {sum(p.n_rows for p in chunk) for chunk in plan[:-1]} == {32}
    assert plan != plan_chunks(lengths, 32, seed=1, epoch=3, n_lanes=n_lanes)


def test_every_row_comes_once_a_pass_and_in_another_order_in_the_next(folder: Path) -> None:
    rows = rows_of(folder)
    passes = [visited(rows, epoch) for epoch in (0, 1)]
    orders = [list(itertools.chain(*chunks)) for chunks in passes]
    assert all(sorted(order) == list(range(N)) for order in orders)
    assert orders[0] != orders[1]
    assert {len(chunk) for chunk in passes[0][:-1]} == {120}


def test_a_chunk_mixes_rows_from_far_apart(folder: Path) -> None:
    spans = [np.ptp(chunk) for chunk in visited(rows_of(folder), 0)[:-1]]
    assert min(spans) > 400


def test_an_epoch_can_begin_with_any_chunk(folder: Path) -> None:
    rows = rows_of(folder, weighted=True)
    whole = visited(rows, 1)
    assert [visited(rows, 1, first) for first in range(len(whole))] == [
        whole[first:] for first in range(len(whole))
    ]


def test_rows_that_are_left_out_never_come(folder: Path) -> None:
    left_out = np.arange(0, 1000, 3)
    order = list(itertools.chain(*visited(rows_of(folder, left_out=left_out), 0)))
    assert sorted(order) == sorted(set(range(N)) - set(left_out.tolist()))


def test_weights_of_any_spread_become_unbiased_visits() -> None:
    rng = np.random.default_rng(1)
    weight = rng.pareto(0.7, 50) * rng.integers(2, size=50)
    counts = np.array([visits(weight, offset) for offset in (np.arange(2000) + 0.5) / 2000])
    assert np.all((counts >= np.floor(weight)) & (counts <= np.ceil(weight)))
    assert np.allclose(counts.mean(axis=0), weight, atol=1e-3)
    assert set(counts.sum(axis=1)) <= {np.floor(weight.sum()), np.ceil(weight.sum())}


def test_a_row_is_visited_as_often_as_its_weight_says_in_whatever_chunk(folder: Path) -> None:
    """The mean gradient of batches is that of the weighted set of rows."""
    rows = rows_of(folder, weighted=True)
    weights = np.concatenate([b.column("w").to_numpy() for b in rows.dataset.batches(["w"])])
    n_passes = 50
    counts = np.zeros(N)
    for epoch in range(n_passes):
        counts += np.bincount(list(itertools.chain(*visited(rows, epoch))), minlength=N)
    expected = weights / weights.mean()
    deviation = np.sqrt(0.25 / n_passes)  # of a mean of draws that are ⌊w⌋ or ⌈w⌉
    assert np.all(np.abs(counts / n_passes - expected) < 5 * deviation)
    assert abs(counts.sum() / n_passes / N - 1) < 0.01


def network() -> MonotonicNetwork:
    torch.manual_seed(0)
    return MonotonicNetwork([1, 8, 1], monotonic_cst=[1], lipschitz=2.0)


def rows_for_training(folder: Path, **options: Any) -> ParquetRows:
    return ParquetRows(
        sorted(folder.glob("*.parquet")),
        ["x"],
        "y",
        Scaling.identity(1),
        SquaredError(),
        **options,
    )


def test_the_stream_ends_near_what_is_learned_in_memory(folder: Path) -> None:
    """From weights that vary by orders of magnitude between chunks, too."""
    table = pa.parquet.read_table(folder).sort_by("w")  # light rows in front
    for path in folder.glob("*.parquet"):
        path.unlink()
    pa.parquet.write_table(table, folder / "0.parquet", row_group_size=70)
    recipe = Recipe(epochs=60, batch_size=40)
    streamed = network()
    train_stream(streamed, rows_for_training(folder, weight="w"), recipe, backend="fused")
    x, y, w = (table[name].to_numpy()[:, None] for name in "xyw")
    line = np.linalg.lstsq(np.sqrt(w) * np.hstack([x, x**0]), np.sqrt(w) * y, rcond=None)[0]
    with torch.no_grad():
        found = streamed(torch.tensor(x, dtype=torch.float32)).numpy()
    errors = [np.average((fit - y) ** 2, weights=w) for fit in (found, line[0] * x + line[1])]
    assert errors[0] < 1.02 * errors[1]


def test_a_stream_without_weights_learns_with_the_rates_of_the_recipe(folder: Path) -> None:
    times: list[float] = []
    recipe = Recipe(epochs=2, batch_size=40, schedule="exponential", final_rate=0.5)
    learner = ChunkLearner([network()], SquaredError(), recipe)
    train_epoch = learner.trainer.train_epoch

    def watch(*args: Any, learning_rates: Any, **options: Any) -> Any:
        times.extend(learning_rates)
        return train_epoch(*args, learning_rates=learning_rates, **options)

    learner.trainer.train_epoch = watch  # type: ignore[method-assign]
    rows = rows_for_training(folder).chunks()
    for epoch in range(2):
        learner.learn(rows, epoch, recipe)
    assert np.allclose(times, [*recipe.rates(0, 25), *recipe.rates(1, 25)], rtol=1e-12)


def test_knots_are_looked_up(folder: Path) -> None:
    knots = Knots.at([np.linspace(-2, 2, 9).tolist()])
    dataset = open_dataset(folder)

    def scaled(batch: pa.RecordBatch, path: str, first_row: int) -> Rows:
        x = knots.transform(batch.column("x").to_numpy()[:, None])
        return Rows.of(x, batch.column("y").to_numpy().copy(), SquaredError())

    rows = Chunks(dataset, ("x", "y"), scaled, width=1)
    losses = []
    for fields in ((), (8,)):
        torch.manual_seed(0)
        # not orthogonal: columns would begin at their bound, where the derivative jumps
        member = MonotonicNetwork([8, 8, 1], monotonic_cst=[1] * 8, lipschitz=2.0, init="torch")
        learner = ChunkLearner([member], SquaredError(), RECIPE, fields=fields)
        losses.append([learner.learn(rows, epoch, RECIPE).tolist() for epoch in range(2)])
    assert np.allclose(*losses, rtol=1e-4)


def test_reading_ahead_changes_nothing_and_errors_arrive() -> None:
    def items() -> Iterator[int]:
        yield 1
        time.sleep(0.02)
        yield 2
        raise ValueError("of the reader")

    found = ahead(items())
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="of the reader"):
        next(found)


class Kill(BaseException):
    """Stands in for a kill in the middle of an epoch."""


@pytest.mark.parametrize("n_chunks", [1, 4, 7, 11])
@pytest.mark.parametrize("validated", [False, True])
def test_a_run_killed_after_any_chunk_continues_to_the_same_bits(
    folder: Path, n_chunks: int, validated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, checkpoint = rows_for_training(folder, weight="w"), folder / "run"
    held = Rows.of(np.ones((3, 1)), np.ones(3), SquaredError()) if validated else None
    undisturbed = network()
    expected = train_stream(undisturbed, rows, RECIPE, validation=held)
    monkeypatch.setattr(shards, "fit", partial(fit, checkpoint_seconds=0.0))
    done: list[int] = []
    learn_chunk = ChunkLearner._learn_chunk

    def killed(self: Any, chunk: Any, epoch: int, recipe: Recipe) -> None:
        done.append(epoch)
        if len(done) == n_chunks + 1:
            raise Kill
        learn_chunk(self, chunk, epoch, recipe)

    monkeypatch.setattr(ChunkLearner, "_learn_chunk", killed)
    resumed = network()
    with pytest.raises(Kill):
        train_stream(network(), rows, RECIPE, validation=held, checkpoint=checkpoint)
    history = train_stream(resumed, rows, RECIPE, validation=held, checkpoint=checkpoint)
    assert len(done) == 3 * 4 + 1  # nothing but the chunk of the kill is repeated
    assert history.training == expected.training
    pairs = zip(resumed.parameters(), undisturbed.parameters(), strict=True)
    assert all(torch.equal(p, q) for p, q in pairs)


SCRIPT = """
    import sys, hashlib, torch
    from functools import partial
    from isotone import MonotonicNetwork, Recipe, Scaling
    from isotone.losses import SquaredError
    from isotone.training import recipe
    from isotone.training.streaming import chunks, shards
    chunks.CHUNK_NUMBERS = 100
    shards.fit = partial(recipe.fit, checkpoint_seconds=0.0)
    torch.manual_seed(0)
    network = MonotonicNetwork([1, 8, 1], monotonic_cst=[1], lipschitz=2.0)
    rows = shards.ParquetRows(
        sys.argv[2:], ["x"], "y", Scaling.identity(1), SquaredError(), weight="w"
    )
    recipe = Recipe(epochs=20, batch_size=20)
    shards.train_stream(network, rows, recipe, backend="fused", checkpoint=sys.argv[1])
    numbers = b"".join(p.detach().numpy().tobytes() for p in network.parameters())
    print(hashlib.sha256(numbers).hexdigest())
"""


def run(folder: Path, name: str, moment: str | None = None) -> subprocess.Popen[str]:
    paths = [str(path) for path in sorted(folder.glob("*.parquet"))]
    code = kills.PRELUDE + textwrap.dedent(SCRIPT)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder / name), *paths],
        stdout=subprocess.PIPE,
        text=True,
        env=kills.surroundings(moment),
    )


@pytest.mark.slow
def test_a_process_killed_again_and_again_ends_with_the_same_bits(folder: Path) -> None:
    expected = run(folder, "undisturbed").communicate()[0]
    for moment in kills.MOMENTS[1:3]:
        kills.expect_death(run(folder, "killed", moment))
    assert run(folder, "killed").communicate()[0] == expected


def test_a_loss_that_is_not_finite_ends_the_run(folder: Path) -> None:
    rows = rows_for_training(folder)
    recipe = Recipe(epochs=1, batch_size=40, learning_rate=1e38)
    with pytest.raises(ValueError, match="training loss of member 0 is nan in epoch 0"):
        train_stream(network(), rows, recipe)


def test_the_fused_backend_says_what_it_cannot_stream(folder: Path) -> None:
    with pytest.raises(ValueError, match="it is for one process with `shards=1`, not 1 with"):
        train_stream(network(), rows_for_training(folder, shards=2), RECIPE, backend="fused")


def test_torch_trains_what_is_not_fused(folder: Path) -> None:
    found = [network(), network()]
    for model, backend in zip(found, ("torch", "auto"), strict=True):
        train_stream(model, rows_for_training(folder), RECIPE, backend=backend)  # type: ignore[arg-type]
    x = torch.linspace(-1, 1, 20)[:, None]
    scores = [model(x).detach().numpy() for model in found]
    assert np.abs(scores[0] - scores[1]).max() < 0.2


def test_classes_are_streamed(folder: Path) -> None:
    paths = sorted(folder.glob("*.parquet"))
    for path in paths:
        table = pa.parquet.read_table(path)
        pa.parquet.write_table(
            table.append_column("c", pa.array((table["y"].to_numpy() > 0).astype(int))), path
        )
    rows = ParquetRows(paths, ["x"], "c", Scaling.identity(1), CrossEntropy())
    history = train_stream(network(), rows, RECIPE, backend="fused")
    assert history.training[-1] < history.training[0]
