"""Workers: processes of this machine, or those of a Dask scheduler that you name.

Processes that we start are reached through pipes only: nothing listens on a socket, so nobody
else on the machine can hand them work, and they end with the process that started them. Who may
use a Dask scheduler is up to whoever runs it: see the documentation of Dask about TLS.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from distributed import Client

_DEATHS = 3  # of processes, with nothing done in between, until we give up

Task = TypeVar("Task", bound=Hashable)
Shared = TypeVar("Shared")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Processes:
    """So many processes of this machine; with one, work is done in the present process."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"`--workers {self.n}` must be at least 1")


Workers: TypeAlias = "Processes | Client"


def run(
    workers: Workers,
    function: Callable[[Shared, Task], Result],
    shared: Shared,
    tasks: Iterable[Task],
) -> Iterator[tuple[Task, Result]]:
    """Every task, which must differ, with its result, in the order in which they end.

    The work of a process that dies is done by another. If the iteration is left early, by an
    exception or a signal, no process of ours is left.

    Parameters
    ----------
    workers : processes, or the client of a Dask cluster
    function : called with `shared`, which is sent once, and a task
    """
    if not isinstance(workers, Processes):
        return _on_dask(workers, function, shared, tasks)
    if workers.n == 1:
        return ((task, function(shared, task)) for task in tasks)
    return _in_processes(workers.n, function, shared, tasks)


def _on_dask(
    client: Client, function: Callable[..., Any], shared: Any, tasks: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    from distributed import as_completed as completed

    sent = client.scatter(shared, broadcast=True, hash=False)  # type: ignore[no-untyped-call]
    futures = {client.submit(function, sent, task, retries=3, pure=False): task for task in tasks}
    try:
        for future, result in completed(futures, with_results=True):  # type: ignore[no-untyped-call]
            yield futures[future], result
    finally:
        client.cancel(list(futures))  # type: ignore[no-untyped-call]


def _in_processes(
    n: int, function: Callable[..., Any], shared: Any, tasks: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    waiting, deaths = dict.fromkeys(tasks), 0
    while waiting:
        try:
            for task, result in _pooled(n, function, shared, list(waiting)):
                del waiting[task]
                deaths = 0
                yield task, result
        except BrokenProcessPool as error:
            deaths += 1
            if deaths == _DEATHS:
                raise ChildProcessError(
                    f"worker processes ended {deaths} times in a row, killed or crashed, with "
                    f"{len(waiting)} tasks left; each needs memory of its own: use fewer "
                    "`--workers`"
                ) from error


def _pooled(
    n: int, function: Callable[..., Any], shared: Any, tasks: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """Every task once, in processes that end when this ends, at the latest."""
    spawn = multiprocessing.get_context("spawn")
    theirs, ours = spawn.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(n, len(tasks)), spawn, _start, (theirs, function, shared))
    try:
        futures = {pool.submit(_run, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        ours.close()  # ends the processes
        pool.shutdown(cancel_futures=True)
        theirs.close()


_work: tuple[Callable[..., Any], Any]


def _start(lifeline: Connection, function: Callable[..., Any], shared: Any) -> None:
    """In every process: what to do, and with whom to end."""
    global _work
    _work = function, shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the business of the parent
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    """End this process as soon as the other end of a pipe is closed, for whatever reason.

    A process whose parent was killed would otherwise do what is queued, and then wait forever.
    """
    lifeline.poll(None)
    os._exit(1)


def _run(task: Any) -> Any:
    function, shared = _work
    return function(shared, task)
