"""Dask clusters of real processes, for tests that kill some of them; reached through TLS only."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import Client
from distributed.security import Security

QUIET = os.environ | {"OMP_NUM_THREADS": "1"}
CLOSED = {  # the web pages of schedulers and workers, which have no password
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


def start(*words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", *map(str, words)]
    closed = {
        f"DASK_{name.replace('.', '__').upper()}": str(value) for name, value in CLOSED.items()
    }
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=QUIET | closed
    )


def credentials(folder: Path) -> dict[str, Path]:
    """Files of a certificate made for one test: the authority, the certificate and the key."""
    made = Security.temporary()  # type: ignore[no-untyped-call]
    texts = {"ca-file": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    files = {name: folder / f"{name}.pem" for name in texts}
    for name, file in files.items():
        file.touch(mode=0o600)
        file.write_text(texts[name])
    return files


@contextmanager
def cluster(folder: Path, n_workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real scheduler and workers on loopback, which end with the test.

    Within the block, clients of this process have the credentials.
    """
    file, files = folder / "scheduler.json", credentials(folder)
    tls = [word for name, path in files.items() for word in (f"--tls-{name}", path)]
    common = [*tls, "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    processes = [
        start(
            *("distributed.cli.dask_scheduler", *common, "--protocol", "tls", "--port", 0),
            *("--scheduler-file", file),
        )
    ]
    settings = {"distributed.comm.tls.ca-file": str(files["ca-file"])} | {
        f"distributed.comm.tls.client.{name}": str(files[name]) for name in ("cert", "key")
    }
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(n_workers):
            processes.append(
                start(
                    *("distributed.cli.dask_worker", *common, "--scheduler-file", file),
                    *("--nthreads", 1, "--no-nanny", "--local-directory", folder),
                )
            )
        with dask.config.set(settings):
            with Client(scheduler_file=str(file), timeout=60) as client:
                client.wait_for_workers(n_workers, timeout=60)
                address = client.scheduler.address
            yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()
