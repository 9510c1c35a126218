"""The sample: collisions, signal and long-lived signal, made in shards.

    python -m studies.trigger.simulation.sample --size small --out results/trigger/sample

A sample that was interrupted goes on where it stopped: run the same command again. What it holds
depends on size, parameters and seed, not on the number of processes. Whoever changes the code of
the model takes a new directory, because finished shards are kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from studies.jobs import end_with_parent
from studies.trigger.simulation.generation.hadrons import Library
from studies.trigger.simulation.parameters import SIZES, Parameters, Plan
from studies.trigger.simulation.storage import load_library, read, write
from studies.trigger.simulation.tasks import (
    STRETCH,
    Task,
    collision_tasks,
    library_tasks,
    run,
    signal_tasks,
)

#: the tables of a sample
TABLES = ("collisions", *STRETCH, *(f"{name}-hadrons" for name in STRETCH))
Results = Iterable[tuple[Task, dict[str, pa.Table]]]
Runner = Callable[[Plan, list[Task], Library | None], Results]


def make(
    plan: Plan,
    directory: Path,
    runner: Runner,
    suffix: str = ".parquet",
    on_done: Callable[[float, float], None] = lambda done, total: None,
) -> dict[str, Path]:
    """Make what is missing of a sample; the path of each table.

    Parameters
    ----------
    on_done : called with the seconds of work done and in total, as estimated
    """
    shards = directory / "shards" / plan.key()
    first, second = library_tasks(plan) + collision_tasks(plan), signal_tasks(plan)
    total = sum(task.cost(plan.size.passes) for task in first + second)
    left = total

    def work(tasks: list[Task], library: Library | None) -> None:
        nonlocal left
        missing = [task for task in tasks if not _is_done(shards, task)]
        left -= sum(task.cost(plan.size.passes) for task in set(tasks) - set(missing))
        on_done(total - left, total)
        for task, tables in runner(plan, missing, library):
            for output in reversed(task.outputs):
                write(shards / task.file(output), tables[output])
            left -= task.cost(plan.size.passes)
            on_done(total - left, total)

    work(first, None)
    parts = (read(shards / task.file(task.kind)) for task in library_tasks(plan))
    work(second, load_library(*parts))
    return _merge(plan, directory, shards, first + second, suffix)


def _is_done(shards: Path, task: Task) -> bool:
    return all((shards / task.file(output)).exists() for output in task.outputs)


def _merge(
    plan: Plan, directory: Path, shards: Path, tasks: list[Task], suffix: str
) -> dict[str, Path]:
    """One file per table, in the order of the shards."""
    paths = {}
    for name in TABLES:
        files = [shards / task.file(name) for task in tasks if name in task.outputs]
        table = pa.concat_tables([read(file) for file in files]).combine_chunks()
        paths[name] = directory / f"{name}{suffix}"
        write(paths[name], table, plan.provenance())
    return paths


def in_processes(n: int) -> Runner:
    """Run tasks in this process, or in `n` others."""
    if n < 1:
        raise ValueError(f"`--processes` is {n}; it must be at least 1")

    def here(plan: Plan, tasks: list[Task], library: Library | None) -> Results:
        return ((task, run(plan, task, library)) for task in tasks)

    return here if n == 1 else lambda *arguments: _pooled(n, *arguments)


def _pooled(n: int, plan: Plan, tasks: list[Task], library: Library | None) -> Iterator[Any]:
    from concurrent.futures import ProcessPoolExecutor, as_completed

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n, mp_context=spawn, initializer=end_with_parent) as pool:
        futures = {pool.submit(run, plan, task, library): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def on_dask(client: Any) -> Runner:
    """Run tasks on a Dask cluster whose workers can import `studies.trigger`."""

    def there(plan: Plan, tasks: list[Task], library: Library | None) -> Results:
        from distributed import as_completed

        shared = library and client.scatter(library, broadcast=True, hash=False)
        futures = {
            client.submit(run, plan, task, shared, retries=3, pure=False): task for task in tasks
        }
        for future, tables in as_completed(futures, with_results=True):  # type: ignore[no-untyped-call]
            yield futures[future], tables

    return there


@contextmanager
def _runner(scheduler: str | None, processes: int) -> Iterator[Runner]:
    if scheduler is None:
        yield in_processes(processes)
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("`--scheduler` needs Dask; run: pip install '.[sweep]'") from error
    with Client(scheduler, timeout="20s") as client:  # type: ignore[no-untyped-call]
        yield on_dask(client)


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    plan = Plan(Parameters().changed(options.set), SIZES[options.size], options.seed)
    console = Console(stderr=True)
    columns = BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeElapsedColumn()
    with (
        _runner(options.scheduler, options.processes) as runner,
        Progress(*columns, TimeRemainingColumn(), console=console) as progress,
    ):
        bar = progress.add_task("sample", total=None)

        def show(done: float, total: float) -> None:
            progress.update(bar, completed=done, total=total)

        paths = make(plan, options.out, runner, f".{options.format}", show)
    for name, path in paths.items():
        print(f"{name:18s} {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="studies.trigger.simulation.sample", description="Make a sample."
    )
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--out", type=Path, default=Path("results/trigger/sample"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster")
    parser.add_argument("--format", choices=["parquet", "root"], default="parquet")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=NUMBER", help="change a parameter"
    )
    return parser


if __name__ == "__main__":
    main()
