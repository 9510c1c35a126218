"""Widths at the edge of a precision: what one bit more would round is not called exact."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, certify
from isotone.certificate.widths import RoundedError, Whole, WholeNumbers, find_widths
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step

CELLS = {"float64": 2.0**51, "float32": 2.0**22}  # a quarter of the whole numbers that are held


def line(numerator: int, precision: Any, bias: float = 0.0) -> FrozenNetwork:
    """f(x) = numerator/4 · x + bias, over so many cells that x alone takes two bits less."""
    weight = np.array([[numerator / 4]], precision)
    return FrozenNetwork(
        ("x",),
        Scaling.identity(1),
        (Dense(weight, np.array([bias], precision)),),
        np.zeros((1, 1)),
        np.full(1, 100.0),
        np.zeros((1, 1), np.int8),
        precision=precision,
        clip=CELLS[precision] * 2.0**-10,
        grid=2.0**-10,
    )


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(
    ("numerator", "exact"), [(1, True), (3, True), (-3, True), (4, True), (5, False), (-7, False)]
)
def test_whole_numbers_are_exact_as_long_as_the_precision_holds_them(
    numerator: int, exact: bool, precision: Any
) -> None:
    frozen = line(numerator, precision)
    assert bool(find_widths(frozen)) == exact
    assert (certify(frozen).rounding_errors == (0.0,)) == exact
    X = frozen.clip - frozen.grid * np.arange(7.0)[:, None]  # type: ignore[operator]
    right = X[:, 0] * numerator / 4  # exact in float64 as long as float64 holds it
    if precision == "float32":
        assert np.array_equal(frozen.score(X).astype(np.float64), right) == exact


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_bias_counts_with_its_last_digit_and_its_size(precision: Any) -> None:
    unit = 2.0**-12  # of 3/4 times a cell
    assert find_widths(line(3, precision, bias=unit))
    assert not find_widths(line(3, precision, bias=unit / 2))
    assert not find_widths(line(3, precision, bias=CELLS[precision] * 2 * unit))


def test_widths_are_those_of_the_largest_numbers() -> None:
    """±2^22 takes 24 bits with its sign, and three times that, in quarters, two more."""
    assert find_widths(line(3, "float32")) == (24, 25)
    assert find_widths(line(1, "float32")) == (24, 24)


def of_steps(*steps: Step, residual: float = 0.0, grid: float = 2.0**-10) -> FrozenNetwork:
    """A network of one feature whose cells take 51 bits of 53."""
    return FrozenNetwork(
        ("x",),
        Scaling.identity(1),
        steps,
        np.array([[residual]]),
        np.full(1, 100.0),
        np.zeros((1, 1), np.int8),
        clip=CELLS["float64"] * grid,
        grid=grid,
    )


ONE = Dense(np.ones((1, 1)), np.zeros(1))


def test_the_residual_counts_with_its_size() -> None:
    half = Dense(np.array([[0.5]]), np.zeros(1))
    for residual, exact in ((0.25, True), (-0.25, True), (0.75, False), (-0.75, False)):
        assert bool(find_widths(of_steps(half, residual=residual))) == exact


@pytest.mark.parametrize(
    ("slope", "exact"),
    [(0.5, True), (0.75, True), (-0.75, True), (1.25, False), (0.125, False), (2.0, True)],
)
def test_a_leaky_relu_adds_the_digits_of_its_slope(slope: float, exact: bool) -> None:
    assert bool(find_widths(of_steps(ONE, Pointwise("leaky_relu", slope)))) == exact


def test_a_slope_of_two_leaves_odd_numbers_odd() -> None:
    """Up to 2^52 of the same units: 53 bits and a sign."""
    assert find_widths(of_steps(ONE, Pointwise("leaky_relu", 2.0))) == (53, 54)


@pytest.mark.parametrize(("grid", "widths"), [(2.0**-10, (53, 12)), (2.0, (53, 2))])
def test_hardtanh_cuts_at_one_which_a_coarse_grid_does_not_hold(
    grid: float, widths: tuple[int, ...]
) -> None:
    assert find_widths(of_steps(ONE, Pointwise("hardtanh"), grid=grid)) == widths


def test_every_unit_must_be_held_also_one_that_is_not_used() -> None:
    first = Dense(np.array([[1.25], [0.0]]), np.zeros(2))
    last = Dense(np.array([[0.0, 1.0]]), np.zeros(1))
    assert not find_widths(of_steps(first, last))
    assert find_widths(of_steps(Dense(np.array([[0.75], [0.0]]), np.zeros(2)), last))


def test_networks_without_a_dense_step_have_widths_of_inputs_and_scores() -> None:
    assert find_widths(of_steps(Sort(1))) == (53, 53)


def test_a_sum_is_as_wide_as_its_terms_need() -> None:
    """1 + 1/2 of units 2^-5 are 48 of them: 6 bits and a sign."""
    step = Dense(np.array([[1.0, 0.5]]), np.zeros(1))
    zero = np.zeros((1, 2))
    frozen = FrozenNetwork(
        *(("a", "b"), Scaling.identity(2), (step,), zero, np.full(2, 9.0), zero.astype(np.int8)),
        clip=1.0,
        grid=2.0**-4,
    )
    assert find_widths(frozen) == (6, 7)


class TestOneUnitTooMany:
    """2^53 + 1 = 321 · 28059810762433 units: rounded down, a size would seem to be held."""

    CELLS = 28059810762433.0

    def exact(self, *steps: Step, residual: float = 0.0, fewer: int = 0) -> bool:
        frozen = of_steps(*steps, residual=residual, grid=1.0)
        return bool(find_widths(replace(frozen, clip=self.CELLS - fewer)))

    def test_of_a_product(self) -> None:
        step = Dense(np.array([[321.0]]), np.zeros(1))
        assert not self.exact(step)
        assert self.exact(step, fewer=1)

    def test_of_a_residual(self) -> None:
        step = Dense(np.array([[320.0]]), np.zeros(1))
        for residual in (1.0, -1.0):
            assert not self.exact(step, residual=residual)
            assert self.exact(step, residual=residual, fewer=1)

    def test_of_a_member(self) -> None:
        assert not self.exact(Members((321.0,), ((ONE,),)))
        assert self.exact(Members((-321.0,), ((ONE,),)), fewer=1)

    def test_of_a_bias(self) -> None:
        step = Dense(np.array([[4.0]]), np.array([1.0]))
        frozen = of_steps(step, grid=1.0)
        assert not find_widths(frozen)
        assert find_widths(replace(frozen, clip=frozen.clip - 1.0))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_units_and_sizes_that_the_format_does_not_hold_are_not_exact(precision: Any) -> None:
    """A product that is too small vanishes, and one that is too large is infinite."""
    for exponent in {"float64": (-1060, 1010), "float32": (-140, 120)}[precision]:
        weight = np.array([[2.0**exponent]], precision)
        frozen = replace(
            line(1, precision),
            steps=(Dense(weight, np.zeros(1, precision)),),
            clip=2.0**15,
            grid=2.0**-5,
        )
        assert find_widths(frozen) == ()
        assert certify(frozen).widths == ()
    weight = np.array([[2.0**20]], precision)
    fine = replace(line(1, precision), steps=(Dense(weight, np.zeros(1, precision)),))
    assert find_widths(fine)


def test_zeros_are_whole_numbers_of_any_unit() -> None:
    first = Dense(np.array([[8.0], [0.0]]), np.zeros(2))
    assert find_widths(of_steps(first, Dense(np.ones((1, 2)), np.zeros(1)))) == (53, 53, 53)


def test_a_sort_keeps_the_sum_of_all() -> None:
    """1 and 1/8 may both be 1 after a sort, but their sum is 9/8: 144 units, not 256."""
    first = Dense(np.array([[1.0, 0.0], [0.0, 0.125]]), np.zeros(2))
    last = Dense(np.ones((1, 2)), np.zeros(1))
    zero = np.zeros((1, 2))
    frozen = FrozenNetwork(
        *(("a", "b"), Scaling.identity(2), (first, Sort(2), last), zero, np.full(2, 9.0)),
        zero.astype(np.int8),
        clip=1.0,
        grid=2.0**-4,
    )
    assert find_widths(frozen) == (6, 9, 9)


def test_a_negative_bias_counts_with_its_size() -> None:
    unit = 2.0**-12
    for bias in (-1.0, 1.0):
        assert not find_widths(line(3, "float64", bias=bias * CELLS["float64"] * 2 * unit))


def test_after_a_sort_every_unit_may_be_the_largest() -> None:
    first = Dense(np.array([[1.0], [0.0]]), np.zeros(2))
    for weight, exact in ((1.25, False), (0.75, True)):
        last = Dense(np.array([[weight, 0.0]]), np.zeros(1))
        assert bool(find_widths(of_steps(first, Sort(2), last))) == exact


@pytest.mark.parametrize(
    ("weights", "exact"),
    [((0.25, 8.0), False), ((8.0, 0.25), False), ((0.125, 1.0), False), ((0.5, 0.5), True)],
)
def test_members_count_with_the_finest_digits_of_their_weights(
    weights: tuple[float, ...], exact: bool
) -> None:
    assert bool(find_widths(of_steps(Members(weights, ((ONE,), (ONE,)))))) == exact


def test_inputs_must_be_held_even_if_nothing_is_made_of_them() -> None:
    frozen = replace(line(0, "float32"), clip=2.0**20)
    assert not find_widths(frozen)
    assert find_widths(replace(frozen, clip=2.0**10))


THIRD = 3002399751580331.0  # three times that is 2^53 + 1, which float64 does not hold


def bound(step: Step, each: list[float], one: float) -> Fraction:
    """What is said of the sum of the sizes after a step."""
    return Fraction(WholeNumbers("float64").run((step,), Whole(0, np.array(each), one)).one)


def test_bounds_of_whole_numbers_are_rounded_up() -> None:
    """One bit less, and numbers that are rounded would pass for exact."""
    three = Dense(np.array([[2.0], [1.0]]), np.zeros(2))
    assert bound(three, [THIRD], THIRD) >= 3 * Fraction(THIRD)
    raised = Dense(np.ones((2, 1)), np.array([1.0, 0.0]))
    assert bound(raised, [2.0**52], 2.0**52) >= 2**53 + 1
    assert bound(Pointwise("leaky_relu", 3.0), [1.0], THIRD) >= 3 * Fraction(THIRD)
    a = 2001599834386887.0
    same: Step = Dense(np.eye(3), np.zeros(3))
    weighted = Members((3.0, 0.0), ((same,), (same,)))
    assert bound(weighted, [a] * 3, 3 * a) >= 9 * Fraction(a)
    with pytest.raises(RoundedError):
        bound(Pointwise("leaky_relu", 3.0), [THIRD], THIRD)


def test_a_residual_whose_product_is_rounded_is_not_called_exact() -> None:
    n = (2**53 + 1) / 321
    for n_cells, exact in ((n, False), (n - 1, True)):
        residual = np.array([[321.0]])
        frozen = replace(line(0, "float64"), clip=n_cells, grid=1.0, residual=residual)
        assert bool(find_widths(frozen)) == exact
