"""Scaling, activations and sorts, written once for every language that has IEEE arithmetic.

Each is the same sequence of operations as in `isotone.elementary` and
`isotone.frozen.activations`, so it gives the same numbers. What some languages lack, taking a
number apart into mantissa and exponent, is done by comparisons and multiplications with powers of
two, which are exact.

A language has numbers with ``+ - * /``, and the few functions of `Operators`.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from isotone.compiled import engine
from isotone.elementary import EXP_LIMIT, EXP_SERIES, LN2, LN2_HIGH, LN2_LOW, LOG_SERIES
from isotone.frozen.activations import LOG1P_SERIES
from isotone.frozen.steps import Pointwise

Number = Any  # of the language
Pairs = list[tuple[int, int]]

_POWERS = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)


class Operators(Protocol):
    """What a target must have beyond ``+ - * /`` of its numbers and Python floats."""

    def let(self, x: Number) -> Number:
        """`x` as something that may be used many times."""

    def if_less(self, a: Number, b: float, yes: Number, no: Number) -> Number:
        """`yes` where a < b, otherwise `no`."""

    def maximum(self, a: Number, b: float) -> Number: ...

    def minimum(self, a: Number, b: float) -> Number: ...

    def rint(self, x: Number) -> Number:
        """The nearest integer, the even one of two; abs(x) is at most 2⁵²."""

    def frexp(self, x: Number) -> tuple[Number, Number]:
        """Mantissa in [1/2, 1) and exponent of a positive number of at most 2¹⁰²³."""

    def ldexp(self, x: Number, k: Number) -> Number:
        """x 2^k for x near 1 and whole k, abs(k) < 1020."""


def clamp(lang: Operators, x: Number, low: float, high: float) -> Number:
    return lang.minimum(lang.maximum(x, low), high)


def snap(lang: Operators, x: Number, grid: float) -> Number:
    """As `isotone.elementary.snap_grid`: dividing by a power of two is multiplying by another."""
    return lang.let(lang.rint(lang.let(x * (1.0 / grid))) * grid)


def log(lang: Operators, x: Number) -> Number:
    """As `isotone.elementary.log`.

    A mantissa that snaps to 1 is not halved again: the formula for 1 and k is that for 1/2, k + 1.
    """
    mantissa, exponent = lang.frexp(lang.let(lang.minimum(x, 2.0**1023)))
    snapped = lang.let(lang.rint(lang.let(mantissa * 2.0**24)) * 2.0**-24)
    middle = math.sqrt(0.5)
    m = lang.let(lang.if_less(snapped, middle, snapped * 2.0, snapped))
    k = lang.let(lang.if_less(snapped, middle, exponent - 1.0, exponent))
    s = lang.let((m - 1.0) / (m + 1.0))
    square = lang.let(s * s)
    return lang.let(k * LN2_HIGH + (s * horner(LOG_SERIES, square) + k * LN2_LOW))


def exp(lang: Operators, x: Number) -> Number:
    """As `isotone.elementary.exp`."""
    x = lang.let(clamp(lang, x, -EXP_LIMIT, EXP_LIMIT))
    k = lang.let(lang.rint(lang.let(x / LN2)))
    r = lang.let((x - k * LN2_HIGH) - k * LN2_LOW)
    return lang.ldexp(lang.let(horner(EXP_SERIES, r)), k)


def frexp_by_comparing(lang: Operators, x: Number) -> tuple[Number, Number]:
    """`Operators.frexp` for a language without it."""
    m, k = x, lang.let(x * 0.0)
    for power in (512, *_POWERS):  # the first twice, for subnormal numbers
        up, down = 2.0**power, 2.0**-power
        m_next = lang.if_less(m, down, m * up, lang.if_less(m, up, m, m * down))
        k_next = lang.if_less(m, down, k - power, lang.if_less(m, up, k, k + power))
        m, k = lang.let(m_next), lang.let(k_next)
    half, exponent = lang.if_less(m, 1.0, m, m * 0.5), lang.if_less(m, 1.0, k, k + 1.0)
    return lang.let(half), lang.let(exponent)


def ldexp_by_comparing(lang: Operators, x: Number, k: Number) -> Number:
    """`Operators.ldexp` for a language without it; no step is subnormal, so each is exact."""
    for power in _POWERS:
        up, down, most = 2.0**power, 2.0**-power, power - 0.5
        x_next = lang.if_less(k, -most, x * down, lang.if_less(k, most, x, x * up))
        k_next = lang.if_less(k, -most, k + power, lang.if_less(k, most, k, k - power))
        x, k = lang.let(x_next), lang.let(k_next)
    return x


def activate(lang: Operators, step: Pointwise, h: Number) -> Number:
    """One of `isotone.frozen.activations.ACTIVATIONS`; `h` was let."""
    match step.name:
        case "relu":
            return lang.maximum(h, 0.0)
        case "leaky_relu":
            return lang.if_less(h, 0.0, h * step.negative_slope, h)
        case "abs":
            return lang.if_less(h, 0.0, h * -1.0, h)
        case "hardtanh":
            return clamp(lang, h, -1.0, 1.0)
        case "tanh":
            return 1.0 - 2.0 / (exp(lang, h * 2.0) + 1.0)
        case "sigmoid":
            # not 1 / y: ONNX Runtime turns (1 / y) · c into c / y, which rounds differently
            return 2.0 / (exp(lang, h * -1.0) + 1.0) * 0.5
        case "softplus":
            return _softplus(lang, h)
    raise ValueError(f"the activation {step.name!r} cannot be exported")


def uses_exp(step: Pointwise) -> bool:
    return step.name in ("tanh", "sigmoid", "softplus")


def _softplus(lang: Operators, h: Number) -> Number:
    t = exp(lang, lang.if_less(h, 0.0, h, h * -1.0))
    s = lang.let(t / (t + 2.0))
    return lang.maximum(h, 0.0) + s * horner(LOG1P_SERIES, lang.let(s * s))


def horner(coefficients: list[float], x: Number) -> Number:
    """Polynomial with the given coefficients, constant first."""
    result = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        result = result * x + coefficient
    return result


def rounds(group_size: int, n_units: int) -> list[Pairs]:
    """GroupSort of `n_units` as rounds of pairs (i, j): i gets the smaller, j the larger.

    Those of one round are of different units, and can act at once.
    """
    depth = [0] * group_size
    result: list[Pairs] = []
    for i, j in engine.comparators(group_size):
        at = max(depth[i], depth[j])
        depth[i] = depth[j] = at + 1
        if at == len(result):
            result.append([])
        result[at] += [(start + i, start + j) for start in range(0, n_units, group_size)]
    return result
