r"""Points: the scale of scorecards, on which the odds double every `to_double` points.

For the logit z of the second class, with odds :math:`o = e^z`,

.. math:: \text{points} = p_0 + \frac{d}{\ln 2}\,(z - \ln o_0)

gives :math:`p_0` points at the odds :math:`o_0` and d more for twice these odds. Contributions to
z become contributions in points, and still sum to the difference. Points never move against z, as
computed: a product and a sum with constants are monotone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from isotone.checks import check_positive, is_number
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats

_NUMBER = r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*"
_PATTERN = re.compile(rf"{_NUMBER}@{_NUMBER}(?::{_NUMBER})?,{_NUMBER}")


@dataclass(frozen=True)
class Points:
    """A number of points at given odds, and how many more for twice the odds.

    Parameters
    ----------
    points : at `odds`
    odds : of the second class against the first, such as 50 for 50:1
    to_double : points for twice the odds; negative if higher odds give fewer points

    Examples
    --------
    >>> points = Points.parse("600@50:1,20")
    >>> points.of_score(np.log([25.0, 50.0, 100.0])).round(9).tolist()
    [580.0, 600.0, 620.0]
    """

    points: float
    odds: float
    to_double: float

    def __post_init__(self) -> None:
        check_positive("odds", self.odds)
        for name, value in (("points", self.points), ("to_double", self.to_double)):
            if not is_number(value) or not math.isfinite(value):
                raise ValueError(
                    f"`{name}={value!r}` must be a finite number; give one such as 20"
                )
        if self.to_double == 0:
            raise ValueError(
                "`to_double=0` would give all rows the same points; it must not be 0: give 20, or "
                "-20 if higher odds are to give fewer points"
            )

    @classmethod
    def parse(cls, text: str) -> Points:
        """From a text such as 600@50:1,20: points, odds, and points that double the odds."""
        found = _PATTERN.fullmatch(text)
        if found is None:
            raise ValueError(
                f"the points {text!r} must be points@odds,points that double the odds; write "
                "600@50:1,20, for example"
            )
        points, odds, against, to_double = (float(part or "1") for part in found.groups())
        return cls(points, odds / check_positive("odds", against), to_double)

    @property
    def factor(self) -> float:
        """Points per unit of the logit."""
        return self.to_double / math.log(2.0)

    def of_score(self, score: Floats) -> Floats:
        """Points of logits."""
        found: Floats = self.factor * np.asarray(score, np.float64) + self._at_even_odds
        return found

    @property
    def _at_even_odds(self) -> float:
        return self.points - self.factor * math.log(self.odds)

    def check(self, frozen: FrozenNetwork) -> None:
        """Raise `ValueError` unless the score of a model is a single logit."""
        if frozen.outputs != "logits" or frozen.n_outputs != 1:
            raise ValueError(
                f"points are for one logit of two classes; this model has {frozen.n_outputs} "
                f"outputs that are {frozen.outputs}: leave the points out"
            )
