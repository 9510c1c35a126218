"""Knots: a larger class of functions with the same guarantees along the raw columns."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from isotone import Knots, MonotonicNetwork, Scaling, certify, freeze
from isotone.inputs.knots import place_knots
from networks import saturate

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=400), RNG.lognormal(0, 2, 400), RNG.integers(3, size=400)])


def grid(column: int, n: int = 2001) -> Any:
    """Rows that differ in one column, which runs beyond the range of the training rows."""
    rows = np.repeat(X[:1], n, axis=0)
    low, high = X[:, column].min(), X[:, column].max()
    rows[:, column] = np.linspace(low - 1, high + 1, n)
    return rows


@cache
def coded(n_tiles: int = 8) -> Any:
    """Knots, and a frozen network on them whose slopes are used up."""
    codes = Knots.fit(X, n_tiles)
    torch.manual_seed(0)
    network = MonotonicNetwork(
        [codes.n_copies, 16, 16, 1],
        monotonic_cst=codes.spread([1, -1, 0]).tolist(),
        lipschitz=codes.spread([0.5, 2.0, 1.0]).tolist(),
        group_size=4,
    )
    saturate(network)
    return codes, freeze(network, scaling=codes.scaling, clip=1.0)


def test_training_and_scoring_see_the_same_copies() -> None:
    codes, frozen = coded()
    assert np.allclose(frozen.snap(codes.repeat(X)), codes.transform(X), rtol=0, atol=frozen.grid)


@pytest.mark.parametrize("column", range(3))
def test_one_copy_moves_at_a_time(column: int) -> None:
    codes = Knots.fit(X, 8)
    copies = codes.transform(grid(column))[:, codes.columns == column]
    assert np.all(np.diff(copies, axis=0) >= 0)
    inside = np.abs(copies) < 1 - 1e-9
    assert np.all(inside.sum(axis=1) <= 1)


def test_equal_tiles_are_an_isometry_of_the_1_norm() -> None:
    knots = np.linspace(-2.0, 3.0, 6)
    codes = Knots.fit(knots[:, None], 5)
    x, y = RNG.uniform(-2, 3, (2, 1000, 1))
    distance = np.abs(codes.transform(x) - codes.transform(y)).sum(axis=1)
    assert np.allclose(distance, 2.0 * np.abs(x - y)[:, 0])


@pytest.mark.parametrize(("column", "sign"), [(0, 1), (1, -1)])
def test_computed_scores_are_monotone_in_the_raw_column(column: int, sign: int) -> None:
    codes, frozen = coded()
    assert certify(frozen).holds
    low, high = X[:, column].min() - 1, X[:, column].max() + 1
    rows = X[RNG.integers(len(X), size=20_000)]
    steps = RNG.choice([1e-12, 1e-6, 1e-2, 1.0], len(rows)) * RNG.random(len(rows))
    rows[:, column] = RNG.uniform(low, high, len(rows))
    higher = rows.copy()
    higher[:, column] += steps
    difference = frozen.score(codes.repeat(higher)) - frozen.score(codes.repeat(rows))
    assert np.all(sign * difference >= 0)
    assert np.any(difference != 0)


def test_slopes_along_raw_columns_are_those_of_the_steepest_copy() -> None:
    codes, frozen = coded()
    slopes = [max(abs(s.scaled.low), abs(s.scaled.high)) for s in certify(frozen).slopes]
    raw = slopes * codes.scaling.factor
    for column in range(3):
        rows = grid(column)
        step = rows[1, column] - rows[0, column]
        found = np.abs(np.diff(frozen.score(codes.repeat(rows)))) / step
        steepest = raw[codes.columns == column].max()
        assert found.max() <= steepest + 4 * frozen.grid * max(slopes) / step


def test_scores_are_constant_outside_the_training_rows() -> None:
    codes, frozen = coded()
    far = np.array([X.min(axis=0) - 1e6, X.max(axis=0) + 1e6])
    edge = np.array([X.min(axis=0), X.max(axis=0)])
    assert np.array_equal(frozen.score(codes.repeat(far)), frozen.score(codes.repeat(edge)))


FAR = {
    "offset": 1e9 + np.random.default_rng(1).random(300),
    "fine": 1e12 + 1e-3 * np.arange(300),
    "clock": 1.7e18 + 256.0 * np.arange(300),
    "neighbors": 2.0**53 + 2.0 * np.arange(300),
    "huge": np.array([-1.7e308, -1e308, 0.0, 1e308, 1.7e308]),
    "tiny": 1e-300 * np.arange(300),
}


@pytest.mark.parametrize("name", FAR)
def test_tiles_end_at_their_knots_to_the_last_bit(name: str) -> None:
    x = FAR[name]
    codes = Knots.fit(x[:, None], 8)  # which checks, exactly, that tiles do not overlap
    assert codes.n_copies > 1
    ends = codes.transform([[x.min()], [x.max()]])
    assert np.all(ends == [[-1.0], [1.0]])
    between = codes.transform(x[:, None])
    assert np.all(np.sum(np.abs(between) < 1, axis=1) <= 1)


def test_the_copy_of_a_constant_column_stands_still() -> None:
    for value in (0.0, 7.0, 2.0**53, -1e300):
        codes = Knots.fit([[value], [value]], 4)
        torch.manual_seed(0)
        network = MonotonicNetwork([1, 4, 1], monotonic_cst=[1])
        saturate(network)
        frozen = freeze(network, scaling=codes.scaling, clip=1.0)
        scores = frozen.score([[value], [value + 1.0], [value - 1e9], [1e15]])
        assert np.all(scores == scores[0])


def test_codes_can_bend_where_a_network_of_the_same_slope_cannot() -> None:
    """A sum over copies can rise on one tile and fall on the next, at full slope."""
    codes = Knots.fit([[0.0], [1.0], [2.0]], 2)
    zigzag = codes.transform([[0.0], [1.0], [2.0]]) @ [1.0, -1.0]
    assert zigzag.tolist() == [0.0, 2.0, 0.0]


def test_knots_are_values_or_shares_of_them() -> None:
    codes = Knots.fit(X, [4, 8, 16])
    assert np.bincount(codes.columns).tolist() == [4, 8, 2]  # three values need two copies
    mostly_zero = np.append(np.zeros(10_000), np.arange(1.0, 101.0))[:, None]
    assert Knots.fit(mostly_zero, 4).n_copies >= 2  # quantiles of the rows would leave one
    assert Knots.fit(np.full((3, 1), 7.0), 4).transform([[7.0]]) == 0.0


def test_knots_can_be_given() -> None:
    codes = Knots.at([[3.0, 0.0, 1.0, 1.0], [7.0], [5.0, np.nextafter(5.0, 6.0), 6.0]])
    assert codes.columns.tolist() == [0, 0, 1, 2]  # no tile between numbers too close for one
    copies = codes.transform([[1.0, 7.0, 5.0], [3.0, 7.0, 6.0]])
    assert copies.tolist() == [[1.0, -1.0, 0.0, -1.0], [1.0, 1.0, 0.0, 1.0]]


@pytest.mark.parametrize("knots", [[], "12", {0: [1.0]}, np.array([0.0, 1.0]), None])
def test_knots_are_a_list_of_columns(knots: Any) -> None:
    with pytest.raises(ValueError, match=r"`knots` is a .*; give a list of columns, each a list"):
        Knots.at(knots)


@pytest.mark.parametrize(
    "column", [[], 1.0, [np.inf], [0.0, np.nan], ["a"], [10**400], [[0.0, 1.0]], None]
)
def test_knots_of_a_column_are_finite_numbers(column: Any) -> None:
    with pytest.raises(ValueError, match=r"`knots\[1\]` is .* must be a list of one or more"):
        Knots.at([[0.0, 1.0], column])


def test_wrong_arguments_are_named() -> None:
    codes = Knots.fit(X, 2)
    for empty in (X[:0], X[:, :0]):
        with pytest.raises(ValueError, match="knots need at least one row and column"):
            Knots.fit(empty, 2)
    for low, high in ((0.0, 5e-324), (1.0, 1.0 + 2**-52), (-1e-308, 0.0)):
        with pytest.raises(ValueError, match=r"column 0 runs from .*, too close together"):
            Knots.fit([[low], [high]], 2)
    for wrong in (0, 1.5, True, [2, 2], [1, [2]]):
        with pytest.raises(ValueError, match="must be a whole number of at least 1"):
            Knots.fit(X, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="knots have 3 columns: give"):
        codes.repeat(X[:, :2])
    with pytest.raises(ValueError, match="last axis must be the 3 raw columns"):
        codes.spread([1, 0])
    with pytest.raises(ValueError, match="not a numeric table"):
        codes.repeat([["a", 1.0, 2.0]])
    with pytest.raises(ValueError, match="names 3 copies but the scaling has 2"):
        Knots(np.arange(3), Scaling.identity(2), 3)
    with pytest.raises(ValueError, match="without logarithms"):
        Knots(np.array([0]), Scaling.fit([[1.0], [2.0]], "log"), 1)
    with pytest.raises(
        ValueError, match="copies 0 and 1 are out of order, or their tiles overlap"
    ):
        Knots(np.array([0, 0]), Scaling.identity(2), 1)
    with pytest.raises(ValueError, match="by its number; got"):
        Knots(np.array([0.9]), Scaling.identity(1), 1)
    with pytest.raises(ValueError, match="must name each of 3 raw columns"):
        Knots(np.array([0, 2]), Scaling.identity(2), 3)


def ends(codes: Knots, j: int) -> tuple[Fraction, Fraction]:
    """Where the tile of a copy begins and ends, exactly."""
    center, factor = (Fraction(float(a[j])) for a in (codes.scaling.center, codes.scaling.factor))
    return center - 1 / factor, center + 1 / factor


def test_no_tile_leaves_the_interval_between_its_knots() -> None:
    """Exactly, for numbers of every size and distance; as computed it reaches ±1 at both."""
    rng = np.random.default_rng(3)
    low = rng.normal(size=4000) * 10.0 ** rng.uniform(-5, 5, 4000)
    high = low + np.abs(low) * 2.0 ** rng.uniform(-45, 5, 4000)
    pairs = np.stack([low, high], axis=1)
    codes = Knots.at(pairs.tolist())
    for j, (begin, end) in enumerate(pairs.tolist()):
        first, last = ends(codes, j)
        assert Fraction(begin) <= first < last <= Fraction(end)
    assert np.all(codes.transform(pairs.T) == [[-1.0], [1.0]])


def test_copies_are_given_by_whole_numbers_that_nobody_can_change() -> None:
    given = np.arange(2, dtype=np.uint8)
    codes = Knots(given, Scaling.identity(2), 2)
    given[:] = 0
    assert codes.columns.tolist() == [0, 1]
    assert codes.columns.dtype == np.intp
    with pytest.raises(ValueError, match="read-only"):
        codes.columns[0] = 1
    with pytest.raises(ValueError, match="by its number; got"):
        Knots(np.array([0.0, 1.0]), Scaling.identity(2), 2)


def tiled(columns: list[int], center: list[float]) -> Knots:
    """Tiles of half-width one."""
    n = len(center)
    scaling = Scaling(np.zeros(n), np.zeros(n), np.ones(n), np.array(center), np.ones(n))
    return Knots(np.array(columns), scaling, max(columns) + 1)


def test_tiles_may_touch_but_neither_overlap_nor_be_out_of_order() -> None:
    assert tiled([0, 0, 1, 1], [0.0, 2.0, 0.0, 2.0]).n_copies == 4
    below = float(np.nextafter(2.0, 0.0))
    for columns, center in (
        ([0, 0], [0.0, below]),
        ([0, 0, 1, 1], [0.0, 2.0, 0.0, below]),  # in the second column
        ([0, 1, 1], [0.0, 0.0, below]),
        ([0, 1, 0], [0.0, 10.0, 20.0]),  # far apart, but of another column between
        ([0, 0], [2.0, 0.0]),
    ):
        with pytest.raises(ValueError, match="out of order, or their tiles overlap"):
            tiled(columns, center)


def test_every_logarithm_and_every_number_of_tiles_is_checked() -> None:
    scaling = Scaling.fit([[1.0, 1.0], [2.0, 2.0]], ["standard", "log"])
    with pytest.raises(ValueError, match="without logarithms"):
        Knots(np.arange(2), scaling, 2)
    for counts in ([0, 1, 1], [1, 0, 1], [1, 1, 0]):
        with pytest.raises(ValueError, match="must be a whole number of at least 1"):
            Knots.fit(X, counts)


def test_values_are_spread_along_the_last_axis() -> None:
    codes = Knots.at([[0.0, 1.0, 2.0], [5.0]])
    assert codes.spread([3, 4]).tolist() == [3, 3, 4]
    assert codes.spread([[1, 2], [3, 4], [5, 6]]).tolist() == [[1, 1, 2], [3, 3, 4], [5, 5, 6]]
    for values in (1.0, [[1, 2, 3], [4, 5, 6]]):
        with pytest.raises(ValueError, match="last axis must be the 2 raw columns"):
            codes.spread(values)


def test_stored_numbers_of_knots_are_those_of_a_linear_map() -> None:
    scaling = Knots.at([[0.0, 1.0, 3.0], [5.0]]).scaling
    assert scaling.log.tolist() == [False] * 3
    assert scaling.offset.tolist() == [0.0] * 3
    assert scaling.floor.tolist() == [1.0] * 3
    assert scaling.center.tolist() == [0.5, 2.0, 5.0]


def test_knots_too_close_to_their_neighbor_are_left_out_wherever_they_are() -> None:
    after = float(np.nextafter(5.0, 6.0))
    for knots, found in (
        ([0.0, 5.0, after, 6.0], [0.0, 5.0, 6.0]),
        ([0.0, 5.0, after], [0.0, after]),  # the last one is always kept
        ([5.0, after, 6.0], [5.0, 6.0]),
    ):
        codes = Knots.at([knots])
        assert codes.n_copies == len(found) - 1
        assert np.all(np.diag(codes.transform([[k] for k in found[1:]])) == 1.0)
        assert np.all(np.diag(codes.transform([[k] for k in found[:-1]])) == -1.0)
    least = float(np.nextafter(np.finfo(float).tiny, 1.0))  # half of the narrowest tile
    assert Knots.at([[0.0, 2 * least]]).transform([[0.0], [2 * least]]).tolist() == [[-1.0], [1.0]]


def test_knots_are_at_equal_shares_of_the_roots_of_counts() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 10.0, 11.0])
    counts = np.array([900, 4, 1, 1, 25, 9])
    for most in (1, 2, 3, 4):
        found = place_knots(values, counts, most)
        ranks = [sum(np.sqrt(counts[:k])) + np.sqrt(counts[k]) / 2 for k in range(6)]
        shares = [ranks[0] + k * (ranks[5] - ranks[0]) / most for k in range(most + 1)]
        np.testing.assert_allclose(found, np.interp(shares, ranks, values), rtol=1e-12)
        assert len(found) == most + 1
    for most in (5, 6, 100):  # so few values are knots, each of them
        assert np.array_equal(place_knots(values, counts, most), values)
