"""Workers: processes of this machine, or those of a Dask scheduler that you name.

Processes that we start are reached through pipes only: nothing listens on a socket, so nobody
else on the machine can hand them work, and they end with the process that started them. Who may
use a Dask scheduler is up to whoever runs it: see the documentation of Dask about TLS.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import secrets
import signal
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.connection import Connection
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

from isotone.extras import lacking

if TYPE_CHECKING:
    from distributed import Client

_ATTEMPTS = 3  # with nothing done, until we give up
_SPAWN = multiprocessing.get_context("spawn")

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


ALONE = Processes(1)
Workers: TypeAlias = "Processes | Client"


@contextmanager
def run(
    workers: Workers,
    function: Callable[[Shared, Task], Result],
    shared: Shared,
    tasks: Iterable[Task],
) -> Iterator[Iterator[tuple[Task, Result]]]:
    """Every task with its result, in the order in which they finish; tasks must differ.

    The work of a process that dies is done by another. When the block is left, even early, by an
    exception or a signal, no process of ours is left.

    Parameters
    ----------
    workers : processes, or the client of a Dask cluster
    function : called with `shared`, which is sent once, and a task
    """
    with closing(_results(workers, function, shared, tasks)) as results:
        yield results


@contextmanager
def hearing(
    workers: Workers, on_news: Callable[[Any], object]
) -> Iterator[Callable[[Any], object]]:
    """What tasks call to tell small news; hand it to them in what `run` shares.

    On Dask, a task that nobody waits for any more ends with `CancelledError` when it calls this.

    Parameters
    ----------
    on_news : called with what a task tells, numbers or texts in tuples, by another thread
    """
    if workers == ALONE:
        yield on_news
    elif isinstance(workers, Processes):
        ours, theirs = _SPAWN.Pipe(duplex=False)
        listener = threading.Thread(target=_listen, args=(ours, on_news), daemon=True)
        listener.start()
        try:
            yield theirs.send  # short ones arrive whole, so that no lock can be left behind
        finally:
            theirs.close()
            listener.join()
            ours.close()
    else:
        topic = f"isotone-{secrets.token_hex(8)}"
        workers.subscribe_topic(topic, lambda event: on_news(event[1]))  # type: ignore[no-untyped-call]
        try:
            yield _Topic(topic)
        finally:
            workers.unsubscribe_topic(topic)  # type: ignore[no-untyped-call]


def _listen(ours: Connection, on_news: Callable[[Any], object]) -> None:
    """Pass news on until nobody is left who could tell some."""
    with suppress(EOFError):
        while True:
            on_news(ours.recv())


@dataclass(frozen=True)
class _Topic:
    """News of a task on Dask."""

    name: str

    def __call__(self, news: Any) -> None:
        from distributed import CancelledError, get_worker

        worker = get_worker()
        task = worker.state.tasks.get(worker.get_current_task())
        if task is None or task.state == "cancelled":
            raise CancelledError("no one is waiting for this task any longer")
        worker.log_event(self.name, news)


def workers_from(value: Any) -> Any:
    """Workers as a user names them: a number of processes, or the client of a Dask cluster."""
    if value is None:
        return ALONE
    if isinstance(value, int) and not isinstance(value, bool):
        return Processes(value)
    if isinstance(value, Processes) or (hasattr(value, "scatter") and hasattr(value, "submit")):
        return value
    raise TypeError(
        f"`workers={value!r:.100}` must be a number of processes, or a dask.distributed.Client; "
        "give 4, for example"
    )


@contextmanager
def workers_of(scheduler: str | None, n: int) -> Iterator[Workers]:
    """So many processes, or a client of the given scheduler."""
    if scheduler is None:
        yield Processes(n)
        return
    with _connect(scheduler) as client:
        yield client


def _connect(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(lacking("`--scheduler`", "Dask", "sweep")) from error
    try:
        return Client(address, timeout="20s")  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ValueError(
            f"no Dask scheduler answers at `--scheduler {address}` ({error}); start one with "
            "`dask scheduler`, or leave the option out to run on this machine"
        ) from error


def _results(
    workers: Workers, function: Callable[..., Any], shared: Any, tasks: Iterable[Any]
) -> Generator[tuple[Any, Any]]:
    if workers == ALONE:
        yield from ((task, function(shared, task)) for task in tasks)
        return
    waiting, failures = dict.fromkeys(tasks), 0
    while waiting:
        n_before = len(waiting)
        attempt = _in_processes if isinstance(workers, Processes) else _on_dask
        with closing(attempt(workers, function, shared, list(waiting))) as results:
            for task, result in results:
                del waiting[task]
                yield task, result
        failures = failures + 1 if len(waiting) == n_before else 0
        if failures == _ATTEMPTS:
            raise ChildProcessError(
                f"workers ended {failures} times in a row, killed or crashed, with "
                f"{len(waiting)} tasks left; each needs memory of its own: use fewer `--workers`"
            )


def _on_dask(
    client: Any, function: Callable[..., Any], shared: Any, tasks: list[Any]
) -> Generator[tuple[Any, Any]]:
    """Tasks once each, but for those that the scheduler loses together with a worker."""
    from distributed import CancelledError
    from distributed import as_completed as completed

    sent = client.scatter(shared, broadcast=True, hash=False)
    futures = {client.submit(function, sent, task, retries=3, pure=False): task for task in tasks}
    try:
        for future, result in completed(futures, with_results=True):  # type: ignore[no-untyped-call]
            if not isinstance(result, CancelledError):
                yield futures[future], result
    finally:
        client.cancel(list(futures))


def _in_processes(
    processes: Any, function: Callable[..., Any], shared: Any, tasks: list[Any]
) -> Generator[tuple[Any, Any]]:
    """Tasks once each, until a process dies; all processes end when this ends, at the latest."""
    theirs, ours = _SPAWN.Pipe(duplex=False)
    n = min(processes.n, len(tasks))
    with TemporaryFile() as file:
        parcel = _Parcel((function, shared), file)
        given: Any = theirs, parcel  # which is what it holds once it has arrived
        pool = ProcessPoolExecutor(n, _SPAWN, _start, given)
        yield from _finish(pool, tasks, theirs, ours)


def _finish(
    pool: ProcessPoolExecutor, tasks: list[Any], theirs: Connection, ours: Connection
) -> Generator[tuple[Any, Any]]:
    """Tasks with their results as they come; then the processes end, by a pipe that is closed."""
    try:
        futures = {pool.submit(_run, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        return
    finally:
        ours.close()  # ends the processes
        pool.shutdown(cancel_futures=True)
        theirs.close()


class _Parcel:
    """Anything, for processes to unpack once they run; it lies in a file without a name.

    What processes are started with must be small: it goes through a pipe, on which a parent would
    wait forever for a process that has died.
    """

    def __init__(self, content: Any, file: IO[bytes]) -> None:
        self.pipes: list[Connection] = []  # can only be given to a process when it is started
        self.file = file.fileno()
        pickler = pickle.Pickler(file)
        pickler.persistent_id = self._number  # type: ignore[method-assign]
        pickler.dump(content)
        file.flush()
        self.size = file.tell()

    def _number(self, part: Any) -> int | None:
        if not isinstance(part, Connection):
            return None
        self.pipes.append(part)
        return len(self.pipes) - 1

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpack, (reduction.DupFd(self.file), self.size, self.pipes)


def _unpack(file: Any, size: int, pipes: list[Connection]) -> Any:
    found = file.detach()
    try:
        unpickler = pickle.Unpickler(io.BytesIO(_read_all(found, size)))
    finally:
        os.close(found)
    unpickler.persistent_load = pipes.__getitem__  # type: ignore[method-assign]
    return unpickler.load()


def _read_all(file: int, size: int) -> bytes:
    """All of a file whose position others share."""
    parts, done = [], 0
    while done < size:
        parts.append(os.pread(file, size - done, done))
        done += len(parts[-1])
    return b"".join(parts)


_work: tuple[Callable[..., Any], Any]


def _start(lifeline: Connection, work: tuple[Callable[..., Any], Any]) -> None:
    """In every process: what to do, and with whom to end."""
    global _work
    _work = work
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
