"""Teachers: members learn from another model's predictions; the promises are their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isotone import MonotonicClassifier, MonotonicRegressor
from isotone.estimators.estimator import MonotonicEstimator

QUICK: Any = {"max_iter": 20, "random_state": 0, "n_members": 2}


def noisy(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows, values with much noise, and the values without it."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    truth = 3.0 * X[:, 0] + (X[:, 1] > 0)
    return X, truth + 2.0 * np.random.default_rng(seed + 1).normal(size=n), truth


class Oracle(LinearRegression):  # type: ignore[misc]
    """Knows the truth."""

    def predict(self, X: Any) -> Any:
        return 3.0 * X[:, 0] + (X[:, 1] > 0)


def test_a_wise_teacher_helps_and_a_foolish_one_breaks_no_promise() -> None:
    X, y, truth = noisy(300)
    alone = MonotonicRegressor([1, 0], **QUICK).fit(X, y)
    wise = MonotonicRegressor([1, 0], teacher=Oracle(), **QUICK).fit(X, y)
    errors = [np.mean((model.predict(X) - truth) ** 2) for model in (wise, alone)]
    assert errors[0] < 0.7 * errors[1]
    fool = LinearRegression().fit(-X, 100 * truth)
    model = MonotonicRegressor([1, 0], teacher=fool, **QUICK).fit(X, y)
    assert model.certificate_.holds
    grid = np.column_stack([np.linspace(-2, 2, 300), np.zeros(300)])
    assert np.all(np.diff(model.predict(grid)) >= 0)


def test_classes_learn_from_probabilities_whichever_is_positive() -> None:
    X, _, truth = noisy(400)
    y = np.where(np.random.default_rng(5).random(400) < 1 / (1 + np.exp(-truth)), "yes", "no")
    teacher = HistGradientBoostingClassifier(max_iter=20, monotonic_cst=[1, 0])
    models = [
        MonotonicClassifier([sign, 0], teacher=teacher, positive=positive, **QUICK).fit(X, y)
        for sign, positive in ((1, "yes"), (-1, "no"))
    ]
    for model in models:
        assert model.certificate_.holds
        probability = model.predict_proba(X)[:, 1]
        assert np.corrcoef(probability, 1 / (1 + np.exp(-truth)))[0, 1] > 0.9


def test_one_that_is_not_fitted_learns_from_the_rows_of_fit_and_stays_as_it_is() -> None:
    X, y, _ = noisy(200)
    teacher = HistGradientBoostingRegressor(max_iter=20)
    unfitted = MonotonicRegressor([1, 0], teacher=teacher, **QUICK).fit(X, y)
    assert not hasattr(teacher, "_predictors")
    fitted = clone(teacher).fit(X, y)
    given = MonotonicRegressor([1, 0], teacher=fitted, **QUICK).fit(X, y)
    assert unfitted.network_.fingerprint == given.network_.fingerprint
    alone = MonotonicRegressor([1, 0], **QUICK).fit(X, y)
    assert alone.network_.fingerprint != given.network_.fingerprint


def test_rows_without_weight_and_repeated_rows_count_alike() -> None:
    X, y, _ = noisy(100)
    fitted = LinearRegression().fit(X, y)
    weight = np.repeat([1.0, 2.0, 0.0], [40, 40, 20])
    rows = np.repeat(np.arange(100), weight.astype(int))
    models = [
        MonotonicRegressor([1, 0], teacher=fitted, lipschitz=1.0, **QUICK).fit(X[rows], y[rows]),
        MonotonicRegressor([1, 0], teacher=fitted, lipschitz=1.0, **QUICK).fit(X, y, weight),
    ]
    assert models[0].network_.fingerprint == models[1].network_.fingerprint


def test_weights_of_classes_multiply_the_odds_of_a_teacher() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = rng.random(800) < 1 / (1 + np.exp(3 - X[:, 0]))
    teacher = HistGradientBoostingClassifier(max_iter=30)
    weight = np.where(y, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    for one in (teacher, clone(teacher).fit(X, y)):
        model = MonotonicClassifier([1, 0], class_weight="balanced", teacher=one, **QUICK)
        mean = np.average(model.fit(X, y).predict_proba(X)[:, 1], weights=weight)
        assert mean == pytest.approx(0.5, abs=0.05)


class Mute(HistGradientBoostingClassifier):  # type: ignore[misc]
    """Has no opinion."""

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), 2), np.nan)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MonotonicRegressor(teacher="trees"), "must be a regressor"),
        (MonotonicRegressor(teacher=HistGradientBoostingClassifier()), "must be a regressor"),
        (MonotonicRegressor(teacher=KMeans()), "must be a regressor"),
        (MonotonicRegressor(teacher=LinearRegression(), loss="quantile"), "choose loss="),
        (MonotonicClassifier(teacher=RidgeClassifier()), "a classifier with probabilities"),
        (MonotonicClassifier(teacher=LinearRegression()), "a classifier with probabilities"),
    ],
)
def test_unsuitable_teachers_are_refused(model: MonotonicEstimator, message: str) -> None:
    X, y, _ = noisy(60)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y > 0 if isinstance(model, MonotonicClassifier) else y)


def test_what_does_not_fit_the_rows_is_refused() -> None:
    X, y, _ = noisy(90)
    classes = np.digitize(y, [-1, 1])
    teacher = HistGradientBoostingClassifier(max_iter=5)
    with pytest.raises(ValueError, match="for two classes but `y` holds 3"):
        MonotonicClassifier(teacher=teacher).fit(X, classes)
    other = clone(teacher).fit(X, np.where(y > 0, "a", "b"))
    with pytest.raises(ValueError, match="knows the classes"):
        MonotonicClassifier(teacher=other).fit(X, y > 0)
    with pytest.raises(ValueError, match=r"says \[nan, nan, nan\], ... of 90 rows"):
        MonotonicClassifier(teacher=Mute(max_iter=5)).fit(X, y > 0)
    with pytest.raises(ValueError, match=r"a number between -.* and .* for each"):
        MonotonicRegressor(teacher=LinearRegression().fit(X, 1e40 * y)).fit(X, y)
    both = LinearRegression().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="`teacher` has 2 targets but the model has 1"):
        MonotonicRegressor(teacher=both).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), LinearRegression())
    with pytest.raises(ValueError, match="takes no `sample_weight`"):
        MonotonicRegressor(teacher=pipeline).fit(X, y, np.ones(90))
