"""Stops: thresholds that the page can move to, and what all rows of the table do at each.

Rows are counted when the report is written, so that the page can move its threshold without them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isotone.report.outcomes import Outcomes
from isotone.report.table.sample import Sample
from isotone.typing import Floats, Indices

N_STOPS = 100
_FINE = 2000  # stops are rounded to about this fraction of the range of the scores


def stops_of(outcomes: Outcomes, scores: Floats) -> Floats | None:
    """Round numbers among the scores, ascending, with the declared threshold; None without one.

    Half of them have equally many rows between them, the others are evenly spaced.
    """
    if outcomes.threshold is None:
        return None
    levels = np.linspace(0.0, 1.0, N_STOPS // 2)
    low, high = float(scores.min()), float(scores.max())
    spread = np.append(np.quantile(scores, levels), low + levels * (high - low))
    if high > low:
        unit = 10.0 ** math.floor(math.log10((high - low) / _FINE))
        spread = np.rint(spread / unit) * unit
    rounded = [float(f"{stop:.12g}") for stop in spread]
    return np.unique([*rounded, outcomes.threshold])


def describe_stops(
    outcomes: Outcomes, sample: Sample, scores: Floats, stops: Floats | None
) -> dict[str, Any] | None:
    """At every stop the weight of the rows that are accepted, by class if that is known."""
    if stops is None or outcomes.threshold is None:
        return None
    parts = {"all": np.ones(len(sample), bool)}
    if sample.y is not None:
        parts = {"positive": sample.y == 1, "negative": sample.y == 0}
    return {
        "at": stops.tolist(),
        "start": int(np.searchsorted(stops, outcomes.threshold)),
        "total": {name: float(sample.weight[rows].sum()) for name, rows in parts.items()},
        "accepted": {
            name: accepted(scores[rows], sample.weight[rows], stops).tolist()
            for name, rows in parts.items()
        },
    }


def accepted(scores: Floats, weight: Floats, stops: Floats) -> Floats:
    """Weight of the rows whose score is at least each stop, (n_stops,)."""
    n_below = np.searchsorted(stops, scores, side="right")  # stops that do not exceed the score
    by_row = np.bincount(n_below, weight, len(stops) + 1)
    return np.asarray(np.cumsum(by_row[::-1])[::-1][1:])


def by_stop(
    index: Indices, scores: Floats, weight: Floats, stops: Floats | None, n_bins: int
) -> dict[str, Any]:
    r"""What the share of accepted rows in every bin follows from, at every stop; {} without stops.

    `between[b][j]` is the weight of the rows of bin b whose score reaches exactly j stops, and
    `effective` the number of rows :math:`(\sum w)^2 / \sum w^2` that errors are of.

    Parameters
    ----------
    index : of the bin of every row, negative for none
    """
    if stops is None:
        return {}
    counts = (index >= 0) & (weight > 0)
    index, weight = index[counts], weight[counts]
    place = index * (len(stops) + 1) + np.searchsorted(stops, scores[counts], side="right")
    between = np.bincount(place, weight, n_bins * (len(stops) + 1)).reshape(n_bins, -1)
    squares = np.bincount(index, weight**2, n_bins)
    effective = between.sum(axis=1) ** 2 / np.where(squares > 0, squares, 1.0)
    return {
        "effective": [_brief(n) for n in effective],
        "between": [[_brief(total) for total in row] for row in between],
    }


def _brief(number: float) -> float:
    """Six digits; counts of rows as they are, and without a point."""
    return int(number) if number == int(number) else float(f"{number:.6g}")


def crossed(low: Floats, high: Floats, weight: Floats, stops: Floats) -> Floats:
    """Weight of the rows with low < stop ≤ high, which a move between both flips."""
    first, last = (np.searchsorted(stops, ends, side="right") for ends in (low, high))
    return covered(first, last, weight, len(stops))


def covered(first: Indices, last: Indices, weight: Floats, n: int) -> Floats:
    """Weight of the rows whose stops, from `first` to before `last`, include each of n."""
    change = np.bincount(first, weight, n + 1) - np.bincount(last, weight, n + 1)
    return np.asarray(np.maximum(np.cumsum(change)[:n], 0.0))
