r"""Calibration: what a wrong alignment, resolution or momentum scale does to the features.

A misalignment of `a` changes an impact parameter of at least 60 µm by `a`, thus
:math:`\ln \chi^2_{IP}` by at most :math:`-2 \ln(1 - a / 60)`, and we let the flight distance
change likewise. An error of the resolution by the factor `1 + r` divides every χ² by
:math:`(1 + r)^2`. A momentum scale multiplies Σp_T. What moves is known only within these bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

import isotone
from isotone.typing import Floats
from studies.trigger.analysis.models import Model

#: features of rows for a calibration that is wrong by u times its error, -1 <= u <= 1
Shift = Callable[[Floats, float], Floats]

ALIGNMENT, MIN_IP = 5.0, 60.0  # µm
RESOLUTION = 0.05
MOMENTUM = 0.003
_GROUPS = 64


def alignment(X: Floats, u: float) -> Floats:
    return X + u * -2 * math.log(1 - ALIGNMENT / MIN_IP) * np.array([1.0, 0.0, 0.0, 1.0])


def resolution(X: Floats, u: float) -> Floats:
    change = -2 * u * math.log1p(RESOLUTION)
    moved = X + change * np.array([1.0, 0.0, 0.0, 1.0])
    moved[:, 2] *= math.exp(change)
    return moved


def momentum(X: Floats, u: float) -> Floats:
    return np.asarray(X * np.array([1.0, 1.0 + u * MOMENTUM, 1.0, 1.0]))


ERRORS: Mapping[str, Shift] = {
    f"alignment, {ALIGNMENT:g} µm": alignment,
    f"resolution, {100 * RESOLUTION:g} %": resolution,
    f"momentum scale, {100 * MOMENTUM:g} %": momentum,
}


def measured_flips(model: Model, threshold: float, X: Floats, shift: Shift) -> float:
    """Share of rows whose decision changes for any of some calibrations within the error."""
    accepted = model.score(X) >= threshold
    changed = np.zeros(len(X), dtype=bool)
    for u in (-1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0):
        changed |= (model.score(shift(X, u)) >= threshold) != accepted
    return float(changed.mean())


def certified_flips(
    certificate: isotone.Certificate, threshold: float, X: Floats, shift: Shift
) -> float:
    """The largest share of rows whose decision can change, however each feature moves within.

    `flip_bound` takes one range for all rows, so that rows that move alike go together: those of
    similar χ² or Σp_T.
    """
    inputs = list(range(X.shape[1]))
    moves = [shift(X, u) - X for u in (-1.0, 0.0, 1.0)]
    low, high = np.min(moves, axis=0), np.max(moves, axis=0)
    order = np.argsort((high - low).sum(axis=1), kind="stable")
    total = 0.0
    for rows in np.array_split(order, min(_GROUPS, len(order))):
        ranges = [(float(low[rows, i].min()), float(high[rows, i].max())) for i in inputs]
        total += len(rows) * certificate.flip_bound(X[rows], ranges, threshold)
    return total / len(X)
