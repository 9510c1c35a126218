"""Fuzz all that reads tables: `python -m bench.fuzz.tables --runs 20000`.

Question: is there a CSV, Parquet or ROOT file that crashes or hangs what reads it, takes memory
out of proportion, is refused in the words of another library, or gives other cells than those
that another reader finds?
Method: drawn tables of every kind of column are changed byte by byte and, where they are text,
cell by cell; inputs that end in a new way are changed further. What must hold is `examine` in
`tests/hostile_tables.py`; inputs are tried in a process that is ended after ten seconds with one
of them. The parsers are in libraries of C++ that were built without instrumentation, which is why
nothing here measures coverage. `--keep` renews the corpus in `tests/fuzz`, which `make test` runs.
Run time: 60 executions a second on a core that others used as well.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import multiprocessing
import re
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bench.fuzz import corpus

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / "build" / "fuzz" / "tables"
_SECONDS = 10.0
_ADDRESSES = 8 * 2**30  # bytes a process may ask for
_GROWTH = 2**19  # kilobytes by which one input may raise the most that a process ever had
_START = 60.0  # seconds in which a process loads its libraries


class Examiner:
    """A process that examines inputs, and is replaced when one of them ends it."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def __call__(self, data: bytes) -> tuple[bool, str]:
        """Whether all went well, and how it ended."""
        if self._process is None:
            self._start()
        self._pipe.send_bytes(data)
        if not self._pipe.poll(_SECONDS):
            self.close()
            return False, f"hangs for {_SECONDS:.0f} s"
        try:
            good, end = self._pipe.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self.close()
            return False, f"ends the process with code {code}"
        return good, end

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_examine_all, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        if not self._pipe.poll(_START):
            raise RuntimeError("the process that examines inputs does not start")
        self._pipe.recv()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = None


def _examine_all(pipe: Connection) -> None:
    """In a process: examine what comes, until the other end is closed."""
    warnings.simplefilter("ignore")
    hostile: Any = _module("hostile_tables")
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    hostile.examine(_module("table_mutants").draw_table(0))  # loads what is loaded on first use
    pipe.send("ready")
    while True:
        try:
            data = pipe.recv_bytes()
        except EOFError:
            return
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            good, end = True, hostile.examine(data)
        except BaseException:
            good, end = False, traceback.format_exc(limit=-4)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown > _GROWTH:
            good, end = False, f"takes {grown / 1024:.0f} MB"
        pipe.send((good, end))


def _module(name: str) -> Any:
    folder = str(_ROOT / "tests")  # which have the tables and what must hold
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


class Campaign:
    """Inputs that end in different ways, and what was found."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.examiner = Examiner()
        self.mutants = _module("table_mutants")
        self.known: dict[str, bytes] = {}  # the smallest input of every way to end
        self.ends: Counter[str] = Counter()
        self.findings: dict[str, Path] = {}

    def run(self, n: int, seconds: float) -> None:
        begin = time.perf_counter()
        for i in range(n):
            self.examine(self._next(i))
            if seconds and time.perf_counter() - begin > seconds:
                break
        self.examiner.close()

    def _next(self, i: int) -> bytes:
        pool = list(self.known.values())
        old = bool(pool) and self.rng.random() < 0.5
        data: bytes = (
            pool[int(self.rng.integers(len(pool)))] if old else self.mutants.draw_table(i)
        )
        if not old and self.rng.random() < 0.1:
            return data
        found: bytes = self.mutants.mutate(data, self.rng)
        return found[: 2**18]

    def examine(self, data: bytes) -> None:
        good, end = self.examiner(data)
        kind = _kind(end)
        self.ends[" ".join(kind.split()[:2]) if good else "found"] += 1
        if good and len(data) < len(self.known.get(kind, data + b"x")):
            self.known[kind] = data
        if not good and kind not in self.findings:
            name = hashlib.sha256(data).hexdigest()[:16]
            self.findings[kind] = _FOLDER / name
            self.findings[kind].write_bytes(data)
            print(f"\n{self.findings[kind]}:\n{end}", flush=True)


def _kind(end: str) -> str:
    """How it ended, by the first words, without names and numbers."""
    return " ".join(re.findall(r"[A-Za-z.]{2,}", re.sub(r"'[^']*'|\"[^\"]*\"", "", end))[:9])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=0, help="at most; 0: as long as it takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="renew the corpus in tests/fuzz")
    options = parser.parse_args()
    _FOLDER.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(options.seed)
    if (corpus.CORPORA / "tables.zip").exists():
        corpus.unpack("tables", _FOLDER / "corpus")
        for path in sorted((_FOLDER / "corpus").iterdir()):
            campaign.examine(path.read_bytes())
    campaign.run(options.runs, options.seconds)
    for end, count in sorted(campaign.ends.items()):
        print(f"{count:8d}  {end}")
    print(f"{len(campaign.known)} ways to end, {len(campaign.findings)} of them wrong")
    if options.keep and not campaign.findings:
        corpus.pack("tables", campaign.known.values())
    raise SystemExit(1 if campaign.findings else 0)


if __name__ == "__main__":
    main()
