"""Categories with too few rows are learned as one, and new ones are scored like them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import isotone
from isotone.estimators.columns import find_inputs
from isotone.estimators.pooling import Rarity
from isotone.inputs.columns import Category, Ordered
from people import classifier, regressor

RNG = np.random.default_rng(0)
COUNTS = {"Rome": 60, "Oslo": 30, "Lima": 10, "Bonn": 9, "Bern": 2, "Genf": 1}
CITY = RNG.permutation(np.repeat(list(COUNTS), list(COUNTS.values())))
N = len(CITY)
DEBT = RNG.normal(size=N)
FRAME = pd.DataFrame({"city": CITY, "debt": DEBT})
Y = (CITY == "Rome") - 0.5 * (CITY == "Bern") - DEBT + 0.1 * RNG.normal(size=N)
QUICK: dict[str, Any] = {"max_iter": 3, "n_members": 1}


def pooled(min_frequency: float, weight: Any = None, column: Any = CITY) -> Category:
    given = None if weight is None else np.asarray(weight, np.float64)
    inputs = find_inputs({"city": column}, ["city"], Rarity(min_frequency, given))
    (found,) = inputs.columns
    assert isinstance(found, Category)
    return found


@pytest.mark.parametrize(
    ("min_frequency", "alone"),
    [
        (1, 6),
        (2, 5),
        (3, 4),
        (9, 4),
        (10, 3),
        (11, 2),
        (61, 0),
        (0.001, 6),
        (1 / N, 6),
        (9 / N, 4),
        (0.1, 2),
        (0.9, 0),
    ],
)
def test_a_category_stands_alone_with_so_many_rows(min_frequency: float, alone: int) -> None:
    column = pooled(min_frequency)
    assert column.categories == tuple(sorted(list(COUNTS)[:alone]))
    assert column.pooled == len(COUNTS) - alone


def test_a_weight_is_a_number_of_rows() -> None:
    distinct, counts = np.unique(CITY, return_counts=True)
    for least in (1, 2, 9, 10, 30, 0.05, 0.5):
        assert pooled(least, counts, distinct) == pooled(least)
        assert pooled(least, np.ones(N)) == pooled(least)
    rows = np.append(CITY, "Rome"), np.append(np.ones(N), 0.0)
    assert pooled(10, rows[1], rows[0]) == pooled(10)  # a row of weight 0 is no row


@pytest.mark.parametrize("unit", [1e-9, 0.25, 0.999])
def test_weights_below_one_row_on_average_are_no_counts(unit: float) -> None:
    for least in (1, 2, 9, 10, 30, 0.05):
        assert pooled(least, np.full(N, unit)) == pooled(least)


def test_the_order_of_weighted_rows_changes_nothing() -> None:
    weight = RNG.lognormal(size=N)
    for least in (*np.linspace(2, 90, 30).astype(int).tolist(), *np.linspace(0.01, 0.5, 30)):
        order = RNG.permutation(N)
        assert pooled(least, weight[order], CITY[order]) == pooled(least, weight)


def test_rows_that_do_not_count_make_no_pool() -> None:
    """Nothing would be learned of it."""
    weight = ~np.isin(CITY, ["Bern", "Genf"])
    assert pooled(3, weight).pooled == 0
    assert pooled(10, weight).pooled == 1


def test_one_row_is_enough_for_one() -> None:
    assert pooled(1, np.where(CITY == "Genf", 1e-6, 1.0)).pooled == 0


def test_a_missing_value_is_not_rare() -> None:
    city = np.where(CITY == "Genf", None, CITY)
    column = pooled(10, column=city)
    assert column.categories == ("Lima", "Oslo", "Rome", None)
    assert column.pooled == 2
    with pytest.raises(ValueError, match="'city' is empty"):
        pooled(10, column=pd.Categorical([None, None]))


def test_ordered_categories_are_not_pooled() -> None:
    kind = pd.CategoricalDtype(list(COUNTS), ordered=True)
    model = regressor({"city": 1}, min_frequency=50, **QUICK).fit(FRAME.astype({"city": kind}), Y)
    assert model.network_.inputs.column("city") == Ordered("city", tuple(COUNTS))


@pytest.mark.parametrize("make", [regressor, classifier])
def test_rare_and_new_categories_get_one_score(make: Any, tmp_path: Any) -> None:
    model = make({"debt": -1}, min_frequency=10, **QUICK).fit(
        FRAME, Y if make is regressor else Y > 0
    )
    rows = pd.DataFrame({"city": ["Bonn", "Bern", "Genf", "Nowhere", "Rome"], "debt": 0.5})
    model.save(tmp_path / "m.isotone")
    scores = isotone.load(tmp_path / "m.isotone").score(rows)
    assert len(set(scores[:4].tolist())) == 1
    assert scores[4] != scores[0]
    np.testing.assert_array_equal(model.network_.score(rows), scores)
    assert model.certificate_.holds
    line = pd.DataFrame({"city": "Nowhere", "debt": np.linspace(-3, 3, 300)})
    assert np.all(np.diff(model.network_.score(line)) <= 0)


def test_where_no_category_is_rare_a_new_one_is_an_error() -> None:
    model = regressor(min_frequency=10, **QUICK).fit(
        FRAME[np.isin(CITY, ["Rome", "Oslo"])], Y[np.isin(CITY, ["Rome", "Oslo"])]
    )
    assert model.network_.inputs.columns[0] == Category("city", ("Oslo", "Rome"))
    with pytest.raises(ValueError, match="'city' holds 'Nowhere' in row 0"):
        model.predict(pd.DataFrame({"city": ["Nowhere"], "debt": [0.0]}))


def test_a_weight_of_two_is_a_row_given_twice() -> None:
    model = regressor(min_frequency=10, **QUICK)
    twice = clone(model).fit(pd.concat([FRAME, FRAME]), np.concatenate([Y, Y]))
    heavy = clone(model).fit(FRAME, Y, sample_weight=np.full(N, 2.0))
    assert heavy.network_.fingerprint == twice.network_.fingerprint
    assert "Bonn" in heavy.network_.inputs.columns[0].categories  # 18 rows


def test_numbers_that_are_names_are_pooled_too() -> None:
    shop = np.repeat([1.0, 2.0, 3.0, 4.0], [50, 50, 2, 1])
    X, y = np.column_stack([shop, DEBT[: len(shop)]]), DEBT[: len(shop)]
    model = regressor(categorical_features=[0], min_frequency=5, **QUICK).fit(X, y)
    assert model.network_.inputs.columns[0] == Category("x0", ("1", "2"), pooled=2)
    scores = model.predict([[3.0, 0.0], [4.0, 0.0], [99.0, 0.0], [1.0, 0.0]])
    assert scores[0] == scores[1] == scores[2] != scores[3]


def test_pooling_makes_room_for_many_categories() -> None:
    name = np.where(np.arange(N) % 4 > 0, "usual", [f"n{i}" for i in range(N)])
    frame = FRAME.assign(name=name)
    for least in (400, 0.5):
        model = regressor(min_frequency=least, **QUICK).fit(FRAME.assign(name=name), Y)
        assert model.predict(frame.assign(name="anyone")).shape == (N,)
    many = pd.DataFrame({"id": [f"id {i}" for i in range(N)], "debt": DEBT})
    with pytest.raises(ValueError, match=r"more than 64 categories.*larger `min_frequency`"):
        regressor(min_frequency=1, **QUICK).fit(many, Y)
    model = regressor(min_frequency=2, **QUICK).fit(many, Y)
    assert model.network_.inputs.columns[0] == Category("id", (), pooled=N)


def test_missing_is_never_better_than_a_new_category() -> None:
    model = regressor({"missing(city)": -1}, missing="indicator", min_frequency=10, **QUICK)
    model.fit(FRAME, Y)  # no city is missing: the place of a missing one comes before the pool
    column = model.network_.inputs.columns[0]
    assert column == Category("city", ("Lima", "Oslo", "Rome", None), pooled=3)
    cities = ["Nowhere", "Bern", "Lima", "Oslo", "Rome"]
    for debt in (-2.0, 0.0, 2.0):
        frame = pd.DataFrame({"city": [None, *cities], "debt": debt})
        scores = model.predict(frame)
        assert scores[1] == scores[2]
        assert np.all(scores[0] <= scores[1:])
    assert "missing city never gives a higher score than any" in model.certificate_.about_missing


def test_a_rare_category_costs_no_cross_validation() -> None:
    model = regressor(min_frequency=3, **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(cross_val_score(model, FRAME, Y, error_score="raise")).all()


def test_rows_to_validate_on_are_pooled() -> None:
    model = regressor(min_frequency=10, **QUICK)
    model.fit(FRAME, Y, eval_set=(FRAME[:5].assign(city="Nowhere"), Y[:5]))
    assert len(model.history_.validation) == 3


@pytest.mark.parametrize("value", [0, -1, 0.0, 1.0, 1.5, 2.0, np.nan, True, None, "10", [2]])
def test_what_is_neither_rows_nor_a_share_is_refused(value: Any) -> None:
    message = r"`min_frequency=.*` must be a number of rows, whole and at least 1, or a share"
    with pytest.raises(ValueError, match=message):
        regressor(min_frequency=value, **QUICK).fit(FRAME, Y)
