"""Activations: the functions of a pointwise step, with the same bits everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isotone.elementary import EXP_ERROR, exp, horner
from isotone.typing import Floats


@dataclass(frozen=True)
class Activation:
    """A pointwise function with what a certificate must know of it.

    Parameters
    ----------
    function : of a float64 array and the slope for negative arguments
    constant : its Lipschitz constant at slope 0
    at_zero : bound of its absolute value at 0
    error : absolute error of the float64 computation
    """

    function: Callable[[Floats, float], Floats]
    constant: float
    at_zero: float = 0.0
    error: float = 0.0


# The formulas lose a few times the error of `exp`: every one has slope at most 1 in e^h.
_EXP_FORMULA = 16 * EXP_ERROR
LOG1P_SERIES = [2.0 / (2 * k + 1) for k in range(17)]


def _softplus(h: Floats) -> Floats:
    # log(1 + e^h) = max(h, 0) + log(1 + t) with t = e^-|h|, and s = t / (2 + t) is at most 1/3
    t = exp(-np.abs(h))
    s = t / (2.0 + t)
    return np.maximum(h, 0.0) + s * horner(LOG1P_SERIES, s * s)


ACTIVATIONS = {
    "relu": Activation(lambda h, _: np.maximum(h, 0.0), 1.0),
    "leaky_relu": Activation(lambda h, slope: np.where(h < 0, slope * h, h), 1.0),
    "abs": Activation(lambda h, _: np.abs(h), 1.0),
    "hardtanh": Activation(lambda h, _: np.clip(h, -1.0, 1.0), 1.0),
    "tanh": Activation(lambda h, _: 1.0 - 2.0 / (1.0 + exp(2.0 * h)), 1.0, error=_EXP_FORMULA),
    "sigmoid": Activation(lambda h, _: 1.0 / (1.0 + exp(-h)), 0.25, 0.5, _EXP_FORMULA),
    "softplus": Activation(lambda h, _: _softplus(h), 1.0, 0.7, _EXP_FORMULA),
}
