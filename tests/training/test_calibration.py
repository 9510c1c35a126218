"""Calibration: uneven weights and repeated rows do not bias what is learned.

At a minimum of the weighted loss no common shift of all scores lowers it further, since the last
bias could make it. For cross-entropy and squared errors that says that predictions and targets
have the same weighted mean, for a quantile that the right share of the weight lies below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import isotone
from isotone import MonotonicClassifier, MonotonicNetwork, MonotonicRegressor
from isotone.losses import (
    AbsoluteError,
    CrossEntropy,
    DynamicHinge,
    Hinge,
    Loss,
    Quantile,
    SquaredError,
)
from isotone.training.ensemble import Ensemble
from isotone.training.train import Recipe

N = 1000
SHIFT = 0.1
LOSSES = [
    CrossEntropy(),
    CrossEntropy(4.0),
    Hinge(0.5),
    DynamicHinge(),
    SquaredError(),
    AbsoluteError(),
    Quantile(0.8),
]
RECIPE = Recipe(epochs=20, batch_size=32, final_rate=0.01)


def table(seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows, values, and weights from 1 to 1000, the heavier the larger the value."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(N, 2)), rng.normal(size=N)
    rank = np.argsort(np.argsort(noise + 0.5 * rng.normal(size=N))) / (N - 1)
    return x, x[:, 0] + noise, 1000.0**rank


def network() -> MonotonicNetwork:
    torch.manual_seed(0)
    return MonotonicNetwork([2, 16, 16, 1], monotonic_cst=[1, 0], lipschitz=1.0, group_size=4)


@torch.no_grad()
def best_shift(model: MonotonicNetwork, loss: Loss, x: Any, y: Any, weight: Any) -> float:
    """The multiple of `SHIFT` that, added to all scores, gives the least weighted loss."""
    score, target = model(torch.as_tensor(x).float()).double(), loss.prepare(x, y, "1")
    shifts = SHIFT * np.arange(-10, 11)
    losses = [np.average(loss(score + shift, target), weights=weight) for shift in shifts]
    return float(shifts[np.argmin(losses)])


@pytest.mark.parametrize(
    ("loss", "backend"),
    [
        (loss, backend)
        for loss in LOSSES
        for backend in ("train", "fused", "torch")
        if backend != "fused" or not isinstance(loss, DynamicHinge)  # which it lacks
    ],
    ids=repr,
)
def test_no_common_shift_lowers_the_weighted_loss(loss: Loss, backend: Any) -> None:
    x, y, weight = table()
    if loss.outputs == "logits":
        y = (y > 0).astype(int)
    model = network()
    if backend == "train":
        isotone.train(model, x, y, loss, RECIPE, sample_weight=weight)
    else:
        Ensemble([model]).train(x, y, loss, RECIPE, sample_weight=weight, backend=backend)
    assert best_shift(model, loss, x, y, weight) == 0


@pytest.mark.parametrize("batch_size", ["auto", 32])
def test_probabilities_have_the_weighted_mean_of_the_labels(batch_size: Any) -> None:
    rng = np.random.default_rng(1)
    X, y, _ = table(1)
    labels = y > 0.5
    weight = np.where(labels & (rng.random(N) < 0.02), 200.0, 1.0)
    model = MonotonicClassifier([1, 0], lipschitz=1.0, batch_size=batch_size, random_state=0)
    probability = model.fit(X, labels, sample_weight=weight).predict_proba(X)[:, 1]
    found, expected = (np.average(values, weights=weight) for values in (probability, labels))
    assert found == pytest.approx(expected, abs=0.01)


def test_values_have_the_weighted_mean_of_the_targets() -> None:
    X, y, weight = table(2)
    model = MonotonicRegressor([1, 0], lipschitz=1.0, batch_size=32, random_state=0)
    prediction = model.fit(X, y, sample_weight=weight).predict(X)
    found, expected = (np.average(values, weights=weight) for values in (prediction, y))
    assert found == pytest.approx(expected, abs=0.02 * y.std())


def binned(n_rows: int = 6000) -> tuple[Any, Any, Any]:
    """Two columns of five levels each, labels, and the true probability."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 5, size=(n_rows, 2)).astype(float)
    truth = 1 / (1 + np.exp(2 - X[:, 0] + 0.5 * np.cos(2 * X[:, 1])))
    return X, (rng.random(n_rows) < truth).astype(int), truth


QUICK: dict[str, Any] = {"max_iter": 60, "random_state": 0}


def worst_cell(model: Any, X: Any, y: Any, weight: Any) -> float:
    """Largest difference of predicted and observed rate over the cells, in standard errors."""
    cells = pd.DataFrame(X, columns=["a", "b"]).assign(p=model.predict_proba(X)[:, 1], y=y)
    cells = cells.assign(w=weight, wy=weight * y, w2=weight**2)
    total = cells.groupby(["a", "b"]).agg({"p": "first", "w": "sum", "wy": "sum", "w2": "sum"})
    spread = np.sqrt(total.p * (1 - total.p) * total.w2) / total.w
    return float((abs(total.p - total.wy / total.w) / spread).max())


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_binned_table_is_learned_cell_by_cell(early_stopping: bool) -> None:
    X, y, _ = binned()
    model = MonotonicClassifier([1, 0], early_stopping=early_stopping, **QUICK).fit(X, y)
    assert worst_cell(model, X, y, np.ones(len(y))) < 3.5


@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_a_binned_table_with_weights_is_learned_cell_by_cell(scale: float) -> None:
    X, y, _ = binned()
    weight = scale * 1000.0 ** np.random.default_rng(4).random(len(y))
    model = MonotonicClassifier([1, 0], **QUICK).fit(X, y, sample_weight=weight)
    assert worst_cell(model, X, y, weight) < 3.5


def test_counts_are_repetitions_of_a_binned_table() -> None:
    X, y, _ = binned(1000)
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    model = MonotonicClassifier([1, 0], max_iter=20, random_state=0)
    each = model.fit(X, y).predict_proba(X)
    together = model.fit(rows[:, :2], rows[:, 2], sample_weight=counts).predict_proba(X)
    np.testing.assert_array_equal(each, together)
