"""One answer: the same rows, edges included, through every way to compute the score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotone import FrozenNetwork, Log, MonotonicNetwork, Scaling, export, freeze
from isotone.export.parity import check_rows
from isotone.export.torch import Torch, to_module
from networks import copied, every_step, saturate

N_ROWS = 100_000
WAYS: dict[str, tuple[str, dict[str, Any], int]] = {
    "JSON": ("json", {}, N_ROWS),
    "ONNX": ("onnx", {}, N_ROWS),
    "ONNX with matrix products": ("onnx", {"sums": "matmul"}, N_ROWS),
    "ONNX with TopK": ("onnx", {"sort": "topk", "sums": "matmul"}, N_ROWS),
    "ONNX in float32": ("onnx", {"precision": "float32"}, N_ROWS),
    "DuckDB": ("sql", {"dialect": "duckdb"}, N_ROWS),
    "SQLite": ("sql", {"dialect": "sqlite"}, N_ROWS // 10),
}
EQUAL = {"JSON", "ONNX", "DuckDB", "SQLite"}


def paper() -> FrozenNetwork:
    """4-20-20-1 with a full sort, as steep as it may be, two columns in logarithms."""
    torch.manual_seed(0)
    network = MonotonicNetwork([4, 20, 20, 1], monotonic_cst=[1, 1, 0, -1], lipschitz=2.0)
    saturate(network)
    X = np.random.default_rng(0).exponential(size=(1000, 4)) * [1.0, 1e4, 10.0, 1e-3]
    kinds = ["standard", "log", Log(offset=1.0, floor=0.5), "robust"]
    return freeze(network, scaling=Scaling.fit(X, kinds))  # type: ignore[arg-type]


NETWORKS = {
    "paper": paper(),
    "every step": every_step(2),
    "every step in float32": every_step(2, precision="float32"),
    "knots": copied(2, 3),
    "knots in float32": copied(1, 2, precision="float32"),
}


@pytest.fixture(scope="module", params=sorted(NETWORKS))
def case(request: pytest.FixtureRequest) -> tuple[FrozenNetwork, Any, Any]:
    """A network, rows and their scores; the edges come first."""
    frozen = NETWORKS[request.param]
    X = check_rows(frozen, N_ROWS, seed=1)[:N_ROWS]
    return frozen, X, frozen.score(X).reshape(len(X), -1)


@pytest.mark.parametrize("way", WAYS)
def test_exports_give_the_score(
    way: str, case: tuple[FrozenNetwork, Any, Any], tmp_path: Path
) -> None:
    frozen, X, expected = case
    name, options, n_rows = WAYS[way]
    target = export._target(name, options)
    largest = target.largest(frozen)
    target.write(frozen, tmp_path / "model")
    inside = np.all(np.abs(X[:n_rows]) <= largest, axis=1)
    rows = X[:n_rows][inside]
    found = np.asarray(target.score(frozen, tmp_path / "model", rows)).reshape(len(rows), -1)
    difference = np.abs(found - expected[:n_rows][inside])
    assert np.all(difference <= target.tolerance(frozen))
    if way == "JSON" or (way in EQUAL and frozen.precision == "float64"):
        assert np.array_equal(found, expected[:n_rows][inside])


def test_the_torch_module_gives_the_score(case: tuple[FrozenNetwork, Any, Any]) -> None:
    frozen, X, expected = case
    found = to_module(frozen)(torch.from_numpy(X)).numpy().reshape(len(X), -1)
    assert np.all(np.abs(found - expected) <= Torch().tolerance(frozen))
