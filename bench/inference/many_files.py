"""Score a billion rows in a hundred files while workers are killed.

Question: does `isotone score DIRECTORY` end with the right scores if one of its two workers is
killed every minute, and does it need more memory the longer it runs?
Data: four standard normal features, float32, in row groups of a million; ten files made here
(1.6 GB) and each of them under ten names.
Claim: every score is that of the engine called by hand, and memory stays what it is after the
first files.
Run time: three minutes on two cores; `--rows 20000000 --every 2` seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet

import isotone
from bench.inference.many_rows import FEATURES, GROUP, write_model, write_rows

DISTINCT, NAMES = 10, 10  # files, and names of each


def write_tables(folder: Path, n_rows: int) -> None:
    """A hundred names, of ten different files."""
    folder.mkdir()
    for k in range(DISTINCT):
        first = folder / f"{k}-0.parquet"
        write_rows(first, n_rows // (DISTINCT * NAMES), seed=k)
        for name in range(1, NAMES):
            os.link(first, folder / f"{k}-{name}.parquet")


@dataclass
class Run:
    """A command with workers, some of which are killed.

    Parameters
    ----------
    memory : of all its processes, in megabytes, once a second
    """

    process: subprocess.Popen[bytes]
    every: float
    memory: list[float] = field(default_factory=list)
    kills: int = 0

    def watch(self) -> float:
        """Kill a worker now and then until the command ends; the seconds it took."""
        start = last = time.perf_counter()
        while self.process.poll() is None:
            time.sleep(min(1.0, self.every / 4))
            self.memory.append(sum(map(_megabytes, [self.process.pid, *self.workers()])))
            if time.perf_counter() - last >= self.every:
                last = time.perf_counter()
                self.kill_one()
        return time.perf_counter() - start

    def workers(self) -> list[int]:
        pid = self.process.pid
        children = map(int, _read(f"/proc/{pid}/task/{pid}/children").split())
        return [
            int(child) for child in children if "spawn_main" in _read(f"/proc/{child}/cmdline")
        ]

    def kill_one(self) -> None:
        workers = self.workers()
        if workers:
            os.kill(random.choice(workers), signal.SIGKILL)
            self.kills += 1


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return ""


def _megabytes(pid: int) -> float:
    """Memory that is resident and not a file's."""
    lines = _read(f"/proc/{pid}/status").splitlines()
    return sum(float(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def count_wrong(folder: Path, scores: Path) -> tuple[int, int]:
    """Rows that have a score, and those of them whose score is not that of the engine."""
    frozen = isotone.load(folder / "model.isotone")
    n_rows = n_wrong = 0
    for k in range(DISTINCT):
        expected = list(_batches(folder / "tables" / f"{k}-0.parquet", FEATURES))
        right = [frozen.score(rows) for rows in expected]
        for name in range(NAMES):
            for own, found in zip(
                right, _batches(scores / f"{k}-{name}.parquet", ["score"]), strict=True
            ):
                n_rows += len(found)
                n_wrong += int(np.sum(found[:, 0] != own))
    return n_rows, n_wrong


def _batches(path: Path, names: list[str] | tuple[str, ...]) -> Iterator[np.ndarray]:
    file = pyarrow.parquet.ParquetFile(path)
    for batch in file.iter_batches(GROUP, columns=list(names)):
        yield np.column_stack([batch.column(name).to_numpy() for name in names])


def peaks(memory: list[float]) -> list[float]:
    """The most in the first, second and last third of the time."""
    third = max(len(memory) // 3, 1)
    return [max(memory[k * third : (k + 1) * third], default=0.0) for k in range(3)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000_000)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, scores = Path(name), Path(name) / "scores"
        write_model(folder / "model.isotone")
        write_tables(folder / "tables", options.rows)
        words = ["score", folder / "model.isotone", folder / "tables", "--out", scores]
        command = Path(sys.executable).with_name("isotone")
        process = subprocess.Popen([str(word) for word in [command, *words, "--workers", 2]])
        run = Run(process, options.every)
        seconds = run.watch()
        if process.returncode != 0:
            raise SystemExit(f"isotone score ended with {process.returncode}, {run.kills} kills")
        n_rows, n_wrong = count_wrong(folder, scores)
        left = [path.name for path in scores.rglob("*") if path.suffix != ".parquet"]
    print(
        f"{n_rows:,} rows in {seconds:.0f} s, {run.kills} kills, {n_wrong} scores differ; "
        f"most memory in each third of the time: "
        f"{', '.join(f'{peak:.0f}' for peak in peaks(run.memory))} MB; beside the scores: {left}"
    )
    raise SystemExit(0 if n_wrong == 0 and n_rows == options.rows else 1)


if __name__ == "__main__":
    main()
