r"""Fixed point: a network whose numbers have so few bits that no operation rounds.

Inputs are whole numbers of q within ±clip, the weights of a step whole numbers of a unit
:math:`2^{-a}`, biases whole numbers of the unit of the sums that they begin. Weights are rounded
toward zero, so that every norm keeps its bound. Nothing is rounded between layers: that would be
monotone, but could move a unit by more than its slope allows. Widths therefore grow from layer to
layer, and the last must fit into the 53 bits of float64, in which the engine then computes without
error: `isotone.certificate.widths` proves it, and the paper's theorem holds without a margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from isotone.certificate.certify import certify
from isotone.certificate.widths import WholeNumbers, find_widths, lattice
from isotone.freezing.margin import certified, dense_first, least_residual, shrink_factors
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, change_first
from isotone.rounding import multiples_toward_zero
from isotone.typing import Floats, Reals

Bits = int | tuple[int, int]

CLIP = 16.0  # scaled units
_RESIDUAL_BITS = 24
_LEAST_EXPONENT = -32  # of a weight's unit: what is smaller changes no score that matters


def to_fixed(frozen: FrozenNetwork, bits: Bits, clip: float | None = None) -> FrozenNetwork:
    """The network in fixed point, with its certificate inside.

    Parameters
    ----------
    frozen : certified, in any arithmetic
    bits : of every input and of every weight, sign included; or one number for both
    clip : scaled inputs are clamped to this, or to the number just below that the bits hold; that
        of the network by default, but at most 16
    """
    of_inputs, of_weights = check_bits(bits)
    if not certify(frozen).holds:
        raise ValueError(
            "the network fails its certificate, and fixed point must not hide that; freeze the "
            "trained network again"
        )
    rounded = round_to(frozen, (of_inputs, of_weights), clip)
    _refuse_rounding(rounded, of_inputs, of_weights)
    _refuse_joint(rounded)
    return certified(rounded)[0]


def round_to(frozen: FrozenNetwork, bits: tuple[int, int], clip: float | None) -> FrozenNetwork:
    """What `to_fixed` gives, not certified: its scores may be too wide."""
    of_inputs, of_weights = bits
    clip, grid = input_range(frozen, of_inputs, min(CLIP, frozen.clip) if clip is None else clip)
    start = _Written(round(math.log2(grid)), ())
    written = _Rounding(of_weights).run(dense_first(frozen), start)
    finest = written.exponent - start.exponent
    rounded = replace(
        frozen,
        steps=written.steps,
        residual=_round_residual(frozen.residual, of_weights, finest),
        precision="float64",
        clip=clip,
        grid=grid,
    )
    return _keep_slopes(rounded, of_weights)


def check_bits(bits: object) -> tuple[int, int]:
    """Bits of inputs and of weights."""
    pair = bits if isinstance(bits, tuple | list) else (bits, bits)
    whole = [type(n) is int and 2 <= n <= 32 for n in pair]
    if len(pair) != 2 or not all(whole):
        raise ValueError(
            f"`bits={bits!r}` must be a whole number from 2 to 32, or two of them, of inputs and "
            "of weights: bits=(12, 10)"
        )
    return pair[0], pair[1]


def input_range(frozen: FrozenNetwork, bits: int, clip: float) -> tuple[float, float]:
    """Clip and grid of inputs with a number of bits: the largest whole number is 2^(bits-1) - 1.

    Copies between knots end at 1, which must be on the grid.
    """
    if not (isinstance(clip, int | float) and 0 < clip < math.inf):
        raise ValueError(f"`clip={clip!r}` must be a positive number, such as 16")
    exponent = math.frexp(clip)[1]  # clip <= 2^exponent, with equality only for 2^(exponent-1)
    exponent -= clip == math.ldexp(1.0, exponent - 1)
    grid, most = math.ldexp(1.0, exponent - bits + 1), 2 ** (bits - 1) - 1
    if frozen.copies is not None and frozen.copies.counts != (1,) * frozen.n_features:
        grid = max(grid, math.ldexp(1.0, 2 - bits))
    return min(math.floor(clip / grid), most) * grid, grid


def unit_of(numbers: Reals, bits: int) -> int:
    """The k such that whole numbers of 2^k hold all with this number of bits, sign included.

    The least such k, unless all are whole numbers of a larger unit.
    """
    return max(_finest(numbers, bits), lattice(numbers)) if np.any(numbers) else 0


def _finest(numbers: Reals, bits: int) -> int:
    """The least k such that all numbers are below 2^(k + bits - 1), but not below -32."""
    return max(math.frexp(float(np.abs(numbers).max()))[1] - (bits - 1), _LEAST_EXPONENT)


def to_nearest(numbers: Reals, exponent: int) -> Floats:
    return np.ldexp(np.rint(np.ldexp(numbers.astype(np.float64), -exponent)), exponent)


def _round_residual(residual: Floats, bits: int, finest: int) -> Floats:
    """λ with up to 24 bits where that makes no score wider, and with those of a weight at least.

    Units below 2^finest would make scores wider; the least λ decides.
    """
    if not np.any(residual):
        return residual
    exponent = max(_finest(residual, _RESIDUAL_BITS), finest)
    return multiples_toward_zero(
        residual, min(exponent, _finest(np.abs(residual[residual != 0]).min(), bits))
    )


@dataclass(frozen=True, eq=False)
class _Written:
    """Steps so far, after which units are whole numbers of 2^exponent."""

    exponent: int
    steps: tuple[Step, ...]

    def then(self, exponent: int, step: Step) -> _Written:
        return _Written(exponent, (*self.steps, step))


class _Rounding(Language[_Written]):
    """The steps of a network again, with weights of few bits."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def dense(self, step: Dense, h: _Written) -> _Written:
        unit = unit_of(step.weight, self.bits)
        sums = h.exponent + unit
        return h.then(
            sums, Dense(multiples_toward_zero(step.weight, unit), to_nearest(step.bias, sums))
        )

    def sort(self, step: Sort, h: _Written) -> _Written:
        return h.then(h.exponent, step)

    def pointwise(self, step: Pointwise, h: _Written) -> _Written:
        if step.name == "leaky_relu":
            slope = np.array(step.negative_slope)
            unit = unit_of(slope, self.bits)
            rounded = Pointwise(step.name, float(multiples_toward_zero(slope, unit)))
            return h.then(h.exponent + min(unit, 0), rounded)
        if step.name not in WholeNumbers.activations:
            raise ValueError(
                f"the activation {step.name!r} has no exact fixed point; sorts and "
                f"{', '.join(WholeNumbers.activations)} have: train with these"
            )
        return h.then(min(h.exponent, 0) if step.name == "hardtanh" else h.exponent, step)

    def members(self, step: Members, h: _Written, copies: bool) -> _Written:
        parts = [self.run(member, _Written(h.exponent, ())) for member in step.members]
        weights = np.array(step.weights)
        unit = unit_of(weights, self.bits)
        rounded = tuple(multiples_toward_zero(weights, unit).tolist())
        exponent = min(part.exponent for part in parts) + unit
        return h.then(exponent, Members(rounded, tuple(part.steps for part in parts)))


