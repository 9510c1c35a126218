"""Copies: which move where, found in few steps, and how far computed ones are from exact ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from isotone import Scaling
from isotone.frozen import lookup
from isotone.frozen.lookup import Cells, Copies
from isotone.inputs.knots import Knots
from isotone.typing import Floats

LARGEST = float(np.finfo(np.float64).max)
TINY = 5e-324


def copies_of(
    *knots: list[float], clip: float = 1.0, grid: float | None = None, precision: Any = "float64"
) -> Copies:
    codes = Knots.at(knots)
    return Copies.of(tuple(codes.columns.tolist()), codes.scaling, clip, grid, precision)


def logs(n: int) -> Scaling:
    """Logarithms of n columns, ten times as large."""
    one = np.ones(n)
    return Scaling(one > 0, 0.5 * one, 1e-3 * one, 0.25 * one, 10.0 * one)


def test_each_of_two_copies_stays_within_its_tile() -> None:
    """A column of two has tables and clamps as one of many has."""
    copies = copies_of([0.0, 1.0, 3.0], clip=64.0)
    assert copies.is_several == [True]
    assert copies.reach.tolist() == [1.0, 1.0]
    X = np.array([[-9.0], [0.0], [0.25], [1.0], [2.5], [3.0], [9.0]])
    u = copies.expand(copies.cells(X))
    expected = [[-1, -1, -0.5, 1, 1, 1, 1], [-1, -1, -1, -1, 0.5, 1, 1]]
    assert u == pytest.approx(np.array(expected), rel=1e-15)
    weight = np.array([[2.0, 5.0]])
    assert copies.sums(weight).tolist() == [[-5.0, 2.0]]
    assert copies.interleaved(weight).tolist() == [[-5.0], [2.0], [2.0], [5.0]]


def test_one_copy_is_the_column_itself() -> None:
    copies = Copies.of((0, 1), Scaling.identity(2), 64.0, None, "float64")
    assert copies.is_several == [False, False]
    assert copies.reach.tolist() == [64.0, 64.0]
    X = np.array([[-99.0, 99.0], [3.0, -2.0]])
    assert copies.expand(copies.cells(X)).T.tolist() == [[-64, 64], [3, -2]]
    assert copies.sums(np.array([[2.0, 5.0]])).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    "threshold", [-LARGEST, -1.0, -TINY, 0.0, TINY, 0.7, 3.0, LARGEST, np.inf]
)
@pytest.mark.parametrize("guess", [-LARGEST, -2.0, -0.5, 0.0, 0.7, 1e300, np.inf, np.nan])
@pytest.mark.parametrize("width", [0.0, TINY, 1e-9, 4.0, LARGEST])
def test_the_smallest_number_is_found_from_any_guess(
    threshold: float, guess: float, width: float
) -> None:
    def holds(x: Floats) -> Any:
        assert not np.any(np.isnan(x))
        return x >= threshold

    with np.errstate(over="ignore"):
        found = lookup._smallest(holds, np.array([guess, threshold]), np.array([width, width]))
    assert found.tolist() == [threshold] * 2


@pytest.mark.parametrize("grid", [None, 2.0**-20, 0.25])
@pytest.mark.parametrize("first", [-1e6, 0.0, 3.0])
def test_ends_of_tiles_are_found_in_few_steps(
    grid: float | None, first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are looked for where copies reach +1 in real numbers."""
    steps, compute = [], lookup._Copy.__call__

    def counted(copy: Any, x: Floats) -> Any:
        steps.append(x)
        return compute(copy, x)

    monkeypatch.setattr(lookup._Copy, "__call__", counted)
    knots = first + np.linspace(0.5, 9.5, 50) * max(1.0, abs(first))
    copies_of(knots.tolist(), grid=grid)
    assert len(steps) <= 11


def slipped(copies: Copies, low: float, high: float) -> Floats:
    """How far copies move between two numbers, as computed."""
    u = copies.expand(copies.cells(np.array([[low], [high]]))).astype(np.float64)
    return u[:, 1] - u[:, 0]


