"""Expressions of SQL, and numbers that a database reads exactly.

PostgreSQL raises an error where a product of two numbers other than zero rounds to zero. Every
expression therefore carries the step that its values are multiples of: sums keep it, products
multiply it. Where a product could vanish, it is written as zero.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

Dialect = Literal["sqlite", "duckdb", "postgresql"]

FINEST = -1074  # every double is a multiple of 2^-1074
_NEGLIGIBLE = 2.0**-500  # neither it nor its square changes a sum with numbers near 1


@dataclass(frozen=True)
class Expression:
    """SQL text, the columns it reads and the dialect its numbers are written in.

    Parameters
    ----------
    finest : values are multiples of 2 to this power
    """

    text: str
    columns: frozenset[str]
    dialect: Dialect
    finest: int = FINEST

    def __add__(self, other: Expression | float) -> Expression:
        other = self._lift(other)
        return self._with("+", other, min(self.finest, other.finest))

    def __sub__(self, other: Expression | float) -> Expression:
        other = self._lift(other)
        return self._with("-", other, min(self.finest, other.finest))

    def __mul__(self, other: Expression | float) -> Expression:
        lifted = self._lift(other)
        product = self._with("*", lifted, max(self.finest + lifted.finest, FINEST))
        if isinstance(other, Expression):
            return self._or_zero(product, _NEGLIGIBLE) if other.text == self.text else product
        return self._or_zero(product, vanishing(other))

    def __truediv__(self, other: Expression | float) -> Expression:
        return self._with("/", self._lift(other), FINEST)

    def __rsub__(self, other: float) -> Expression:
        return self._lift(other) - self

    def __rtruediv__(self, other: float) -> Expression:
        return self._lift(other) / self

    def plus_product(self, weight: float, unit: Expression) -> Expression:
        """self + weight · unit without parentheses, so that a long sum is not deeply nested."""
        factor = self._lift(weight)
        finest = max(factor.finest + unit.finest, FINEST)
        plain = replace(unit, text=f"{factor.text} * {unit.text}", finest=finest)
        product = unit._or_zero(plain, vanishing(weight))
        text, columns = f"{self.text} + {product.text}", self.columns | unit.columns
        return Expression(text, columns, self.dialect, min(self.finest, finest))

    def plus(self, other: Expression) -> Expression:
        """self + other, also without parentheses."""
        text, columns = f"{self.text} + {other.text}", self.columns | other.columns
        return Expression(text, columns, self.dialect, min(self.finest, other.finest))

    def _with(self, operator: str, other: Expression, finest: int) -> Expression:
        text = f"({self.text} {operator} {other.text})"
        return Expression(text, self.columns | other.columns, self.dialect, finest)

    def _lift(self, other: Expression | float) -> Expression:
        return other if isinstance(other, Expression) else constant(other, self.dialect)

    def _or_zero(self, other: Expression, bound: float) -> Expression:
        """`other`, or 0 where self is at most `bound` in size, if that is to be feared."""
        if self.dialect != "postgresql" or bound < math.ldexp(1.0, min(self.finest, 1000)):
            return other
        low, high, zero = (literal(value, self.dialect) for value in (-bound, bound, 0.0))
        small = f"{self.text} BETWEEN {low} AND {high}"
        return replace(other, text=f"(CASE WHEN {small} THEN {zero} ELSE {other.text} END)")

    def without_negligible(self) -> Expression:
        """0 in place of numbers whose product with a coefficient of a series could vanish."""
        return replace(self._or_zero(self, _NEGLIGIBLE), finest=max(self.finest, -552))


def constant(value: float, dialect: Dialect) -> Expression:
    _, exponent = integer_and_exponent(abs(value))
    return Expression(literal(value, dialect), frozenset(), dialect, exponent)


def vanishing(weight: float) -> float:
    """The largest x for which weight · x rounds to zero, as a tie with 2^-1074 does.

    It is 0 for a weight of zero as well, whose product does not underflow.
    """
    if weight == 0.0:
        return 0.0
    limit = Fraction(1, 2**1075) / abs(Fraction(weight))
    largest = min(limit, Fraction(sys.float_info.max))
    nearest = float(largest)
    return nearest if Fraction(nearest) <= limit else math.nextafter(nearest, 0.0)


def literal(value: float, dialect: Dialect) -> str:
    """A number as SQL that is read as exactly this double.

    DuckDB reads decimals correctly; with an exponent they are doubles and not DECIMAL. PostgreSQL
    takes them for NUMERIC, and reads a text correctly. SQLite may be off by a bit, so there the
    number is an integer times or over powers of two.
    """
    if dialect == "postgresql":
        return f"'{float(value)!r}'::float8"
    if dialect == "duckdb":
        text = repr(float(value))
        text = text if "e" in text else f"{text}e0"
        return f"({text})" if value < 0 else text
    mantissa, exponent = integer_and_exponent(abs(value))
    text = f"{mantissa}e0"
    while exponent:
        step = min(52, abs(exponent))
        text += f"{'*' if exponent > 0 else '/'}{2**step}e0"
        exponent += -step if exponent > 0 else step
    text = f"-{text}" if value < 0 else text
    return text if text.isalnum() else f"({text})"


def integer_and_exponent(value: float) -> tuple[int, int]:
    """Value = integer · 2^exponent with the smallest integer."""
    numerator, denominator = value.as_integer_ratio()
    if denominator > 1 or numerator == 0:
        return numerator, 1 - denominator.bit_length()
    zeros = (numerator & -numerator).bit_length() - 1
    return (numerator >> zeros, zeros) if numerator >= 2**53 else (numerator, 0)
