"""Missing: gaps are filled and flagged; everything else is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone.inputs.missing import Missing


def test_present_values_stay_and_gaps_are_flagged() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 3)) < [0.0, 0.3, 0.3], np.nan, rng.normal(size=(50, 3)))
    missing = Missing.fit(X, np.ones(50), ["a", "b", "c"])
    complete = missing.complete(X)
    present = ~np.isnan(X)
    np.testing.assert_array_equal(complete[:, :3][present], X[present])
    np.testing.assert_array_equal(complete[:, 3:], np.isnan(X[:, 1:]))
    assert missing.indicators == ["missing(b)", "missing(c)"]
    assert not np.isnan(complete).any()


def test_the_fill_is_the_weighted_median_and_zero_for_an_empty_column() -> None:
    X = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan]])
    assert Missing.fit(X, np.array([1.0, 5.0, 1.0]), ["a", "b"]).fills == {0: 2.0, 1: 0.0}


def test_gaps_in_rows_that_do_not_count_are_not_learned_about() -> None:
    X = np.array([[1.0], [np.nan]])
    assert Missing.fit(X, np.array([1.0, 0.0]), ["a"]).fills == {}


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
