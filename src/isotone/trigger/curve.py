"""The rate curve: what efficiency a trigger has at every output rate that one might afford."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.trigger.efficiency import Efficiency, by_group
from isotone.trigger.working_point import Exposure, WorkingPoint, choose
from isotone.typing import Floats

FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the rate that is asked for


@dataclass(frozen=True, eq=False)
class RateCurve:
    """Working points, one for each of several allowed rates, and the signal that passes there.

    Parameters
    ----------
    max_rates : (n,), those allowed, in Hz, ascending
    points : (n,), the loosest threshold for each
    efficiency : of signal at these thresholds; `at` holds the rates of `points`
    """

    max_rates: Floats
    points: tuple[WorkingPoint, ...]
    efficiency: Efficiency

    @property
    def rates(self) -> Floats:
        """The rates at the thresholds, in Hz: at most those allowed."""
        return np.array([point.rate for point in self.points])

    @property
    def rate_errors(self) -> Floats:
        return np.array([point.rate_error for point in self.points])

    @property
    def thresholds(self) -> Floats:
        return np.array([point.threshold for point in self.points])


def rate_curve(
    best: Floats,
    signal: Floats,
    exposure: Exposure,
    max_rates: Sequence[float] | Floats,
    block: NDArray[Any] | None = None,
    weight: Floats | None = None,
    signal_weight: Floats | None = None,
) -> RateCurve:
    """The efficiency against the output rate.

    The points share their events, so that neighbors are strongly correlated.

    Parameters
    ----------
    best : the largest score of every background event with a candidate
    signal : that of every signal event
    max_rates : in Hz
    block, weight : as for `choose`
    signal_weight : of every signal event

    Examples
    --------
    >>> background, signal = np.array([0.1, 0.9, 0.5, 0.7]), np.array([0.2, 0.6, 0.8, 1.0])
    >>> curve = rate_curve(background, signal, Exposure(100, input_rate=1e6), [1e4, 3e4])
    >>> curve.rates.tolist(), curve.efficiency.value.tolist()
    ([10000.0, 30000.0], [0.5, 1.0])
    """
    allowed = np.unique(np.asarray(max_rates, dtype=float))
    points = tuple(choose(best, exposure, rate, block, weight) for rate in allowed.tolist())
    rates = np.array([point.rate for point in points])
    if signal_weight is None:
        ranked = np.sort(signal)
        thresholds = [point.threshold for point in points]
        n_passed = len(signal) - np.searchsorted(ranked, thresholds, side="left")
        n = np.full(len(points), len(signal))
        return RateCurve(allowed, points, Efficiency(rates, n, n_passed.astype(np.int64)))
    alone = np.zeros(len(signal))
    each = [by_group(signal >= point.threshold, alone, signal_weight) for point in points]
    n = np.array([e.n[0] for e in each], dtype=np.int64)
    n_passed = np.array([e.n_passed[0] for e in each], dtype=np.int64)
    sums = np.concatenate(
        [np.empty((4, 0)), *(e.sums for e in each if e.sums is not None)], axis=1
    )
    return RateCurve(allowed, points, Efficiency(rates, n, n_passed, sums))


def usual_rates(rate: float, exposure: Exposure) -> Floats:
    """Rates around one, from an eighth to four times it, as far as the sample can tell."""
    rates = rate * np.array(FACTORS)
    known = [r for r in rates.tolist() if 0 < r < exposure.input_rate]
    return np.array([r for r in known if exposure.n_allowed(r) > 0])
