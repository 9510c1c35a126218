"""The Dask cluster that a command runs on: one of its own, or a scheduler that is there."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client

# Errors of tasks reach the client. What is left to log is a heartbeat at the moment of the end.
_LOGGING_OF_WORKERS = "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED"


@contextmanager
def cluster(address: str | None, workers: int) -> Iterator[Client]:
    """A client of the given scheduler, or of a local cluster that ends with the command."""
    if workers < 1:
        raise ValueError(f"`--workers {workers}` must be at least 1")
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError("this needs Dask; run: pip install 'isotone[sweep]'") from error
    if address is not None:
        with _connect(address) as client:
            yield client
        return
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with dask.config.set({_LOGGING_OF_WORKERS: "critical"}):
        local = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        )
    with local, Client(local) as client:  # type: ignore[no-untyped-call]
        yield client


def _connect(address: str) -> Client:
    from distributed import Client

    try:
        return Client(address, timeout="20s")  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ValueError(
            f"no Dask scheduler answers at `--scheduler {address}` ({error}); start one with "
            "`dask scheduler`, or leave the option out to run on this machine"
        ) from error
