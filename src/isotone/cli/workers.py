"""The workers that a command runs on: processes of its own, or a Dask scheduler that is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isotone.extras import lacking
from isotone.workers import Processes, Workers

if TYPE_CHECKING:
    from distributed import Client


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
