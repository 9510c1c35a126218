"""Names of features and classes that look like numbers are names, and never positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.feature_selection import RFE, SelectKBest, SequentialFeatureSelector
from sklearn.pipeline import make_pipeline

from people import classifier, people, regressor

FRAME, Y = people(60)
ARRAY = FRAME.to_numpy()
RATING = np.where(FRAME["debt"] > 1, "2", np.where(FRAME["debt"] > -1, "1", "0"))
NUMBERED = FRAME.set_axis([2, 0, 1], axis=1)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_key_is_the_name_of_a_column_also_if_that_is_a_number(make: Any) -> None:
    model = make({2: 1, 0: -1}, lipschitz={1: 0.5, 0: 2.0, 2: 1.0}, scaling={2: "log"})
    model.fit(NUMBERED, Y)
    assert model.network_.features == ("2", "0", "1")
    assert model.network_.monotonic_cst.tolist() == [[1, -1, 0]]
    assert model.lipschitz_.tolist() == [1.0, 2.0, 0.5]
    assert model.network_.scaling.log.tolist() == [True, False, False]
    mixed = NUMBERED[[0, 1, 2]]
    np.testing.assert_array_equal(model.network_.score(mixed), model.network_.score(ARRAY))


def test_text_that_looks_like_a_number_is_a_name_too() -> None:
    for frame in (FRAME.set_axis(list("201"), axis=1), pl.DataFrame(ARRAY, schema=list("201"))):
        model = classifier({"2": 1, "0": -1}, max_iter=1).fit(frame, Y)
        assert model.network_.monotonic_cst.tolist() == [[1, -1, 0]]
        with pytest.raises(ValueError, match=r"names the feature 0, which `X` .* mean '0'"):
            classifier({0: -1}).fit(frame, Y)


def test_a_feature_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="names a feature twice, as a number and as text; name"):
        classifier({0: 1, "0": -1}).fit(NUMBERED, Y)


@pytest.mark.parametrize("key", [1, "1", np.int64(1), np.str_("1")])
@pytest.mark.parametrize("y", [RATING, RATING.astype(int)], ids=["text", "int"])
def test_a_class_is_found_by_its_name_also_if_that_is_a_number(key: Any, y: Any) -> None:
    model = classifier({key: {"debt": 1}}, max_iter=1).fit(FRAME, y)
    assert model.network_.monotonic_cst.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    two = classifier({key: {"debt": 1}}, max_iter=1).fit(FRAME[y != y[2]], y[y != y[2]])
    assert two.network_.monotonic_cst.tolist() == [[0, 1, 0]]


def test_a_class_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="names a class twice, as a number and as text; name"):
        classifier({1: {"debt": 1}, "1": {"debt": -1}}).fit(FRAME, RATING)


NO_NAMES = (
    r"is a dictionary by name but `X` is an array, whose \d columns have no names; give a fr"
)


@pytest.mark.parametrize(
    "options",
    [
        {"monotonic_cst": {"income": 1}},
        {"monotonic_cst": {0: 1}},
        {"monotonic_cst": {"x0": 1}},
        {"monotonic_cst": {True: {"x0": 1}}},
        {"lipschitz": {"x0": 1.0}},
        {"scaling": {0: "log"}},
    ],
    ids=str,
)
def test_an_array_has_no_names_to_give_directions_by(options: Any) -> None:
    with pytest.raises(ValueError, match=NO_NAMES):
        classifier(**options).fit(ARRAY, Y)


@pytest.mark.parametrize("directions", [{"income": 1, "debt": -1}, {"x0": 1}, {0: 1}], ids=str)
@pytest.mark.parametrize("X", [FRAME, ARRAY], ids=["frame", "array"])
def test_a_selector_that_loses_names_never_moves_a_direction(directions: Any, X: Any) -> None:
    """RFE gives arrays of fewer and fewer columns: the first of them is not always income."""
    model = classifier(directions, max_iter=1)
    for selector in (
        RFE(model, n_features_to_select=1, importance_getter="lipschitz_"),
        SequentialFeatureSelector(model, n_features_to_select=1, cv=2),
    ):
        with pytest.raises(ValueError, match=f"{NO_NAMES}.*RFE and some others .*set_output"):
            selector.fit(X, Y)


def test_a_selector_that_keeps_names_works_with_a_dictionary() -> None:
    selector = SelectKBest(k=2).set_output(transform="pandas")
    model = make_pipeline(selector, classifier({"income": 1, "debt": -1}, max_iter=1))
    kept = model.fit(FRAME, Y)[-1].network_
    assert dict(zip(kept.features, kept.monotonic_cst[0].tolist(), strict=True)) == {
        "income": 1,
        "debt": -1,
    }


def test_messages_name_columns_as_the_frame_does() -> None:
    model = classifier({2: 1}, max_iter=1).fit(NUMBERED, Y)
    gaps = NUMBERED.copy()
    gaps.loc[3, 0] = np.nan
    with pytest.raises(ValueError, match="'0' is missing in row 3"):
        model.predict(gaps)
