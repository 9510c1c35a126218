"""Upward arithmetic is never below exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone import rounding
from isotone.typing import Precision

numbers = st.floats(min_value=0, max_value=1e300)
lists = st.lists(st.floats(min_value=0, max_value=1e300), min_size=1, max_size=30)


def at_least(computed: float, exact: Fraction) -> bool:
    return computed == math.inf or Fraction(float(computed)) >= exact


@given(numbers, numbers)
def test_operations_bound_the_exact_result(a: float, b: float) -> None:
    x, y = Fraction(a), Fraction(b)
    assert at_least(rounding.add(a, b), x + y)
    assert at_least(rounding.multiply(a, b), x * y)
    assert Fraction(float(rounding.subtract_down(a, b))) <= x - y
    if b > 0:
        assert at_least(rounding.divide(a, b), x / y)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fraction", [1.0, 1 + 2**-52, 2 - 2**-52, 1 + 2**-26, 4 / 3])
@pytest.mark.parametrize("exponent", [-1074, -1022, -901, 0, 500, 899, 996, 1000, 1023])
def test_operations_bound_the_exact_result_near_the_ends(fraction: float, exponent: int) -> None:
    a = math.ldexp(fraction, exponent)
    for other in (1.0, 1 + 2**-52, 2 - 2**-52, 1 + 2**-26, 4 / 3):
        for b in (math.ldexp(other, e) for e in (-1000, -500, 0, 500, 899, 1023)):
            x, y = Fraction(a), Fraction(b)
            assert at_least(rounding.add(a, b), x + y)
            assert at_least(rounding.multiply(a, b), x * y)
            assert at_least(rounding.divide(a, b), x / y)
            assert at_least(rounding.divide(b, a), y / x)


@given(lists)
def test_total_bounds_the_exact_sum(values: list[float]) -> None:
    assert at_least(rounding.total(values), sum(map(Fraction, values), Fraction(0)))


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=5))
def test_a_sum_rounded_down_is_the_largest_float_below_the_exact_one(terms: list[float]) -> None:
    exact = sum(map(Fraction, terms), Fraction(0))
    found = rounding.sum_down(terms)
    assert Fraction(found) <= exact < Fraction(math.nextafter(found, math.inf))


def test_a_sum_with_an_infinity_is_bounded_by_nothing() -> None:
    assert rounding.sum_down([1.0, -math.inf]) == -math.inf
    assert rounding.sum_down([math.inf, -math.inf]) == -math.inf
    assert rounding.sum_down([1.7e308, 1.7e308]) == -math.inf


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_two_numbers_hold_an_exact_sum(a: float, b: float) -> None:
    high, low = (float(x[0]) for x in rounding.two_sum(np.array([a]), np.array([b])))
    assert Fraction(high) + Fraction(low) == Fraction(a) + Fraction(b)
    assert high == a + b


@given(numbers)
def test_root_bounds_the_exact_root(a: float) -> None:
    assert Fraction(float(rounding.root(np.array([a]))[0])) ** 2 >= Fraction(a)


def test_zero_stays_zero_even_times_infinity() -> None:
    assert rounding.multiply(0.0, math.inf) == 0
    assert rounding.add(0.0, 0.0) == 0
    assert rounding.total([0.0, 0.0]) == 0
    assert rounding.divide(0.0, 3.0) == 0


def test_overflow_becomes_infinity_and_underflow_does_not_vanish() -> None:
    assert rounding.multiply(1e200, 1e200) == math.inf
    assert rounding.total([1.7e308, 1.7e308]) == math.inf
    assert rounding.multiply(1e-200, 1e-200) > 0


def test_gamma_is_infinite_where_it_means_nothing() -> None:
    assert rounding.gamma(2**52, 2.0**-53) == math.inf
    exact = Fraction(21, 2**53) / (1 - Fraction(21, 2**53))
    assert at_least(rounding.gamma(21, 2.0**-53), exact)


@given(st.integers(0, 10_000))
def test_matrix_norms_bound_the_exact_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(3, 4)) * 10.0 ** rng.uniform(-20, 20, (3, 4))
    norms = rounding.MatrixNorms.of(matrix)
    exact = [[Fraction(abs(float(w))) for w in row] for row in matrix]
    for row, bound, largest in zip(exact, norms.row_sum, norms.row_max, strict=True):
        assert at_least(bound, sum(row, Fraction(0)))
        assert Fraction(float(largest)) == max(row)
    for column, bound in zip(zip(*exact, strict=True), norms.column_sum, strict=True):
        assert at_least(bound, sum(column, Fraction(0)))
    assert at_least(norms.sum, sum(map(sum, exact), Fraction(0)))


@given(st.integers(0, 2**26), st.integers(1, 2**26), st.integers(-40, 40))
def test_results_that_float64_holds_are_exact(a: int, b: int, shift: int) -> None:
    x, y = a * 2.0**shift, b * 2.0**-shift
    assert rounding.multiply(x, y) == a * b
    assert rounding.divide(float(a * b), float(b)) == a
    assert rounding.add(float(a), float(b)) == a + b
    assert rounding.subtract_down(float(a), float(b)) == a - b
    assert rounding.total([x, x, x]) == 3 * x


@given(numbers, numbers)
def test_products_and_their_errors(a: float, b: float) -> None:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        high, low = (float(x[0]) for x in rounding.two_product(np.array([a]), np.array([b])))
    assert math.isnan(low) or Fraction(high) + Fraction(low) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@given(st.lists(st.floats(-1e38, 1e38), min_size=1, max_size=20))
def test_directed_roundings_are_the_nearest_on_their_side(
    precision: Precision, values: list[float]
) -> None:
    x = np.array(values)
    inward, outward = (f(x, precision) for f in (rounding.toward_zero, rounding.away_from_zero))
    assert inward.dtype == outward.dtype == precision
    assert np.all(np.abs(inward.astype(float)) <= np.abs(x))
    assert np.all(np.abs(outward.astype(float)) >= np.abs(x))
    between = inward != outward
    assert np.all(outward[between] == np.nextafter(inward, outward)[between])
    assert np.all((inward.astype(float) == x)[~between])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.integers(-20, 5))
def test_multiples_toward_zero_are_less_than_one_away(values: list[float], exponent: int) -> None:
    x, unit = np.array(values), 2.0**exponent
    found = rounding.multiples_toward_zero(x, exponent)
    assert np.all(np.abs(found) <= np.abs(x))
    assert np.all(np.abs(x - found) < unit)
    assert np.array_equal(found / unit, np.rint(found / unit))


FULL = [1.0, 1 + 2**-52, 2 - 2**-52, 4 / 3, 1 + 2**-27, 3.0]  # mantissas, most with 53 bits


@pytest.mark.parametrize("a", FULL)
@pytest.mark.parametrize("b", FULL)
@pytest.mark.parametrize("shift", [-1074, -600, -1, 0, 500])
def test_products_are_bounded_from_below_and_closely(a: float, b: float, shift: int) -> None:
    x = math.ldexp(a, shift)
    found = float(rounding.multiply_down(np.array(x), np.array(b)))
    assert Fraction(found) <= Fraction(x) * Fraction(b)
    assert found >= math.nextafter(x * b, 0.0)
    assert rounding.multiply_down(np.array(-x), np.array(b)) == 0.0
    assert rounding.multiply_down(np.array(0.0), np.array(b)) == 0.0


@pytest.mark.parametrize("a", FULL)
@pytest.mark.parametrize("b", FULL)
def test_products_of_either_sign_keep_their_errors(a: float, b: float) -> None:
    for x in (a, -a):
        high, low = rounding.two_product(np.array(x), np.array(b))
        assert Fraction(float(high)) + Fraction(float(low)) == Fraction(x) * Fraction(b)


def test_differences_with_minus_one_zero_and_infinity() -> None:
    assert rounding.subtract_down(2.0, -1.0) == 3.0
    assert rounding.subtract_down(math.inf, 0.0) == math.inf
    assert rounding.subtract_down(1.0, 2.0**-60) == 1.0 - 2.0**-53


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_directed_roundings_keep_what_a_precision_holds(precision: Precision) -> None:
    held = np.array([-3.0, -1.0, -0.5, -(2.0**-149), 0.0, 2.0**-149, 1 + 2.0**-23, 2.0**127])
    assert np.array_equal(rounding.toward_zero(held, precision), held)
    assert np.array_equal(rounding.away_from_zero(held, precision), held)


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20))
def test_small_numbers_are_rounded_to_their_side(values: list[float]) -> None:
    x = np.array(values)
    inward, outward = rounding.toward_zero(x, "float32"), rounding.away_from_zero(x, "float32")
    assert np.all(np.abs(inward.astype(float)) <= np.abs(x))
    assert np.all(np.abs(outward.astype(float)) >= np.abs(x))
    assert np.all((inward == outward) | (outward == np.nextafter(inward, 2 * np.sign(outward))))


def test_the_root_of_zero_is_zero_and_that_of_one_hardly_more() -> None:
    assert rounding.root(np.array([0.0, 1.0, 4.0])).tolist() == [
        *(0.0, math.nextafter(1.0, 2.0), math.nextafter(2.0, 3.0))
    ]


@pytest.mark.parametrize("unit", [2.0**-53, 2.0**-24])
def test_gamma_is_the_exact_one_or_hardly_more(unit: float) -> None:
    for n in range(1, 300):
        nu = n * Fraction(unit)
        found = Fraction(rounding.gamma(n, unit))
        assert nu / (1 - nu) <= found <= nu / (1 - nu) * (1 + Fraction(1, 2**51))
    assert rounding.gamma(int(0.25 / unit), unit) < 0.34
    assert rounding.gamma(int(0.5 / unit), unit) == math.inf


def test_products_of_full_mantissas_keep_their_errors() -> None:
    """Halves of 26 bits each have exact products; others have not."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(2**52, 2**53, (2, 300)).astype(np.float64)
    for x, y, high, low in zip(a, b, *rounding.two_product(a, b), strict=True):
        assert Fraction(high) + Fraction(low) == Fraction(x) * Fraction(y)


def test_a_product_of_negative_numbers_is_not_bounded_from_below() -> None:
    assert rounding.multiply_down(np.array(-0.5), np.array(-1.0)) == 0.0


def test_numbers_of_either_sign_are_rounded_toward_zero() -> None:
    x = np.random.default_rng(0).uniform(-3.0, 3.0, 200)
    inward = rounding.toward_zero(x, "float32")
    beyond = np.nextafter(inward, np.copysign(np.float32(np.inf), inward))
    assert np.all(np.abs(inward.astype(float)) <= np.abs(x))
    assert np.all(np.abs(beyond.astype(float)) > np.abs(x))
