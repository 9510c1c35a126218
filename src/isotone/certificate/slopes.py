"""Slopes of f = g + r·x along features, from bounds on those of g: intervals, rounded outward."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.rounding import digits_down, digits_up, multiply, multiply_down, subtract_down
from isotone.typing import Floats


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval that holds every slope of the exact function between rows in the clip.

    Beyond the clip the slope is 0. Computed scores move in steps: see `Certificate.slopes`.
    """

    low: float
    high: float

    def __str__(self) -> str:
        """A few digits, rounded outward."""
        return f"[{digits_down(self.low, 3)}, {digits_up(self.high, 3)}]"


@dataclass(frozen=True, slots=True)
class Slope:
    """Slope of one output along one feature, in scaled and in raw units."""

    output: int
    feature: str
    scaled: Interval
    raw: Interval


def slope_range(residual: Floats, slope_bounds: Floats) -> tuple[Floats, Floats]:
    """Lowest and highest slope of f = g + r·x, (n_outputs, n_features)."""
    return subtract_down(residual, slope_bounds), -subtract_down(-residual, slope_bounds)


def find_slopes(frozen: FrozenNetwork, slope_bounds: Floats) -> tuple[Slope, ...]:
    """Of every output along every feature, all copies of it together."""
    low, high = slope_range(frozen.residual, slope_bounds)
    steep, flat = (s() for s in (frozen.scaling.steepest, frozen.scaling.flattest))
    bottom, top = _raw_intervals(low, high, flat, steep)
    columns = (array.ravel().tolist() for array in (low, high, bottom, top))
    cells = product(range(frozen.n_outputs), frozen.features)
    each = tuple(
        Slope(output, feature, Interval(a, b), Interval(c, d))
        for (output, feature), a, b, c, d in zip(cells, *columns, strict=True)
    )
    return _along_columns(frozen, each) if frozen.inputs.copies else each


def _along_columns(frozen: FrozenNetwork, each: tuple[Slope, ...]) -> tuple[Slope, ...]:
    """Slopes along columns, from those along their copies: at any place one of these moves.

    Beyond its knots a score is constant along a column with several copies.
    """
    inputs, slopes = frozen.inputs, []
    spans = zip(inputs.encoded, inputs.firsts.tolist(), inputs.counts.tolist(), strict=True)
    for output, (name, first, count) in product(range(frozen.n_outputs), list(spans)):
        start = output * frozen.n_features + first
        own = each[start : start + count]
        still = [0.0] if len(own) > 1 else []
        hulls = [
            Interval(min([i.low for i in part] + still), max([i.high for i in part] + still))
            for part in ([slope.scaled for slope in own], [slope.raw for slope in own])
        ]
        slopes.append(Slope(output, name, *hulls))
    return tuple(slopes)


def _raw_intervals(
    low: Floats, high: Floats, flat: Floats, steep: Floats
) -> tuple[Floats, Floats]:
    """Intervals times any slope in [flat, steep] of the scaling, rounded outward."""
    steep = np.nextafter(steep, np.inf)
    top = np.where(high > 0, multiply(np.maximum(high, 0.0), steep), -multiply_down(-high, flat))
    bottom = np.where(low < 0, -multiply(np.maximum(-low, 0.0), steep), multiply_down(low, flat))
    return bottom + 0.0, top + 0.0  # + 0.0 turns -0.0 into 0.0
