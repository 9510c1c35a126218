"""Dask clusters of real processes, for tests that kill some of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

QUIET = os.environ | {"OMP_NUM_THREADS": "1"}


def start(*words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=QUIET
    )


@contextmanager
def cluster(folder: Path, n_workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real scheduler and workers on loopback, which end with the test."""
    file = folder / "scheduler.json"
    processes = [
        start(
            *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", 0),
            *("--dashboard-address", "127.0.0.1:0", "--scheduler-file", file),
        )
    ]
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(n_workers):
            processes.append(
                start(
                    *("distributed.cli.dask_worker", "--scheduler-file", file, "--nthreads", 1),
                    *("--dashboard-address", "127.0.0.1:0", "--no-nanny", "--host", "127.0.0.1"),
                    *("--local-directory", folder),
                )
            )
        with Client(scheduler_file=str(file), timeout=60) as client:
            client.wait_for_workers(n_workers, timeout=60)
            address = client.scheduler.address
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()
