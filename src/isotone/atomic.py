"""Files that appear whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def remove_leftovers(path: Path) -> None:
    """Remove what killed programs left beside `path` when they were replacing it."""
    for temporary in path.parent.glob(f"{glob.escape(path.name)}.????????.part"):
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place if all goes well, or else vanishes.

    Links are followed; a file that was there keeps its permissions.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {str(path.parent)!r}; make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory; name a file to write")
    path = path.resolve()
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink()
        raise
