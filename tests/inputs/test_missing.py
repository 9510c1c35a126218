"""Missing values are filled and flagged; everything else is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone.estimators.columns import fills_of
from isotone.inputs.chain import Inputs


def test_present_values_stay_and_missing_ones_are_flagged() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 3)) < [0.0, 0.3, 0.3], np.nan, rng.normal(size=(50, 3)))
    inputs = Inputs.numbers(["a", "b", "c"])
    inputs = inputs.with_fills(fills_of(inputs, X, np.ones(50)))
    complete, present = inputs.encode(X), ~np.isnan(X)
    np.testing.assert_array_equal(complete[:, :3][present], X[present])
    np.testing.assert_array_equal(complete[:, 3:], np.isnan(X[:, 1:]))
    assert inputs.features[3:] == ("missing(b)", "missing(c)")
    assert not np.isnan(complete).any()


def test_the_fill_is_the_weighted_median_and_zero_for_an_empty_column() -> None:
    X = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan]])
    found = fills_of(Inputs.numbers(["a", "b"]), X, np.array([1.0, 5.0, 1.0]))
    assert found == {"a": 2.0, "b": 0.0}


def test_missing_values_in_rows_that_do_not_count_are_not_learned_from() -> None:
    X = np.array([[1.0], [np.nan]])
    assert fills_of(Inputs.numbers(["a"]), X, np.array([1.0, 0.0])) == {}


def test_na_of_pandas_is_a_missing_value() -> None:
    frame = pd.DataFrame({"a": pd.Series([1.5, pd.NA, 2.0] * 40, dtype=object), "b": 1.0})
    frame["b"] = np.arange(120.0)
    y = np.arange(120) % 2
    settings: dict[str, Any] = {"max_iter": 1, "n_members": 1, "lipschitz": 1.0}
    model = isotone.MonotonicClassifier(missing="indicator", **settings).fit(frame, y)
    as_nan = frame.where(frame.notna(), np.nan).astype(float)
    assert np.array_equal(model.predict_proba(frame), model.predict_proba(as_nan))
    with pytest.raises(ValueError, match="missing"):
        isotone.MonotonicClassifier(**settings).fit(frame, y)
    frozen = isotone.freeze(
        isotone.MonotonicNetwork([2, 2, 1], monotonic_cst=[0, 0]), features=["a", "b"]
    )
    engine = isotone.Engine(frozen, on_unseen=-7.0)
    for X in (frame, frame.astype({"b": "Int64"}), frame.to_numpy(dtype=object)):
        assert np.array_equal(engine(X), engine(as_nan))
        assert (engine(X) == -7.0).tolist() == [False, True, False] * 40
    flags = pd.DataFrame({"a": pd.array([True, None, False], "boolean"), "b": 1.0})
    assert (engine(flags) == -7.0).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="column 'a' is missing in row 1"):
        frozen.score(frame)
