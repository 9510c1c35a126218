"""Arithmetic rounded upward: every result is at least the exact one, for non-negative numbers.

Certificates are computed with these and never with a plain float sum. A correctly rounded result
that is below the exact one is moved up by one unit in the last place; one that is exact stays, so
that bounds on numbers of few bits, such as those of fixed point, are exact themselves.

Weights that are stored with fewer bits are rounded `toward_zero`, so that no norm grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from isotone.typing import Floats, Precision, Reals


@np.errstate(over="ignore")
def add(a: ArrayLike, b: ArrayLike) -> Floats:
    """Upper bound on a + b; exact where float64 holds the sum."""
    high, low = two_sum(np.asarray(a, float), np.asarray(b, float))
    return np.where(low <= 0, high, _up(high))


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def multiply(a: ArrayLike, b: ArrayLike) -> Floats:
    """Upper bound on a · b; zero where one of them is zero, exact where float64 holds it."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    high, low = two_product(a, b)
    return np.where(np.logical_and(a, b), np.where(low <= 0, high, _up(high)), 0.0)


def divide(a: ArrayLike, b: ArrayLike) -> Floats:
    """Upper bound on a / b for positive b; zero where a is zero, exact where float64 holds it."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result = a / b
        high, low = two_product(result, b)
        return np.where(a == 0, 0.0, np.where((high == a) & (low >= 0), result, _up(result)))


def subtract_down(a: ArrayLike, b: ArrayLike) -> Floats:
    """Lower bound on a - b, of either sign; exact where float64 holds the difference."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    high, low = two_sum(a, -b)
    return np.where(b == 0, a, np.where(low >= 0, high, np.nextafter(high, -np.inf)))


