r"""How far an export may be from `FrozenNetwork.score`, derived, not measured.

Let f be the network in real numbers and E its rounding error in any order of summation
(`isotone.certificate.bounds.rounding_errors`). An export that computes with other numbers or in
another order is at most

.. math:: E + E' + E'_w + \sum_i (|r_i| + L_i)\, \delta_i

away from the score: E of the score itself, E' of the export in its precision, E'_w for weights
that were rounded to float32, and the slope of f along feature i times how far its scaled input
can differ.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isotone.certificate import bounds
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, rebuild
from isotone.inputs.scaling import Scaling
from isotone.rounding import add, multiply, totals
from isotone.typing import Floats, Precision

FLOAT32_LARGEST = 2.0**126  # of a raw number, so that nothing overflows before the clip
_FLOAT32_SMALLEST = 2.0**-126


def exact(frozen: FrozenNetwork) -> Floats:
    """The tolerance of an export that promises the same numbers."""
    return np.zeros(frozen.n_outputs)


def within(frozen: FrozenNetwork, precision: Precision, shift: Floats | float = 0.0) -> Floats:
    """The bound above for every output; `shift` is δ, of all features or of each.

    Rounding a weight to float32 is one more relative error u of its product. A dense step or the
    residual sum already counts two or more of them in γ, so E'_w is at most E' again.
    """
    twin = in_precision(frozen, precision)
    own, other = bounds.rounding_errors(frozen), bounds.rounding_errors(twin)
    rounded = other if precision != frozen.precision == "float64" else np.zeros_like(other)
    slopes = add(bounds.slopes(frozen.steps, frozen.n_features), np.abs(frozen.residual))
    return add(add(own, other), add(rounded, totals(multiply(slopes, shift))))


def in_precision(frozen: FrozenNetwork, precision: Precision) -> FrozenNetwork:
    """The same network with its numbers rounded to another precision."""
    if precision == frozen.precision:
        return frozen
    steps = rebuild(
        frozen.steps,
        lambda step: Dense(_round(step.weight, precision), _round(step.bias, precision)),
        lambda weights: _round(weights, precision),
    )
    residual = _round(frozen.residual, precision).astype(np.float64)
    return replace(frozen, steps=steps, residual=residual, precision=precision)


def _round(values: np.ndarray, precision: Precision) -> np.ndarray:
    if precision == "float32":
        refuse_beyond_float32("a weight", values)
    return values.astype(precision)


def refuse_beyond_float32(what: str, values: np.ndarray) -> None:
    """Raise `ValueError` for numbers that float32 cannot hold with a relative error of 2⁻²⁴."""
    size = np.abs(np.asarray(values, np.float64))
    bad = (size > FLOAT32_LARGEST) | ((size > 0) & (size < _FLOAT32_SMALLEST))
    if np.any(bad):
        raise ValueError(
            f"{what} is {values[bad][0]}, which float32 cannot hold; export with "
            "precision='float64'"
        )


def float32_shift(frozen: FrozenNetwork) -> Floats:
    r"""δ of a scaling that is computed in float32 from float32 raw features.

    With u = 2⁻²⁴ and R the clip: rounding X, c, a, the difference and the product shifts
    (X - c) a by at most :math:`5u (R + |c| a)`, for which 8u is taken. The argument of a logarithm
    has the relative error :math:`u (4 + 2 |offset| / floor)`, and the runtime's logarithm is taken
    to be accurate to 4 units in the last place. Inputs on different sides of a tie of the grid
    are a cell apart.
    """
    scaling, clip = frozen.scaling, frozen.clip
    refuse_scaling_beyond_float32(scaling)
    shift = 2.0**-21 * (clip + np.abs(scaling.center * scaling.factor)) + 2.0**-125 * (
        1.0 + scaling.factor
    )
    rho = 2.0**-24 * (4.0 + 2.0 * np.abs(scaling.offset) / scaling.floor)
    size = 1.0 + clip / scaling.factor + np.abs(scaling.center)
    of_log = scaling.factor * (2.0 * rho + 2.0**-24 + 2.0**-22 * size)
    of_log = np.where(rho < 0.25, of_log, np.inf)
    return shift + np.where(scaling.log, of_log, 0.0) + (frozen.grid or 0.0)


def refuse_scaling_beyond_float32(scaling: Scaling) -> None:
    for name in ("center", "factor", "offset", "floor"):
        refuse_beyond_float32(f"`{name}` of the scaling", getattr(scaling, name))
