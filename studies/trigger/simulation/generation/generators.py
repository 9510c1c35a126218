"""Generators: Pythia 8 for collisions, hadrons, decays and nuclei, quiet and seeded.

A generator is made anew for every shard, so that what a shard holds depends on its seed alone. It
starts with a fixed seed and gets its own afterwards: integrals of the start are then the same in
all shards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_START = 1234567


def pythia(settings: Iterable[str], seed: int) -> Any:
    """A Pythia generator with these settings."""
    module = _module()
    generator = module.Pythia(str(_share() / "xmldoc"), False)
    for line in ("Print:quiet = on", "Random:setSeed = on", f"Random:seed = {_START}", *settings):
        if not generator.readString(line):
            raise ValueError(f"Pythia does not know the setting {line!r}; correct it")
    if not generator.init():
        raise RuntimeError(f"Pythia does not start with {list(settings)}; correct the settings")
    generator.rndm.init(seed)
    return generator


def cascade(seed: int) -> Any:
    """Collisions of hadrons with nuclei, above 0.3 GeV; short-lived particles decay at once."""
    with _silence():
        generator = _module().PythiaCascade()
        start = str(_share() / "setups" / "InitDefaultMPI.cmnd")
        if not generator.init(0.3, 0.5, start, True, 1e-10, False, True):
            raise RuntimeError(
                f"Pythia's cascade does not start from {start}; reinstall pythia8mc"
            )
    generator.rndm().init(seed)
    return generator


def seed_of(rng: Any) -> int:
    """A seed that Pythia accepts."""
    return int(rng.integers(1, 900_000_000))


def _module() -> Any:
    try:
        import pythia8mc
    except ImportError as error:
        raise ImportError(
            "making a sample needs Pythia 8; run: pip install '.[trigger]'"
        ) from error
    return pythia8mc


def _share() -> Path:
    """The data files of the wheel: in a virtual environment, or beside a `--target` install."""
    beside = Path(_module().__file__).parent
    for root in (Path(sys.prefix), *beside.parents[:4], beside):
        if (root / "share" / "Pythia8" / "xmldoc").is_dir():
            return root / "share" / "Pythia8"
    raise FileNotFoundError(
        f"no share/Pythia8 above {str(beside)!r}; install pythia8mc in a virtual environment"
    )


@contextmanager
def _silence() -> Iterator[None]:
    """No banner: the cascade prints one from C++, which only the file descriptor stops."""
    sys.stdout.flush()
    saved = os.dup(1)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
