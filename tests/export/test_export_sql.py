"""SQL: one SELECT, the same numbers in two databases, NULL for what is no number."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import FrozenNetwork, MonotonicNetwork, export, freeze
from isotone.export.sql.expression import literal
from isotone.export.sql.select import Sql
from isotone.export.sql.statement import quote
from networks import every_step, small

DIALECTS = ("sqlite", "duckdb")
connect: dict[str, Any] = {"sqlite": lambda: sqlite3.connect(":memory:"), "duckdb": duckdb.connect}
finite = st.floats(allow_nan=False, allow_infinity=False)


def run(dialect: str, *statements: str) -> list[tuple[Any, ...]]:
    with closing(connect[dialect]()) as connection:
        for statement in statements[:-1]:
            connection.execute(statement)
        rows: list[tuple[Any, ...]] = connection.execute(statements[-1]).fetchall()
        return rows


@settings(deadline=None, max_examples=20)
@given(st.lists(finite, min_size=1, max_size=50))
def test_literals_are_read_exactly(values: list[float]) -> None:
    for dialect in DIALECTS:
        texts = ", ".join(literal(value, dialect) for value in values)  # type: ignore[arg-type]
        assert run(dialect, f"SELECT {texts}") == [tuple(values)]


def test_the_ends_of_the_range_are_read_exactly() -> None:
    largest, smallest = sys.float_info.max, 5e-324
    values = (largest, -largest, smallest, -smallest, sys.float_info.min, 2.0**53, 0.1, 0.0)
    for dialect in DIALECTS:
        texts = ", ".join(literal(value, dialect) for value in values)  # type: ignore[arg-type]
        assert run(dialect, f"SELECT {texts}") == [values]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_no_finite_number_gives_null(dialect: Any) -> None:
    frozen = every_step()
    create = 'CREATE TABLE data (pt DOUBLE, chi2 DOUBLE, "a b" DOUBLE)'
    rows = "(1, 2, 3), (NULL, 2, 3), (1, NULL, 3), (1, 2, NULL), (9e999, 2, 3), (1, -9e999, 3)"
    insert = f"INSERT INTO data VALUES {rows}".replace("9e999", _infinity(dialect))
    scores = [row[0] for row in run(dialect, create, insert, Sql(dialect).select(frozen))]
    assert scores == [frozen.score([[1.0, 2.0, 3.0]])[0], *[None] * 5]
    if dialect == "duckdb":
        nan = "INSERT INTO data VALUES ('nan'::DOUBLE, 2, 3), (1, 2, 'nan'::DOUBLE)"
        assert run(dialect, create, nan, Sql(dialect).select(frozen)) == [(None,), (None,)]
    else:
        text = "INSERT INTO data VALUES ('many', 2, 3), (1, x'00', 3)"
        assert run(dialect, create, text, Sql(dialect).select(frozen)) == [(None,), (None,)]


def _infinity(dialect: str) -> str:
    return "9e999" if dialect == "sqlite" else "'infinity'::DOUBLE"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whole_numbers_and_decimals_are_doubles(dialect: Any) -> None:
    """An integer column must not divide as integers do, nor a DECIMAL round as decimals do."""
    frozen = small(features=["a", "b", "c"])
    create = "CREATE TABLE data (a BIGINT, b INTEGER, c DECIMAL(10, 3))"
    insert = "INSERT INTO data VALUES (3, -7, 0.125), (9007199254740993, 2, 1)"
    scores = [row[0] for row in run(dialect, create, insert, Sql(dialect).select(frozen))]
    assert scores == frozen.score([[3, -7, 0.125], [9007199254740993.0, 2, 1]]).tolist()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_quoted(dialect: Any, tmp_path: Path) -> None:
    names = ['a"b', "c; DROP TABLE x", "select", "é 'q' -- /*"]
    frozen = freeze(MonotonicNetwork([4, 4, 1], monotonic_cst=[1, 0, -1, 0]), features=names)
    keep = ("id", 'a"b', "s0", "c0", "*/ SELECT 1")
    table = 't"; --'
    export.write(frozen, "sql", tmp_path / "x", dialect=dialect, table=table, keep=keep)
    columns = ", ".join(f"{quote(n)} DOUBLE" for n in dict.fromkeys([*keep, *names]))
    with closing(connect[dialect]()) as connection:
        connection.execute(f"CREATE TABLE {quote(table)} ({columns})")
        cursor = connection.execute((tmp_path / "x").read_text())
        assert [entry[0] for entry in cursor.description] == [*keep, "score"]


def test_kept_columns_stand_beside_their_scores() -> None:
    frozen = every_step(2, outputs="logits", classes=("no", "yes"))
    create = 'CREATE TABLE events AS SELECT 7 AS id, 1.5 AS pt, 2 AS chi2, 3 AS "a b"'
    select = Sql("duckdb", "events", ("id", "pt")).select(frozen)
    ((number, pt, *scores),) = run("duckdb", create, select)
    assert (number, float(pt)) == (7, 1.5)
    assert scores == frozen.score([[1.5, 2.0, 3.0]])[0].tolist()
    assert '"score_no"' in select
    assert '"score_yes"' in select


def test_names_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="`keep` and the scores contain 'score' twice"):
        Sql(keep=("score",)).select(small())
    with pytest.raises(ValueError, match="holds a zero byte, which SQL cannot; rename it"):
        Sql(table="a\0b").select(small())


def test_the_statement_says_what_it_is(tmp_path: Path) -> None:
    frozen = every_step()
    Sql().write(frozen, tmp_path / "model.sql")
    text = (tmp_path / "model.sql").read_text()
    assert frozen.fingerprint in text
    assert '"holds"' in text


def test_the_statement_grows_with_the_network_and_not_exponentially() -> None:
    def length(n_layers: int) -> int:
        widths = [2, *[8] * n_layers, 1]
        return len(Sql().select(freeze(MonotonicNetwork(widths, monotonic_cst=[1, 0]))))

    assert length(6) - length(4) < 1.2 * (length(4) - length(2))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("widths", "group_size"), [([4, 20, 20, 1], None), ([28, 64, 64, 64, 1], 2)], ids=str
)
def test_the_networks_of_the_paper_can_be_run(
    dialect: Any, widths: list[int], group_size: int | None, tmp_path: Path
) -> None:
    frozen = _network(widths, group_size)
    X = np.random.default_rng(0).normal(size=(300, widths[0]))
    Sql(dialect).write(frozen, tmp_path / "x")
    found = Sql(dialect).score(frozen, tmp_path / "x", X)
    assert np.array_equal(found[:, 0], frozen.score(X))
    assert not math.isnan(found.sum())


def test_long_sums_are_not_too_deep_for_a_database(tmp_path: Path) -> None:
    frozen = _network([1100, 1], None)
    X = np.random.default_rng(0).normal(size=(3, 1100))
    Sql().write(frozen, tmp_path / "x")
    assert np.array_equal(Sql().score(frozen, tmp_path / "x", X)[:, 0], frozen.score(X))


def _network(widths: list[int], group_size: int | None) -> FrozenNetwork:
    cst = [1] * widths[0]
    return freeze(MonotonicNetwork(widths, monotonic_cst=cst, group_size=group_size))


def freeze_named(features: list[str]) -> FrozenNetwork:
    return freeze(MonotonicNetwork([2, 4, 1], monotonic_cst=[1, 0]), features=features)


def test_names_that_a_database_mixes_up_are_refused(tmp_path: Path) -> None:
    frozen = freeze_named(["a", "A"])
    with pytest.raises(ValueError, match="the columns contain 'a' twice"):
        export.write(frozen, "sql", tmp_path / "model.sql")
    with pytest.raises(ValueError, match="`keep='id'` is a string"):
        export.write(frozen, "sql", tmp_path / "model.sql", keep="id")


@pytest.mark.parametrize("table", ["s0", "S1", "q0", "s", "q"])
def test_a_table_may_be_called_like_a_stage(tmp_path: Path, table: str) -> None:
    export.write(freeze_named(["a", "b"]), "sql", tmp_path / "model.sql", table=table)


def test_sqlite_does_not_take_a_missing_column_for_a_text(tmp_path: Path) -> None:
    export.write(freeze_named(["a", "b"]), "sql", tmp_path / "model.sql", keep=("idd",))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE data (a REAL, b REAL, id INTEGER)")
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            connection.execute((tmp_path / "model.sql").read_text())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_database_refuses_is_said(dialect: str, tmp_path: Path) -> None:
    path, frozen = tmp_path / "model.sql", small()
    path.write_text("SELECT one FROM nowhere")
    with pytest.raises(ValueError, match=rf"{dialect} refuses to run it: (.|\n)*--no-check"):
        Sql(dialect=dialect).score(frozen, path, np.zeros((1, frozen.n_features)))  # type: ignore[arg-type]


def test_the_statement_of_a_model_is_the_same_in_every_process() -> None:
    code = "from networks import mixed; from isotone.export.sql.select import Sql; "
    code += "print(Sql().select(mixed()))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            cwd=Path(__file__).parents[1],
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
