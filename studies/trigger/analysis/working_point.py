"""The working point on the validation collisions of a sample."""

from __future__ import annotations

from typing import Any

from isotone.trigger import Exposure, WorkingPoint, best_scores
from isotone.trigger import choose as choose_by_rate
from isotone.typing import Floats
from studies.trigger.analysis.tables import Tables

MAX_RATE = 660e3  # Hz


def choose(scores: Floats, tables: Tables, max_rate: float = MAX_RATE) -> WorkingPoint:
    """The loosest threshold below the rate; passes of a collision are not independent.

    Parameters
    ----------
    scores : of all validation candidates of collisions
    """
    candidates = tables.collisions.validation
    best, first = best_scores(scores, candidates.event)
    return choose_by_rate(best, exposure(tables.about), max_rate, candidates.collision[first])


def exposure(about: dict[str, Any]) -> Exposure:
    """What the validation collisions, in all passes, stand for."""
    parameters = about["parameters"]
    n_events = n_validation(about) * int(about["size"]["passes"])
    return Exposure(n_events, parameters["crossing_rate"], parameters["pileup"])


def n_validation(about: dict[str, Any]) -> int:
    """Collisions whose number four divides."""
    return -(-int(about["size"]["collisions"]) // 4)
