"""The threshold of decisions, as commands are given it: a number, or a working point in a file."""

from __future__ import annotations

from pathlib import Path

from isotone.frozen.network import FrozenNetwork
from isotone.trigger.record import read_point


def threshold_of(
    frozen: FrozenNetwork, threshold: float | None, point: Path | None
) -> float | None:
    """What `--threshold` or `--point` gives; a point must be one of this model."""
    if point is None:
        return threshold
    if threshold is not None:
        raise ValueError("`--threshold` and `--point` both give a threshold; give one of them")
    found = read_point(point)
    found.check(frozen)
    return found.threshold
