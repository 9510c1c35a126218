"""Calibration: uneven weights and repeated rows do not bias what is learned.

At a minimum of the weighted loss no common shift of all scores lowers it further, since the last
bias could make it. For cross-entropy and squared errors that says that predictions and targets
have the same weighted mean, for a quantile that the right share of the weight lies below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import isotone
from isotone import MonotonicClassifier, MonotonicNetwork, MonotonicRegressor
from isotone.ensemble import Ensemble
from isotone.losses import (
    AbsoluteError,
    CrossEntropy,
    DynamicHinge,
    Hinge,
    Loss,
    Quantile,
    SquaredError,
)
from isotone.training import Recipe

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


@pytest.mark.parametrize("backend", ["train", "fused", "torch"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_common_shift_lowers_the_weighted_loss(loss: Loss, backend: Any) -> None:
    x, y, weight = table()
    if loss.outputs == "logits":
        y = (y > 0).astype(int)
    model = network()
    if backend == "train":
        isotone.train(model, x, y, loss, RECIPE, sample_weight=weight)
    elif backend == "fused" and isinstance(loss, DynamicHinge):
        pytest.skip("the fused trainer has no DynamicHinge")
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
