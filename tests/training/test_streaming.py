"""Streaming: the same batches for any number of processes, and every row once an epoch."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from isotone import MonotonicNetwork, Scaling
from isotone.losses import CrossEntropy, DynamicHinge
from isotone.training import recipe as loop
from isotone.training import train as training
from isotone.training.rows import Rows
from isotone.training.streaming import ParquetRows, train_stream
from isotone.training.train import Recipe

RECIPE = Recipe(epochs=3, batch_size=40)
FEATURES = ["a", "b"]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(0)
    result = []
    for i, n in enumerate((170, 95)):
        a, b = rng.normal(size=(2, n))
        columns = {"a": a, "b": b, "y": (a + b > 0).astype(int), "w": rng.uniform(1, 2, n)}
        path = tmp_path / f"{i}.parquet"
        pa.parquet.write_table(pa.table(columns), path, row_group_size=30)
        result.append(path)
    return result


def rows(paths: list[Path], **options: Any) -> ParquetRows:
    defaults: dict[str, Any] = {"scaling": Scaling.identity(2), "loss": CrossEntropy()}
    return ParquetRows(paths, FEATURES, "y", **defaults | options)


def network() -> MonotonicNetwork:
    torch.manual_seed(0)
    return MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 1], lipschitz=2.0)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_every_row_comes_once_in_an_epoch(paths: list[Path], shards: int) -> None:
    source = rows(paths, shards=shards)
    parts = [part for s in range(shards) for part in source.batches(s, 0, RECIPE)]
    seen = np.concatenate([part.x for part in parts]).astype(np.float64)
    expected = np.concatenate(
        [pa.parquet.read_table(p, columns=FEATURES).to_pandas().to_numpy() for p in paths]
    )
    assert len(source) == len(seen) == 265
    order = np.lexsort(seen.T), np.lexsort(expected.T)
    assert np.allclose(seen[order[0]], expected[order[1]], atol=1e-6)
    steps = [len(list(source.batches(s, 0, RECIPE))) for s in range(shards)]
    assert max(steps) == source.n_steps(0, RECIPE)


def test_streaming_learns_and_is_deterministic(paths: list[Path]) -> None:
    first, second = network(), network()
    history = train_stream(first, rows(paths, weight="w"), RECIPE)
    train_stream(second, rows(paths, weight="w"), RECIPE)
    assert history.training[-1] < history.training[0]
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(p, q) for p, q in pairs)


def zero_weights(path: Path, n_zeros: int) -> Path:
    """The same rows, of which the first have weight 0."""
    table = pa.parquet.read_table(path)
    weight = np.where(np.arange(len(table)) < n_zeros, 0.0, table["w"].to_numpy())
    table = table.set_column(table.column_names.index("w"), "w", pa.array(weight))
    pa.parquet.write_table(table, path, row_group_size=30)
    return path


def test_batches_of_weight_zero_change_nothing_to_nan(paths: list[Path]) -> None:
    model = network()
    recipe = Recipe(epochs=2, batch_size=10)
    source = rows([zero_weights(paths[0], 60)], weight="w", buffer_groups=1)
    assert any(not part.mass() for part in source.batches(0, 0, recipe))
    history = train_stream(model, source, recipe)
    assert np.all(np.isfinite(history.training))
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_some_weights_must_be_positive_and_none_negative(paths: list[Path]) -> None:
    with pytest.raises(ValueError, match="the weight 'w' sums to 0; it must be positive"):
        train_stream(network(), rows([zero_weights(paths[0], 170)], weight="w"), RECIPE)
    with pytest.raises(ValueError, match="the weight 'a' has a minimum of -"):
        train_stream(network(), rows(paths, weight="a"), RECIPE)


def test_networks_in_float64_are_trained_in_float64(paths: list[Path]) -> None:
    table = pa.parquet.read_table(paths[1]).to_pandas()
    held_out = Rows.of(table[FEATURES], table["y"], CrossEntropy())
    single, double = network(), network().double()
    histories = [
        train_stream(n, rows(paths), RECIPE, validation=held_out) for n in (single, double)
    ]
    assert np.allclose(histories[1].validation, histories[0].validation, rtol=0.05)
    assert {parameter.dtype for parameter in double.parameters()} == {torch.float64}


def test_validation_rows_and_checkpoints_work_here_too(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.parquet.read_table(paths[1]).to_pandas()
    held_out = Rows.of(table[FEATURES], table["y"], CrossEntropy())
    history = train_stream(
        network(), rows(paths[:1]), RECIPE, validation=held_out, checkpoint=tmp_path / "run"
    )
    assert len(history.validation) == 3


SCRIPT = """
    import os, sys, torch, torch.distributed as dist
    from isotone import MonotonicNetwork, Scaling
    from isotone.losses import CrossEntropy
    from isotone.training.streaming import ParquetRows, train_stream
    from isotone.training.train import Recipe
    torch.manual_seed(0)
    network = MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 1], lipschitz=2.0)
    source = ParquetRows(
        sys.argv[2:], ["a", "b"], "y", Scaling.identity(2), CrossEntropy(), weight="w", shards=2
    )
    train_stream(network, source, Recipe(epochs=3, batch_size=40))
    if dist.get_rank() == 0:
        torch.save(network.state_dict(), sys.argv[1])
    dist.destroy_process_group()
    os._exit(0)  # torch now and then aborts as its threads end
"""


@pytest.mark.slow
def test_two_processes_end_where_one_does(paths: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run(
        [sys.executable, *launch, script, tmp_path / "weights", *paths],
        check=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    alone = network()
    train_stream(alone, rows(paths, weight="w", shards=2), RECIPE)
    together = torch.load(tmp_path / "weights", weights_only=True)
    for name, value in alone.state_dict().items():
        assert torch.allclose(together[name], value, atol=1e-5), name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shards": 20}, "10 row groups cannot be divided among 20 shards"),
        ({"loss": DynamicHinge()}, "needs all rows at once"),
    ],
)
def test_what_cannot_be_streamed_is_refused(paths: list[Path], options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows(paths, **options)


def test_text_and_missing_numbers_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pa.parquet.write_table(pa.table({"a": [1.0, None], "b": [1.0, 2.0], "y": [0, 1]}), path)
    with pytest.raises(ValueError, match="column 'a' is missing in row 1"):
        train_stream(network(), rows([path]), RECIPE)


def test_a_run_of_other_files_is_not_continued(paths: list[Path], tmp_path: Path) -> None:
    key = loop._fingerprint(
        rows(paths), None, RECIPE, training.NetworkLearner(network(), CrossEntropy(), RECIPE), ""
    )
    other = loop._fingerprint(
        rows(paths[:1]),
        None,
        RECIPE,
        training.NetworkLearner(network(), CrossEntropy(), RECIPE),
        "",
    )
    assert key != other
