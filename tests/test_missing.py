"""Missing: gaps are filled and flagged; everything else is left alone."""

from __future__ import annotations

import numpy as np

from isotone.missing import Missing


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
