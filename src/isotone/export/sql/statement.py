"""A SELECT under construction: expressions whose shared parts become columns of stages.

A stage reads the stage before, and joins constant tables of the numbers that it looks up.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from isotone.export.formulas import frexp_by_comparing, ldexp_by_comparing
from isotone.export.sql.expression import (
    FINEST,
    Dialect,
    Expression,
    constant,
    integer_and_exponent,
    literal,
)
from isotone.export.sql.tables import Columns, ConstantTable

_COARSEST = 2000  # more than the scalings by powers of two in `formulas` make fine
_MOST_COLUMNS = 1664  # of a SELECT in PostgreSQL
_MOST_STREAMED = 32  # stages
_MOST_PLACES = 4  # by which one stage joins; SQLite takes 64 tables
# Columns of one constant table: SQLite is slow beyond 1000 bytes, and DuckDB with many tables.
_MOST_LOOKED_UP: dict[Dialect, int] = {"sqlite": 100, "duckdb": 500, "postgresql": 500}


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
        self._place_of: dict[str, str] = {}  # and the values that are looked up there
        self._values: Columns = {}
        self._joined: defaultdict[int, set[str]] = defaultdict(set)

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
        if x.text in self._definition:
            return x
        stage = 1 + max((self._stage[name] for name in x.columns), default=0)
        places = {self._place_of[name] for name in x.columns if name in self._place_of}
        while len(places | self._joined[stage]) > max(_MOST_PLACES, len(places)):
            stage += 1
        self._joined[stage] |= places
        return self._define(x, stage)

    def look_up(self, place: Expression, values: Sequence[float]) -> Expression:
        """The value with the number `place`, which was let: a column of a table that is joined."""
        name = f"k{len(self._values)}"
        self._stage[name] = self._stage[place.text]
        self._values[name], self._place_of[name] = values, place.text
        finest = min(integer_and_exponent(abs(value))[1] for value in values)
        return Expression(name, frozenset([name]), self.dialect, finest)

    def _define(self, x: Expression, stage: int) -> Expression:
        name = f"c{len(self._definition)}"
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

    def place(self, name: str, places: dict[str, int], other: int | None = None) -> str:
        """The number of a text; `other`, or NULL, if it has none."""
        if not places:
            return "NULL" if other is None else literal(other, self.dialect)
        known = " ".join(
            f"WHEN {_text(text, self.dialect)} THEN {literal(k, self.dialect)}"
            for text, k in places.items()
        )
        known += "" if other is None else f" ELSE {literal(other, self.dialect)}"
        cell = name
        if any(text.lstrip("-").isdecimal() for text in places):
            cell = self._as_read(name)
        elif self.dialect == "sqlite" and {"true", "false"} & places.keys():
            cell = self._as_boolean(name)
        return f"CASE {self._trimmed(cell)} {known} END"

    def if_missing(self, kind: str, name: str, yes: str, no: str) -> str:
        """One of two expressions, by whether a cell of the table holds nothing."""
        missing = f"{name} IS NULL"
        if kind != "number":
            missing += f" OR {self._trimmed(name)} = ''{self._or_nan(name)}"
        elif self.dialect == "duckdb":
            missing += f" OR isnan(TRY_CAST({name} AS DOUBLE))"
        elif self.dialect == "postgresql":
            missing += f" OR {self._double(name)} = 'NaN'::float8"
        return f"CASE WHEN {missing} THEN {yes} ELSE {no} END"

    def _or_nan(self, name: str) -> str:
        """Whether categories are numbers, and a cell is none; SQLite has no NaN."""
        if self.dialect == "sqlite":
            return ""
        kind = (
            f"typeof({name})" if self.dialect == "duckdb" else f"CAST(pg_typeof({name}) AS TEXT)"
        )
        kinds = "('FLOAT', 'DOUBLE', 'real', 'double precision', 'numeric')"
        return f" OR ({kind} IN {kinds} AND lower({self._as_text(name)}) = 'nan')"

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

    def _as_boolean(self, name: str) -> str:
        """SQLite stores true and false as 1 and 0."""
        is_bit = f"typeof({name}) = 'integer' AND {name} IN (0, 1)"
        word = f"CASE {name} WHEN 1 THEN 'true' ELSE 'false' END"
        return f"CASE WHEN {is_bit} THEN {word} ELSE {self._as_text(name)} END"

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
        return Expression(text, x.columns | reach.columns, self.dialect, FINEST)

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
        return replace(power, finest=FINEST)

    def text(self, results: dict[str, Expression]) -> str:
        """The SELECT that gives `results`, which were let, under their names."""
        last = max(self._stage[x.text] for x in results.values())
        row = self._number_of_row()
        needed = self._last_uses([*results.values(), *row], last + 1)
        stages = [self._text_of(stage, needed) for stage in range(last + 1)]
        named = ", ".join(f"{x.text} AS {quote(name)}" for name, x in results.items())
        order = "".join(f" ORDER BY {x.text}" for x in row)
        chain, source = ",\n".join(stages), f"{self._prefix}{last}"
        return f"WITH {chain}\nSELECT {named} FROM {source}{order}{_FENCES[self.dialect]}"

    def _number_of_row(self) -> list[Expression]:
        """What rows are ordered by, which a join may reorder except in SQLite."""
        reorders = self._values and self.dialect != "sqlite"
        return [self.read("row_number() OVER ()")] if reorders else []

    def _text_of(self, stage: int, needed: dict[str, int]) -> str:
        """One stage, after the tables that it joins."""
        columns = [name for name, use in needed.items() if self._stage[name] <= stage < use]
        self._check_width(len(columns))
        new = {name: self._definition[name] for name in columns if self._stage[name] == stage}
        named = (f"{new[name].text} AS {name}" if name in new else name for name in columns)
        table = f"{quote(self.table)} AS {self._prefix}"
        source = table if stage == 0 else f"{self._prefix}{stage - 1}"
        tables = self._tables(stage, new.values())
        joined = " ".join([source, *(table.join for table in tables)])
        body = f"SELECT {', '.join(named)} FROM {joined}{_FENCES[self.dialect]}"
        own = f"{self._prefix}{stage} AS {self._kept(stage)}({body})"
        return ",\n".join([*(table.text(self.dialect) for table in tables), own])

    def _tables(self, stage: int, definitions: Iterable[Expression]) -> list[ConstantTable]:
        """What a stage joins."""
        by_place: defaultdict[str, Columns] = defaultdict(dict)
        for x in definitions:
            for name in sorted(x.columns & self._values.keys()):  # one text per model
                by_place[self._place_of[name]][name] = self._values[name]
        most = _MOST_LOOKED_UP[self.dialect]
        parts = [(p, part) for p, columns in by_place.items() for part in _narrow(columns, most)]
        return [ConstantTable(f"{self._prefix}{stage}_{k}", *part) for k, part in enumerate(parts)]

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

    def _last_uses(self, results: list[Expression], end: int) -> dict[str, int]:
        """The last stage that reads every column that is read."""
        uses: dict[str, int] = {x.text: end for x in results}
        for name in reversed(self._definition):
            if name in uses:
                for column in sorted(self._definition[name].columns):  # one text per model
                    source = self._place_of.get(column, column)
                    uses[source] = max(uses.get(source, 0), self._stage[name])
        return uses


def _narrow(columns: Columns, most: int) -> list[Columns]:
    """The same columns in parts of limited size."""
    names = list(columns)
    return [{k: columns[k] for k in names[i : i + most]} for i in range(0, len(names), most)]


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