@pytest.mark.parametrize(
    ("grid", "precision", "most"),
    [(0.25, "float64", 0.25), (None, "float32", 2.0**-23), (0.5, "float32", 0.5 + 2.0**-23)],
)
def test_what_is_on_both_sides_of_a_tie_moves_by_nearly_the_slack(
    grid: float | None, precision: Any, most: float
) -> None:
    tie = 0.375 if grid == 0.25 else 0.25 if grid else 0.5 + 2.0**-25
    clip = 1.0 if grid else 0.5 + 2.0**-10
    copies = Copies.of((0,), Scaling.identity(1), clip, grid, precision)
    low, high = np.nextafter(tie, 0.0), np.nextafter(tie, 1.0)
    (moved,) = slipped(copies, low, high) - (high - low)
    (slack,) = copies.slack
    assert slack == most * (1.0 if grid else clip) + copies.scaling.slip(copies.reach)[0]
    assert 0.99 * slack < moved * (1.0 if grid else 2.0 * clip) <= 1.01 * slack


def test_without_grid_and_in_float64_the_scaling_alone_slips() -> None:
    copies = copies_of([0.1, 0.3, 0.7])
    assert np.all(copies.slack > 0)
    assert np.array_equal(copies.slack, copies.scaling.slip(copies.reach))


def back(copies: Copies, X: Floats) -> Floats:
    return copies.numbers(copies.cells(X)).T


def test_numbers_of_cells_are_those_that_have_them() -> None:
    X = np.linspace(0.01, 2.99, 50)[:, None]
    assert back(copies_of([0.0, 1.0, 3.0]), X) == pytest.approx(X, rel=1e-12)
    several = Copies.of((0, 1, 2), logs(3), 1e3, None, "float64")
    Y = np.random.default_rng(0).uniform(0.1, 9, (20, 3))
    assert back(several, Y) == pytest.approx(Y, rel=1e-6)
    mixed = np.array([False, True])
    scaling = Scaling(mixed, 0.5 * mixed, np.ones(2), np.array([3.0, 0.5]), np.array([0.5, 2.0]))
    Z = np.array([[-7.0, 4.0], [5.0, 20.0]])
    assert back(Copies.of((0, 1), scaling, 1e3, None, "float64"), Z) == pytest.approx(Z, rel=1e-6)


def test_numbers_beyond_float64_are_the_largest() -> None:
    scaling = Scaling.identity(1)
    tiny = Scaling(scaling.log, scaling.offset, scaling.floor, np.zeros(1), np.full(1, 2.0**-1000))
    copies = Copies.of((0,), tiny, 2.0**64, None, "float64")
    cells = Cells(np.zeros((1, 1), np.intp), np.array([[2.0**60, -(2.0**60), 1.0]]))
    with np.errstate(over="ignore"):
        assert copies.numbers(cells).tolist() == [[LARGEST, -LARGEST, 2.0**1000]]


def test_logarithms_are_taken_of_the_columns_that_have_them() -> None:
    several, X = logs(3), np.random.default_rng(1).uniform(0.1, 9, (20, 3))
    copies = Copies.of((0, 1, 2), several, 1e3, None, "float64")
    assert np.array_equal(copies.expand(copies.cells(X)).T, several.transform(X))


def test_no_column_of_several_copies_has_a_logarithm_beside_one_that_may() -> None:
    log = np.array([True, True, False])
    tiles = Knots.at([[0.0, 1.0, 2.0], [0.0, 1.0]]).scaling
    for logged, fails in ((log, True), (~log, False)):
        one = np.ones(3)
        scaling = Scaling(logged, 0 * one, one, tiles.center, tiles.factor)
        make: Callable[[], Copies] = lambda s=scaling: Copies.of(  # type: ignore[misc]  # noqa: E731
            (0, 0, 1), s, 1.0, None, "float64"
        )
        if fails:
            with pytest.raises(ValueError, match="several copies cannot have a logarithm"):
                make()
        else:
            assert make().counts == (2, 1)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_sums_that_overflow_are_infinite_with_their_sign(sign: float) -> None:
    copies = copies_of([0.0, 1.0, 2.0, 3.0])
    with np.errstate(over="ignore"):
        found = copies.sums(np.full((1, 3), sign * LARGEST))
    assert found.tolist() == [[-sign * np.inf, 0.0, sign * np.inf]]
