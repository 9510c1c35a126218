"""Checkpoints: files from which a run resumes, if they belong to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from isotone.files import replacing


class CheckpointError(ValueError):
    """Why a run cannot resume from a checkpoint."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"checkpoint {str(path)!r} {reason}; resume with the same ones, or remove it to "
            "start over"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is sent from one process to another."""
        return type(self), (self.path, self.reason)


def save_checkpoint(path: Path, key: str, content: dict[str, Any]) -> None:
    """Write a dictionary of tensors, texts and numbers, whole or not at all.

    Parameters
    ----------
    key : what must be the same for a run to resume
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        torch.save(content | {"key": key}, file)  # by a file, whose errors name the disk


def load_checkpoint(path: Path, key: str) -> dict[str, Any]:
    """What was written with the same key; anything else raises `CheckpointError`."""
    try:
        content: dict[str, Any] = torch.load(path, weights_only=True)
        same = content["key"] == key
    except Exception as error:  # pickle, zip and torch raise almost anything for a foreign file
        raise CheckpointError(path, f"cannot be read ({error})") from error
    if not same:
        raise CheckpointError(path, "belongs to another run (other rows, network, loss or recipe)")
    return content
