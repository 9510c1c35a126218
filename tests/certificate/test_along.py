"""Joint directions: slopes and drops of several columns that move together, in exact numbers."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, certify
from isotone.certificate import bounds
from isotone.certificate.along import copies_of
from isotone.frozen.joint import check_rates
from isotone.frozen.steps import Dense, Sort, Steps
from networks import mixed

NAMES = ("a", "b", "c")
MOST = sys.float_info.max


def network(
    steps: Steps, residual: Any, factors: Any = (1.0, 1.0, 1.0), **options: Any
) -> FrozenNetwork:
    r = np.atleast_2d(np.asarray(residual, float))
    n = r.shape[1]
    zero = np.zeros(n)
    scaling = Scaling(zero.astype(bool), zero, np.ones(n), zero, np.array(factors[:n]))
    signs = np.zeros(r.shape, np.int8)
    return FrozenNetwork(NAMES[:n], scaling, steps, r, np.full(n, 10.0), signs, **options)


def dense(weight: Any, bias: Any = None) -> Dense:
    w = np.atleast_2d(np.asarray(weight, float))
    return Dense(w, np.zeros(len(w)) if bias is None else np.asarray(bias, float))


@pytest.mark.parametrize("seed", range(10))
def test_slopes_of_a_dense_step_are_exact_but_for_rounding(seed: int) -> None:
    """r·D give or take |w·D|, where columns may cancel."""
    rng = np.random.default_rng(seed)
    weight, residual, factors = (
        rng.normal(size=(2, 3)),
        rng.normal(size=(2, 3)),
        rng.uniform(size=3),
    )
    direction = dict(zip(NAMES, rng.normal(size=3).tolist(), strict=True))
    frozen = network((dense(weight),), residual, factors, grid=2.0**-6)
    moves = [Fraction(f) * Fraction(d) for f, d in zip(factors, direction.values(), strict=True)]
    for verdict, w, r in zip(certify(frozen).along(direction), weight, residual, strict=True):
        rise = sum((Fraction(x) * m for x, m in zip(r, moves, strict=True)), Fraction(0))
        own = abs(sum((Fraction(x) * m for x, m in zip(w, moves, strict=True)), Fraction(0)))
        assert Fraction(verdict.slope.low) <= rise - own
        assert Fraction(verdict.slope.high) >= rise + own
        assert verdict.slope.low == pytest.approx(float(rise - own), abs=1e-13)
        assert verdict.slope.high == pytest.approx(float(rise + own), abs=1e-13)
        assert verdict.real == (verdict.slope.low >= 0)


@pytest.mark.parametrize("seed", range(20))
def test_the_slope_along_one_column_is_its_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight, rate = rng.normal(size=(1, 3)), float(rng.uniform(1.0, 2.0))
    frozen = network((dense(weight),), np.zeros((1, 3)))
    for i, name in enumerate(NAMES):
        (verdict,) = certify(frozen).along({name: rate})
        exact = abs(Fraction(weight[0, i])) * Fraction(rate)
        assert Fraction(verdict.slope.low) <= -exact
        assert exact <= Fraction(verdict.slope.high) <= exact * Fraction(1 + 2.0**-51)


@pytest.mark.parametrize("seed", range(10))
def test_drops_are_two_errors_and_a_cell_of_every_column_that_moves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = (dense(rng.normal(size=(4, 3))), Sort(2), dense(rng.normal(size=(2, 4)), [9.0, 0.1]))
    frozen = network(steps, rng.normal(size=(2, 3)), rng.uniform(size=3), grid=2.0**-6)
    certificate, slack = certify(frozen), copies_of(frozen).slack
    slopes = bounds.slopes(steps, 3)
    for moved in ([0, 1, 2], [0, 2], [1]):
        verdicts = certificate.along({NAMES[i]: float(rng.normal()) for i in moved})
        for j, verdict in enumerate(verdicts):
            exact = 2 * Fraction(certificate.rounding_errors[j])
            for i in moved:
                steep = abs(Fraction(frozen.residual[j, i])) + Fraction(slopes[j, i])
                exact += steep * Fraction(slack[i])
            assert exact <= Fraction(verdict.drop) <= exact * Fraction(1 + 1e-14)


def test_a_slope_of_zero_never_falls() -> None:
    steps = (dense([[0.5, 0.25]]),)
    for residual, real in ((0.5, True), (0.5 - 2.0**-40, False), (0.5 + 2.0**-40, True)):
        (verdict,) = certify(network(steps, [[residual, 0.0]])).along({"a": 1.0})
        assert (verdict.slope.low == 0.0) == (residual == 0.5)
        assert verdict.real == real
        falls = "may fall" not in str(verdict)
        assert falls == real


def test_an_unbounded_error_promises_nothing() -> None:
    frozen = network((dense([[0.25, 0.0]], [2.0**1023]),), [[1.0, 1.0]])
    (verdict,) = certify(frozen).along({"a": 1.0, "b": 1.0})
    assert verdict.slope.low > 0
    assert verdict.drop == math.inf
    assert not verdict.real


def test_an_unbounded_slope_promises_nothing() -> None:
    frozen = network((dense([[1e200, 1.0]]), dense([[1e200]])), [[1.0, 1.0]])
    (verdict,) = certify(frozen).along({"a": 1.0, "b": 1.0})
    assert (verdict.slope.low, verdict.slope.high) == (-math.inf, math.inf)
    assert not verdict.real


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_extreme_rates_are_bounded_one_by_one(size: float) -> None:
    """Where products would underflow or overflow, slopes add up and nothing cancels."""
    frozen = network((dense([[0.5, -0.25]]),), [[1.0, 1.0]])
    (verdict,) = certify(frozen).along({"a": size, "b": size})
    assert verdict.slope.low == pytest.approx((2 - 0.75) * size, rel=1e-12, abs=0)
    (mixed_sizes,) = certify(frozen).along({"a": size, "b": 1.0})
    apart = 0.5 * size + 0.25
    assert mixed_sizes.slope.low == pytest.approx(size + 1 - apart, rel=1e-12)
    for usual in (1e-100, 1.0, 1e100):
        (verdict,) = certify(frozen).along({"a": usual, "b": usual})
        assert verdict.slope.low == pytest.approx((2 - 0.25) * usual, rel=1e-12, abs=0)


@pytest.mark.parametrize("size", [5e-301, -5e-301, 1e200])
def test_one_extreme_rate_leaves_the_others_together(size: float) -> None:
    """Columns a and b cancel in g, whatever c does; only c is bounded by itself."""
    frozen = network((dense([[0.5, -0.5, 0.25]]),), [[0.25, 0.0, 1.0]])
    (verdict,) = certify(frozen).along({"a": 1.0, "b": 1.0, "c": size})
    exact = Fraction(0.25) + Fraction(size) - Fraction(0.25) * abs(Fraction(size))
    assert Fraction(verdict.slope.low) <= exact
    assert verdict.slope.low == pytest.approx(float(exact), rel=1e-12)
    assert verdict.real


def test_slopes_beyond_the_largest_number_are_bounded_by_it() -> None:
    for sign in (-1.0, 1.0):
        frozen = network((dense([[0.5, 0.5]]),), [[sign * 1e300, 0.0]])
        (verdict,) = certify(frozen).along({"a": 1e100})
        ends = (MOST, math.inf) if sign > 0 else (-math.inf, -MOST)
        assert (verdict.slope.low, verdict.slope.high) == ends
        assert verdict.real == (sign > 0)


def test_a_network_that_does_not_begin_with_a_dense_step_is_bounded_one_by_one() -> None:
    frozen = network((Sort(2), dense([[0.5, 0.5]])), [[1.0, 1.0]])
    (verdict,) = certify(frozen).along({"a": 1.0, "b": -1.0})
    assert verdict.slope.low == pytest.approx(-1.0)
    assert verdict.slope.high == pytest.approx(1.0)


def test_joint_directions_that_mean_nothing_are_refused() -> None:
    frozen = network((dense([[0.5, 0.5]]),), [[1.0, 1.0]])
    certificate = certify(frozen)
    with pytest.raises(ValueError, match="names 'd', but the model has no such column"):
        certificate.along({"d": 1.0})
    for bad in ({}, {"a": 0.0}, {"a": math.inf}, {"a": "1"}, {1: 1.0}, None):
        with pytest.raises(ValueError, match="it must give columns finite numbers"):
            certificate.along(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`joint_cst` is 'a'; it must be a list of directions"):
        replace(frozen, joint_cst="a")  # type: ignore[arg-type]
    for name in ("age", "city", "income"):
        with pytest.raises(
            ValueError, match="which is a category, has knots or is taken as a log"
        ):
            certify(mixed()).along({name: 1.0})
    classes = replace(
        network((dense([[0.5, 0.5]] * 3),), np.ones((3, 2))), outputs="logits", classes=NAMES
    )
    with pytest.raises(ValueError, match="about a single output, and there are 3 classes"):
        certify(classes).along({"a": 1.0})
    with pytest.raises(ValueError, match="is about single outputs, and there are 3 classes"):
        replace(classes, joint_cst=({"a": 1.0},))


def test_the_largest_number_is_a_rate() -> None:
    frozen = network((dense([[0.5, 0.5]]),), [[1.0, 1.0]])
    assert check_rates({"a": sys.float_info.max}) == {"a": sys.float_info.max}
    assert certify(frozen).along({"a": -sys.float_info.max})


def test_rates_of_zero_are_left_out() -> None:
    (verdict,) = certify(network((dense([[0.5, 0.5]]),), [[1.0, 1.0]])).along({"a": 2, "b": 0})
    assert verdict.direction == (("a", 2.0),)
    assert str(verdict).startswith("along a + 2 the score never falls by more than")
