"""Train on Parquet files that stay on disk, and watch the speed and the memory.

Question: how much slower is training from disk than from memory, and does memory grow with rows?
Data: ten standard normal columns and two classes, float32, in files of a million rows, made here
(about 450 MB per ten million rows).
Method: `MonotonicClassifier.fit` of the directory in a process of its own, λ given, 32-32 units,
batches of 512; a pass is what a fit of two passes takes longer than a fit of one. The peak of the
resident memory is that of getrusage. Beside it, the fused trainer on a million rows in memory, of
the same shape. One core, which reading and training share; CPU seconds, best of the rounds.
With ``--once`` one fit of one pass, on all cores, beside decoding the files in their order and the
trainer in memory: for so many rows that a second pass takes too long.
Run time: about ten minutes; ``--rows 2000000 --rounds 1`` seconds; ``--once --rows 100000000`` ten
minutes of two free cores and 4.5 GB of disk.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet
import torch

from bench.race import Task, pin
from isotone import MonotonicClassifier, MonotonicNetwork, Recipe
from isotone.losses import CrossEntropy
from isotone.training import FusedLearner, Rows

N_COLUMNS, BATCH = 10, 512
FILE_ROWS = 1_000_000
NAMES = [f"x{i}" for i in range(N_COLUMNS)]


def draw(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, N_COLUMNS), np.float32)
    return x, (x[:, :3].sum(axis=1) + rng.logistic(size=n_rows) > 0).astype(np.int8)


def write(folder: Path, n_rows: int) -> None:
    folder.mkdir()
    for i, start in enumerate(range(0, n_rows, FILE_ROWS)):
        x, y = draw(min(FILE_ROWS, n_rows - start), i)
        table = pa.table(dict(zip(NAMES, x.T, strict=True)) | {"y": y})
        pa.parquet.write_table(table, folder / f"{i:04d}.parquet")


def fit(folder: Path, n_members: int, n_passes: int) -> None:
    MonotonicClassifier(
        [1, 1, 1] + [0] * (N_COLUMNS - 3),
        lipschitz=2.0,
        n_members=n_members,
        batch_size=BATCH,
        max_iter=n_passes,
        random_state=0,
    ).fit(folder, "y")


def epoch(n_members: int) -> Task:
    """One pass of the fused trainer over a million rows in memory."""
    x, y = draw(FILE_ROWS, 0)
    loss, recipe = CrossEntropy(), Recipe(epochs=1, batch_size=BATCH)
    networks = [
        MonotonicNetwork(
            [N_COLUMNS, 32, 32, 1],
            monotonic_cst=[1, 1, 1] + [0] * (N_COLUMNS - 3),
            lipschitz=2.0,
            group_size=8,
            outputs="logits",
        )
        for _ in range(n_members)
    ]
    learner, rows = FusedLearner(networks, loss, recipe), Rows.of(x, y, loss)
    return partial(learner.learn, rows, 0, recipe)


def cpu_seconds(task: Task) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def measure(folder: Path, n_members: int, n_rounds: int) -> None:
    """Print CPU seconds of passes in memory, of fits of one and two passes, and peak memory in MB.

    Contestants take turns; the best round counts.
    """
    tasks = [partial(fit, folder, n_members, n_passes) for n_passes in (1, 2)]
    rounds = [[cpu_seconds(task) for task in tasks]]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    in_memory = epoch(n_members)
    rounds += [[cpu_seconds(task) for task in tasks] for _ in range(n_rounds - 1)]
    memory = min(cpu_seconds(in_memory) for _ in range(2 * n_rounds))
    print(json.dumps([memory, *np.min(rounds, axis=0), peak]))


def decode(folder: Path) -> None:
    for batch in pads.dataset(folder).to_batches(use_threads=False):
        assert batch.num_rows


def clocks(task: Task) -> tuple[float, float]:
    """Seconds on the wall, and of CPU."""
    start = time.perf_counter()
    cpu = cpu_seconds(task)
    return time.perf_counter() - start, cpu


def measure_once(folder: Path, n_members: int) -> None:
    """Print what one fit of one pass takes, and each of its halves alone."""
    n_rows = pads.dataset(folder).count_rows()
    peaks = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
    whole = clocks(partial(fit, folder, n_members, 1))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    found = {"fit, with the first pass": (n_rows, *whole)}
    found["decoding the files alone"] = (n_rows, *clocks(partial(decode, folder)))
    in_memory = epoch(n_members)
    best = min((clocks(in_memory) for _ in range(5)), key=lambda pair: pair[1])
    found["training alone, in memory"] = (FILE_ROWS, *best)
    for name, (n, wall, cpu) in found.items():
        print(
            f"{name}: {n / wall / 1e6:.2f} M rows/s on the wall, {n / cpu / 1e6:.2f} per CPU "
            f"second ({n:,} rows, {wall:.1f} s, {cpu:.1f} CPU s)",
            flush=True,
        )
    print(f"peak {peaks[1]:.0f} MB, {peaks[0]:.0f} before the fit", flush=True)


def run(folder: Path, options: argparse.Namespace) -> str:
    """What a process of its own prints about a directory."""
    words = ["--fit", folder, "--members", options.members, "--rounds", options.rounds]
    words += ["--once"] * options.once
    command = [sys.executable, "-m", "bench.training.stream", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def report(folder: Path, n_rows: int, options: argparse.Namespace) -> None:
    write(folder, n_rows)
    memory, one, two, peak = json.loads(run(folder, options))
    rates = [FILE_ROWS / memory / 1e6, n_rows / (two - one) / 1e6]
    print(
        f"{n_rows:,} rows: {rates[1]:.2f} M rows/s from disk, {rates[0]:.2f} in memory, ratio "
        f"{rates[1] / rates[0]:.2f}; {2 * one - two:.1f} s beside the passes; peak {peak:.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", action="store_true", help="one fit of one pass")
    parser.add_argument("--fit", type=Path, help="only measure this directory")
    options = parser.parse_args()
    if options.fit:
        torch.set_num_threads(1)
        if options.once:
            measure_once(options.fit, options.members)
        else:
            measure(options.fit, options.members, options.rounds)
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    where = f"{len(os.sched_getaffinity(0))} cores" if options.once else f"core {pin()}"
    print(f"{where}, {options.members} members", flush=True)
    with tempfile.TemporaryDirectory() as name:
        if options.once:
            write(Path(name) / "rows", options.rows)
            print(run(Path(name) / "rows", options), end="")
            return
        for n_rows in (options.rows // 2, options.rows):
            report(Path(name) / str(n_rows), n_rows, options)


if __name__ == "__main__":
    main()
