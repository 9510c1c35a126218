"""Snapping, logarithm and exponential with the same bits on every machine, provably monotone.

A C library's `log` or `exp` is neither the same everywhere nor promised to be monotone. The ones
here use only IEEE additions, multiplications and divisions, one after the other, so their result
depends on nothing but the argument. `log` and `monotone_exp` snap their argument first, which is
itself monotone: neighboring snapped arguments have results that differ by far more than the error
of the formula. The error bounds below are generous; `tests/test_elementary.py` compares them with
high-precision arithmetic.
"""

from __future__ import annotations

import math

import numpy as np

from isotone.typing import Floats

EXP_ERROR = 2.0**-48  # relative error of `exp`
EXP_GRID = 2.0**-30  # `monotone_exp` snaps to multiples of this
EXP_LIMIT = 700.0  # arguments of `exp` are clamped to plus or minus this

LN2 = 0.6931471805599453
LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # 33 bits: k * LN2_HIGH is exact for |k| < 2**20
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
LOG_SERIES = [2.0 / (2 * k + 1) for k in range(12)]
EXP_SERIES = [1.0 / float(np.prod(np.arange(1, k + 1, dtype=float))) for k in range(14)]


def snap_grid(x: Floats, grid: float) -> Floats:
    """Round to the nearest multiple of `grid`, a power of two; monotone, and exact."""
    return np.rint(x / grid) * grid + 0.0  # + 0.0 turns -0.0 into 0.0


def snap_mantissa(x: Floats) -> Floats:
    """Round to 24 significant bits, as float32 does, but keep the exponent; monotone."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(mantissa * 2.0**24) * 2.0**-24, exponent)


def log(x: Floats) -> Floats:
    r"""Natural logarithm of positive numbers up to 2¹⁰²³, snapped to 24 bits first: monotone.

    With :math:`x = m\,2^k`, :math:`m \in [\sqrt{1/2}, \sqrt 2)` and :math:`s = (m-1)/(m+1)`:

    .. math:: \log x = k \log 2 + 2 \,(s + s^3/3 + s^5/5 + \ldots)

    Snapped neighbors are at least :math:`2^{-24}` apart in ratio, so their logarithms differ by
    more than :math:`2^{-25}`, a multiple of twice the error :math:`2^{-40}`.
    """
    mantissa, exponent = np.frexp(snap_mantissa(np.minimum(x, 2.0**1023)))
    small = mantissa < np.sqrt(0.5)
    m = np.where(small, 2.0 * mantissa, mantissa)
    k = (exponent - small).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    result: Floats = k * LN2_HIGH + (s * horner(LOG_SERIES, s * s) + k * LN2_LOW)
    return result


def exp(x: Floats) -> Floats:
    r"""Exponential of numbers clamped to ±700.

    With :math:`x = k \log 2 + r`, :math:`|r| \le \tfrac12 \log 2`:
    :math:`e^x = 2^k \sum_n r^n / n!`.
    """
    x = np.clip(x, -EXP_LIMIT, EXP_LIMIT)
    k = np.rint(x / LN2)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return np.ldexp(horner(EXP_SERIES, r), k.astype(np.int32))


def monotone_exp(x: Floats) -> Floats:
    r"""Exponential with its argument snapped to the grid 2⁻³⁰ first: monotone.

    Neighbors on the grid have results in the ratio :math:`1 + 2^{-30}`, far above twice the
    relative error :math:`2^{-48}` of `exp`.
    """
    return exp(snap_grid(np.clip(x, -EXP_LIMIT, EXP_LIMIT), EXP_GRID))


def horner(coefficients: list[float], x: Floats) -> Floats:
    """Polynomial with the given coefficients, constant first."""
    result = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def divides(grid: float, clip: float) -> bool:
    """Whether `grid` is a power of two and `clip` a multiple that float64 holds exactly."""
    if math.frexp(grid)[0] != 0.5:  # as of no number but powers of two
        return False
    cells = clip / grid
    return cells <= 2.0**51 and cells.is_integer()
