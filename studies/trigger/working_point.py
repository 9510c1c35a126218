"""The working point: the loosest threshold whose output rate the experiment can afford."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.trigger.parameters import Floats, Ints
from studies.trigger.tables import Tables

MAX_RATE = 660e3  # Hz


@dataclass(frozen=True)
class WorkingPoint:
    """A candidate passes if its score exceeds `threshold`; rates in Hz."""

    threshold: float
    rate: float
    rate_error: float


def allowed_fraction(max_rate: float, crossing_rate: float, pileup: float) -> float:
    r"""The fraction f of collisions that may pass.

    A crossing holds a Poisson number of collisions with mean µ, so
    :math:`P = 1 - e^{-\mu f}` and :math:`f = -\ln(1 - P) / \mu`.
    """
    share = max_rate / crossing_rate
    if not 0 < share < 1:
        raise ValueError(
            f"`max_rate={max_rate}` must be below the {crossing_rate} Hz of crossings"
        )
    return -math.log1p(-share) / pileup


def choose(scores: Floats, tables: Tables, max_rate: float = MAX_RATE) -> WorkingPoint:
    """The working point on the validation collisions.

    Parameters
    ----------
    scores : of all validation candidates of collisions
    """
    about, candidates = tables.about["parameters"], tables.collisions.validation
    pileup, crossings = about["pileup"], about["crossing_rate"]
    n = n_validation(tables.about) * tables.about["size"]["passes"]
    _, event = np.unique(candidates.event, return_inverse=True)
    best = np.full(event.max() + 1, -np.inf)
    np.maximum.at(best, event, scores)
    n_allowed = int(allowed_fraction(max_rate, crossings, pileup) * n)
    threshold = float(np.sort(best)[::-1][min(n_allowed, len(best) - 1)])
    passed = np.zeros(len(best), dtype=bool)
    passed[best > threshold] = True
    fraction, error = _fraction(passed, event, candidates.collision, n)
    rate = crossings * -math.expm1(-pileup * fraction)
    return WorkingPoint(threshold, rate, crossings * pileup * error)


def n_validation(about: dict[str, Any]) -> int:
    """Collisions whose number four divides."""
    return -(-int(about["size"]["collisions"]) // 4)


def _fraction(passed: Any, event: Ints, collision: Ints, n: int) -> tuple[float, float]:
    """Passed over all, and the error that a bootstrap of collisions would give."""
    first = np.unique(event, return_index=True)[1]
    per_collision = np.bincount(np.unique(collision[first], return_inverse=True)[1], passed)
    return float(passed.sum() / n), float(np.sqrt((per_collision**2).sum()) / n)
