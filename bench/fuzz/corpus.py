"""Corpora: inputs that reach every part of a program, one archive for each."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path

CORPORA = Path(__file__).parents[2] / "tests" / "fuzz"
_DATE = (1980, 1, 1, 0, 0, 0)  # the same inputs make the same archive


def unpack(name: str, folder: Path) -> None:
    """Write the inputs of a corpus into a folder, each into a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(CORPORA / f"{name}.zip") as archive:
        for entry in archive.namelist():
            (folder / Path(entry).name).write_bytes(archive.read(entry))


def pack(name: str, inputs: Iterable[bytes]) -> None:
    """Make inputs a corpus, named by what they are."""
    found = {hashlib.sha256(data).hexdigest()[:16]: data for data in inputs}
    with zipfile.ZipFile(CORPORA / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for key in sorted(found):
            archive.writestr(zipfile.ZipInfo(key, _DATE), found[key], zipfile.ZIP_DEFLATED)
