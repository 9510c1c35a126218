r"""The population stability index of two distributions, and what chance alone makes of it.

.. math:: \mathrm{PSI} = \sum_b (q_b - p_b) \ln\frac{q_b}{p_b}

over bins b, with shares p of the reference and q of the new rows. In each of them half a row is
added to every bin, so that none is empty. If both are draws from one distribution,
:math:`\mathrm{PSI} / (1/n + 1/m)` is about a :math:`\chi^2` number of B − 1 degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isotone.monitoring.sketch import Sketch
from isotone.typing import Floats

N_BINS = 10
_DEVIATIONS = 3.0  # of a χ² number, that chance is allowed


@dataclass(frozen=True)
class Stability:
    """The index, and the value that chance exceeds rarely: its mean and three deviations."""

    psi: float
    chance: float


def stability(p: Floats, q: Floats) -> Stability:
    """Of counts in bins.

    >>> round(stability(np.array([500.0, 500.0]), np.array([300.0, 700.0])).psi, 3)
    0.169
    """
    n, m, degrees = float(p.sum()), float(q.sum()), len(p) - 1
    if not (n and m) or degrees < 1:
        return Stability(0.0, 0.0)
    shares_p, shares_q = ((each + 0.5) / (each.sum() + 0.5 * len(each)) for each in (p, q))
    psi = float((shares_q - shares_p) @ np.log(shares_q / shares_p))
    return Stability(psi, (degrees + _DEVIATIONS * math.sqrt(2 * degrees)) * (1 / n + 1 / m))


def quantile_bins(reference: Sketch) -> Floats:
    """Upper ends of up to ten bins with about equal shares of the reference, the last infinite."""
    if not reference.n:
        return np.array([np.inf])
    ends = np.unique(reference.quantile(np.arange(1, N_BINS) / N_BINS))
    return np.append(ends, np.inf)


def counts_in(sketch: Sketch, ends: Floats) -> Floats:
    """Numbers in bins that end at, and include, `ends`."""
    return np.diff(sketch.cumulative(ends), prepend=0.0) * sketch.n
