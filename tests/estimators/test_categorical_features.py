"""Columns of numbers that are names: codes of cities, numbers of shops."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import isotone
from isotone.inputs.columns import Category, Number, Ordered
from people import classifier, regressor

RNG = np.random.default_rng(0)
N = 300
SHOP = RNG.integers(1, 5, N)
INCOME = RNG.normal(size=N)
EFFECT = np.array([np.nan, 0.0, 3.0, -3.0, 1.0])  # of shops 1 to 4: not monotone in the number
Y = EFFECT[SHOP] + INCOME
ARRAY = np.column_stack([SHOP, INCOME])
FRAME = pd.DataFrame({"shop": SHOP, "income": INCOME})


@pytest.mark.parametrize("chosen", [["shop"], [0], np.array([0]), (True, False), ["shop", 0]])
def test_names_positions_and_masks_say_the_same(chosen: Any) -> None:
    model = regressor({"income": 1}, categorical_features=chosen).fit(FRAME, Y)
    typed = regressor({"income": 1}).fit(FRAME.astype({"shop": "category"}), Y)
    assert model.network_.inputs.columns == (
        Category("shop", ("1", "2", "3", "4")),
        Number("income"),
    )
    assert model.network_.fingerprint == typed.network_.fingerprint


@pytest.mark.parametrize("chosen", [[0], [True, False], np.array([True, False])])
def test_an_array_is_the_frame_with_its_names(chosen: Any) -> None:
    model = regressor([0, 1], categorical_features=chosen).fit(ARRAY, Y)
    frame = FRAME.set_axis(["x0", "x1"], axis=1)
    same = regressor([0, 1], categorical_features=["x0"]).fit(frame, Y)
    assert model.network_.fingerprint == same.network_.fingerprint
    np.testing.assert_array_equal(model.predict(ARRAY), same.predict(frame))
    np.testing.assert_array_equal(model.predict(ARRAY), same.network_.score(frame))
    assert model.certified_radius(ARRAY).down.shape == (N, 2)
    assert model.feature_importances_.shape == (2,)


def test_numbers_that_are_names_are_learned_better_as_such() -> None:
    plain = cross_val_score(regressor(), ARRAY, Y, cv=2).mean()
    model = regressor(categorical_features=[0])
    assert cross_val_score(model, ARRAY, Y, cv=2).mean() > plain + 0.1
    again = pickle.loads(pickle.dumps(clone(model).fit(ARRAY, Y)))
    np.testing.assert_array_equal(again.predict(ARRAY), model.fit(ARRAY, Y).predict(ARRAY))


def test_types_still_count_beside_a_list() -> None:
    sizes = pd.CategoricalDtype(["small", "large"], ordered=True)
    size = pd.Series(RNG.choice(["small", "large"], N)).astype(sizes)
    frame = FRAME.assign(city=RNG.choice(["Lima", "Oslo"], N), size=size)
    model = regressor(categorical_features=["shop"]).fit(frame, Y)
    kinds = [type(column) for column in model.network_.inputs.columns]
    assert kinds == [Category, Number, Category, Ordered]
    model = regressor(categorical_features=["size"]).fit(frame, Y)
    assert isinstance(model.network_.inputs.column("size"), Category)  # its order is given up
    assert isinstance(model.network_.inputs.column("shop"), Number)


@pytest.mark.parametrize("chosen", ["from_dtype", None, []])
def test_numbers_are_numbers_unless_they_are_listed(chosen: Any) -> None:
    for X in (ARRAY, FRAME):
        model = regressor(categorical_features=chosen).fit(X, Y)
        assert model.network_.inputs.is_plain


def test_other_types_of_the_same_numbers_are_the_same_categories() -> None:
    model = classifier(categorical_features=["shop"]).fit(FRAME, Y > 0)
    expected = model.decision_function(FRAME)
    for frame in (FRAME.astype({"shop": float}), FRAME.astype({"shop": "int8"})):
        np.testing.assert_array_equal(model.decision_function(frame), expected)
    np.testing.assert_array_equal(model.decision_function(pl.from_pandas(FRAME)), expected)


def test_zero_has_no_sign() -> None:
    X = np.where(ARRAY == 1, 0.0, ARRAY)
    model = regressor(categorical_features=[0]).fit(X, Y)
    turned = np.where(X == 0, -0.0, X)
    np.testing.assert_array_equal(model.predict(turned), model.predict(X))
    again = regressor(categorical_features=[0]).fit(turned, Y)
    assert again.network_.fingerprint == model.network_.fingerprint


def test_missing_and_unseen_numbers_are_those_of_categories() -> None:
    X = np.where(ARRAY == 4, np.nan, ARRAY)
    with pytest.raises(ValueError, match=r"missing values .NaN. in feature 'x0'"):
        regressor(categorical_features=[0]).fit(X, Y)
    model = regressor(categorical_features=[0], missing="indicator").fit(X, Y)
    assert model.network_.inputs.columns[0] == Category("x0", ("1", "2", "3", None))
    strange = [[9.0, 0.0], [np.nan, 0.0]]
    with pytest.raises(ValueError, match=r"'x0' holds '9' in row 0 .* categories are 1, 2, 3"):
        model.predict(strange)
    model.set_params(on_unseen="missing")
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        scores = model.predict(strange)
    assert scores[0] == scores[1]


def test_a_missing_number_is_named_when_it_is_scored() -> None:
    model = regressor(categorical_features=[0]).fit(ARRAY, Y)
    with pytest.raises(ValueError, match=r"1 missing values .NaN. in feature 'x0'"):
        model.predict([[np.nan, 0.0]])


def test_a_category_has_no_direction() -> None:
    with pytest.raises(ValueError, match="direction to 'x0', but 'x0' holds categories without"):
        regressor([1, 0], categorical_features=[0]).fit(ARRAY, Y)


def test_in_a_frame_with_numbered_columns_a_number_is_a_name() -> None:
    frame = FRAME.set_axis([1, 0], axis=1)
    model = regressor(categorical_features=[1]).fit(frame, Y)
    assert isinstance(model.network_.inputs.column("1"), Category)
    with pytest.raises(
        ValueError, match="holds 2, which is not a column of `X`; its 2 columns are"
    ):
        regressor(categorical_features=[2]).fit(FRAME.set_axis([1, 5], axis=1), Y)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("shop", r"`categorical_features='shop'` must be .* give a list, such as \['shop'\]"),
        (0, r"`categorical_features=0` must be 'from_dtype', None, or a list"),
        (["shops"], "holds 'shops', which is not a column of `X`; .* did you mean 'shop'?"),
        ([2], "holds 2, which is not a column of `X`; its 2 columns are shop, income"),
        ([-1], "holds -1, which is not a column"),
        ([0.5], "holds 0.5, which is not a column"),
        ([True], "has 1 entries of True and False but `X` has 2 columns; give one per column"),
    ],
)
def test_what_names_no_column_is_refused(chosen: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        regressor(categorical_features=chosen).fit(FRAME, Y)


def test_columns_of_arrays_have_no_names() -> None:
    with pytest.raises(ValueError, match="'shop' but `X` is an array, whose 2 columns have no na"):
        regressor(categorical_features=["shop"]).fit(ARRAY, Y)


@pytest.mark.parametrize("column", [["a", "b", "c"] * 100, pd.Categorical([1, 2, 3] * 100)])
def test_none_refuses_categories(column: Any) -> None:
    with pytest.raises(ValueError, match="'city' holds categories, but `categorical_features=No"):
        regressor(categorical_features=None).fit(FRAME.assign(city=column), Y)


def test_the_file_scores_the_codes(tmp_path: Any) -> None:
    model = regressor(categorical_features=[0]).fit(ARRAY, Y)
    model.save(tmp_path / "model.isotone")
    scores = isotone.load(tmp_path / "model.isotone").score({"x0": SHOP, "x1": INCOME})
    np.testing.assert_array_equal(scores, model.predict(ARRAY))
