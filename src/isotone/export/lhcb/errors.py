r"""Errors: how far the evaluator's response can be from that of the model, and from monotone.

Let F be the exact function of the numbers in the file, on the box of raw inputs. Its directions
are proved as for any network: λ' is at least the slope of g. The evaluator computes F in float32
with an error of at most

.. math:: E = E_{32} + {\textstyle\sum_i} (\lambda' |s_i| + L_i)\, 3 \cdot 2^{-23} |z_i|,

E₃₂ for every order of summation, with or without fused multiply-add, and the sum, only where there
is a rescaling, for its subtraction and division. A sum from 0 over n inputs with the bias added
last has n + 1 roundings, as one from the bias on. Its responses are monotone up to 2E.

From the model's score they are at most

.. math:: T = E_{model} + E + D + {\textstyle\sum_i} (|r_i| + L_i)\, \delta_i

away: D is what rounding the folded numbers to float32 changes, followed through the layers, and δ
is how far the model's snapped input is from the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.certificate import bounds
from isotone.certificate.bounds import Change
from isotone.export.lhcb.fold import Folded
from isotone.frozen.lhcb import SigmaNet, Singles
from isotone.frozen.network import FrozenNetwork
from isotone.rounding import MatrixNorms, add, multiply, total, totals
from isotone.typing import Floats

_RESCALING = 3.0 * 2.0**-23  # relative error of a difference and a division within 2 ulp
_TINY = 2.0**-126  # what a flushed number can be
_FOLDED = 2.0**-40  # relative error of folding in float64


@dataclass(frozen=True)
class Errors:
    """E and T above, each for the one output."""

    own: float
    distance: float


def find_errors(frozen: FrozenNetwork, folded: Folded, reach: float) -> Errors:
    """Bounds for raw inputs within the box of `folded`."""
    ends = folded.low, folded.high
    own = evaluation_error(folded.net, *ends)
    distance = add(bounds.rounding_errors(frozen)[0], own)
    distance = add(distance, _rounded(folded, _reach(folded.net, *ends)))
    slope = add(bounds.slopes(frozen.steps, frozen.n_features), np.abs(frozen.residual))[0]
    distance = add(distance, total(multiply(slope, _shift(frozen, folded, reach))))
    return Errors(own, float(distance))


def evaluation_error(net: SigmaNet, low: Singles, high: Singles) -> float:
    """E above, for raw inputs between these ends, (n_features,) each."""
    z, residual = _reach(net, low, high), net.residual
    steep = add(bounds.slopes(net.steps, net.n_features), np.abs(residual))[0]
    own = bounds.rounding_errors_within(net.steps, residual, z, "float32")[0]
    # a flushed input or partial sum of the residual
    own = add(own, multiply(total(steep), _TINY * (net.n_features + 2)))
    if net.layout == "allen" and net.low is not None:
        own = add(own, total(multiply(steep, add(multiply(_RESCALING, z), _TINY))))
    return float(own)


def _reach(net: SigmaNet, low: Singles, high: Singles) -> Floats:
    """The largest |z| of every feature in the box."""
    ends = low.astype(np.float64), high.astype(np.float64)
    if net.layout == "hlt2" or net.low is None:
        return np.asarray(np.maximum(np.abs(ends[0]), np.abs(ends[1])))
    farthest = np.maximum(np.abs(ends[0] - net.low), np.abs(ends[1] - net.low))
    return np.asarray(farthest / net.width * (1.0 + 2.0**-20))


def _shift(frozen: FrozenNetwork, folded: Folded, reach: float) -> Floats:
    """δ: the grid, the rounding of the scaling, and the ends of the box in float32."""
    scaling = frozen.scaling
    shift = add(scaling.slip(np.full(frozen.n_features, reach)), (frozen.grid or 0.0) / 2.0)
    if frozen.precision == "float32":
        shift = add(shift, 2.0**-24 * reach)
    ends = np.maximum(np.abs(folded.low), np.abs(folded.high)).astype(np.float64)
    return add(shift, multiply(2.0**-21 * ends + _TINY, scaling.factor))


def _rounded(folded: Folded, z: Floats) -> float:
    """D: errors of weights and biases, from layer to layer."""
    size = Change.of(total(z), z.max())
    error, each = Change.of(0.0, 0.0), z
    every = zip(folded.layers, folded.net.layers, folded.doubts, strict=True)
    for (weight, bias), (single, short), doubt in every:
        off = add(_difference(bias, short), doubt)
        fresh = add(totals(multiply(_difference(weight, single), each)), off)
        grown = error.through(MatrixNorms.of(single))
        error = grown + Change.of(total(fresh), fresh.max())
        units = add(totals(multiply(np.abs(weight), each)), np.abs(bias))
        added = Change.of(total(np.abs(bias)), np.abs(bias).max())
        size = size.through(MatrixNorms.of(weight)) + added
        each = _sorted(np.minimum(units, size.both[1, 0]))
    residual = _difference(folded.residual, folded.net.residual[0])
    return float(add(error.both[1, 0], total(multiply(residual, z))))


def _sorted(units: Floats) -> Floats:
    """Bounds on units after pairs are sorted: that of the larger for both."""
    if len(units) % 2:
        return units
    return np.repeat(units.reshape(-1, 2).max(axis=1), 2)


def _difference(exact: Floats, rounded: np.ndarray) -> Floats:
    found = np.abs(exact - rounded.astype(np.float64))
    return add(found, multiply(_FOLDED, np.abs(exact)))
