"""log and exp: close to the truth, the same for every batch, and monotone on every neighbor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone import Engine, FrozenNetwork, Scaling
from isotone._engine import find_probabilities
from isotone.elementary import (
    EXP_ERROR,
    EXP_GRID,
    divides,
    exp,
    log,
    monotone_exp,
    snap_grid,
    snap_mantissa,
)
from isotone.frozen.steps import Dense, Pointwise

LOG_ERROR = 2.0**-40  # absolute, as the docstring of `log` states it


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with localcontext(prec=60):
        yield


positive = st.floats(min_value=5e-324, max_value=1.7e308, allow_nan=False)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(positive)
def test_log_errs_by_less_than_its_bound(x: float) -> None:
    snapped = float(snap_mantissa(np.array([min(x, 2.0**1023)]))[0])
    error = abs(Decimal(float(log(np.array([x]))[0])) - Decimal(snapped).ln())
    assert error < Decimal(LOG_ERROR) / 16


@given(st.floats(-700, 700))
def test_exp_errs_by_less_than_its_bound(x: float) -> None:
    truth = Decimal(x).exp()
    assert abs(Decimal(float(exp(np.array([x]))[0])) / truth - 1) < Decimal(EXP_ERROR) / 4


@given(positive, positive)
def test_log_is_monotone(x: float, y: float) -> None:
    low, high = log(np.sort([x, y]))
    assert low <= high


def test_log_is_monotone_on_neighboring_floats() -> None:
    rng = np.random.default_rng(0)
    x = 2.0 ** rng.uniform(-1000, 1000, 200_000)
    mantissas = snap_mantissa(x)
    for here in (x, mantissas, mantissas * (1 + 2.0**-25)):  # the last: where snapping changes
        assert np.all(log(here) <= log(np.nextafter(here, np.inf)))


def test_snapped_neighbors_have_logs_farther_apart_than_twice_the_error() -> None:
    x = snap_mantissa(2.0 ** np.random.default_rng(1).uniform(-1000, 1000, 100_000))
    following = snap_mantissa(x * (1 + 2.0**-23))
    assert np.all(following > x)
    assert np.all(log(following) - log(x) > 2 * LOG_ERROR)


def test_monotone_exp_is_monotone_on_neighboring_cells() -> None:
    x = snap_grid(np.random.default_rng(2).uniform(-700, 700, 200_000), EXP_GRID)
    edges = x + EXP_GRID / 2
    assert np.all(monotone_exp(x) <= monotone_exp(x + EXP_GRID))
    assert np.all(monotone_exp(edges) <= monotone_exp(np.nextafter(edges, np.inf)))


@given(finite, finite)
def test_snapping_is_monotone_and_idempotent(x: float, y: float) -> None:
    pair = np.sort([x, y]) / 2
    mantissa, grid = snap_mantissa(pair), snap_grid(np.clip(pair, -1e6, 1e6), 2.0**-20)
    assert mantissa[0] <= mantissa[1]
    assert grid[0] <= grid[1]
    assert np.array_equal(snap_mantissa(mantissa), mantissa)
    assert np.array_equal(snap_grid(grid, 2.0**-20), grid)


def test_zero_has_one_sign_after_snapping() -> None:
    assert not np.signbit(snap_grid(np.array([-0.0, -1e-30, 1e-30]), 2.0**-20)).any()


@pytest.mark.parametrize("function", [log, exp, monotone_exp])
def test_result_does_not_depend_on_layout_or_batch(function: object) -> None:
    assert callable(function)
    x = np.random.default_rng(3).uniform(0.1, 50, (1000, 3))
    single = np.array([function(x[i : i + 1, 1])[0] for i in range(1000)])
    assert np.array_equal(function(x[:, 1]), single)
    assert np.array_equal(function(np.ascontiguousarray(x[:, 1])), single)


def snapped_fraction(x: float, grid: float) -> Fraction:
    """The nearest multiple of the grid, ties to even, by exact arithmetic."""
    return round(Fraction(x) / Fraction(grid)) * Fraction(grid)


@given(st.floats(-1e6, 1e6), st.integers(-30, 10))
def test_snapping_gives_the_nearest_multiple(x: float, exponent: int) -> None:
    grid = 2.0**exponent
    assert Fraction(float(snap_grid(np.array([x]), grid)[0])) == snapped_fraction(x, grid)


def test_snapped_mantissas_are_those_of_float32() -> None:
    x = np.random.default_rng(4).normal(size=10_000) * 2.0 ** np.arange(-100, 100, 0.02)
    assert np.array_equal(snap_mantissa(x), x.astype(np.float32).astype(np.float64))
    tiny = np.array([5e-324, 2.0**-1074 * (2**24 + 1)])  # below the range of float32 as well
    assert snap_mantissa(tiny).tolist() == [5e-324, 2.0**-1050]


@pytest.mark.parametrize(
    ("grid", "clip", "expected"),
    [
        (0.25, 8.0, True),
        (1.0, 2.0**51, True),
        (1.0, 2.0**51 + 1.0, False),  # more cells than can be counted
        (2.0**-20, 1024.0, True),
        (0.25, 8.125, False),
        (0.75, 3.0, False),  # no power of two
        (3.0, 9.0, False),
        (0.0, 1.0, False),
        (-0.5, 1.0, False),
        (np.inf, 1.0, False),
        (np.nan, 1.0, False),
    ],
)
def test_a_grid_is_a_power_of_two_that_divides_the_clip(
    grid: float, clip: float, expected: bool
) -> None:
    assert divides(grid, clip) == expected


def test_the_bound_of_exp_is_generous_but_not_absurd() -> None:
    x = np.random.default_rng(5).uniform(-700, 700, 2000)
    pairs = zip(exp(x).tolist(), x.tolist(), strict=True)
    worst = max(abs(Decimal(found) / Decimal(value).exp() - 1) for found, value in pairs)
    assert worst < Decimal(EXP_ERROR) / 4 < 16 * worst


def test_exp_is_clamped_and_monotone_exp_stands_on_its_grid() -> None:
    ends = exp(np.array([-1e300, -700.0, 700.0, 1e300]))
    assert ends[0] == ends[1]
    assert ends[2] == ends[3]
    assert np.all(np.diff(exp(np.array([-701.0, -699.99, 0.0, 699.99, 701.0]))) > 0)
    cells = np.arange(1000) * 2.0**-30  # the grid that the docstring names
    steps = np.concatenate([cells - 0.49 * 2.0**-30, cells, cells + 0.49 * 2.0**-30])
    assert np.array_equal(monotone_exp(steps), np.tile(monotone_exp(cells), 3))
    assert len(np.unique(monotone_exp(cells))) == len(cells)
    wide = np.array([-1e300, -700.0, 700.0, 1e300])
    assert np.array_equal(monotone_exp(wide), exp(wide))


def of_one_column(**changes: Any) -> FrozenNetwork:
    """Its only step is zero, so that the score is the scaled column, or what `changes` say."""
    scaling = Scaling(*(np.array([value]) for value in (True, 0.0, 5e-324, 0.0, 1.0)))
    start = FrozenNetwork(
        features=("x",),
        scaling=scaling,
        steps=(Dense(np.zeros((1, 1)), np.zeros(1)),),
        residual=np.ones((1, 1)),
        lipschitz=np.ones(1),
        monotonic_cst=np.ones((1, 1), np.int8),
        grid=None,
    )
    return replace(start, **changes)


@pytest.mark.parametrize("isa", Engine.instruction_sets())
def test_the_compiled_runtime_has_the_same_bits(isa: str) -> None:
    """It is written in another language, with constants and series of its own."""
    rng = np.random.default_rng(6)
    x = 2.0 ** rng.uniform(-1074, 1024, 20_000)
    steep = np.sqrt(0.5) + np.arange(2**17) * 2.0**-24  # where the last term of the series counts
    x = np.concatenate([x, steep, [5e-324, 2.0**-1022, 1.7e308]])
    assert np.array_equal(Engine(of_one_column(), isa=isa)(x[:, None]), log(x))
    h = np.append(rng.normal(size=20_000) * 10.0 ** rng.uniform(-9, 3, 20_000), [-701.0, 701.0])
    steps = Dense(np.ones((1, 1)), np.zeros(1)), Pointwise("sigmoid")
    plain = {"scaling": Scaling.identity(1), "residual": np.zeros((1, 1))}
    found = Engine(of_one_column(steps=steps, **plain), isa=isa)(h[:, None])
    assert np.array_equal(found, 1.0 / (1.0 + exp(-h)))
    logits = np.empty_like(h)
    find_probabilities(h, logits, isa)
    assert np.array_equal(logits, 1.0 / (1.0 + monotone_exp(-h)))