def multiply_down(a: Floats, b: Floats) -> Floats:
    """Lower bound on a · b where neither is negative, and 0 elsewhere."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.maximum(0.0, np.nextafter(np.maximum(a, 0.0) * b, -np.inf))


@np.errstate(over="ignore", invalid="ignore")
def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded a + b and what rounding took away: their sum is exact, barring overflow."""
    high = a + b
    kept = high - a
    return high, (a - (high - kept)) + (b - kept)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The rounded a · b and what rounding took away, NaN where that may not be a float.

    Dekker's product: halves of 26 bits each, whose products are exact.
    """
    high = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    size = np.abs(high)  # halves of a factor that is too large are NaN
    return high, np.where((size > 2.0**-900) & (size < 2.0**1000), low, np.nan)


def _halves(x: Floats) -> tuple[Floats, Floats]:
    large = x * (2.0**27 + 1.0)
    high = large - (large - x)
    return high, x - high


def toward_zero(values: Reals, precision: Precision) -> Reals:
    """The nearest numbers of a precision that are not farther from zero."""
    rounded = _in_precision(values, precision)
    too_large = np.abs(rounded.astype(np.float64)) > np.abs(values)
    return np.where(too_large, np.nextafter(rounded, rounded.dtype.type(0)), rounded)


def away_from_zero(values: Reals, precision: Precision) -> Reals:
    """The nearest numbers of a precision that are not closer to zero; infinite beyond it."""
    rounded = _in_precision(values, precision)
    with np.errstate(over="ignore"):
        away = np.nextafter(rounded, np.copysign(rounded.dtype.type(np.inf), rounded))
    return np.where(np.abs(rounded.astype(np.float64)) < np.abs(values), away, rounded)


def multiples_toward_zero(values: Reals, exponent: ArrayLike) -> Floats:
    """The nearest whole numbers of 2^exponent that are not farther from zero.

    Exponents may differ from value to value: they broadcast.
    """
    exponent = np.asarray(exponent, np.int64)
    whole: Floats = np.trunc(np.ldexp(values.astype(np.float64), -exponent))
    return np.asarray(np.ldexp(whole, exponent), np.float64)


def _in_precision(values: Reals, precision: Precision) -> Reals:
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(precision)


def sum_down(terms: list[float]) -> float:
    """The largest float that is not above the exact sum; -inf where a term is infinite."""
    try:
        result = math.fsum(terms)
        above = math.fsum([-result, *terms]) < 0
    except (OverflowError, ValueError):  # beyond float64, or an infinity
        return -math.inf
    return math.nextafter(result, -math.inf) if above else result


def total(values: ArrayLike) -> float:
    """The smallest float that is not below the sum of non-negative numbers."""
    return _total(np.asarray(values, float).ravel().tolist())


def _total(numbers: list[float]) -> float:
    try:
        result = math.fsum(numbers)
        below = math.fsum([-result, *numbers]) > 0
    except (OverflowError, ValueError):  # beyond float64, or an infinity
        return math.inf
    return math.nextafter(result, math.inf) if below else result + 0.0  # no -0.0


def totals(matrix: Floats) -> Floats:
    """Upper bounds on the sums of the rows of a non-negative matrix, or of several."""
    rows = matrix.reshape(-1, matrix.shape[-1]).tolist()
    return np.array([_total(row) for row in rows]).reshape(matrix.shape[:-1])


def root(values: Floats) -> Floats:
    """Upper bound on the square root."""
    with np.errstate(over="ignore"):
        return np.where(values == 0, 0.0, _up(np.sqrt(values)))


def digits_up(number: float, digits: int = 4) -> str:
    """A number as text with a few digits, rounded up: what is printed is still a bound."""
    return _digits(number, digits, ROUND_CEILING)


def digits_down(number: float, digits: int = 4) -> str:
    """A number as text with a few digits, rounded down."""
    return _digits(number, digits, ROUND_FLOOR)


def gamma(n: int, unit: float) -> float:
    r"""Upper bound on :math:`\gamma_n = n u / (1 - n u)`, infinite from n u = 1/2 on.

    A sum of n products, computed in any order, with or without fused multiply-add, errs by at most
    :math:`\gamma_n` times the sum of the absolute products, with :math:`u` the unit roundoff.
    """
    nu = n * unit  # exact: unit is a power of two
    return math.nextafter(nu / (1.0 - nu), math.inf) if nu < 0.5 else math.inf


@dataclass(frozen=True, eq=False)
class MatrixNorms:
    """Upper bounds on sums, and exact maxima, of the absolute entries of a matrix.

    Those of several matrices have a leading axis for them.
    """

    column_sum: Floats
    column_max: Floats
    row_sum: Floats
    row_max: Floats
    sum: float | Floats
    max: float | Floats

    @cached_property
    def growth(self) -> Floats:
        """By how much the 1-norm and the ∞-norm can grow: each from the one, from the other."""
        columns, rows = self.column_sum.max(axis=-1), self.row_sum.max(axis=-1)
        growth: Floats = np.array([[columns, self.sum], [self.max, rows]])
        return growth.T.swapaxes(-1, -2)

    @cached_property
    def row_growth(self) -> Floats:
        """What every output can be, from the 1-norm and from the ∞-norm, (2, n_out)."""
        return np.array([self.row_max, self.row_sum]).swapaxes(0, -2)

    @cached_property
    def each_and_sum(self) -> Floats:
        """`row_growth`, and after the outputs the 1-norm of all of them, (2, n_out + 1)."""
        return np.concatenate([self.row_growth, self.growth[..., 0, :, None]], axis=-1)

    @classmethod
    def of(cls, matrix: Reals) -> MatrixNorms:
        size = np.abs(matrix, dtype=np.float64)
        row_sum = totals(size)
        return cls(
            column_sum=totals(size.T),
            column_max=size.max(axis=0),
            row_sum=row_sum,
            row_max=size.max(axis=1),
            sum=total(row_sum),
            max=float(size.max()),
        )

    @classmethod
    def stack(cls, norms: Sequence[MatrixNorms]) -> MatrixNorms:
        """Those of several matrices of one shape."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.array([getattr(each, name) for each in norms]) for name in names))


def _digits(number: float, digits: int, rounding: str) -> str:
    decimal = Context(prec=digits, rounding=rounding).create_decimal_from_float(number)
    return f"{float(decimal) + 0.0:.{digits}g}"  # + 0.0, or else -0.0 would show its sign


def _up(x: Floats) -> Floats:
    result: Floats = np.nextafter(x, np.inf)
    return result
