"""Averaging: the mean of networks, each computed by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from isotone.frozen.steps import Members, Step


def average(members: Sequence[Sequence[Step]]) -> Members:
    """The mean of networks; its bounds of slopes are the means of theirs.

    The weights 1/S are rounded toward zero, so that they add up to at most 1.
    """
    n = len(members)
    share = 1.0 / n if Fraction(1.0 / n) * n <= 1 else math.nextafter(1.0 / n, 0.0)
    return Members((share,) * n, tuple(tuple(steps) for steps in members))
