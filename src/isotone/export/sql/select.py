"""SQL: one SELECT that scores a table where it lives: SQLite, DuckDB, PostgreSQL. The same bits.

Every number is computed by the operations of `FrozenNetwork.score` in the same order and in
double precision, so a float64 network gets the same scores. The statement is a chain of common
table expressions, one per stage: a single expression for the whole network would double in size
with every comparator. Copies of a column are looked up: a stage joins a constant table by the
place of the copy that moves.

The table has the raw columns of the model. NULL and NaN are missing values, and so is an empty
text among categories, which are compared without spaces around them. What the model does not know,
a new category, a missing value without a meaning, text in place of a number or infinity, makes the
score NULL. In PostgreSQL, columns of numbers must have a type of numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from isotone.certificate.bounds import rounding_errors
from isotone.checks import check_choice
from isotone.export.claim import Arithmetic, Claim, SingleFile
from isotone.export.exactness import exact, in_precision, within
from isotone.export.formulas import activate, rounds, uses_exp
from isotone.export.sql.databases import run_duckdb, run_sqlite
from isotone.export.sql.entry import LookUp, Units, raw_features, scaled, sum_of
from isotone.export.sql.expression import Dialect
from isotone.export.sql.postgresql import NoServerError, Run, run_postgresql
from isotone.export.sql.statement import Statement
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.inputs.columns import Number
from isotone.typing import Floats, Reals

_LONGEST_NAME = 63  # in PostgreSQL
_LARGEST_SHIFT = 2.0**969  # with it, no sum with a finite number overflows


@dataclass(frozen=True)
class Sql(SingleFile):
    """A file with one SELECT.

    Parameters
    ----------
    dialect : "sqlite", "duckdb" or "postgresql"
    table : name of the table to score; it has the raw columns of the model
    keep : columns to copy next to the scores
    """

    dialect: Dialect = "sqlite"
    table: str = "data"
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("dialect", self.dialect, get_args(Dialect))
        if isinstance(self.keep, str):
            raise ValueError(
                f"`keep={self.keep!r}` is a string; give a list of names, [{self.keep!r}]"
            )

    def content(self, frozen: FrozenNetwork, found: Claim) -> bytes:
        about = json.dumps(found.summary()).replace("*", "\\u002a")  # no end of the comment
        return f"/* isotone: {about} */\n{self.select(frozen)}".encode()

    def select(self, frozen: FrozenNetwork) -> str:
        """The statement, without the comment that says what it is."""
        names = frozen.names_of("score")
        _check_different("the columns", frozen.inputs.names)
        _check_different("`keep` and the scores", (*self.keep, *names))
        if self.dialect == "postgresql":
            _check_lengths((self.table, *frozen.inputs.names, *self.keep, *names))
            _check_range(frozen)
        statement = Statement(self.dialect, self.table)
        kept = [statement.read(statement.column(name)) for name in self.keep]
        scores = _score(statement, frozen)
        columns = dict(zip((*self.keep, *names), (*kept, *scores), strict=True))
        return f"{statement.text(columns)};\n"

    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        select = path.read_text(encoding="utf-8")
        kept = [name for name in self.keep if name not in frozen.inputs.names]
        table = frozen.inputs.decode(X) | {name: [0.0] * len(X) for name in kept}
        run = _RUN[self.dialect]
        try:
            rows = run(select, self.table, table)
        except Exception as error:  # every database has errors of its own
            if isinstance(error, ModuleNotFoundError | NoServerError):
                raise
            raise ValueError(
                f"{str(path)!r} was written, but {self.dialect} refuses to run it: {error}; "
                "shorten names, or leave the check out (check=False, --no-check)"
            ) from error
        return np.array([row[len(self.keep) :] for row in rows], np.float64)  # None becomes NaN

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        """Databases compute in double precision, whatever the network does."""
        if frozen.precision == "float64":
            return exact(frozen)
        return within(frozen, "float64", shift=2.0**-24 * frozen.clip)

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        return Arithmetic(
            "float64, in the order of the model",
            repeats=frozen.precision == "float64",
            provided=f"{self.dialect} computes in IEEE double precision, and columns of numbers "
            "hold floating-point numbers or integers of at most 64 bits"
            + self._about_text(frozen),
        )

    def _about_text(self, frozen: FrozenNetwork) -> str:
        if all(isinstance(column, Number) for column in frozen.inputs.columns):
            return ""
        ascii_only = " without non-ASCII white space around it"
        about_spaces = ascii_only if self.dialect == "postgresql" else ""
        return f", and columns of categories hold text{about_spaces}"


def _check_different(what: str, names: Sequence[str]) -> None:
    """Databases do not distinguish upper case from lower case."""
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise ValueError(
                f"{what} contain {name!r} twice, since databases ignore case in names; they must "
                "differ in more than case: rename one"
            )


def _check_range(frozen: FrozenNetwork) -> None:
    """PostgreSQL raises an error where IEEE arithmetic gives infinity."""
    shifts = np.abs([frozen.scaling.center, frozen.scaling.offset])
    bounds = rounding_errors(in_precision(frozen, "float64"))
    if not np.all(np.isfinite(bounds)) or np.any(shifts > _LARGEST_SHIFT):
        raise ValueError(
            "a number of this network may overflow: its weights, or a center or an offset of its "
            "scaling, are too large; PostgreSQL would stop there: export to another target, such "
            "as dialect='duckdb'"
        )


def _check_lengths(names: Sequence[str]) -> None:
    for name in names:
        if len(name.encode()) > _LONGEST_NAME:
            raise ValueError(
                f"the name {name!r} has {len(name.encode())} bytes, and PostgreSQL cuts names "
                f"after {_LONGEST_NAME}; shorten it"
            )


def _score(statement: Statement, frozen: FrozenNetwork) -> Units:
    x = raw_features(statement, frozen.inputs)
    if frozen.copies is not None:
        cells = LookUp.of(statement, frozen, frozen.copies, x)
        h = _Columns(statement, cells).run(frozen.steps, cells.phi, copies=True)
        return cells.add(h, frozen.residual)
    u = [scaled(statement, frozen, i, unit) for i, unit in enumerate(x)]
    h = _Columns(statement).run(frozen.steps, u)
    return [sum_of(statement, unit, r, u) for unit, r in zip(h, frozen.residual, strict=True)]


class _Columns(Language[Units]):
    """The units as columns of stages."""

    def __init__(self, statement: Statement, cells: LookUp | None = None) -> None:
        self.statement, self.cells = statement, cells

    def dense(self, step: Dense, h: Units) -> Units:
        start = [self.statement.number(float(b)) for b in step.bias]
        return [sum_of(self.statement, b, w, h) for b, w in zip(start, step.weight, strict=True)]

    def look_up(self, step: Dense, h: Units) -> Units:
        assert self.cells is not None
        start = [self.statement.number(float(b)) for b in step.bias]
        return self.cells.add(start, step.weight)

    def sort(self, step: Sort, h: Units) -> Units:
        h, let = list(h), self.statement.let
        for pairs in rounds(step.group_size, len(h)):
            for i, j in pairs:
                low = self.statement.least(h[i], h[j])
                high = self.statement.greatest(h[i], h[j])
                h[i], h[j] = let(low), let(high)
        return h

    def pointwise(self, step: Pointwise, h: Units) -> Units:
        if uses_exp(step):  # for which they are as good as 0
            h = [self.statement.let(unit.without_negligible()) for unit in h]
        return [self.statement.let(activate(self.statement, step, unit)) for unit in h]

    def members(self, step: Members, h: Units, copies: bool) -> Units:
        first, *rest = self.parts(step, h, copies)
        start = [unit * step.weights[0] for unit in first]
        others = zip(*rest, strict=True) if rest else [()] * len(start)
        return [
            sum_of(self.statement, unit, np.array(step.weights[1:]), list(more))
            for unit, more in zip(start, others, strict=True)
        ]


_RUN: dict[Dialect, Run] = {
    "sqlite": run_sqlite,
    "duckdb": run_duckdb,
    "postgresql": run_postgresql,
}
