"""Axes: where the values of features lie, those that enter a network as they are or as copies."""

from __future__ import annotations

import numpy as np

from isotone.elementary import log
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats

_REACH = 3.0  # scaled units on both sides of the center of a feature without knots


def along(frozen: FrozenNetwork, feature: int, values: Floats) -> Floats:
    """Where values lie on the axis of a feature: themselves, or their logarithm if scaled so."""
    scaling, first = frozen.scaling, frozen.inputs.firsts[feature]
    if not scaling.log[first]:
        return np.asarray(values, dtype=float)
    return log(np.maximum(values + scaling.offset[first], scaling.floor[first]))


def usual_values(frozen: FrozenNetwork) -> Floats:
    """Low, middle and high values of every feature by the scaling or the knots, (3, n_encoded)."""
    counts, first = frozen.inputs.counts, frozen.inputs.firsts
    reach = np.repeat(np.where(counts > 1, 1.0, min(_REACH, frozen.clip)), counts)
    reach[frozen.scaling.factor <= np.finfo(float).tiny] = 0.0  # of a constant column
    low, middle, high = frozen.scaling.inverse(np.outer([-1.0, 0.0, 1.0], reach))
    return np.stack([low[first], middle[first + counts // 2], high[first + counts - 1]])
