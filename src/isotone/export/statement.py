"""A SELECT under construction: expressions whose shared parts become columns of stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isotone.export.formulas import frexp_by_comparing, ldexp_by_comparing

Dialect = Literal["sqlite", "duckdb"]


@dataclass(frozen=True)
class Expression:
    """SQL text, the columns it reads and the dialect its numbers are written in."""

    text: str
    columns: frozenset[str]
    dialect: Dialect

    def __add__(self, other: Expression | float) -> Expression:
        return self._with("+", other)

    def __sub__(self, other: Expression | float) -> Expression:
        return self._with("-", other)

    def __mul__(self, other: Expression | float) -> Expression:
        return self._with("*", other)

    def __truediv__(self, other: Expression | float) -> Expression:
        return self._with("/", other)

    def __rsub__(self, other: float) -> Expression:
        return self._lift(other) - self

    def __rtruediv__(self, other: float) -> Expression:
        return self._lift(other) / self

    def plus_product(self, weight: float, unit: Expression) -> Expression:
        """self + weight · unit without parentheses, so that a long sum is not deeply nested."""
        text = f"{self.text} + {literal(weight, self.dialect)} * {unit.text}"
        return Expression(text, self.columns | unit.columns, self.dialect)

    def _with(self, operator: str, other: Expression | float) -> Expression:
        other = self._lift(other)
        text = f"({self.text} {operator} {other.text})"
        return Expression(text, self.columns | other.columns, self.dialect)

    def _lift(self, other: Expression | float) -> Expression:
        if isinstance(other, Expression):
            return other
        return Expression(literal(other, self.dialect), frozenset(), self.dialect)


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
        return Expression(literal(value, self.dialect), frozenset(), self.dialect)

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
        return Expression(name, frozenset([name]), self.dialect)

    def finite(self, name: str) -> str:
        """The column as a double, or NULL; x - x is 0 for finite numbers only."""
        if self.dialect == "sqlite":
            is_number = f"typeof({name}) IN ('integer', 'real') AND {name} - {name} = 0"
            return f"CASE WHEN {is_number} THEN CAST({name} AS REAL) END"
        double = f"CAST({name} AS DOUBLE)"
        return f"CASE WHEN {double} - {double} = 0 THEN {double} END"

    def place(self, name: str, places: dict[str, int]) -> str:
        """The number of a text, or NULL."""
        known = " ".join(f"WHEN {_text(text)} THEN {k}e0" for text, k in places.items())
        return f"CASE {self._trimmed(name)} {known} END"

    def if_missing(self, kind: str, name: str, yes: str, no: str) -> str:
        """One of two expressions, by whether a cell of the table holds nothing."""
        missing = f"{name} IS NULL"
        if kind != "number":
            missing += f" OR {self._trimmed(name)} = ''"
        elif self.dialect == "duckdb":
            missing += f" OR isnan(TRY_CAST({name} AS DOUBLE))"
        return f"CASE WHEN {missing} THEN {yes} ELSE {no} END"

    def _trimmed(self, name: str) -> str:
        return f"TRIM(CAST({name} AS {'TEXT' if self.dialect == 'sqlite' else 'VARCHAR'}))"

    def if_less(self, a: Expression, b: float, yes: Expression, no: Expression) -> Expression:
        bound = literal(b, self.dialect)
        text = f"CASE WHEN {a.text} < {bound} THEN {yes.text} ELSE {no.text} END"
        return Expression(f"({text})", a.columns | yes.columns | no.columns, self.dialect)

    def maximum(self, a: Expression, b: float) -> Expression:
        """The larger one; NULL stays NULL, which GREATEST of DuckDB would drop."""
        a = self.let(a)
        return self.if_less(a, b, self.number(b), a)

    def minimum(self, a: Expression, b: float) -> Expression:
        a = self.let(a)
        bound = literal(b, self.dialect)
        text = f"(CASE WHEN {a.text} > {bound} THEN {bound} ELSE {a.text} END)"
        return Expression(text, a.columns, self.dialect)

    def least(self, a: Expression, b: Expression) -> Expression:
        return self._call({"sqlite": "MIN", "duckdb": "LEAST"}[self.dialect], a, b)

    def greatest(self, a: Expression, b: Expression) -> Expression:
        return self._call({"sqlite": "MAX", "duckdb": "GREATEST"}[self.dialect], a, b)

    def _call(self, function: str, a: Expression, b: Expression) -> Expression:
        text = f"{function}({a.text}, {b.text})"
        return Expression(text, a.columns | b.columns, self.dialect)

    def rint(self, x: Expression) -> Expression:
        """Adding 2⁵² leaves no room for a fraction; the rounding is to even."""
        shift = 2.0**52
        return self.if_less(x, 0.0, (x - shift) + shift, (x + shift) - shift)

    def frexp(self, x: Expression) -> tuple[Expression, Expression]:
        return frexp_by_comparing(self, x)

    def ldexp(self, x: Expression, k: Expression) -> Expression:
        power: Expression = ldexp_by_comparing(self, x, k)
        return power

    def text(self, results: dict[str, Expression]) -> str:
        """The SELECT that gives `results`, which were let, under their names."""
        last = max(self._stage[x.text] for x in results.values())
        needed = self._last_uses(results, last + 1)
        end = " LIMIT -1" if self.dialect == "sqlite" else ""  # or SQLite would merge the stages
        stages = []
        for stage in range(last + 1):
            columns = ", ".join(
                name if self._stage[name] < stage else f"{self._definition[name].text} AS {name}"
                for name, use in needed.items()
                if self._stage[name] <= stage < use
            )
            table = f"{quote(self.table)} AS {self._prefix}"
            source = table if stage == 0 else f"{self._prefix}{stage - 1}"
            stages.append(f"{self._prefix}{stage} AS (SELECT {columns} FROM {source}{end})")
        named = ", ".join(f"{x.text} AS {quote(name)}" for name, x in results.items())
        chain = ",\n".join(stages)
        return f"WITH {chain}\nSELECT {named} FROM {self._prefix}{last}{end}"

    def _last_uses(self, results: dict[str, Expression], end: int) -> dict[str, int]:
        """The last stage that reads every column that is read."""
        uses: dict[str, int] = {x.text: end for x in results.values()}
        for name in reversed(self._definition):
            if name in uses:
                for column in self._definition[name].columns:
                    uses[column] = max(uses.get(column, 0), self._stage[name])
        return uses


def quote(name: str) -> str:
    """A name of a table or column as SQL, whatever is in it."""
    if "\0" in name:
        raise ValueError(f"the name {name!r} holds a zero byte, which SQL cannot; rename it")
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    """A text as SQL."""
    if "\0" in value:
        raise ValueError(f"the category {value!r} holds a zero byte, which SQL cannot; rename it")
    return "'" + value.replace("'", "''") + "'"


def literal(value: float, dialect: Dialect) -> str:
    """A number as SQL that is read as exactly this double.

    DuckDB reads decimals correctly; with an exponent they are doubles and not DECIMAL. SQLite may
    be off by a bit, so there the number is an integer times or over powers of two.
    """
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
