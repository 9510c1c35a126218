"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Whoever writes such a file holds a lock on it, which ends with the process.
_PART = re.compile(r"(.+)\.[0-9a-f]{8,16}\.part", re.DOTALL)


def remove_leftovers(*paths: Path) -> None:
    """Remove what killed programs left next to `paths` when they were replacing them.

    What a running program writes is left alone.
    """
    names: defaultdict[Path, set[str]] = defaultdict(set)
    for path in (path.resolve() for path in paths):
        names[path.parent].add(path.name)
    for folder in filter(Path.is_dir, names):
        for name in _parts_in(folder):
            part = _PART.fullmatch(name)
            if part and part[1] in names[folder]:
                _remove_unlocked(folder / name)


def _parts_in(folder: Path) -> list[str]:
    """Names of what looks like a temporary file, quickly: a folder may hold many others."""
    try:
        return [name for name in os.listdir(folder) if name.endswith(".part")]  # noqa: PTH208
    except PermissionError:  # a folder that we may write into, but not look into
        return []


def refuse_overwriting(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise `ValueError` if a file to write is one of those to read, under whatever name.

    That is what a link, symbolic or hard, makes of it.
    """
    read = {_identity(path): path for path in inputs if path.exists()}
    for path in outputs:
        if path.exists() and _identity(path) in read:
            other = read[_identity(path)]
            also = "" if other == path else f", as {str(other)!r}"
            raise ValueError(
                f"`--out` would replace {str(path)!r}, which is read{also}; outputs must not be "
                "inputs: choose another name"
            )


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def write_whole(path: str | Path, content: str | bytes) -> int:
    """Write a file, whole or not at all, text in UTF-8; returns the number of bytes."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(Path(path)) as temporary:
        return temporary.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file next to `path` that takes its place if all goes well, or else vanishes.

    What killed programs left when they were replacing `path` vanishes too. Links are followed. A
    file that was there keeps its permissions, and the temporary file never grants others more than
    they allow; a new file has those that the umask gives.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {str(path.parent)!r}; create it first")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory; name a file to write")
    path = path.resolve()
    found = path.stat() if path.exists() else None
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{str(path)!r} is a device or a pipe; name a regular file to write")
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    remove_leftovers(path)
    try:
        with _locked(temporary, found):
            yield temporary
            _sync(temporary)
            if found is not None:
                temporary.chmod(_mode(found, temporary.stat().st_gid))
            temporary.replace(path)
        _sync(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _locked(temporary: Path, found: os.stat_result | None) -> Iterator[None]:
    """Make a file and hold a lock on it."""
    file = _create(temporary, found)
    try:
        yield
    finally:
        os.close(file)


def _create(temporary: Path, found: os.stat_result | None) -> int:
    while True:
        # Arrow, torch and others open it again, so the owner must be able to write.
        mode = 0o666 if found is None else 0o600
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if found is not None:
            with suppress(PermissionError):
                os.fchown(file, -1, found.st_gid)
            os.fchmod(file, _mode(found, os.fstat(file).st_gid) & 0o777 | 0o600)
        if temporary.exists():  # nobody took it for a leftover before it was locked
            return file
        os.close(file)


def _mode(found: os.stat_result, group: int) -> int:
    """Permissions of the file that was there; a group that it did not have gets none."""
    mode = stat.S_IMODE(found.st_mode)
    return mode if group == found.st_gid else mode & ~0o070


def _sync(path: Path) -> None:
    """Bring a file, or the names in a directory, to the disk."""
    try:
        file = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder that we may write into, but not look into
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # no such thing for this directory
            raise
    finally:
        os.close(file)


def _remove_unlocked(temporary: Path) -> None:
    try:
        file = os.open(temporary, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:  # it is gone, or somebody else's
        return
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):  # a pipe is none of ours
            return
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink(missing_ok=True)
    except OSError:  # it is being written
        pass
    finally:
        os.close(file)