def _keep_slopes(frozen: FrozenNetwork, bits: int) -> FrozenNetwork:
    """Shrink the columns of the first step until g is nowhere steeper than the residual."""
    constrained = np.any(frozen.monotonic_cst != 0, axis=0)
    allowed = np.where(constrained, least_residual(frozen), frozen.lipschitz)
    for _ in range(16):  # one or two suffice: what is shrunk is rounded toward zero
        factors = shrink_factors(frozen, allowed)
        if np.all(factors == 1.0):
            return frozen
        shrink = partial(_shrunk, factors=factors, bits=bits)
        frozen = replace(frozen, steps=change_first(frozen.steps, shrink))
    raise RuntimeError("the slopes of the network could not be brought below their bounds")


def _shrunk(step: Dense, factors: Floats, bits: int) -> Dense:
    if not np.any(step.weight):
        return step
    return Dense(
        multiples_toward_zero(step.weight * factors, _finest(step.weight, bits)), step.bias
    )


def _refuse_rounding(frozen: FrozenNetwork, of_inputs: int, of_weights: int) -> None:
    if not find_widths(frozen):
        raise ValueError(
            f"with {of_inputs} bits of inputs and {of_weights} of weights a number of the network "
            "needs more than the 53 bits that float64 computes without rounding; give fewer "
            "`bits`, or train fewer layers"
        )


def _refuse_joint(frozen: FrozenNetwork) -> None:
    if frozen.joint_cst and not certify(frozen).holds:
        raise ValueError(
            "joint directions of the network do not survive this rounding; they must hold as the "
            "others do: give more `bits`"
        )
