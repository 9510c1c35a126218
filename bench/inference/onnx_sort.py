"""ONNX graphs of one network: comparators against TopK, matrix products against ordered sums.

Question: what does an export without TopK cost, and what do the same bits cost?
Data: random networks of the given widths, standard normal rows, float32 and float64.
Method: ONNX Runtime with one thread on one core, graphs taking turns in one process; CPU time, in
microseconds for one row, in nanoseconds per row for larger batches, best of several rounds.
Run time: about a minute; ``--quick`` a few seconds.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from rich.console import Console
from rich.table import Table

from isotone import FrozenNetwork, LipschitzNetwork, export, freeze
from isotone.typing import Precision

NETWORKS: list[tuple[list[int], int]] = [
    ([4, 20, 20, 1], 20),
    ([28, 64, 64, 64, 1], 2),
    ([8, 64, 64, 1], 64),
    ([8, 128, 128, 1], 128),
]
GRAPHS: dict[str, dict[str, Any]] = {
    "network": {"sums": "matmul"},
    "topk": {"sort": "topk", "sums": "matmul"},
    "ordered sums": {"sums": "ordered"},
}
BATCHES = (1, 1000, 10_000)


def session(frozen: FrozenNetwork, path: Path, **graph: Any) -> tuple[Any, Any]:
    """A graph of a network, and ONNX Runtime with it."""
    export.write(frozen, "onnx", path, check=False, **graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnx.load(path), onnxruntime.InferenceSession(path.read_bytes(), options)


def seconds(session: Any, x: Any) -> float:
    start = time.process_time()
    session.run(None, {"X": x})
    return time.process_time() - start


def race(sessions: Sequence[Any], x: Any, budget: float) -> list[float]:
    """Best time of every session, taking turns for about `budget` seconds."""
    rounds: list[list[float]] = []
    while len(rounds) < 2 or (len(rounds) < 50 and sum(map(sum, rounds)) < budget):
        rounds.append([seconds(session, x) for session in sessions])
    return [min(times) for times in zip(*rounds, strict=True)]


def compare(table: Table, widths: list[int], size: int, precision: Precision, quick: bool) -> None:
    torch.manual_seed(0)
    frozen = freeze(LipschitzNetwork(widths, group_size=size), precision=precision)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        models, sessions = zip(
            *(session(frozen, path, **options) for options in GRAPHS.values()), strict=True
        )
    rng = np.random.default_rng(1)
    times = [
        race(sessions, rng.normal(size=(n, widths[0])).astype(precision), 0.1 if quick else 2.0)
        for n in BATCHES[: 2 if quick else 3]
    ]
    for k, name in enumerate(GRAPHS):
        nodes, size_kb = len(models[k].graph.node), models[k].ByteSize() / 1000
        numbers = [f"{t[k] / n * 1e9:,.0f}" for t, n in zip(times[1:], BATCHES[1:], strict=False)]
        shape = "-".join(str(width) for width in widths)
        first = [f"{shape}, groups of {size}", precision, name, str(nodes), f"{size_kb:.0f}"]
        table.add_row(*first, f"{times[0][k] * 1e6:,.0f}", *numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, small batches only")
    quick = parser.parse_args().quick
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    table = Table("network", "precision", "graph", "nodes", "kB", "1 row, µs")
    for n in BATCHES[1 : 2 if quick else 3]:
        table.add_column(f"{n}, ns/row")
    precisions: tuple[Precision, ...] = ("float32", "float64")
    for widths, size in NETWORKS[: 2 if quick else None]:
        for precision in precisions:
            compare(table, widths, size, precision, quick)
    console = Console(width=140)
    console.print(f"ONNX Runtime {onnxruntime.__version__}, one core")
    console.print(table)


if __name__ == "__main__":
    main()
