"""PostgreSQL: the same numbers, no error where numbers are tiny or huge, and no claim untested."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.test_raw import RAW, expected, model
from isotone import FrozenNetwork, MonotonicNetwork, Scaling, export, freeze
from isotone.export import parity
from isotone.export.sql import entry, expression, postgresql, select
from isotone.export.sql.expression import literal, vanishing
from isotone.export.sql.select import Sql
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.steps import Pointwise
from networks import by_hand, draw_network, every_step, small

nonzero = st.floats(allow_nan=False, allow_infinity=False).filter(bool)


@pytest.fixture
def run(server: postgresql.Run, monkeypatch: pytest.MonkeyPatch) -> postgresql.Run:
    """The same server for every export of this file."""
    monkeypatch.setitem(select._RUN, "postgresql", server)
    return server


def write(frozen: FrozenNetwork, path: Path, **options: Any) -> None:
    export.write(frozen, "sql", path, dialect="postgresql", **options)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_every_step_and_raw_column_scores_as_the_model(
    run: postgresql.Run, precision: str, tmp_path: Path
) -> None:
    write(every_step(3, precision=precision, outputs="logits"), tmp_path / "x")
    write(model(precision), tmp_path / "x", keep=("size", "id"))


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_activations_have_the_same_bits(
    run: postgresql.Run, activation: str, tmp_path: Path
) -> None:
    write(pointwise(activation), tmp_path / "x")


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_have_the_same_bits(
    run: postgresql.Run, seed: int, tmp_path: Path
) -> None:
    """Some have weights of 10⁻³⁰."""
    write(freeze(draw_network(seed, max_width=12, max_depth=4).network), tmp_path / "x")


def tiny_and_huge() -> FrozenNetwork:
    """Products with its weights vanish, and large raw numbers overflow in its scaling."""
    scaling = Scaling(*(np.array([v]) for v in (False, 0.0, 1.0, 0.0, 1e10)))
    return replace(by_hand(1e-300, grid=None), scaling=scaling)


def pointwise(name: str) -> FrozenNetwork:
    """An activation of a feature that is on no grid, so that it may be subnormal."""
    return replace(by_hand(0.5, grid=None), steps=(Pointwise(name, 0.25),))


def test_numbers_that_vanish_or_overflow_are_no_error(run: postgresql.Run, tmp_path: Path) -> None:
    write(tiny_and_huge(), tmp_path / "x")


@pytest.mark.parametrize(
    ("module", "name", "careless", "frozen", "says"),
    [
        (expression, "vanishing", lambda weight: 0.0, tiny_and_huge(), "underflow"),
        (expression, "_NEGLIGIBLE", 0.0, pointwise("softplus"), "underflow"),
        (entry, "near", lambda statement, x, reach: x, tiny_and_huge(), "overflow"),
    ],
    ids=["products", "series", "scaling"],
)
def test_without_care_the_server_stops(
    module: Any,
    name: str,
    careless: Any,
    frozen: FrozenNetwork,
    says: str,
    run: postgresql.Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(module, name, careless)
    with pytest.raises(ValueError, match=f"postgresql refuses to run it: .* {says}"):
        write(frozen, tmp_path / "x")


@given(nonzero)
def test_a_product_vanishes_up_to_the_bound_and_not_beyond(weight: float) -> None:
    bound = vanishing(weight)
    assert weight * bound == 0
    assert bound == sys.float_info.max or weight * math.nextafter(bound, math.inf) != 0
    assert vanishing(0.0) == 0


def test_literals_are_read_exactly(run: postgresql.Run) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2**64, 1000, dtype=np.uint64).view(np.float64)
    ends = [sys.float_info.max, -sys.float_info.max, 5e-324, -5e-324, 2.0**53, 0.1, 0.0]
    values = [*drawn[np.isfinite(drawn)].tolist(), *ends]
    texts = ", ".join(literal(value, "postgresql") for value in values)
    (row,) = run(f"SELECT {texts}", "data", {"x": [0.0]})
    assert [float(cell) for cell in row] == values


def test_the_raw_table_is_scored(run: postgresql.Run) -> None:
    select = Sql("postgresql", "clients").select(model())
    found = np.array(run(select, "clients", RAW), np.float64)[:, 0]
    np.testing.assert_array_equal(found, expected())


def test_what_is_no_finite_number_gives_null(run: postgresql.Run) -> None:
    inf, nan = math.inf, math.nan
    pt = [1.0, None, 1.0, inf, 1.0, nan, 1.0]
    chi2 = [2.0, 2.0, None, 2.0, -inf, 2.0, nan]
    table = {"pt": pt, "chi2": chi2, "a b": [3.0] * 7}
    scores = run(Sql("postgresql").select(every_step()), "data", table)
    assert scores[1:] == [(None,)] * 6
    assert float(scores[0][0]) == every_step().score([[1.0, 2.0, 3.0]])[0]


def test_numbers_of_other_types_are_doubles(run: postgresql.Run) -> None:
    frozen = small(features=["a", "b", "c"])
    cells = "9007199254740993::bigint AS a, 0.5::real AS b, 0.1::numeric AS c"
    select = Sql("postgresql", "cells").select(frozen)
    select = select.replace("WITH ", f"WITH cells AS (SELECT {cells}), ", 1)
    ((score,),) = run(select, "data", {"x": [0.0]})
    assert float(score) == frozen.score([[9007199254740993.0, 0.5, 0.1]])[0]


def test_names_are_quoted(run: postgresql.Run, tmp_path: Path) -> None:
    names = ['a"b', "c; DROP TABLE x", "select", "é 'q' -- /*\n;\n\n"]
    frozen = freeze(MonotonicNetwork([4, 4, 1], monotonic_cst=[1, 0, -1, 0]), features=names)
    write(frozen, tmp_path / "x", table='t"; --', keep=("id", "s0", "c0", "*/ SELECT 1"))


def test_what_the_server_refuses_is_said(run: postgresql.Run, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("SELECT one FROM nowhere")
    with pytest.raises(ValueError, match=r'postgresql refuses to run it: .*"nowhere" does not'):
        Sql("postgresql").score(small(), tmp_path / "x", np.zeros((1, 3)))


def test_another_model_is_noticed(run: postgresql.Run, tmp_path: Path) -> None:
    Sql("postgresql").write(small(seed=1), tmp_path / "x")
    with pytest.raises(ValueError, match="does not score as the model does"):
        parity.compare(small(), Sql("postgresql"), tmp_path / "x")


def test_without_a_server_nothing_is_called_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgresql, "_PLACES", "/nowhere/*/bin")
    with pytest.raises(ValueError, match=r"written but not compared .* install one, .*--no-check"):
        write(small(), tmp_path / "x")
    assert export.write(small(), "sql", tmp_path / "x", dialect="postgresql", check=False).holds


def test_root_needs_an_account_for_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql.os, "geteuid", lambda: 0)
    monkeypatch.setattr(postgresql, "_ACCOUNT", "no such user")
    with pytest.raises(ValueError, match=r"not compared .* does not run as root, and there is no"):
        postgresql._account()


def test_what_postgresql_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has 64 bytes, and PostgreSQL cuts names after 63"):
        Sql("postgresql", table="é" * 32).select(small())
    with pytest.raises(ValueError, match=r"may overflow: its weights, .* PostgreSQL would stop"):
        Sql("postgresql").select(by_hand(3e288, clip=2.0**64, grid=None))
    scaling = Scaling(*(np.array([v]) for v in (False, 0.0, 1.0, 1e300, 1.0)))
    with pytest.raises(ValueError, match="may overflow: its weights, or a center"):
        Sql("postgresql").select(replace(by_hand(0.5), scaling=scaling))
    wide = freeze(MonotonicNetwork([1700, 1], monotonic_cst=[1] * 1700))
    with pytest.raises(ValueError, match=r"has 1700 columns, .* PostgreSQL takes at most 1664"):
        Sql("postgresql").select(wide)


@pytest.mark.parametrize("frozen", [every_step(2), model(), tiny_and_huge()], ids=repr)
def test_the_parser_takes_every_statement(frozen: FrozenNetwork, tmp_path: Path) -> None:
    pglast = pytest.importorskip("pglast")
    Sql("postgresql", 't"x', ("a/*b",)).write(frozen, tmp_path / "model.sql")
    (parsed,) = pglast.parse_sql((tmp_path / "model.sql").read_text())
    assert [target.name for target in parsed.stmt.targetList] == [
        "a/*b",
        *frozen.names_of("score"),
    ]


def test_only_what_may_vanish_is_guarded() -> None:
    """On a grid, weights of usual size cannot make a product vanish: scaling alone is guarded."""
    assert Sql("postgresql").select(small()).count("BETWEEN '-1.79") == 3
    on_grid, free = (Sql("postgresql").select(small(grid=grid)) for grid in (2.0**-20, None))
    assert on_grid.count("BETWEEN") < 8 < 40 < free.count("BETWEEN")
