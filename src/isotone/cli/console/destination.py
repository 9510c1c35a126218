"""Destination: what `--out` names, a model file or a directory for all results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from isotone.data.table import SUFFIXES
from isotone.files import remove_leftovers

MODEL = ".isotone"
_CHECKPOINTS = ".isotone-checkpoints"
_OF_MEMBER = re.compile(r"members-\d+")  # of one that a worker trains
# names that would mislead as those of directories
_FILES = (
    *(*SUFFIXES, MODEL, ".html", ".json", ".onnx", ".pt2", ".sql", ".txt"),
    *(".cpp", ".cu", ".cuh", ".h", ".hpp", ".v"),
)


@dataclass(frozen=True)
class Destination:
    """Where a command writes a model, and where what goes with it.

    Parameters
    ----------
    directory : for everything else; None if only the model was asked for
    """

    model: Path
    directory: Path | None

    @classmethod
    def of(cls, out: Path, name: str) -> Destination:
        """The file `out` if it ends in .isotone, else that directory with a model of that name."""
        if out.suffix.lower() == MODEL:
            if out.is_dir():
                raise ValueError(
                    f"`--out {out}` is a directory, but a name that ends in {MODEL} must be that "
                    "of a model file; choose another name, or rename the directory"
                )
            return cls(out, None)
        check_directory(out, f", or of a model, as {name}")
        return cls(out / name, out)

    def beside(self, *names: str) -> list[Path]:
        """Files of these names in the directory, if there is one."""
        return [] if self.directory is None else [self.directory / name for name in names]

    @property
    def room(self) -> Path:
        """The directory that one run at a time may write to."""
        return self.directory or self.checkpoints

    @property
    def checkpoints(self) -> Path:
        """A directory for what a killed run leaves, beside the model."""
        name = f".{self.model.name}-checkpoints" if self.directory is None else _CHECKPOINTS
        return self.model.parent / name


def check_directory(out: Path, also: str = "") -> None:
    """Refuse a file, and a new directory whose name is that of a file."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"`--out {out}` is a file; give the name of a directory{also}")
    if not out.exists() and out.name.lower().endswith(_FILES):
        raise ValueError(
            f"`--out {out}` is the name of a file, but a directory is written; give the name of a "
            f"directory, such as {out.name.split('.')[0] or 'results'}{also}"
        )


def checkpoint_files(directory: Path) -> list[Path]:
    """What a fit may leave there."""
    from isotone.estimators.fitting.search import CHECKPOINTS

    apart = sorted(path for path in directory.glob("members-*") if _OF_MEMBER.fullmatch(path.name))
    return [*(directory / name for name in ("scan", "members", *CHECKPOINTS)), *apart]


def remove_checkpoints(directory: Path) -> None:
    """Remove what earlier runs left there, and nothing else."""
    files = checkpoint_files(directory)
    for file in files:
        file.unlink(missing_ok=True)
    remove_leftovers(*files)
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()
