"""Kill `isotone train` and `isotone sweep` at random moments, and compare with undisturbed runs.

Question: does a command that is killed with SIGKILL, again and again, end with the same result?
Data: a table of four columns and two classes, the same for all runs, as a file and as a directory
that is streamed.
Claim: the same network, losses and table of results, bit for bit, after 20 kills of each command.
Run time: for the file and the sweep 26 minutes on two cores that others used as well; 20 kills of
the directory, with 20 epochs, took four minutes there.

Moments are drawn evenly from the time an undisturbed run takes once its libraries are loaded.
Checkpoints are written five times a second instead of every five seconds, so that many kills meet
one that is being written. A command that ends before its kill starts anew.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import isotone

# The one place that reaches into the package: a fault is put where no user could put one.
_COMMAND = """
import sys
import isotone.estimators.fitting.members, isotone.training.sweep
from isotone.cli import main
from isotone.data import survey
from isotone.estimators.fitting import members
from isotone.training.streaming import chunks
assert members.CHECKPOINT_SECONDS > 0.2
members.CHECKPOINT_SECONDS = 0.2
assert survey.SMALL_ROWS > 2000 and survey.SAMPLE_ROWS > 1000 and chunks.CHUNK_NUMBERS > 4096
survey.SMALL_ROWS, survey.SAMPLE_ROWS, chunks.CHUNK_NUMBERS = 2000, 1000, 4096
if __name__ == "__main__":
    print("ready", flush=True)
    main(sys.argv[1:])
"""
_PATIENCE = 600.0  # seconds until a command that does not end is given up


@dataclass(frozen=True)
class Job:
    """A command, without the directory for its results, and what must be the same in there."""

    name: str
    words: tuple[str, ...]
    result: Callable[[Path], Any]

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        """Start the command, and wait until it begins to work."""
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, self.name, *self.words, "--out", str(out)],
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def finish(self, out: Path) -> float:
        """Run to the end; seconds of work."""
        process, begin = self.start(out), time.perf_counter()
        process.communicate(timeout=_PATIENCE)
        if process.returncode != 0:
            raise RuntimeError(f"isotone {self.name} failed with exit code {process.returncode}")
        return time.perf_counter() - begin

    def kill(self, out: Path, wait: float) -> bool:
        """Run, and kill after a wait, workers included; whether it was still running then."""
        process = self.start(out)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=wait)
        running = process.poll() is None
        if running:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return running


def network_and_losses(out: Path) -> Any:
    """What `isotone train` wrote, but for the seconds it took."""
    history = json.loads((out / "history.json").read_text())
    del history["seconds"]
    texts = [(out / name).read_text() for name in ("certificate.json", "metrics.json")]
    return isotone.load(out / "model.isotone").fingerprint, history, texts


def table_of_results(out: Path) -> Any:
    """What `isotone sweep` wrote."""
    return pa.parquet.read_table(out / "results.parquet").to_pydict()


def disturb(job: Job, folder: Path, n_kills: int, rng: np.random.Generator) -> bool:
    """Kill a job so many times; whether its results are those of an undisturbed run."""
    seconds = job.finish(folder / "undisturbed")
    expected = job.result(folder / "undisturbed")
    moments: list[float] = []
    same: list[bool] = []
    n_ends = 0
    while len(moments) < n_kills:
        wait = seconds * rng.uniform()
        if job.kill(folder / f"killed{n_ends}", wait):
            moments.append(wait)
        else:
            same.append(job.result(folder / f"killed{n_ends}") == expected)
            n_ends += 1
    job.finish(folder / f"killed{n_ends}")
    leftovers = [path.name for path in folder.rglob("*.part")]
    same.append(job.result(folder / f"killed{n_ends}") == expected)
    verdict = "all the same, bit for bit" if all(same) else f"{same.count(False)} DIFFER"
    print(
        f"isotone {job.name} {Path(job.words[0]).name}: {n_kills} kills after "
        f"{min(moments):.1f} to {max(moments):.1f} s of work (undisturbed: {seconds:.1f} s); "
        f"{len(same)} results, {verdict}; {len(leftovers)} leftover files",
        flush=True,
    )
    return all(same) and not leftovers


def write_problem(path: Path, directory: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 4))
    y = (np.tanh(x[:, :3]).sum(axis=1) + rng.logistic(size=len(x)) > 0).astype(int)
    columns = {name: x[:, i] for i, name in enumerate("abcd")}
    table = pa.table(columns | {"y": y})
    pa.csv.write_csv(table, path)
    directory.mkdir()
    for i in range(4):
        part = table.slice(1000 * i, 1000)
        pa.parquet.write_table(part, directory / f"{i}.parquet", row_group_size=300)


def jobs(table: Path, directory: Path, epochs: int) -> list[Job]:
    common = ("--target", "y", "--increasing", "a,b", "--max-iter", str(epochs))
    model = (
        "--lipschitz",
        "auto",
        "--hidden-layer-sizes",
        "16,16",
        "--n-members",
        "4",
        "--resume",
    )
    grid = (
        "--seeds",
        "0:20",
        "--lipschitz",
        "1,2",
        "--hidden-layer-sizes",
        "12-12",
        "--shard-size",
        "2",
    )
    return [
        Job("train", (str(table), *common, *model), network_and_losses),
        Job("train", (str(directory), *common, *model), network_and_losses),
        Job("sweep", (str(table), *common, *grid), table_of_results),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of each command")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    good = []
    with tempfile.TemporaryDirectory() as name:
        table, directory = Path(name) / "table.csv", Path(name) / "tables"
        write_problem(table, directory)
        for number, job in enumerate(jobs(table, directory, options.epochs)):
            folder = Path(name) / f"{number} {job.name}"
            folder.mkdir()
            good.append(disturb(job, folder, options.kills, rng))
    raise SystemExit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
