"""History: losses of every epoch, as training wrote them next to a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isotone.files.untrusted import read_json

NAME = "history.json"  # what `isotone train` writes beside model.isotone
_MODEL = "model.isotone"


def read_history(path: Path) -> dict[str, Any]:
    """The content of a history file; `ValueError` if it is not one."""
    try:
        history: dict[str, Any] = read_json(path)
        check_history(history)
    except ValueError as error:
        raise ValueError(
            f"{str(path)!r} is not a training history ({error}); give the history.json that "
            "`isotone train` wrote, or none"
        ) from error
    return history


def beside(model: Path, fingerprint: str) -> Path | None:
    """The history that `isotone train` wrote together with a model, if it is there."""
    path = model.parent / NAME
    if model.name != _MODEL or not path.is_file():
        return None
    return path if read_history(path).get("fingerprint", fingerprint) == fingerprint else None


def check_history(history: Mapping[str, Any]) -> dict[str, Any]:
    """Losses by epoch, averaged over members, and the best epochs."""
    try:
        training = np.array(history["training"], dtype=float)
        validation = np.array(history["validation"], dtype=float)
        best = [int(epoch) for epoch in history["best_epoch"]]
        seconds = float(history["seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the training history cannot be read ({error!r}); it must hold training, validation, "
            "best_epoch and seconds, as `History.to_dict` gives them"
        ) from error
    if training.ndim != 2 or len(validation) not in (0, len(training)):
        raise ValueError(
            f"the training history has losses of shape {training.shape} and {validation.shape}; "
            "both need a row per epoch and a column per member"
        )
    return {
        "training": training.mean(axis=1).tolist(),
        "validation": validation.mean(axis=1).tolist() if len(validation) else [],
        "members": training.shape[1],
        "best": best,
        "seconds": seconds,
    }
