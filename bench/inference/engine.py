"""Scoring: the engine against everything else that could run such a model, on one core.

Question: how many events per second, and how near to what the core can do?
Data: candidates of the trigger study (28 features: normal numbers), float32; networks with fresh
weights, trees with the directions of the trigger, trained on other candidates.
Method: one core, contestants taking turns in one process; best and median of the rounds. Who would
need more than 1.5 seconds for a large batch gets fewer rows, at least 1000, and is credited per
row. The roofline is the time that the network's multiply-adds take at the core's rate of fused
multiply-adds, measured in the same rounds.
Needs: pip install -c constraints.txt '.[bench]', a C++ compiler.
Run time: about ten minutes; ``--quick`` one.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import isotone
from bench.inference import contestants
from bench.inference.contestants import Array, Scorer, Shape, draw
from bench.race import Task, pin, race, seconds
from isotone import Engine, export

PAPER = Shape((4, 20, 20, 1))
SHAPES = (
    PAPER,
    Shape((2, 20, 20, 1)),
    Shape((4, 20, 20, 1), group_size=2),
    Shape((28, 64, 64, 64, 1), group_size=2),
)
BATCHES = (1_000_000, 1_000, 1)
N_TREES = (100, 300, 1000)
ROOF_FLAGS = {"avx2": ["-mavx2", "-mfma"], "avx512": ["-mavx512f", "-mavx512dq"], "baseline": []}
ROOF_ROUNDS = 20_000
HERE = Path(__file__).parent


def networks(shape: Shape, quick: bool) -> dict[str, Callable[[], Scorer]]:
    """Contestants that compute the very network, ours first."""
    ours: dict[str, Callable[[], Scorer]] = {}
    for isa in reversed(Engine.instruction_sets()):
        for precision in ("float32", "float64"):
            ours[f"isotone {precision}, {isa}"] = partial(
                contestants.engine, shape, precision, isa
            )
    others: dict[str, Callable[[], Scorer]] = {
        "ONNX Runtime, TopK": lambda: contestants.onnx_runtime(shape, "topk"),
        "ONNX Runtime, Min/Max": lambda: contestants.onnx_runtime(shape, "network"),
        "torch": lambda: contestants.torch_eager(shape),
        "monotonicnetworks": lambda: contestants.authors(shape),
    }
    if shape == PAPER and not quick:
        others["torch.compile"] = lambda: contestants.torch_compiled(shape)
    return ours | others


def trees(n_features: int, quick: bool) -> dict[str, Callable[[], Scorer]]:
    found: dict[str, Callable[[], Scorer]] = {}
    for n in N_TREES[:1] if quick else N_TREES:
        found[f"LightGBM, {n} trees"] = partial(contestants.lightgbm_trees, n_features, n)
    n = N_TREES[0 if quick else -1]
    free = partial(contestants.lightgbm_trees, n_features, n, monotone=False)
    found[f"LightGBM, {n} trees, no directions"] = free
    found[f"XGBoost, {n} trees"] = lambda: contestants.xgboost_trees(n_features, n)
    found[f"lleaves, {n} trees"] = lambda: contestants.lleaves_trees(n_features, n)
    return found


def roofline(isa: str) -> tuple[dict[str, Task], float]:
    """Tasks that do nothing but one kind of instruction, and how many operations each does."""
    with tempfile.TemporaryDirectory() as directory:
        library, runtime = (Path(directory) / name for name in ("roofline.so", "runtime"))
        command = ["c++", "-std=c++17", "-O3", "-shared", "-fPIC", "-Wno-psabi", *ROOF_FLAGS[isa]]
        source = str(HERE / "roofline.cpp")
        export.write(isotone.freeze(isotone.LipschitzNetwork([1, 1])), "cpp", runtime)
        include = f"-I{runtime}"  # which has the joined isotone.hpp
        subprocess.run([*command, include, source, "-o", str(library)], check=True)
        functions = ctypes.CDLL(str(library))
    tasks: dict[str, Task] = {
        "fused multiply-adds": lambda: functions.fuse(ctypes.c_long(ROOF_ROUNDS)),
        "minima and maxima": lambda: functions.compare(ctypes.c_long(ROOF_ROUNDS)),
    }
    return tasks, float(functions.operations_per_round() * ROOF_ROUNDS)


def measure_export(isa: str) -> str:
    """The exported header, compiled for one shape: latency, and throughput at 1k rows."""
    lines = []
    for precision in ("float32", "float64"):
        frozen = isotone.freeze(contestants.our_network(PAPER), precision=precision)
        with tempfile.TemporaryDirectory() as directory:
            folder, program = Path(directory) / "model", Path(directory) / "latency"
            export.write(frozen, "cpp", folder, check=False)
            options = ["-std=c++17", "-O3", "-Wno-psabi", *ROOF_FLAGS[isa], f"-I{folder}"]
            names = ['-DHEADER="model.hpp"', "-DMODEL=model", str(HERE / "latency.cpp")]
            subprocess.run(["c++", *options, *names, "-o", str(program)], check=True)
            found = json.loads(subprocess.run([program], check=True, capture_output=True).stdout)
        latency, rate = found["latency"]["best_ns"], 1e3 / found["rows_1k"]["best_ns"]
        lines.append(
            f"{precision}: {latency:.0f} ns for one event, {rate:.3g} M rows/s of 1k rows"
        )
    return f"exported C++, {isa}, own process; " + "; ".join(lines)


def part_of(scorer: Scorer, X: Array, longest: float) -> Array:
    """As many rows as take about `longest` seconds, at least 1000 if there are so many."""
    sample = X[:1000]
    scorer(sample)  # compiles, allocates
    rate = len(sample) / min(seconds(lambda: scorer(sample)) for _ in range(2))
    return X[: max(1000, int(rate * longest))]


def measure(
    scorers: dict[str, Scorer],
    X: Array,
    quick: bool,
    roof: tuple[dict[str, Task], float],
) -> dict[str, tuple[float, float]]:
    """Best and median rate, per second: rows of contestants, operations of the roofline."""
    n_rounds, budget, longest = (3, 0.05, 0.05) if quick else (9, 0.15, 1.5)
    parts = {name: part_of(scorer, X, longest) for name, scorer in scorers.items()}
    tasks: dict[str, Task] = {
        name: partial(scorer, parts[name]) for name, scorer in scorers.items()
    }
    work = {name: float(len(part)) for name, part in parts.items()}
    tasks |= roof[0]
    work |= dict.fromkeys(roof[0], roof[1])
    times = race(list(tasks.values()), n_rounds, budget)
    return {
        name: (work[name] / min(each), work[name] / statistics.median(each))
        for name, each in zip(tasks, times, strict=True)
    }


def tabulate(shape: Shape, n_rows: int, rates: dict[str, tuple[float, float]], isa: str) -> Table:
    title = f"{shape}, batches of {n_rows:,}, one core"
    table = Table("contestant", "M rows/s", "median", "roofline", "times slower", title=title)
    fastest = max(best for name, (best, _) in rates.items() if name.startswith("isotone"))
    fused = rates["fused multiply-adds"][0]
    for name, (best, median) in rates.items():
        if name in ("fused multiply-adds", "minima and maxima"):
            continue
        share = f"{best * shape.n_products / fused:.0%}" if name.startswith("isotone") else ""
        speeds = [f"{rate / 1e6:.4g}" for rate in (best, median)]
        table.add_row(name, *speeds, share, f"{fastest / best:.1f}")
    table.caption = f"{isa}: " + ", ".join(
        f"{rates[name][0] / 1e9:.1f} G {name}/s"
        for name in ("fused multiply-adds", "minima and maxima")
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, small batches")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="only the first ones")
    options = parser.parse_args()
    quick, shapes = options.quick, SHAPES[: 1 if options.quick else options.shapes]
    core = pin()
    torch.set_num_threads(1)
    isa = "avx2" if "avx2" in Engine.instruction_sets() else Engine.instruction_sets()[-1]
    roof = roofline(isa)
    console = Console(width=99)
    console.print(f"core {core}, torch {torch.__version__}")
    for shape in shapes:
        makers = networks(shape, quick)
        if shape.group_size is None:
            makers |= trees(shape.widths[0], quick)
        scorers = {name: make() for name, make in makers.items()}
        for n_rows in BATCHES[1:] if quick else BATCHES:
            X = draw(n_rows, shape.widths[0])
            rates = measure(scorers, X, quick, roof)
            console.print(tabulate(shape, n_rows, rates, isa))
    console.print(measure_export(isa))


if __name__ == "__main__":
    main()
