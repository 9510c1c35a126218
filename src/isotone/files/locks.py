"""Locks: one run at a time writes into a directory."""

from __future__ import annotations

import fcntl
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = ".isotone-lock"


@contextmanager
def sole_use(directory: Path) -> Iterator[None]:
    """Create a directory, unless it exists, and keep other runs out of it until the end.

    The lock belongs to the process: a killed process leaves no obstacle.
    """
    lock, file = directory / NAME, None
    with making(directory):
        try:
            file = _acquire(lock)
            yield
        finally:
            if file is not None:
                lock.unlink(missing_ok=True)
                os.close(file)


@contextmanager
def making(directory: Path) -> Iterator[None]:
    """Make a directory and those above it, and remove again those of them that stay empty."""
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for path in made:
            with suppress(OSError):  # it holds something
                path.rmdir()


def _acquire(lock: Path) -> int:
    while True:
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(file, 200).decode(errors="replace") or "another process"
            os.close(file)
            raise ValueError(
                f"{str(lock.parent)!r} is being written by {holder}; one run at a time may write "
                "there: wait until it ends, or choose another directory"
            ) from error
        if _is_there(lock, file):
            _refuse_other(lock, file)
            os.ftruncate(file, 0)
            os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
            return file
        os.close(file)  # its holder removed it in this moment


def _refuse_other(lock: Path, file: int) -> None:
    """Raise `ValueError` unless a file is empty, or what an earlier run wrote."""
    if not re.fullmatch(rb"|process \d+ on [^\n]+", content := os.pread(file, 1000, 0)):
        os.close(file)
        raise ValueError(
            f"{str(lock)!r} is not a lock of isotone (it begins with {content[:20]!r}); a file of "
            "that name would be lost: rename it, or choose another directory"
        )


def _is_there(lock: Path, file: int) -> bool:
    try:
        return os.path.samestat(lock.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
