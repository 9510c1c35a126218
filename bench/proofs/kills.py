"""Kill commands that write at random moments, and compare with undisturbed runs.

Question: does a command that is killed with SIGKILL, again and again, end with the same result?
And what if two of them write to one place at once?
Data: a table of four columns and two classes, the same for all runs, as a file and as a directory,
which is streamed by `train` and scored by `score`; `export` and `report` are of a model of it.
Claim: the same files, but for the seconds that training took, bit for bit, after 20 kills of each
command; what has its name is whole after every kill; two at once end with that result as well, or
one of them says that the other is writing; nothing is left over.
Run time: for the file and the sweep 26 minutes on two cores that others used as well; 20 kills of
the directory, with 20 epochs, took four minutes there; the other commands take seconds each.

Moments are drawn evenly from the time an undisturbed run takes once its libraries are loaded.
Checkpoints are written five times a second instead of every five seconds, so that many kills meet
one that is being written. A command that ends before its kill starts anew.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
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
_QUICK_COMMAND = """
import sys
import isotone.export, isotone.frozen.scoring, isotone.report.page
from isotone.cli import main
if __name__ == "__main__":
    print("ready", flush=True)
    main(sys.argv[1:])
"""
_PATIENCE = 600.0  # seconds until a command that does not end is given up
_TAKEN = b"is being written by process"
_N_TOGETHER = 3  # times that two commands write to one place


@dataclass(frozen=True)
class Job:
    """A command, without the place for its results, and what must be the same in there.

    Parameters
    ----------
    ending : of the name of the file that it writes; of directories none
    resumes : what is killed leaves work of which the next run takes up the thread
    """

    name: str
    words: tuple[str, ...]
    result: Callable[[Path], Any]
    ending: str = ""
    resumes: bool = False

    @property
    def title(self) -> str:
        return f"isotone {self.name} {Path(self.words[0]).name} {self.ending}".strip()

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        """Start the command, and wait until it begins to work."""
        command = _COMMAND if self.resumes else _QUICK_COMMAND
        process = subprocess.Popen(
            [sys.executable, "-c", command, self.name, *self.words, "--out", str(out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def finish(self, out: Path) -> float:
        """Run to the end; seconds of work."""
        process, begin = self.start(out), time.perf_counter()
        _, complaint = process.communicate(timeout=_PATIENCE)
        if process.returncode != 0:
            raise RuntimeError(f"isotone {self.name} failed: {complaint.decode()}")
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


def contents(out: Path) -> dict[str, str]:
    """Digests of a file, or of all in a directory, but of those that are being written."""
    found = sorted(out.rglob("*")) if out.is_dir() else [out]
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.is_file() and not is_leftover(path)
    }


def is_leftover(path: Path) -> bool:
    return path.name.endswith((".part", "-lock"))


def disturb(job: Job, folder: Path, n_kills: int, rng: np.random.Generator) -> bool:
    """Kill a job `n_kills` times; whether its results are those of an undisturbed run."""
    undisturbed = folder / f"undisturbed{job.ending}"
    seconds = job.finish(undisturbed)
    expected = job.result(undisturbed)
    moments: list[float] = []
    same: list[bool] = []
    n_ends = n_broken = 0
    while len(moments) < n_kills:
        wait, out = seconds * rng.uniform(), folder / f"killed{n_ends}{job.ending}"
        if job.kill(out, wait):
            moments.append(wait)
            n_broken += not job.resumes and not contents(out).items() <= expected.items()
        else:
            same.append(job.result(out) == expected)
            n_ends += 1
    out = folder / f"killed{n_ends}{job.ending}"
    job.finish(out)
    same.append(job.result(out) == expected)
    leftovers = [path.name for path in folder.rglob("*") if is_leftover(path)]
    verdict = "all the same, bit for bit" if all(same) else f"{same.count(False)} DIFFER"
    print(
        f"{job.title}: {n_kills} kills after "
        f"{min(moments):.1f} to {max(moments):.1f} s of work (undisturbed: {seconds:.1f} s); "
        f"{len(same)} results, {verdict}; {n_broken} files broken, {len(leftovers)} left over",
        flush=True,
    )
    return all(same) and not leftovers and not n_broken


def together(job: Job, folder: Path) -> bool:
    """Two of a job write to one place at once; whether it holds the result, and one says so."""
    expected = job.result(folder / f"undisturbed{job.ending}")
    ends: list[str] = []
    for number in range(_N_TOGETHER):
        out = folder / f"together{number}{job.ending}"
        pair = [job.start(out) for _ in range(2)]
        said = [process.communicate(timeout=_PATIENCE)[1] for process in pair]
        refused = [
            p.returncode == 2 and _TAKEN in text for p, text in zip(pair, said, strict=True)
        ]
        done = [process.returncode == 0 for process in pair]
        good = any(done) and all(a or b for a, b in zip(done, refused, strict=True))
        good = good and job.result(out) == expected
        ends.append(f"{done.count(True)} of 2 wrote" if good else f"WRONG: {said}")
    leftovers = [path.name for path in folder.rglob("*") if is_leftover(path)]
    print(f"{job.title}, twice at once: {', '.join(ends)}; {len(leftovers)} leftover files")
    return not leftovers and not any(end.startswith("WRONG") for end in ends)


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
        Job("train", (str(table), *common, *model), network_and_losses, resumes=True),
        Job("train", (str(directory), *common, *model), network_and_losses, resumes=True),
        Job("sweep", (str(table), *common, *grid), table_of_results, resumes=True),
    ]


def quick_jobs(model: Path, table: Path, directory: Path) -> list[Job]:
    """Commands about a model, whose files are the same to the last bit."""
    return [
        Job("score", (str(model), str(directory), "--probability"), contents),
        Job("export", (str(model), "--name", "model", "--to", "cpp"), contents),
        Job("export", (str(model), "--to", "onnx"), contents, ".onnx"),
        Job("report", (str(model), str(table)), contents, ".html"),
    ]


def write_rows(directory: Path) -> None:
    """Eight tables to be scored."""
    rng = np.random.default_rng(1)
    directory.mkdir()
    for i in range(8):
        rows = {name: rng.normal(size=300_000) for name in "abcd"}
        pa.parquet.write_table(pa.table(rows), directory / f"{i}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of each command")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", choices=["training", "model"], help="commands of one kind")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    good = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        table, directory, rows = place / "table.csv", place / "tables", place / "rows"
        write_problem(table, directory)
        write_rows(rows)
        training = jobs(table, directory, options.epochs)
        training[0].finish(place / "trained")
        quick = quick_jobs(place / "trained" / "model.isotone", table, rows)
        kinds = {"training": training, "model": quick, None: [*quick, *training]}
        for number, job in enumerate(kinds[options.only]):
            folder = place / f"{number} {job.name}"
            folder.mkdir()
            good.append(disturb(job, folder, options.kills, rng))
            good.append(together(job, folder))
    raise SystemExit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
