"""Recourse turns decisions, costs no less than the bound, and finds what a grid finds."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import isotone
from isotone import FrozenNetwork
from isotone.explanation import AllowedChange, find_recourse
from isotone.typing import Floats
from networks import PEOPLE, by_hand, mixed, small

SIGNS = (1, -1, 1, -1)


def on_a_grid(
    frozen: FrozenNetwork, x: Floats, ends: Floats, cost: Floats, threshold: float, n: int
) -> float:
    """The least cost among points between a row and the ends of its columns."""
    parts = np.array(list(product(np.linspace(0.0, 1.0, n), repeat=len(ends))))
    rows = np.tile(x, (len(parts), 1))
    rows[:, : len(ends)] += parts * (ends - x[: len(ends)])
    costs = (np.abs(rows - x)[:, : len(ends)] * cost).sum(axis=1)
    return float(np.min(costs, initial=np.inf, where=frozen.score(rows) >= threshold))


@pytest.mark.parametrize("n_columns", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_several_columns_are_no_dearer_than_on_a_grid(seed: int, n_columns: int) -> None:
    frozen, rng = small(seed=seed, monotonic_cst=SIGNS), np.random.default_rng(seed)
    X, cost = rng.normal(size=(8, 4)), rng.uniform(0.5, 2.0, n_columns)
    threshold = float(frozen.score(X).max() + 0.5)
    names = frozen.inputs.names[:n_columns]
    changes = {
        name: AllowedChange(c, low=-4.0, high=4.0) for name, c in zip(names, cost, strict=True)
    }
    found = find_recourse(frozen, X, changes, threshold=threshold)
    ends = 4.0 * np.array(SIGNS[:n_columns])
    n = {2: 161, 3: 33}[n_columns]
    grid = [on_a_grid(frozen, x, ends, cost, threshold, n) for x in X]
    assert np.all(found.cost <= np.array(grid) * 1.001)
    assert np.all(found.bound <= np.minimum(found.cost, grid))
    assert np.all(found.bound[found.found] > 0)
    turned = X.copy()
    turned[:, :n_columns] = found.values
    assert np.all(frozen.score(turned)[found.found] >= threshold)
    np.testing.assert_allclose((np.abs(turned - X)[:, :n_columns] * cost).sum(axis=1)[found.found],
                               found.cost[found.found])  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_one_column_with_a_direction_moves_as_little_as_possible(seed: int) -> None:
    frozen, rng = small(seed=seed, monotonic_cst=SIGNS), np.random.default_rng(seed)
    X = rng.normal(size=(20, 4))
    threshold = float(np.median(frozen.score(X)))
    for k, sign in enumerate(SIGNS):
        name = frozen.inputs.names[k]
        found = find_recourse(frozen, X, {name: AllowedChange(3.0)}, threshold=threshold)
        moved, less = X.copy(), X.copy()
        distance = np.abs(found.values[:, 0] - X[:, k])
        moved[:, k] = found.values[:, 0]
        less[:, k] += sign * distance * (1.0 - 1e-6)
        assert np.all(frozen.score(moved) >= threshold)
        assert np.all(frozen.score(less)[found.needed] < threshold)
        radius = isotone.certify(frozen).certified_radius(X, threshold)
        certified = 3.0 * np.minimum(radius.up, radius.down)[:, k][found.needed]
        np.testing.assert_allclose(found.bound[found.needed], certified, rtol=1e-6)
        assert np.all(found.cost[~found.needed] == 0.0)


def test_a_line_leaves_no_gap() -> None:
    """Of f(x) = 2 x the slope is known, and the bound is the cost."""
    found = find_recourse(by_hand(1.0), [[-3.0]], {"x": AllowedChange(5.0)})
    assert found.cost[0] == pytest.approx(15.0, rel=1e-5)
    assert found.bound[0] == pytest.approx(15.0, rel=1e-5)
    assert found.bound[0] <= found.cost[0]
    whole = find_recourse(
        by_hand(1.0), [[-2.5]], {"x": AllowedChange(5.0, whole=True)}, threshold=0.1
    )
    assert whole.values[0, 0] == 1.0


def test_rows_that_cannot_be_turned_say_so() -> None:
    frozen = small(monotonic_cst=SIGNS)
    X = np.random.default_rng(0).normal(size=(10, 4))
    limited = {"x0": AllowedChange(high=1.0), "x1": AllowedChange(low=-1.0)}
    names = dict(zip(("x0", "x1"), frozen.inputs.names, strict=False))
    changes = {names[key]: change for key, change in limited.items()}
    found = find_recourse(frozen, X, changes, threshold=50.0)
    assert found.impossible.all()
    assert not found.found.any()
    wrong_way = {frozen.inputs.names[0]: AllowedChange(up=False)}
    assert find_recourse(frozen, X, wrong_way, threshold=50.0).impossible.all()


def test_a_limit_itself_is_within_reach() -> None:
    """x + (high - x) can be below `high`, where alone the row turns."""
    x, frozen = -np.random.default_rng(0).uniform(1.0, 3.0, 100), by_hand(1.0)
    edge = np.nextafter(2.0**-2 + 2.0**-21, 1.0)  # the first number of a cell of the grid 2**-20
    below, threshold = frozen.score([[np.nextafter(edge, 0.0)], [edge]])
    assert below < threshold
    assert np.any(x + (edge - x) < edge)
    found = find_recourse(frozen, x[:, None], {"x": AllowedChange(high=edge)}, threshold=threshold)
    assert not found.impossible.any()
    assert np.all(found.values == edge)


def test_what_changes_ends_within_its_limits() -> None:
    """Also a value that lies beyond them before."""
    found = find_recourse(
        by_hand(1.0), [[5.0]], {"x": AllowedChange(high=2.0)}, threshold=8.0, to="refuse"
    )
    assert found.values[0, 0] == 2.0
    assert found.bound[0] <= found.cost[0] == 3.0
    nothing_whole = {"x": AllowedChange(low=0.2, high=0.8, whole=True)}
    assert find_recourse(by_hand(1.0), [[-5.0]], nothing_whole).impossible.all()


def test_scores_of_float32_meet_thresholds_of_float64() -> None:
    frozen = small(precision="float32", exact=True)
    X = np.random.default_rng(0).normal(size=(20, 3))
    for x, score in zip(X, frozen.score(X), strict=True):
        above = float(np.nextafter(np.float64(score), np.inf))  # which float32 rounds to the score
        found = find_recourse(
            frozen, [x], {frozen.inputs.names[0]: AllowedChange()}, threshold=above
        )
        assert found.needed[0]
        assert found.cost[0] > 0


@pytest.mark.parametrize("seed", range(3))
def test_hostile_moves_do_not_beat_the_bound(seed: int) -> None:
    """Whatever costs less than the bound, in any direction, leaves the decision alone."""
    frozen, rng = small(seed=seed, monotonic_cst=(1, 0, -1)), np.random.default_rng(seed)
    X, cost = rng.normal(size=(40, 3)), np.array([1.0, 0.3, 2.0])
    threshold = float(np.quantile(frozen.score(X), 0.8))
    names = frozen.inputs.names
    changes = {name: AllowedChange(c) for name, c in zip(names, cost, strict=True)}
    for to, sign in (("accept", 1), ("refuse", -1)):
        found = find_recourse(frozen, X, changes, threshold=threshold, to=to)  # type: ignore[arg-type]
        rows, bound = X[found.needed], found.bound[found.needed]
        for _ in range(200):
            shares = rng.dirichlet(np.full(3, 0.3), len(rows)) * rng.choice(
                [-1, 1], (len(rows), 3)
            )
            moved = rows + shares * bound[:, None] / cost * 0.999999
            assert not np.any(sign * (frozen.score(moved) - threshold) >= (sign < 0) * 1e-300)


def test_whole_numbers_ranks_categories_and_missing_values() -> None:
    frozen = mixed(directions=(1, -1, -1, 1))
    threshold = float(frozen.score(PEOPLE).max()) + 0.2
    changes = {
        "city": AllowedChange(5.0, categories=("Rome",)),
        "size": AllowedChange(1.0),
        "income": AllowedChange(0.001, whole=True, down=False),
        "debt": AllowedChange(0.02, low=0.0, up=False),
    }
    found = find_recourse(frozen, PEOPLE, changes, threshold=threshold)
    after: dict[str, Any] = PEOPLE | found.changed()
    assert np.all(found.found)
    assert np.all(frozen.score(after) >= threshold)
    assert np.all(found.bound <= found.cost)
    assert after["income"][1] is None  # what is missing stays missing
    assert all(value is None or value == int(value) for value in after["income"])
    assert all(
        city in (old, "Rome") for city, old in zip(after["city"], PEOPLE["city"], strict=True)
    )
    assert all(new <= old for new, old in zip(after["debt"], PEOPLE["debt"], strict=True))


def test_a_category_that_is_missing_stays_missing() -> None:
    frozen = mixed(directions=(1, -1, -1, 1))
    for name, city in (("unknown", None), ("known", "Oslo")):
        rows = PEOPLE | {"city": [city] * 5}
        others = [frozen.score(PEOPLE | {"city": [other] * 5}) for other in ("Oslo", "Rome")]
        lower = np.minimum(*others) < frozen.score(rows)
        assert lower.all(), name
        threshold = float(frozen.score(rows)[0])
        first = {key: values[:1] for key, values in rows.items()}
        found = find_recourse(
            frozen, first, {"city": AllowedChange()}, threshold=threshold, to="refuse"
        )
        assert found.found[0] == (city is not None)
        assert found.impossible[0] == (city is None)


def test_what_cannot_be_meant_is_refused() -> None:
    frozen, table = mixed(), PEOPLE
    for change, message in (
        ({"low": 2.0, "high": 1.0}, "`low=2` is above `high=1`"),
        ({"up": False, "down": False}, "neither `up` nor `down` is allowed"),
        ({"cost": 0.0}, r"`cost=0\.0` must be positive"),
        ({"low": float("nan")}, "`low=nan` must be a number"),
    ):
        with pytest.raises(ValueError, match=message):
            AllowedChange(**change)  # type: ignore[arg-type]
    for changes, message in (
        ({}, "`changes` is empty"),
        ({"aeg": AllowedChange()}, "which is not a column of the model; did you mean 'age'"),
        (
            {"city": AllowedChange(categories=("Lima",))},
            "'Lima' is not a category of column 'city'",
        ),
        (
            {"age": AllowedChange(categories=("a",))},
            "categories of column 'age', which has an order",
        ),
        (
            {"city": AllowedChange(down=False, high=1.0)},
            "sets `down` and `high` of column 'city', .* leave it out, or limit",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            find_recourse(frozen, table, changes)
    classes = mixed(n_outputs=3, outputs="logits")
    with pytest.raises(ValueError, match="recourse needs one output and a threshold"):
        find_recourse(classes, table, {"age": AllowedChange()})
    with pytest.raises(ValueError, match="`to='flip'` is unknown"):
        find_recourse(frozen, table, {"age": AllowedChange()}, to="flip")  # type: ignore[arg-type]
