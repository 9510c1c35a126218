"""log and exp: close to the truth, the same for every batch, and monotone on every neighbor."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.elementary import (
    EXP_ERROR,
    EXP_GRID,
    exp,
    log,
    monotone_exp,
    snap_grid,
    snap_mantissa,
)

LOG_ERROR = 2.0**-40  # absolute, as the docstring of `log` states it

getcontext().prec = 60
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
