"""Estimators at home in scikit-learn: its own checks, and its tools."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import isotone
from isotone import MonotonicClassifier, MonotonicRegressor
from people import NAMES, classifier, people, prices, raise_column, regressor

CHECKED = {
    "lipschitz": 4.0,
    "hidden_layer_sizes": (16, 16),
    "max_iter": 60,
    "n_members": 1,
    "batch_size": 256,
}


@parametrize_with_checks(
    [
        MonotonicClassifier(**CHECKED),
        MonotonicClassifier(loss="hinge", missing="indicator", **CHECKED),
        MonotonicRegressor(**CHECKED),
    ]
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_weights_are_repetitions_and_order_does_not_matter(make: Any) -> None:
    X, y = people(60)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    order = np.random.default_rng(1).permutation(len(X))
    weighted = make(early_stopping=True, batch_size=16).fit(X, y, sample_weight=weight)
    again = np.repeat(order, weight[order])
    repeated = make(early_stopping=True, batch_size=16).fit(X.iloc[again], y[again])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


def test_frames_of_pandas_and_polars_give_the_same_model() -> None:
    X, y = people()
    model = classifier({"debt": -1}).fit(X, y)
    other = classifier({"debt": -1}).fit(pl.from_pandas(X), y)
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(pl.from_pandas(X)))
    assert list(other.feature_names_in_) == NAMES


def test_pipelines_column_transformers_searches_and_clones() -> None:
    X, y = people()
    X["city"] = np.where(X["age"] > 40, "Rome", "Oslo")
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), NAMES), ("text", OneHotEncoder(), ["city"])],
        sparse_threshold=0,
    )
    pipeline = make_pipeline(columns, classifier([1, -1, 0, 0, 0]))
    grid = {"monotonicclassifier__lipschitz": [0.5, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.75
    assert cross_val_score(clone(pipeline), X, y, cv=2).mean() > 0.75


def test_fits_in_threads_are_those_in_turn() -> None:
    X, y = people(60)
    models = [classifier(random_state=seed, max_iter=5) for seed in range(6)]
    expected = [model.fit(X, y).predict_proba(X) for model in models]
    with joblib.parallel_backend("threading", n_jobs=3):
        again = joblib.Parallel()(joblib.delayed(clone(model).fit)(X, y) for model in models)
    for model, probability in zip(again, expected, strict=True):
        np.testing.assert_array_equal(model.predict_proba(X), probability)


def test_estimators_of_estimators() -> None:
    X, y = people(100)
    base = classifier({"income": 1}, max_iter=10)
    voting = VotingClassifier([("a", base), ("b", clone(base))], voting="soft")
    for model in (
        voting,
        StackingClassifier([("a", base)], cv=2),
        BaggingClassifier(clone(base).set_params(monotonic_cst=[1, 0, 0]), 2, random_state=0),
        CalibratedClassifierCV(base, cv=2, ensemble=False),
        OneVsRestClassifier(base),
    ):
        assert model.fit(X, y).score(X, y) > 0.7
    probability = cross_val_predict(base, X, y, cv=2, method="predict_proba")
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    importance = permutation_importance(base.fit(X, y), X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean[0] > 0.05


def test_regressors_in_the_tools_of_regression() -> None:
    X, y = prices(100)
    base = regressor({"income": 1})
    logged = TransformedTargetRegressor(base, func=np.log, inverse_func=np.exp).fit(X, y)
    assert np.all(logged.predict(raise_column(X, "income", 1e3)) >= logged.predict(X))
    assert MultiOutputRegressor(base).fit(X, np.column_stack([y, -y])).predict(X).shape == (100, 2)
    average = partial_dependence(base.fit(X, y), X, ["income"], grid_resolution=10)["average"][0]
    assert np.all(np.diff(average) >= 0)
    two = regressor([[1, 0, 0], [-1, 0, 0]], max_iter=100)
    assert cross_val_score(two, X, np.column_stack([y, -y]), cv=2).mean() > 0.7


def test_set_output_names_the_directions_of_a_pipeline() -> None:
    X, y = people()
    pipeline = make_pipeline(StandardScaler(), classifier({"debt": -1}))
    pipeline.set_output(transform="pandas").fit(X, y)
    assert pipeline[-1].network_.features == tuple(NAMES)


def test_calibration_and_partial_dependence() -> None:
    X, y = people()
    calibrated = CalibratedClassifierCV(classifier({"income": 1}, loss="hinge"), cv=2).fit(X, y)
    assert calibrated.score(X, y) > 0.75
    model = classifier({"income": 1}).fit(X, y)
    average = partial_dependence(model, X, ["income"], grid_resolution=20)["average"][0]
    assert np.all(np.diff(average) >= 0)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_pickle_and_joblib_keep_every_bit(make: Any, tmp_path: Path) -> None:
    X, y = people()
    model = make([1, 0, 0]).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert isotone.certify(copy.network_).holds


def test_sample_weights_are_routed() -> None:
    X, y = people()
    weight = np.where(y, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    assert np.all(pipeline.predict(X))  # rows of the other class do not count


def test_sample_weights_are_routed_through_searches() -> None:
    X, y = people(100)
    weight = np.where(y, 1.0, 1e-12)
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier(max_iter=20).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"lipschitz": [0.5, 2.0]}, cv=2)
        search.fit(X, y, sample_weight=weight)
    assert search.best_score_ == pytest.approx(1.0)  # rows of the other class hardly count


def test_balanced_classes_count_alike() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.arange(400) < 40
    plain, balanced = (classifier(class_weight=w).fit(X, y) for w in (None, "balanced"))
    assert plain.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=0.03)
    assert balanced.predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)


def test_the_state_of_random_numbers_is_left_alone() -> None:
    import torch

    X, y = people()
    before = torch.random.get_rng_state()
    first, second = (classifier().fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("loss", ["squared_error", "quantile"])
def test_threads_do_not_change_a_bit(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    X, y = prices(100)
    predictions = []
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        model = regressor({"income": 1}, lipschitz="auto", loss=loss, max_iter=10).fit(X, y)
        predictions.append(model.predict(X))
    np.testing.assert_array_equal(*predictions)


@pytest.mark.parametrize("loss", ["cross_entropy", "dynamic_hinge"])
def test_jobs_do_not_change_a_bit(loss: str) -> None:
    X, y = people(100)
    models = [
        classifier({"income": 1}, lipschitz="auto", loss=loss, max_iter=10, n_jobs=jobs).fit(X, y)
        for jobs in (None, 1, 3, -1)
    ]
    assert len({model.network_.fingerprint for model in models}) == 1


def test_jobs_are_threads_of_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from isotone.training.fused import FusedTrainer

    used, train = [], FusedTrainer.train_epoch

    def noting(self: Any, *rows: Any, **options: Any) -> Any:
        used.append(options["threads"])
        return train(self, *rows, **options)

    monkeypatch.setattr(FusedTrainer, "train_epoch", noting)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    X, y = people(40)
    for jobs, threads in ((None, 5), (1, 1), (3, 3), (-1, joblib.cpu_count())):
        classifier(max_iter=1, n_jobs=jobs).fit(X, y)
        assert used.pop() == threads
