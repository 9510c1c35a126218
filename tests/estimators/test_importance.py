"""Importances are measured on the training rows: what is ignored has none, whatever it may do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.pipeline import make_pipeline

from isotone.estimators.importance import importances
from isotone.training.rows import Rows
from networks import small
from people import NAMES, classifier, people, prices, regressor


@pytest.mark.parametrize("make", [classifier, regressor])
def test_shares_of_one_for_every_column(make: Any) -> None:
    X, y = people()
    shares = make({"income": 1}).fit(X, y).feature_importances_
    assert shares.shape == (3,)
    assert np.all(shares > 0)
    assert shares.sum() == pytest.approx(1.0)


def test_a_column_that_is_ignored_has_none() -> None:
    X, y = prices()
    model = regressor(max_iter=100).fit(X.assign(same=7.0), y)
    assert model.feature_importances_[3] == 0.0  # a constant may be steep, but it never changes
    assert model.feature_importances_[0] > 2 * model.feature_importances_[2]
    constant = regressor().fit(X.assign(income=0.0, debt=0.0, age=0.0), y)
    np.testing.assert_array_equal(constant.feature_importances_, np.zeros(3))


@pytest.mark.parametrize("make", [classifier, regressor])
def test_they_depend_on_the_weighted_set_of_rows_alone(make: Any) -> None:
    X, y = people(60)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    order = np.random.default_rng(1).permutation(len(X))
    again = np.repeat(order, weight[order])
    weighted = make().fit(X, y, sample_weight=weight).feature_importances_
    repeated = make().fit(X.iloc[again], y[again]).feature_importances_
    np.testing.assert_array_equal(weighted, repeated)
    np.testing.assert_array_equal(clone(make()).fit(X, y, weight).feature_importances_, weighted)


def test_rows_without_weight_do_not_count() -> None:
    network = small()
    x = np.random.default_rng(0).normal(size=(50, 3))
    x[:25, 1] = 0.5
    weight = np.repeat([1.0, 1e-300], 25)
    found = importances(network, Rows(x, np.zeros((50, 1)), weight), seed=0)
    assert found[1] == 0.0
    assert importances(network, Rows(x, np.zeros((50, 1)), np.ones(50)), seed=0)[1] > 0


def test_features_of_one_raw_column_count_together() -> None:
    rng = np.random.default_rng(0)
    city = rng.choice(["Lima", "Oslo", "Rome"], 300)
    income = np.where(rng.random(300) < 0.3, np.nan, rng.normal(size=300))
    X = pd.DataFrame({"city": city, "income": income, "noise": rng.normal(size=300)})
    y = 3.0 * (city == "Rome") + np.where(np.isnan(income), 5.0, 0.1 * income)
    model = regressor(missing="indicator", max_iter=100).fit(X, y)
    shares = model.feature_importances_
    assert shares.shape == (3,)
    assert shares[:2].min() > 4 * shares[2]


def test_units_of_one_of_several_targets_do_not_matter() -> None:
    X, y = prices()
    table = np.column_stack([y, X["age"]])
    shares = [
        regressor(max_iter=100).fit(X, table * scale).feature_importances_
        for scale in ([1.0, 1.0], [1.0, 1024.0])
    ]
    np.testing.assert_allclose(*shares, rtol=1e-6)


def test_what_all_logits_share_is_no_effect() -> None:
    """Adding the same to every logit changes no probability."""
    X, _ = people()
    y = np.digitize(X["debt"], [-3.0, 3.0])
    shares = classifier(max_iter=100).fit(X, y).feature_importances_
    assert shares[1] > 0.6


def test_wide_tables_are_measured_on_fewer_pairs() -> None:
    X = np.random.default_rng(0).normal(size=(400, 300))
    model = regressor(max_iter=30, batch_size=32).fit(X, 10 * X[:, 7])
    assert model.feature_importances_.argmax() == 7


def test_select_from_model_keeps_what_matters() -> None:
    X, y = people()
    chosen = SelectFromModel(classifier({"income": 1}), threshold="mean").fit(X, y)
    kept = [name for name, used in zip(NAMES, chosen.get_support(), strict=True) if used]
    assert "age" not in kept
    assert set(kept) <= {"income", "debt"}
    pipeline = make_pipeline(SelectFromModel(classifier(), threshold="mean"), classifier())
    assert pipeline.set_output(transform="pandas").fit(X, y).score(X, y) > 0.7


def test_there_are_none_before_a_fit() -> None:
    assert not hasattr(classifier(), "feature_importances_")
    with pytest.raises(NotFittedError):
        SelectFromModel(classifier(), prefit=True).transform([[1.0, 2.0, 3.0]])
