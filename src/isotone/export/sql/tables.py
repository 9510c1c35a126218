"""Constant tables that a stage joins: rows are places, columns are the numbers to look up there.

A database reads every number exactly and in a time that does not depend on the others. DuckDB and
PostgreSQL read a column from one text. SQLite compares the operands of a constant expression with
all before them, so there a number is two integers, which a second table divides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isotone.export.sql.expression import Dialect, integer_and_exponent, literal

Columns = dict[str, Sequence[float]]

_LARGEST_SHIFT = 62  # 2 to this power is an integer of SQLite


@dataclass(frozen=True)
class ConstantTable:
    """A constant table.

    Parameters
    ----------
    place : the column of the stage before that has the number of a row, counted from 0
    columns : by their names
    """

    name: str
    place: str
    columns: Columns

    @property
    def join(self) -> str:
        return f"LEFT JOIN {self.name} ON {self.name}.place = {self.place}"

    def text(self, dialect: Dialect) -> str:
        """Common table expressions, the last of which is this table."""
        places = range(len(next(iter(self.columns.values()))))
        if dialect == "sqlite":
            return self._divided(places)
        columns = {"place": places, **self.columns}
        lists = (f"{_list(values, dialect)} AS {k}" for k, values in columns.items())
        return f"{self.name} AS (SELECT {', '.join(lists)})"

    def _divided(self, places: range) -> str:
        integers = f"{self.name}_integers"
        cells = {k: [*map(_integer_and_shift, values)] for k, values in self.columns.items()}
        names = ", ".join(f"{k}, shift_{k}" for k in cells)
        rows = zip(places, *cells.values(), strict=True)
        values = ",".join(f"({p},{','.join(f'{m},{e}' for m, e in row)})" for p, *row in rows)
        numbers = (f"{_quotient(k, max(e for _, e in v))} AS {k}" for k, v in cells.items())
        return (
            f"{integers} (place, {names}) AS (VALUES {values}),\n"
            f"{self.name} AS (SELECT place, {', '.join(numbers)} FROM {integers} LIMIT -1)"
        )


def _list(values: Sequence[float], dialect: Dialect) -> str:
    numbers = ",".join(repr(float(value)) for value in values)
    text = f"'[{numbers}]'::DOUBLE[]" if dialect == "duckdb" else f"'{{{numbers}}}'::float8[]"
    return f"unnest({text})"


def _integer_and_shift(value: float) -> tuple[str, int]:
    """A number is the first over 2 to the power of the second."""
    integer, exponent = integer_and_exponent(abs(value))
    if exponent > 0:
        return literal(value, "sqlite"), 0
    return f"{'-' if value < 0 else ''}{integer}", -exponent


def _quotient(k: str, largest: int) -> str:
    """A column over 2 to the power of its shift e, in n parts: e = Σᵢ ⌊(e + i) / n⌋."""
    n = max(1, -(-largest // _LARGEST_SHIFT))
    return f"1e0 * {k}" + "".join(f" / (1 << (shift_{k} + {i}) / {n})" for i in range(n))
