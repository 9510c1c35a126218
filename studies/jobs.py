"""Jobs: what is to be computed, the longest first, by processes that are started once.

A job is some items, studies or cells, that are best computed one after another in one process:
they share data and programs. Every item keeps its own outcome, so that a run can be stopped at
any moment and goes on where it was. `seconds.json` holds about what an item takes, `python -m
studies --seconds` measures it anew; it decides the order and the time left, and nothing else.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS = Path(__file__).parent / "seconds.json"
_UNKNOWN = 5.0  # seconds of an item that was never measured


class Item(Hashable, Protocol):
    """A study, or a cell of a table."""

    def run(self) -> Any: ...


@dataclass(frozen=True)
class Job:
    """Items of one kind; `name` is that of the kind."""

    name: str
    items: tuple[Item, ...]

    def cost(self, seconds: dict[str, float]) -> float:
        """What is expected, in seconds of one processor."""
        return seconds.get(self.name, _UNKNOWN) * len(self.items)


@dataclass(frozen=True)
class Done:
    """What a job gave, and the seconds of the processor it took."""

    outcomes: dict[Item, Any]
    seconds: float


def run_jobs(jobs: Sequence[Job], n_processes: int, console: Console) -> dict[Job, Done]:
    """All jobs, with a bar; every process has one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the processes
    seconds = load_seconds()
    context = multiprocessing.get_context("spawn")
    ticks: SimpleQueue[float] = context.SimpleQueue()
    pool = ProcessPoolExecutor(n_processes, context, _start, (ticks,))
    order = sorted(jobs, key=lambda job: job.cost(seconds), reverse=True)
    found: dict[Job, Done] = {}
    with _bar(console) as bar:
        task = bar.add_task("", total=sum(job.cost(seconds) for job in jobs), n=0, of=len(jobs))
        futures: dict[Future[Done], Job] = {
            pool.submit(_run, job, job.cost(seconds) / len(job.items)): job for job in order
        }
        try:
            while len(found) < len(jobs):
                finished, _ = wait(set(futures), 0.5, FIRST_COMPLETED)
                for future in finished:
                    found[job := futures.pop(future)] = future.result()
                    console.print(f"{job.name}: {found[job].seconds:.1f} s", highlight=False)
                while not ticks.empty():
                    bar.advance(task, ticks.get())
                bar.update(task, n=len(found))
        finally:
            pool.shutdown(cancel_futures=True)
    return found


def _bar(console: Console) -> Progress:
    text = TextColumn("{task.fields[n]} of {task.fields[of]} jobs")
    columns = BarColumn(), text, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    return Progress(*columns, console=console, speed_estimate_period=300)


_ticks: SimpleQueue[float]


def _start(ticks: SimpleQueue[float]) -> None:
    """In every process: where it says that it is further by so many expected seconds."""
    global _ticks
    _ticks = ticks
    end_with_parent()


def end_with_parent() -> None:
    """End this process as soon as the one that started it is gone, however that ended.

    A worker whose parent was killed would otherwise do what is queued, and then wait forever.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(job: Job, tick: float) -> Done:
    start = time.process_time()
    outcomes = {}
    for item in job.items:
        try:
            outcomes[item] = item.run()
        except Exception as error:
            error.add_note(f"in {job.name}, {item}")
            raise
        _ticks.put(tick)
    return Done(outcomes, time.process_time() - start)


def load_seconds(path: Path = SECONDS) -> dict[str, float]:
    seconds: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    return seconds


def save_seconds(found: dict[Job, Done], path: Path = SECONDS) -> None:
    """Renew the seconds per item of what was run."""
    seconds = load_seconds(path)
    for job, done in found.items():
        seconds[job.name] = round(done.seconds / len(job.items), 2)
    path.write_text(json.dumps(seconds, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
