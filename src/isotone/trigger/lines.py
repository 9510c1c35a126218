r"""Lines: several selections at once, with prescales, overlaps and the bandwidth of all.

Line l keeps an event that passes it with probability :math:`p_l`, its prescale, independently of
other lines. Of a set A of lines, let S be those that the prescales let through; the rate with
which any line of A fires is

.. math:: R(A) = \sum_{S \subseteq A} \prod_{l \in S} p_l \prod_{l \in A \setminus S} (1 - p_l)
          \; R\bigl(n_S\bigr)

where :math:`n_S` events pass a line of S and R is the rate of `Exposure`, with pile-up or not.
Everything else follows: exclusive rates are :math:`R(A) - R(A \setminus l)`, overlaps
:math:`R(k) + R(l) - R(k, l)`. An event that several lines keep is written once, with the largest
of their sizes. Errors follow each event, or block of events, through all of these sums, so that
correlations are respected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.trigger.efficiency import divided
from isotone.trigger.working_point import Exposure, most_together
from isotone.typing import Bools, Floats

MOST_LINES = 60
MOST_PRESCALED = 12
_NOTHING = 1e-9  # of the error of all lines: what differences of equal rates may leave


@dataclass(frozen=True, eq=False)
class Estimate:
    """A rate in Hz, or a bandwidth in bytes per second, and what each kind of event adds to it."""

    value: float
    influence: Floats

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.value + other.value, self.influence + other.influence)

    def __sub__(self, other: Estimate) -> Estimate:
        return self + other.times(-1.0)

    def times(self, factor: float) -> Estimate:
        return Estimate(factor * self.value, factor * self.influence)


@dataclass(frozen=True, eq=False)
class Menu:
    """Lines, and which background events pass them.

    Parameters
    ----------
    passed : (n_events, n_lines), for every background event with a candidate
    prescales : (n_lines,), the share of events that a line keeps of those that pass it, up to 1
    sizes : (n_lines,), bytes of an event that it writes
    block, weight : of every event, as for `choose`

    Examples
    --------
    >>> passed = np.array([[True, True], [True, False], [False, True]])
    >>> menu = Menu(passed, [1.0, 0.5], [1e5, 1e4], Exposure(100, input_rate=1e6))
    >>> menu.rate([0]).value, menu.exclusive(1).value, menu.total.value
    (20000.0, 5000.0, 25000.0)
    """

    passed: Bools
    prescales: Sequence[float]
    sizes: Sequence[float]
    exposure: Exposure
    block: NDArray[Any] | None = None
    weight: Floats | None = None

    def __post_init__(self) -> None:
        n = self.passed.shape[1]
        scaled = sum(p < 1 for p in self.prescales)
        if n > MOST_LINES or scaled > MOST_PRESCALED:
            raise ValueError(
                f"there are {n} lines, {scaled} of them prescaled; at most {MOST_LINES} and "
                f"{MOST_PRESCALED} can be combined: leave some out"
            )
        for p in self.prescales:
            if not 0 < p <= 1:
                raise ValueError(
                    f"`prescale={p:g}` must be the share of events that is kept, above 0 and at "
                    "most 1: for one in ten give 0.1"
                )

    @property
    def lines(self) -> range:
        return range(self.passed.shape[1])

    @cached_property
    def _kinds(self) -> tuple[Any, Any]:
        """Which lines events pass, as bits: every combination once, and that of every event."""
        bits = self.passed @ (1 << np.arange(len(self.lines), dtype=np.int64))
        return np.unique(bits, return_inverse=True)

    def rate(self, lines: Sequence[int]) -> Estimate:
        """The rate with which any of these lines fires."""
        kinds, index = self._kinds
        counts = np.bincount(index, self.weight, len(kinds))
        total = Estimate(0.0, np.zeros(len(kinds)))
        choices = [((True, p), (False, 1 - p)) for p in (self.prescales[i] for i in lines)]
        for chosen in product(*choices):
            weight = math.prod(share for _, share in chosen)
            if weight == 0:
                continue
            alive = sum(1 << i for i, (on, _) in zip(lines, chosen, strict=True) if on)
            hit = (kinds & alive) != 0
            n = float(counts[hit].sum())
            slope = self.exposure.error(n, 1.0)
            total += Estimate(self.exposure.rate(n), slope * hit).times(weight)
        return total

    @cached_property
    def total(self) -> Estimate:
        """The rate of all lines together."""
        return self.rate(self.lines)

    def exclusive(self, line: int) -> Estimate:
        """The rate of events that no other line keeps."""
        return self.total - self.rate([i for i in self.lines if i != line])

    def overlap(self, one: int, two: int) -> Estimate:
        """The rate of events that both lines keep."""
        return self.rate([one]) + self.rate([two]) - self.rate([one, two])

    @property
    def bandwidth(self) -> Estimate:
        """Bytes per second: an event has the largest size among the lines that keep it."""
        order = sorted(self.lines, key=lambda i: -self.sizes[i])
        found, before = self.rate([]), self.rate([])
        for k, line in enumerate(order):
            now = self.rate(order[: k + 1])
            found, before = found + (now - before).times(self.sizes[line]), now
        return found

    @property
    def bandwidth_limit(self) -> float | None:
        """An upper limit of it with 95 % confidence if no event passes a line, else None."""
        limit = self.limit(self.total)
        return None if limit is None else limit * max(self.sizes)

    def error(self, estimate: Estimate) -> float:
        """The error of an estimate: events, or blocks of them, are independent."""
        each = estimate.influence[self._kinds[1]]
        each = each if self.weight is None else each * self.weight
        if self.block is not None:
            each = np.bincount(np.unique(self.block, return_inverse=True)[1], each)
        return math.sqrt(float((each**2).sum()))

    def limit(self, estimate: Estimate) -> float | None:
        """An upper limit with 95 % confidence if no event adds to a rate, else None.

        It takes every line as not prescaled, and is larger than need be.
        """
        if self.error(estimate) > _NOTHING * self.error(self.total):
            return None
        return self.exposure.limit(most_together(len(self.passed), self.block, self.weight))


@dataclass(frozen=True, eq=False)
class Kept:
    """Shares of signal events that lines keep, each alone and, as the last, any of them."""

    value: Floats
    error: Floats


def kept(passed: Bools, prescales: Sequence[float], weight: Floats | None = None) -> Kept:
    r"""What lines keep of signal, on average over the prescales.

    With the chance c of every event, the error is that of a mean of n events and two more, one
    that passes no line and one that passes all, with chance :math:`c_1`: without prescales that of
    `Efficiency`.

    .. math:: \sqrt{\tfrac{1}{n+3}\Bigl(\tfrac{c_1^2 + \sum c^2}{n+2} - p^2\Bigr)},
              \quad p = \tfrac{c_1 + \sum c}{n+2}

    With weights w, which may be negative, value and error are, to first order,

    .. math:: p = \frac{\sum w c}{\sum w}, \quad \frac{\sqrt{\sum w^2 (c - p)^2}}{\sum w}

    and NaN if the sum of weights is not positive.

    Parameters
    ----------
    passed : (n_events, n_lines), for every signal event
    weight : (n_events,)
    """
    both = np.vstack([passed, np.ones((1, len(prescales)))])
    alone = both * np.asarray(prescales, dtype=float)
    together = 1.0 - np.prod(1.0 - alone, axis=1)
    every, n = np.column_stack([alone, together]), len(passed)
    c, c_1 = every[:-1], every[-1]
    if weight is not None:
        return _weighted(c, weight)
    p = (c.sum(axis=0) + c_1) / (n + 2)
    spread = ((c**2).sum(axis=0) + c_1**2) / (n + 2) - p**2
    return Kept(c.sum(axis=0) / max(n, 1), np.sqrt(spread / (n + 3)))


def _weighted(chance: Floats, weight: Floats) -> Kept:
    total = np.full(chance.shape[1], weight.sum())
    value = divided(weight @ chance, total)
    return Kept(value, divided(np.sqrt(weight**2 @ (chance - value) ** 2), total))
