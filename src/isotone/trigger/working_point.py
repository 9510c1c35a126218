"""The working point of a trigger: the loosest threshold whose output rate can be afforded.

An event passes if the score of any of its candidates is at least the threshold, as everywhere in
this library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.typing import Floats, Indices


@dataclass(frozen=True)
class Exposure:
    r"""What a sample of background stands for.

    Parameters
    ----------
    n_events : number examined, including those without a candidate
    input_rate : of crossings, in Hz
    pileup : mean number µ of such events in a crossing, if a sample is of single collisions; None
        if an event is a crossing

    With the fraction f of events that pass, the output rate is :math:`R f`, and with pile-up

    .. math:: R\,\bigl(1 - e^{-\mu f}\bigr)

    since the number of collisions in a crossing is a Poisson number.

    Examples
    --------
    >>> Exposure(n_events=60_000, input_rate=30e6, pileup=5.24).n_allowed(660e3)
    254
    """

    n_events: int
    input_rate: float
    pileup: float | None = None

    def __post_init__(self) -> None:
        for name in ("n_events", "input_rate", "pileup"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"`{name}={value}` must be positive and finite")

    def rate(self, n_passed: float) -> float:
        """The output rate in Hz if this many events pass."""
        fraction = n_passed / self.n_events
        if self.pileup is None:
            return self.input_rate * fraction
        return self.input_rate * -math.expm1(-self.pileup * fraction)

    def limit(self, together: float = 1.0) -> float:
        r"""The output rate that is excluded with 95 % confidence if no event passes.

        With n independent events the fraction f that passes is at most

        .. math:: 1 - 0.05^{1/n}

        since with a larger one no event passes in fewer than 5 % of such samples.

        Parameters
        ----------
        together : how many events, or which weight, may pass at once; n is that much smaller

        Examples
        --------
        >>> round(Exposure(n_events=1000, input_rate=30e6).limit())
        89737
        """
        fraction = -math.expm1(math.log(0.05) * together / self.n_events)
        return self.rate(fraction * self.n_events)

    def n_allowed(self, max_rate: float) -> int:
        """The largest number of events that may pass without exceeding the output rate."""
        return int(self.allowed_fraction(max_rate) * self.n_events)

    def allowed_fraction(self, max_rate: float) -> float:
        """Which fraction of the events may pass."""
        share = max_rate / self.input_rate
        if not 0 < share < 1:
            raise ValueError(
                f"`max_rate={max_rate:g}` must lie between 0 and the input rate, "
                f"{self.input_rate:g} Hz; choose another"
            )
        return share if self.pileup is None else -math.log1p(-share) / self.pileup

    def error(self, n_passed: float, error: float) -> float:
        """The error of the output rate that comes from one of the number of passed events."""
        if self.pileup is None:
            return self.input_rate * error / self.n_events
        slope = self.pileup * math.exp(-self.pileup * n_passed / self.n_events)
        return self.input_rate * slope * error / self.n_events


@dataclass(frozen=True)
class WorkingPoint:
    """A candidate passes if its score is at least `threshold`; rates in Hz.

    `rate_limit` is an upper limit with 95 % confidence where no event with a weight passes, and
    None elsewhere.

    Compare in float64: rounded to float32, the threshold may let events pass that must not.
    """

    threshold: float
    rate: float
    rate_error: float
    n_passed: int
    rate_limit: float | None = None


def choose(
    best: Floats,
    exposure: Exposure,
    max_rate: float,
    block: NDArray[Any] | None = None,
    weight: Floats | None = None,
) -> WorkingPoint:
    """The loosest threshold with an output rate of at most `max_rate`.

    Events of one score pass together or not at all: with ties fewer pass than the rate allows.

    Parameters
    ----------
    best : the largest score of every background event that has a candidate, see `best_scores`
    max_rate : in Hz
    block : what every event belongs to, such as the collision that several passes share; events
        of one block are not independent, and the error is that of a bootstrap of blocks
    weight : of every event, in units of those that the exposure counts; some may be negative, and
        then no tighter threshold exceeds the rate either

    Examples
    --------
    >>> point = choose(np.array([0.1, 0.9, 0.5, 0.7]), Exposure(100, input_rate=1e6), 2e4)
    >>> point.threshold, point.rate, point.n_passed
    (0.5000000000000001, 20000.0, 2)
    """
    _check(best, exposure, weight)
    if weight is not None:
        allowed = exposure.allowed_fraction(max_rate) * exposure.n_events
        return at_threshold(best, exposure, _loosest(best, weight, allowed), block, weight)
    n_allowed = exposure.n_allowed(max_rate)
    if n_allowed == 0:
        raise ValueError(
            f"`max_rate={max_rate:g}` allows less than one of {exposure.n_events} events; give a "
            "larger sample, or allow a larger rate"
        )
    ranked = np.sort(best)[::-1]
    # the first that must not pass, and all that tie with it, are just below
    loosest = np.nextafter(ranked[n_allowed], np.inf) if n_allowed < len(ranked) else ranked[-1]
    return at_threshold(best, exposure, float(loosest), block)


def _loosest(best: Floats, weight: Floats, allowed: float) -> float:
    """The loosest threshold at which, and above which, no more than this weight passes."""
    values, place = np.unique(-best, return_inverse=True)  # from the tightest
    passed = np.cumsum(np.bincount(place, weight, len(values)))
    too_much = np.flatnonzero(passed > allowed)
    if not len(too_much):
        return float(-values[-1])
    return float(np.nextafter(-values[too_much[0]], np.inf))


def at_threshold(
    best: Floats,
    exposure: Exposure,
    threshold: float,
    block: NDArray[Any] | None = None,
    weight: Floats | None = None,
) -> WorkingPoint:
    r"""The output rate at a threshold that is given.

    With weights the weight that passes is :math:`\sum w`, and its variance :math:`\sum w^2`, or
    :math:`\sum_b (\sum_{i \in b} w_i)^2` over blocks, whatever their signs.

    Parameters
    ----------
    best, block, weight : as for `choose`

    Examples
    --------
    >>> point = at_threshold(np.array([0.1, 0.9, 0.5, 0.7]), Exposure(100, input_rate=1e6), 0.5)
    >>> point.rate, point.n_passed
    (30000.0, 3)
    """
    _check(best, exposure, weight)
    if not math.isfinite(threshold):
        raise ValueError(f"`threshold={threshold}` must be finite; choose one among the scores")
    passed = best >= threshold
    n_passed = int(passed.sum())
    counts = _per_block(passed if weight is None else passed * weight, block)
    total = n_passed if weight is None else float(weight[passed].sum())
    error = exposure.error(total, math.sqrt(float((counts**2).sum())))
    nothing = not (passed if weight is None else passed & (weight != 0)).any()
    limit = exposure.limit(most_together(len(best), block, weight)) if nothing else None
    return WorkingPoint(threshold, exposure.rate(total), error, n_passed, limit)


def most_together(n: int, block: NDArray[Any] | None, weight: Floats | None) -> float:
    """The largest number of the n events, or sum of absolute weights, of one block.

    A limit for rare ones takes it for all of them, and is larger than need be.
    """
    size = np.ones(n) if weight is None else np.abs(weight)
    return float(_per_block(size, block).max())


def best_scores(scores: Floats, event: NDArray[Any]) -> tuple[Floats, Indices]:
    """The largest score of every event, and the first row of each.

    Parameters
    ----------
    scores, event : of every candidate

    Examples
    --------
    >>> best_scores(np.array([0.3, 0.8, 0.5]), np.array([7, 9, 7]))
    (array([0.5, 0.8]), array([0, 1]))
    """
    events, first, index = np.unique(event, return_index=True, return_inverse=True)
    best = np.full(len(events), -np.inf)
    np.maximum.at(best, index, scores)
    return best, first


def _check(best: Floats, exposure: Exposure, weight: Floats | None = None) -> None:
    if len(best) == 0:
        raise ValueError(
            "no background event has a candidate; a rate needs some: give more events"
        )
    if not np.isfinite(best).all():
        raise ValueError("`best` holds scores that are not finite; drop such candidates first")
    if weight is not None and not weight.any():
        raise ValueError(
            "every background event has the weight 0; a rate needs some weight: choose another "
            "column of weights"
        )
    total = len(best) if weight is None else float(weight.sum())
    if total > exposure.n_events:
        what = "" if weight is None else "total weight of "
        raise ValueError(
            f"`n_events={exposure.n_events}` is less than the {what}{total:.10g} background "
            "events with a candidate; it must count every event examined"
        )


def _per_block(passed: NDArray[Any], block: NDArray[Any] | None) -> Floats:
    if block is None:
        return passed.astype(float)
    return np.bincount(np.unique(block, return_inverse=True)[1], passed).astype(float)
