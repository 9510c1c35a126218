r"""Widths: how many bits hold every number of a network, and whether none of them is ever rounded.

On the grid every input is a whole number of units q. If weights are whole numbers of
:math:`2^{-a}`, products are whole numbers of :math:`q\,2^{-a}`, and so are their sums. As long as
the sum of their absolute values is at most :math:`2^{53}` units, float64 holds each of them and
every partial sum, in any order of summation, with or without fused multiply-add: nothing is
rounded, and a computed score *is* the exact one (float32: :math:`2^{24}`). Integers of these
widths compute the same. All of it is found from the stored numbers; sizes are rounded upward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.rounding import add, multiply, total, totals
from isotone.typing import Floats, Indices, Reals

# bits that hold every whole number, the least exponent of a unit, and where overflow is near
_FORMATS = {"float64": (53, -1000, 2.0**1000), "float32": (24, -100, 2.0**100)}
_NO_NUMBER = 1 << 20  # the exponent of zeros, which are whole numbers of any unit


class RoundedError(ArithmeticError):
    """A number of the network may be rounded."""


@dataclass(frozen=True, eq=False)
class Whole:
    """Units that are whole numbers of 2^`exponent`.

    Parameters
    ----------
    each : the largest absolute value of every one, (n_units,)
    one : of the sum of their absolute values
    """

    exponent: int
    each: Floats
    one: float

    @property
    def width(self) -> int:
        """Bits that hold every one of them, with sign."""
        return int(math.ldexp(float(self.each.max()), -self.exponent)).bit_length() + 1


def find_widths(frozen: FrozenNetwork) -> tuple[int, ...]:
    """Bits of the inputs, of the units after every dense step, and of the scores.

    Nothing where a number may be rounded.
    """
    try:
        return tuple(units.width for units in follow(frozen))
    except RoundedError:
        return ()


def describe_widths(widths: tuple[int, ...]) -> str:
    """That scores are exact, in words; nothing if they are not."""
    if not widths:
        return ""
    bits = ", ".join(map(str, widths))
    return f"every score is computed without rounding; widths {bits} bits"


def follow(frozen: FrozenNetwork) -> list[Whole]:
    """The inputs, the units after every dense step or sum of members but the last, the scores."""
    language, u = WholeNumbers(frozen.precision), inputs_of(frozen)
    language.check(u)
    h, found, copies = u, [u], frozen.copies is not None
    for step in frozen.steps:
        h = language.run((step,), h, copies)
        copies = False
        if isinstance(step, Dense | Members):
            found.append(h)
    exponent = min(h.exponent, u.exponent + lattice(frozen.residual))
    each = add(h.each, totals(multiply(np.abs(frozen.residual), u.each)))
    score = language.check(Whole(exponent, each, total(each)))
    return [*found[:-1], score] if len(found) > 1 else [u, score]


def inputs_of(frozen: FrozenNetwork) -> Whole:
    """The inputs of the network, on their grid."""
    if frozen.grid is None:
        raise RoundedError
    n, copies = frozen.n_features, frozen.copies
    reach = np.full(n, frozen.clip) if copies is None else copies.reach
    return Whole(round(math.log2(frozen.grid)), reach, total(reach))


def lattice(numbers: Reals) -> int:
    """The largest k such that all numbers are whole numbers of 2^k."""
    return int(lowest_digits(numbers).min())


def lowest_digits(numbers: Reals) -> Indices:
    """The largest k such that each is a whole number of 2^k."""
    mantissa, exponent = np.frexp(np.asarray(numbers, np.float64))
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return np.where(digits == 0, _NO_NUMBER, exponent - 53 + lowest)


class WholeNumbers(Language[Whole]):
    """Units and sizes after a step; raises `RoundedError` where one may be rounded."""

    activations = ("relu", "abs", "hardtanh", "leaky_relu")  # that round nothing

    def __init__(self, precision: str) -> None:
        self.bits, self.least, self.largest = _FORMATS[precision]

    def check(self, h: Whole) -> Whole:
        size = float(h.each.max())
        power = min(max(self.bits + h.exponent, -1074), 1023)  # beyond these nothing is held
        held = size <= math.ldexp(1.0, power)
        if not held or size >= self.largest or h.exponent < self.least:
            raise RoundedError
        return h

    def dense(self, step: Dense, h: Whole) -> Whole:
        norms, bias = step.norms, np.abs(step.bias.astype(np.float64))
        exponent = min(h.exponent + _finite(lattice(step.weight)), lattice(step.bias))
        largest = float(norms.max)
        self.check(Whole(exponent, np.array([largest]), largest))  # most fail here, at once
        boxed = totals(multiply(np.abs(step.weight), h.each))
        each = add(np.minimum(boxed, multiply(norms.row_max, h.one)), bias)
        chained = add(multiply(norms.column_sum.max(), h.one), total(bias))
        return self.check(Whole(exponent, each, min(total(each), float(chained))))

    def sort(self, step: Sort, h: Whole) -> Whole:
        largest = h.each.reshape(-1, step.group_size).max(axis=1)
        return Whole(h.exponent, np.repeat(largest, step.group_size), h.one)

    def pointwise(self, step: Pointwise, h: Whole) -> Whole:
        match step.name:
            case "relu" | "abs":
                return h
            case "hardtanh":
                return Whole(min(h.exponent, 0), np.minimum(h.each, 1.0), h.one)
            case "leaky_relu":
                exponent = h.exponent + min(lattice(np.array(step.negative_slope)), 0)
                each, one = multiply(h.each, step.constant), multiply(h.one, step.constant)
                return self.check(Whole(exponent, each, float(one)))
        raise RoundedError

    def members(self, step: Members, h: Whole, copies: bool) -> Whole:
        parts, sizes = self.parts(step, h, copies), np.abs(step.weights)
        exponents = [
            part.exponent + _finite(lattice(np.array(weight)))
            for weight, part in zip(step.weights, parts, strict=True)
        ]
        each = reduce(add, multiply(sizes[:, None], np.array([part.each for part in parts])))
        one = reduce(add, multiply(sizes, np.array([part.one for part in parts])))
        return self.check(Whole(min(exponents), each, float(one)))


def _finite(exponent: int) -> int:
    """Of zeros 0: any would do."""
    return 0 if exponent == _NO_NUMBER else exponent
