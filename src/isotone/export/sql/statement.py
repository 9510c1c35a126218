"""A SELECT under construction: expressions whose shared parts become columns of stages.

PostgreSQL raises an error where a product of two numbers other than zero rounds to zero. Every
expression therefore carries the step that its values are multiples of: sums keep it, products
multiply it. Where a product could vanish, it is written as zero.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from isotone.export.formulas import frexp_by_comparing, ldexp_by_comparing

Dialect = Literal["sqlite", "duckdb", "postgresql"]

_FINEST = -1074  # every double is a multiple of 2^-1074
_COARSEST = 2000  # more than the scalings by powers of two in `formulas` make fine
_NEGLIGIBLE = 2.0**-500  # neither it nor its square changes a sum with numbers near 1
_MOST_COLUMNS = 1664  # of a SELECT in PostgreSQL
_MOST_STREAMED = 32  # stages


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
    finest: int = _FINEST

    def __add__(self, other: Expression | float) -> Expression:
        other = self._lift(other)
        return self._with("+", other, min(self.finest, other.finest))

    def __sub__(self, other: Expression | float) -> Expression:
        other = self._lift(other)
        return self._with("-", other, min(self.finest, other.finest))

    def __mul__(self, other: Expression | float) -> Expression:
        lifted = self._lift(other)
        product = self._with("*", lifted, max(self.finest + lifted.finest, _FINEST))
        if isinstance(other, Expression):
            return self._or_zero(product, _NEGLIGIBLE) if other.text == self.text else product
        return self._or_zero(product, vanishing(other))

    def __truediv__(self, other: Expression | float) -> Expression:
        return self._with("/", self._lift(other), _FINEST)

    def __rsub__(self, other: float) -> Expression:
        return self._lift(other) - self

    def __rtruediv__(self, other: float) -> Expression:
        return self._lift(other) / self

    def plus_product(self, weight: float, unit: Expression) -> Expression:
        """self + weight · unit without parentheses, so that a long sum is not deeply nested."""
        factor = self._lift(weight)
        finest = max(factor.finest + unit.finest, _FINEST)
        plain = replace(unit, text=f"{factor.text} * {unit.text}", finest=finest)
        product = unit._or_zero(plain, vanishing(weight))
        text, columns = f"{self.text} + {product.text}", self.columns | unit.columns
        return Expression(text, columns, self.dialect, min(self.finest, finest))

    def plus(self, other: Expression) -> Expression:
        """self + other without parentheses, likewise."""
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


class Statement:
    """Columns in stages: a column of one stage reads columns of the stage before.

    Parameters
    ----------
    dialect : how numbers, minima and stages are written
    table : name of the table that the first stage reads
    """

    def __init__(self, dialect: Dialect, table: str) -> None:
        self.dialect, self.table = dialect, table
        # what stages are called: not like the table, which the first one reads
        self._prefix = "q" if table.casefold().startswith("s") else "s"
        self._stage: dict[str, int] = {}
        self._definition: dict[str, Expression] = {}

    def number(self, value: float) -> Expression:
        return constant(value, self.dialect)

    def read(self, text: str) -> Expression:
        """A column of the first stage, made from columns of the table."""
        return self._define(Expression(text, frozenset(), self.dialect), 0)

    def column(self, name: str) -> str:
        """A column of the table. SQLite would take a bare name that is none for a text."""
        return f"{self._prefix}.{quote(name)}"

    def let(self, x: Expression) -> Expression:
        """`x` as a column of the first stage that can have it."""
        if x.text in self._stage:
            return x
        return self._define(x, 1 + max((self._stage[name] for name in x.columns), default=0))

    def _define(self, x: Expression, stage: int) -> Expression:
        name = f"c{len(self._stage)}"
        self._stage[name], self._definition[name] = stage, x
        return Expression(name, frozenset([name]), self.dialect, x.finest)

    def finite(self, name: str) -> str:
        """The column as a double, or NULL; x - x is 0 for finite numbers only.

        In PostgreSQL, NaN is above all other numbers.
        """
        if self.dialect == "sqlite":
            is_number = f"typeof({name}) IN ('integer', 'real') AND {name} - {name} = 0"
            return f"CASE WHEN {is_number} THEN CAST({name} AS REAL) END"
        double = self._double(name)
        if self.dialect == "postgresql":
            low, high = (literal(sign * sys.float_info.max, self.dialect) for sign in (-1, 1))
            return f"CASE WHEN {double} BETWEEN {low} AND {high} THEN {double} END"
        return f"CASE WHEN {double} - {double} = 0 THEN {double} END"

    def place(self, name: str, places: dict[str, int]) -> str:
        """The number of a text, or NULL."""
        known = " ".join(
            f"WHEN {_text(text, self.dialect)} THEN {literal(k, self.dialect)}"
            for text, k in places.items()
        )
        whole = any(text.lstrip("-").isdecimal() for text in places)
        return f"CASE {self._trimmed(self._as_read(name) if whole else name)} {known} END"

    def if_missing(self, kind: str, name: str, yes: str, no: str) -> str:
        """One of two expressions, by whether a cell of the table holds nothing."""
        missing = f"{name} IS NULL"
        if kind != "number":
            missing += f" OR {self._trimmed(name)} = ''"
        elif self.dialect == "duckdb":
            missing += f" OR isnan(TRY_CAST({name} AS DOUBLE))"
        elif self.dialect == "postgresql":
            missing += f" OR {self._double(name)} = 'NaN'::float8"
        return f"CASE WHEN {missing} THEN {yes} ELSE {no} END"

    def _trimmed(self, name: str) -> str:
        """A cell as text, without the white space around it that isotone ignores."""
        return f"{_TRIM[self.dialect]}({self._as_text(name)}, {_SPACES[self.dialect]})"

    def _as_text(self, name: str) -> str:
        return f"CAST({name} AS {'VARCHAR' if self.dialect == 'duckdb' else 'TEXT'})"

    def _as_read(self, name: str) -> str:
        """1 for the floating-point number 1.0, as isotone and PostgreSQL write it."""
        if self.dialect == "postgresql":
            return name
        floats = "('real')" if self.dialect == "sqlite" else "('FLOAT', 'DOUBLE')"
        text = self._as_text(name)
        is_whole = f"typeof({name}) IN {floats} AND {text} LIKE '%.0'"
        without = f"substr({text}, 1, length({text}) - 2)"
        return f"CASE WHEN {is_whole} THEN {without} ELSE {text} END"

    def _double(self, name: str) -> str:
        return f"CAST({name} AS {'DOUBLE' if self.dialect == 'duckdb' else 'DOUBLE PRECISION'})"

    def if_less(self, a: Expression, b: float, yes: Expression, no: Expression) -> Expression:
        bound = literal(b, self.dialect)
        text = f"CASE WHEN {a.text} < {bound} THEN {yes.text} ELSE {no.text} END"
        columns, finest = a.columns | yes.columns | no.columns, min(yes.finest, no.finest)
        return Expression(f"({text})", columns, self.dialect, finest)

    def among(
        self, x: Expression, bounds: Sequence[float], leaves: Sequence[Expression]
    ) -> Expression:
        """The leaf k where bounds[k - 1] ≤ x < bounds[k]; leaves beyond the bounds are not used.

        `x` was let. A tree of comparisons, so that few are made for one row.
        """
        if not bounds or len({leaf.text for leaf in leaves[: len(bounds) + 1]}) == 1:
            return leaves[0]
        middle = len(bounds) // 2
        below = self.among(x, bounds[:middle], leaves[: middle + 1])
        above = self.among(x, bounds[middle + 1 :], leaves[middle + 1 :])
        return self.if_less(x, bounds[middle], below, above)

    def between(self, x: Expression, reach: Expression) -> Expression:
        """`x` clamped to ±reach; both were let."""
        a, b = x.text, reach.text
        text = f"(CASE WHEN {a} > {b} THEN {b} WHEN {a} < -{b} THEN -{b} ELSE {a} END)"
        return Expression(text, x.columns | reach.columns, self.dialect, _FINEST)

    def unless_within(self, x: Expression, bound: Expression, other: Expression) -> Expression:
        """`other`, or 0 where abs(x) ≤ bound; both were let."""
        zero, b = literal(0.0, self.dialect), bound.text
        text = f"(CASE WHEN {x.text} BETWEEN -{b} AND {b} THEN {zero} ELSE {other.text} END)"
        columns = x.columns | bound.columns | other.columns
        return Expression(text, columns, self.dialect, other.finest)

    def maximum(self, a: Expression, b: float) -> Expression:
        """The larger one; NULL stays NULL, which GREATEST would drop except in SQLite."""
        a = self.let(a)
        return self.if_less(a, b, self.number(b), a)

    def minimum(self, a: Expression, b: float) -> Expression:
        a = self.let(a)
        bound = self.number(b)
        text = f"(CASE WHEN {a.text} > {bound.text} THEN {bound.text} ELSE {a.text} END)"
        return Expression(text, a.columns, self.dialect, min(a.finest, bound.finest))

    def least(self, a: Expression, b: Expression) -> Expression:
        return self._call("MIN" if self.dialect == "sqlite" else "LEAST", a, b)

    def greatest(self, a: Expression, b: Expression) -> Expression:
        return self._call("MAX" if self.dialect == "sqlite" else "GREATEST", a, b)

    def _call(self, function: str, a: Expression, b: Expression) -> Expression:
        text, finest = f"{function}({a.text}, {b.text})", min(a.finest, b.finest)
        return Expression(text, a.columns | b.columns, self.dialect, finest)

    def rint(self, x: Expression) -> Expression:
        """Adding 2⁵² leaves no room for a fraction; the rounding is to even."""
        shift = 2.0**52
        whole = self.if_less(x, 0.0, (x - shift) + shift, (x + shift) - shift)
        return replace(whole, finest=0)

    def frexp(self, x: Expression) -> tuple[Expression, Expression]:
        """No product in it vanishes: a number is made smaller only if it is large."""
        mantissa, exponent = frexp_by_comparing(self, replace(x, finest=_COARSEST))
        return replace(mantissa, finest=-53), replace(exponent, finest=0)

    def ldexp(self, x: Expression, k: Expression) -> Expression:
        """No product in it vanishes, see `formulas.Operators`."""
        power: Expression = ldexp_by_comparing(self, replace(x, finest=_COARSEST), k)
        return replace(power, finest=_FINEST)

    def text(self, results: dict[str, Expression]) -> str:
        """The SELECT that gives `results`, which were let, under their names."""
        last = max(self._stage[x.text] for x in results.values())
        needed = self._last_uses(results, last + 1)
        end = _FENCES[self.dialect]
        stages = []
        for stage in range(last + 1):
            columns = [
                name if self._stage[name] < stage else f"{self._definition[name].text} AS {name}"
                for name, use in needed.items()
                if self._stage[name] <= stage < use
            ]
            self._check_width(len(columns))
            table = f"{quote(self.table)} AS {self._prefix}"
            source = table if stage == 0 else f"{self._prefix}{stage - 1}"
            body = f"SELECT {', '.join(columns)} FROM {source}{end}"
            stages.append(f"{self._prefix}{stage} AS {self._kept(stage)}({body})")
        named = ", ".join(f"{x.text} AS {quote(name)}" for name, x in results.items())
        chain = ",\n".join(stages)
        return f"WITH {chain}\nSELECT {named} FROM {self._prefix}{last}{end}"

    def _kept(self, stage: int) -> str:
        """PostgreSQL streams rows through stages, and plans in the square of how many it does."""
        last = stage % _MOST_STREAMED == _MOST_STREAMED - 1
        return "MATERIALIZED " if self.dialect == "postgresql" and last else ""

    def _check_width(self, n_columns: int) -> None:
        if self.dialect == "postgresql" and n_columns > _MOST_COLUMNS:
            raise ValueError(
                f"a stage of the statement has {n_columns} columns, units and features that are "
                f"still needed, and PostgreSQL takes at most {_MOST_COLUMNS}; export to another "
                "target, such as dialect='duckdb' or cpp"
            )

    def _last_uses(self, results: dict[str, Expression], end: int) -> dict[str, int]:
        """The last stage that reads every column that is read."""
        uses: dict[str, int] = {x.text: end for x in results.values()}
        for name in reversed(self._definition):
            if name in uses:
                for column in sorted(self._definition[name].columns):  # one text per model
                    uses[column] = max(uses.get(column, 0), self._stage[name])
        return uses


# What keeps a database from merging the stages into one expression of exponential size.
_FENCES: dict[Dialect, str] = {"sqlite": " LIMIT -1", "duckdb": "", "postgresql": " OFFSET 0"}


# White space around texts is not part of them. PostgreSQL may not know what is beyond ASCII.
_CODES = [code for code in range(0x3001) if chr(code).isspace()]
_TRIM: dict[Dialect, str] = {"sqlite": "TRIM", "duckdb": "TRIM", "postgresql": "BTRIM"}
_SPACES: dict[Dialect, str] = {
    "sqlite": f"char({', '.join(map(str, _CODES))})",
    "duckdb": " || ".join(f"chr({code})" for code in _CODES),
    "postgresql": "E'" + "".join(f"\\x{code:02x}" for code in _CODES if code < 128) + "'",
}


def quote(name: str) -> str:
    """A name of a table or column as SQL, whatever is in it."""
    if "\0" in name:
        raise ValueError(f"the name {name!r} holds a zero byte, which SQL cannot; rename it")
    return '"' + name.replace('"', '""') + '"'


def _text(value: str, dialect: Dialect) -> str:
    """A text as SQL, in PostgreSQL whatever its settings say about backslashes."""
    if "\0" in value:
        raise ValueError(f"the category {value!r} holds a zero byte, which SQL cannot; rename it")
    text = "'" + value.replace("'", "''") + "'"
    if dialect == "postgresql" and "\\" in value:
        return "E" + text.replace("\\", "\\\\")
    return text


def constant(value: float, dialect: Dialect) -> Expression:
    _, exponent = _integer_and_exponent(abs(value))
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
    mantissa, exponent = _integer_and_exponent(abs(value))
    text = f"{mantissa}e0"
    while exponent:
        step = min(52, abs(exponent))
        text += f"{'*' if exponent > 0 else '/'}{2**step}e0"
        exponent += -step if exponent > 0 else step
    text = f"-{text}" if value < 0 else text
    return text if text.isalnum() else f"({text})"


def _integer_and_exponent(value: float) -> tuple[int, int]:
    """Value = integer · 2^exponent with the smallest integer."""
    numerator, denominator = value.as_integer_ratio()
    if denominator > 1 or numerator == 0:
        return numerator, 1 - denominator.bit_length()
    zeros = (numerator & -numerator).bit_length() - 1
    return (numerator >> zeros, zeros) if numerator >= 2**53 else (numerator, 0)
