"""Programs that die by SIGKILL at a chosen moment: before, during or after the n-th checkpoint.

A kill by the clock may come before the work or after it, and then a test shows nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess

MOMENTS = ("1 after", "1 during", "2 before", "2 after")

PRELUDE = """
import os, signal
import torch
from isotone.training import recipe as _recipe

_count, _moment = os.environ.get("KILL_AT", "0 never").split()
_left = [int(_count)]
_save_checkpoint, _save = _recipe.save_checkpoint, torch.save

def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def _write_half(content, file):
    _save(content, file)
    file.flush()
    os.truncate(file.fileno(), os.fstat(file.fileno()).st_size // 2)
    _die()

def _save_or_die(path, key, content):
    _left[0] -= 1
    if _left[0] == 0 and _moment == "before":
        _die()
    if _left[0] == 0 and _moment == "during":
        torch.save = _write_half
    _save_checkpoint(path, key, content)
    if _left[0] == 0:
        _die()

_recipe.save_checkpoint = _save_or_die
"""


def surroundings(moment: str | None) -> dict[str, str]:
    """The environment in which a program with the prelude dies at a moment, or never."""
    return os.environ | {"OMP_NUM_THREADS": "1"} | ({} if moment is None else {"KILL_AT": moment})


def expect_death(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
