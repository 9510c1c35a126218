"""Observations: the weighted set of rows, whatever the order and the repetitions."""

from __future__ import annotations

import numpy as np
import pytest

from isotone.estimators.preparation.observations import folds, hold_out, observations
from isotone.training.rows import Rows


def test_repeating_shuffling_and_weighing_give_the_same_observations() -> None:
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(30, 2)), rng.normal(size=(30, 1)), rng.integers(0, 4, 30)
    again = rng.permutation(np.repeat(np.arange(30), weight))
    weighted = observations(Rows(X, y, weight.astype(float)))
    repeated = observations(Rows(X[again], y[again], np.ones(len(again))))
    for name in ("x", "y", "weight"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))
    assert len(weighted) == np.count_nonzero(weight)


def test_the_order_of_fractional_weights_changes_no_bit() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(3, size=(200, 1)).astype(float), np.zeros((200, 1))
    weight = 10.0 ** rng.uniform(-9, 9, 200)
    first = observations(Rows(X, y, weight))
    for _ in range(20):
        order = rng.permutation(200)
        np.testing.assert_array_equal(
            observations(Rows(X[order], y, weight[order])).weight, first.weight
        )


def test_minus_zero_is_zero() -> None:
    assert len(observations(Rows(np.array([[0.0], [-0.0]]), np.zeros((2, 1)), np.ones(2)))) == 1


def test_folds_are_of_one_size_and_share_the_classes() -> None:
    X = np.arange(90.0)[:, None]
    y = (X % 10 == 0).astype(float)
    found = folds(observations(Rows(X, y, np.ones(90))), 3, seed=0)
    assert np.bincount(found).tolist() == [30, 30, 30]
    assert np.bincount(found[y[:, 0] == 1]).tolist() == [3, 3, 3]


@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.3, 0.75, 0.999])
@pytest.mark.parametrize("n_rows", [2, 7, 90])
def test_the_fraction_that_is_held_out_is_what_was_asked_for(fraction: float, n_rows: int) -> None:
    X = np.arange(float(n_rows))[:, None]
    rows = observations(Rows(X, X, np.ones(n_rows)))
    n_held = np.count_nonzero(hold_out(rows, fraction, seed=0) == 0)
    assert 0 < n_held < n_rows
    assert abs(n_held - fraction * n_rows) <= 1


def test_one_row_cannot_be_held_out() -> None:
    with pytest.raises(ValueError, match=r"at least 2 distinct rows; got n_samples=1: give more"):
        hold_out(observations(Rows(np.ones((3, 1)), np.ones((3, 1)))), 0.2, seed=0)
