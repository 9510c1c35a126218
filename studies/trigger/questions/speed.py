"""Speed: candidates per second and latency of each model at its working point.

Question: how fast are trees, our engine and ONNX Runtime on the same candidates?
Data: validation candidates; one thread, contestants taking turns in one process.
Claim: our engine is much faster than 1000 trees.
Run time: seconds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import isotone
from isotone import export
from isotone.typing import Floats
from studies.figures import save
from studies.trigger.analysis.models import Effort, Lipschitz, Model, Trees, train_trees
from studies.trigger.analysis.tables import FOUR, Tables

Scorer = Callable[[Any], object]
_ROUNDS = 7


def contestants(models: Sequence[Model]) -> dict[str, Scorer]:
    """Functions of rows of float64, by name."""
    found: dict[str, Scorer] = {}
    for model in models:
        if isinstance(model, Trees):
            found[f"LightGBM, {model.booster.num_trees()} trees"] = _trees(model)
        if isinstance(model, Lipschitz):
            found["isotone.Engine, float64"] = isotone.Engine(model.frozen)
            found["ONNX Runtime, float64"] = _onnx(model.frozen)
    return found


def never_stopped(tables: Tables, effort: Effort) -> Trees:
    """As many monotone trees as there may be: the paper's 1000, which early stopping cuts."""
    return train_trees(*tables.training(), FOUR, effort, stop_early=False)


def _trees(model: Trees) -> Scorer:
    predict = model.booster.predict
    return lambda X: predict(X, raw_score=True, num_threads=1)


def _onnx(frozen: isotone.FrozenNetwork) -> Scorer:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        export.write(frozen, "onnx", path, check=False)
        session = onnxruntime.InferenceSession(path.read_bytes(), options)
    (entry,) = session.get_inputs()
    dtype = np.float64 if "double" in entry.type else np.float32
    return lambda X: session.run(None, {entry.name: X.astype(dtype, copy=False)})


def race(scorers: Mapping[str, Scorer], X: Floats, budget: float) -> dict[str, float]:
    """Seconds per call, the best of some rounds in which all take turns."""
    repeats = {}
    for name, score in scorers.items():
        repeats[name] = max(1, int(budget / min(_seconds(score, X, 1) for _ in range(2))))
    best = dict.fromkeys(scorers, np.inf)
    for _ in range(_ROUNDS):
        for name, score in scorers.items():
            best[name] = min(best[name], _seconds(score, X, repeats[name]))
    return best


def _seconds(score: Scorer, X: Floats, repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        score(X)
    return (time.perf_counter() - start) / repeat


def run(
    models: Sequence[Model], tables: Tables, out: Path, n_rows: int = 20_000
) -> dict[str, Any]:
    """Throughput on many rows and latency of one; the numbers."""
    X = np.ascontiguousarray(np.resize(tables.collisions.validation.X, (n_rows, 4)))
    scorers = contestants(models)
    many, one = race(scorers, X, 0.05), race(scorers, X[:1], 0.02)
    numbers = {name: {"per_second": n_rows / many[name], "latency": one[name]} for name in scorers}
    save(figure(numbers), out / "speed")
    for name, both in numbers.items():
        rate, latency = both["per_second"], 1e6 * both["latency"]
        print(f"{name}: {rate:.3g} candidates a second, {latency:.1f} µs for one", flush=True)
    return {"n_rows": n_rows, **numbers}


def figure(numbers: Mapping[str, Mapping[str, float]]) -> Figure:
    figure = Figure(figsize=(9.0, 2.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    names = list(numbers)
    panels[0].barh(names, [numbers[name]["per_second"] for name in names], color="#0072B2")
    panels[1].barh(names, [1e6 * numbers[name]["latency"] for name in names], color="#D55E00")
    panels[0].set(xlabel="candidates per second", xscale="log")
    panels[1].set(xlabel="latency of one candidate [µs]", xscale="log")
    panels[0].invert_yaxis()
    for panel in panels:
        low, high = panel.get_xlim()
        panel.set_xlim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
        panel.grid(alpha=0.3, axis="x")
    return figure
