r"""Cut: a threshold on the score as one on the sigmoid, which the evaluators compute in float32.

A candidate passes here if its score is at least T, there if the computed sigmoid s exceeds the
cut. Take the float32 p nearest to the sigmoid of T, and the next smaller float32 as the cut: s
exceeds it if and only if s ≥ p. With a computed exponential of relative error at most
:math:`(3 + 1.2 |r|)\, 2^{-23}`, a rounded sum and a division within 2 units in the last
place, as with CUDA's fast mathematics,

.. math:: |s - \sigma(r)| \le \sigma(r)\, h, \qquad
          h = \bigl((3 + 1.2 |r|)(1 - \sigma(r)) + 3\bigr)\, 2^{-23}\,(1 + 2^{-10}),

so that every r ≥ `high` = logit(p / (1 − h)) passes and every r < `low` = logit(p / (1 + h))
fails. Between them the sigmoid does not resolve the score. With a larger score the sigmoid comes
closer to 1, where float32 is coarse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_INFINITY = np.float32(np.inf)
_LARGEST = 2.0**126
_LOWEST = -80.0  # below, the exponential comes near the end of float32
_SEARCH = 1.0  # how far from the threshold h is bounded
_SLACK = 2.0**-40  # of float64 logarithms and exponentials


@dataclass(frozen=True)
class Cut:
    """A cut on the computed sigmoid.

    Parameters
    ----------
    value : a candidate passes if its sigmoid is larger
    low, high : responses from `high` on pass, and below `low` fail, whatever the exponential does
        within its error
    """

    value: np.float32
    low: float
    high: float

    @classmethod
    def of(cls, threshold: float) -> Cut:
        """The cut that stands for score ≥ `threshold`; `ValueError` where float32 has none."""
        if not math.isfinite(threshold):
            raise ValueError(f"`threshold={threshold}` must be a finite number; give another")
        t = _above(threshold)
        p = np.float32(sigmoid(t))
        h = max(_error(t - _SEARCH), _error(t + _SEARCH))
        top, bottom = float(p) / (1.0 - h), float(p) / (1.0 + h)
        if t < _LOWEST or top >= 1.0 or _logit(top) > t + _SEARCH:
            raise ValueError(
                f"`threshold={threshold:g}` has the sigmoid {sigmoid(t):.9g}, which float32 "
                f"cannot tell from {0 if t < 0 else 1}; it must: give shift=True (`--shift`), "
                "which moves the score so that the cut is 0.5"
            )
        low, high = _logit(bottom), _logit(top)
        slack = _SLACK * (1.0 + abs(t))
        return cls(np.nextafter(p, np.float32(0)), min(low - slack, t), max(high + slack, t))


def sigmoid(r: float) -> float:
    """1 / (1 + exp(−r)), in float64."""
    e = math.exp(-abs(r))
    return 1.0 / (1.0 + e) if r >= 0 else e / (1.0 + e)


def _above(threshold: float) -> float:
    """The smallest float32 that is not below: float32 scores compare with both alike."""
    if abs(threshold) > _LARGEST:
        return threshold
    found = float(np.float32(threshold))
    return found if found >= threshold else float(np.nextafter(np.float32(found), _INFINITY))


def _error(r: float) -> float:
    """The relative error h of a computed sigmoid."""
    return ((3.0 + 1.2 * abs(r)) * sigmoid(-r) + 3.0) * 2.0**-23 * (1.0 + 2.0**-10)


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)
