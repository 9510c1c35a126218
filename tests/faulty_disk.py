"""Write files again and again on a disk that fails at every change in turn.

Run by `test_faults.py` as a program, with the library of `faulty_disk.c` loaded before all others.
Every attempt is a child that is forked once the libraries are there.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from isotone import bundle
from isotone.data.table import SUFFIXES, write_table
from isotone.export import write as export
from isotone.files import remove_leftovers
from isotone.report import write as report
from isotone.training.checkpoint import save_checkpoint
from networks import small

FAULTS = {"killed": 0, "cut short": -1, "full": errno.ENOSPC, "broken": errno.EIO}
OLD = b"what was there before"
BATCH = pa.record_batch({"x": [0.5 * k for k in range(5000)]})
_DONE, _REFUSED, _FAILED = 0, 3, 4
_MOST = 1000  # changes of one write


@dataclass(frozen=True)
class Attempt:
    """How a write ended that met a fault at one of its changes.

    Parameters
    ----------
    fault, n : which, and at which change
    end : "done", "killed", "OSError", or another error
    content : what the file is: "old", "new" or "damaged"
    beside : names of other files
    left : those of them that `remove_leftovers` leaves
    """

    fault: str
    n: int
    end: str
    content: str
    beside: list[str]
    left: list[str]


def writer(path: Path) -> Callable[[], object]:
    """Writes what the name of the file asks for."""
    frozen, name = small(), str(path)
    if name.endswith(tuple(SUFFIXES)):
        return lambda: write_table(path, BATCH.schema, [BATCH])
    match path.suffix:
        case ".isotone":
            return lambda: frozen.save(path)
        case ".pt":
            return lambda: save_checkpoint(path, "", {})
        case ".html":
            return lambda: report(frozen, path)
        case ".zip":
            return lambda: bundle.write(frozen, path, threshold=0.5, name="a", version="1")
        case suffix:
            return lambda: export(frozen, suffix[1:], path, check=False)


def attempts(path: Path) -> Iterator[Attempt]:
    """Every fault at every change, until a write has none left that could fail."""
    path.parent.mkdir()
    write = writer(path)
    if not path.name.endswith(tuple(SUFFIXES)):  # Arrow's threads would not survive a fork
        write()  # so that children need not load what it needs
    _run(write, path.parent, _MOST, 0)
    new = path.read_bytes()
    for fault, error in FAULTS.items():
        for n in range(_MOST):
            for file in path.parent.iterdir():
                file.unlink()
            path.write_bytes(OLD)
            end = _run(write, path.parent, n, error)
            known = {OLD: "old", new: "new"}
            content = known.get(path.read_bytes(), "damaged") if path.exists() else "missing"
            beside = _others(path)
            remove_leftovers(path)
            yield Attempt(fault, n, end, content, beside, _others(path))
            if end == "untouched":
                break


def _others(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir() if file != path)


def _run(write: Callable[[], object], folder: Path, n: int, error: int) -> str:
    """A child that writes; the fault is at change `n`. "untouched" if there are fewer."""
    child = os.fork()
    if child == 0:
        os._exit(_write(write, folder, n, error))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "killed"
    ends = {_DONE: "done", _REFUSED: "OSError", 1: "untouched"}
    return ends.get(os.WEXITSTATUS(status), "another error")


def _write(write: Callable[[], object], folder: Path, n: int, error: int) -> int:
    disk = ctypes.CDLL(None)
    disk.arm(os.fsencode(folder), ctypes.c_long(n), error)
    code = _DONE
    try:
        write()
    except OSError:
        code = _REFUSED
    except BaseException as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        code = _FAILED
    return 1 if code == _DONE and disk.changes() <= n else code


if __name__ == "__main__":
    below = Path(sys.argv[1]).resolve()
    found = {name: [asdict(one) for one in attempts(below / name / name)] for name in sys.argv[2:]}
    print(json.dumps(found))
