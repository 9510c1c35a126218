"""Copies of a column in SQL: constant tables that are joined, with the bits of the model."""

from __future__ import annotations

import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, export
from isotone.export.sql import postgresql, select
from isotone.export.sql.databases import fetch
from isotone.export.sql.expression import Dialect
from isotone.export.sql.select import Sql
from isotone.export.sql.tables import ConstantTable
from isotone.frozen.steps import Dense, Members, Sort
from isotone.inputs.chain import Inputs
from isotone.inputs.knots import Knots
from networks import copied, mixed

DIALECTS: tuple[Dialect, ...] = ("sqlite", "duckdb", "postgresql")


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql.Run | None]:
    try:
        postgresql.find_server()
        postgresql._account()
    except postgresql.NoServerError:
        yield None
        return
    with postgresql.server() as run:
        yield run


@pytest.fixture(params=DIALECTS)
def dialect(
    request: pytest.FixtureRequest, server: postgresql.Run | None, monkeypatch: pytest.MonkeyPatch
) -> Dialect:
    """Every database there is, with one server for this file."""
    if request.param == "postgresql":
        if server is None:
            pytest.skip("no PostgreSQL server was found")
        monkeypatch.setitem(select._RUN, "postgresql", server)
    chosen: Dialect = request.param
    return chosen


def tiled(
    n_columns: int = 1,
    n_copies: int = 4,
    width: int = 4,
    n_members: int = 1,
    size: float = 1.0,
    **options: Any,
) -> FrozenNetwork:
    """A mixture whose columns all have copies, with weights of this size."""
    rng = np.random.default_rng(0)
    codes = Knots.at([np.linspace(-1.0, 1.0, n_copies + 1).tolist()] * n_columns)
    n = len(codes.columns)
    scaling = Scaling(
        np.zeros(n, bool), np.zeros(n), np.ones(n), codes.scaling.center, codes.scaling.factor
    )
    names = [f"x{i}" for i in range(n_columns)]

    def member() -> tuple[Dense, Sort, Dense]:
        first = Dense(size * rng.normal(size=(width, n)), rng.normal(size=width))
        return first, Sort(2), Dense(rng.normal(size=(1, width)), rng.normal(size=1))

    members = tuple(member() for _ in range(n_members))
    inputs = Inputs.numbers(names, codes.columns.tolist())
    return FrozenNetwork(
        features=inputs.features,
        inputs=inputs,
        scaling=scaling,
        steps=members[0] if n_members == 1 else (Members((0.5,) * n_members, members),),
        residual=size * rng.normal(size=(1, n)),
        lipschitz=np.ones(n),
        monotonic_cst=np.zeros((1, n), np.int8),
        **options,
    )


def test_a_statement_grows_linearly_in_copies(dialect: Dialect) -> None:
    def length(n_copies: int) -> int:
        return len(Sql(dialect).select(tiled(n_copies=n_copies, width=16)))

    assert length(99) - length(66) < 1.2 * (length(66) - length(33))


def test_units_have_no_comparisons_of_their_own(dialect: Dialect) -> None:
    few, many = (Sql(dialect).select(tiled(n_copies=64, width=w)) for w in (8, 32))
    assert few.count("CASE") == many.count("CASE")


def test_mixtures_have_the_same_bits(dialect: Dialect, tmp_path: Path) -> None:
    for frozen in (tiled(3, 40, 8, n_members=5), copied(2, 3), mixed()):
        export.write(frozen, "sql", tmp_path / "x", dialect=dialect)


def test_wide_layers_have_the_same_bits(dialect: Dialect, tmp_path: Path) -> None:
    """Their numbers need several tables for one column."""
    export.write(tiled(2, 3, width=600), "sql", tmp_path / "x", dialect=dialect)


def test_copies_on_no_grid_have_the_same_bits(dialect: Dialect, tmp_path: Path) -> None:
    """Products with tiny weights vanish, which PostgreSQL refuses."""
    for size in (1.0, 1e-300, 1e-310):
        for width in (2, 64):
            frozen = tiled(2, 5, width, n_members=2, size=size, grid=None)
            export.write(frozen, "sql", tmp_path / "x", dialect=dialect)


def test_more_columns_than_sqlite_joins_have_the_same_bits(tmp_path: Path) -> None:
    """It joins 64 tables at most."""
    frozen = tiled(70, 17, width=16)
    X = np.random.default_rng(0).normal(size=(50, 70))
    Sql().write(frozen, tmp_path / "x")
    assert np.array_equal(Sql().score(frozen, tmp_path / "x", X)[:, 0], frozen.score(X))


def test_rows_stay_in_order_and_what_is_unknown_is_null(dialect: Dialect) -> None:
    frozen, inf = tiled(2, 8, width=40), np.inf
    X = np.random.default_rng(0).normal(size=(300, 2))
    cells = {"x0": [*X[:, 0], None, inf, 0.5], "x1": [*X[:, 1], 0.5, 0.5, -inf]}
    table = cells | {"id": [float(k) for k in range(303)]}
    statement = Sql(dialect, "t", keep=("id",)).select(frozen)
    rows = [(float(k), score) for k, score in select._RUN[dialect](statement, "t", table)]
    assert [k for k, _ in rows] == table["id"]
    assert [float(score) for _, score in rows[:300]] == frozen.score(X).tolist()
    assert [score for _, score in rows[300:]] == [None] * 3


def test_tables_are_read_exactly(dialect: Dialect) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2**64, 500, dtype=np.uint64).view(np.float64)
    largest = sys.float_info.max
    ends = [largest, -largest, 5e-324, -5e-324, sys.float_info.min, 2.0**53, 2.0**70, 0.1, 0.0]
    values = [*drawn[np.isfinite(drawn)].tolist(), *ends]
    text = ConstantTable("t", "x", {"a": values, "b": values[::-1]}).text(dialect)
    query = f"WITH {text} SELECT place, a, b FROM t ORDER BY place"
    found = np.array(select._RUN[dialect](query, "data", {"x": [0.0]}), np.float64)
    assert found.T.tolist() == [list(range(len(values))), values, values[::-1]]


class _WakeUpError(Exception):
    pass


def _wake_up(*_: object) -> None:
    raise _WakeUpError


@pytest.mark.parametrize(
    "connect",
    [lambda: sqlite3.connect(":memory:", check_same_thread=False), duckdb.connect],
    ids=["sqlite", "duckdb"],
)
def test_a_signal_ends_a_query(connect: Callable[[], Any]) -> None:
    endless = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT sum(k) FROM n"
    before = signal.signal(signal.SIGALRM, _wake_up)
    try:
        with closing(connect()) as connection:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(_WakeUpError):
                fetch(connection, endless)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
