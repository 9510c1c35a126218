"""Examples: the weighted set of rows, whatever the order and the repetitions."""

from __future__ import annotations

import numpy as np

from isotone.examples import Examples


def test_repeating_shuffling_and_weighing_give_the_same_examples() -> None:
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(30, 2)), rng.normal(size=(30, 1)), rng.integers(0, 4, 30)
    again = rng.permutation(np.repeat(np.arange(30), weight))
    weighted = Examples.of(X, y, weight.astype(float))
    repeated = Examples.of(X[again], y[again], np.ones(len(again)))
    for name in ("X", "y", "weight"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    assert len(weighted) == np.count_nonzero(weight)


def test_minus_zero_is_zero() -> None:
    assert len(Examples.of(np.array([[0.0], [-0.0]]), np.zeros((2, 1)), np.ones(2))) == 1


def test_folds_are_of_one_size_and_share_the_classes() -> None:
    X = np.arange(90.0)[:, None]
    y = (X % 10 == 0).astype(float)
    folds = Examples.of(X, y, np.ones(90)).folds(3, seed=0)
    assert np.bincount(folds).tolist() == [30, 30, 30]
    assert np.bincount(folds[y[:, 0] == 1]).tolist() == [3, 3, 3]
