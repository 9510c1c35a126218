"""Levels: which differences between two tables are fine, worth a warning, or an alarm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from isotone.trigger.efficiency import Efficiency

Level = Literal["fine", "warning", "alarm"]
Mark = tuple[Level, str]  # how bad, and what
ORDER: tuple[Level, ...] = ("fine", "warning", "alarm")
DEVIATIONS = 3.0  # beyond which a difference is not chance
_WARNING = 0.4  # of a level


@dataclass(frozen=True)
class Levels:
    """From where on there is an alarm; a warning from 0.4 of it on.

    Differences that chance alone explains for this number of rows do not count.

    Parameters
    ----------
    psi : population stability index of a column, or of the score
    decisions : change of the share of accepted rows, or of a class, relative to the reference
    missing : rise of the share of rows in which a value is missing, or unseen
    """

    psi: float = 0.25
    decisions: float = 0.1
    missing: float = 0.01

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"`{name}={value}` must be positive and finite; choose another")

    def judge(self, name: str, value: float) -> Level:
        """What a value of `psi`, `decisions` or `missing` means."""
        limit = getattr(self, name)
        return "alarm" if value >= limit else "warning" if value >= _WARNING * limit else "fine"


@dataclass(frozen=True)
class Share:
    """A share of rows in the reference and in the new table, and its change, with errors."""

    reference: float
    new: float
    change: float
    error: float

    @classmethod
    def of(cls, k: int, n: int, new_k: int, new_n: int) -> Share:
        """k of n rows; errors are widths of posteriors with a flat prior."""
        found = Efficiency(np.arange(2), np.array([n, new_n]), np.array([k, new_k]))
        value = np.nan_to_num(found.value)
        error = math.hypot(*found.error.tolist())
        return cls(float(value[0]), float(value[1]), float(value[1] - value[0]), error)

    @property
    def is_chance(self) -> bool:
        return abs(self.change) <= DEVIATIONS * self.error


def worst(marks: Iterable[Mark]) -> Level:
    """The worst of several levels, fine if there are none."""
    return ORDER[max((ORDER.index(level) for level, _ in marks), default=0)]


def worst_first(marks: Iterable[Mark]) -> tuple[str, ...]:
    """What marks say."""
    return tuple(text for _, text in sorted(marks, key=lambda mark: -ORDER.index(mark[0])))
