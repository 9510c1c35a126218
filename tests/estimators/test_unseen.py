"""Rows that hold what no training row held get what `on_unseen` says, and cost no other row."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score

import isotone
from isotone import MonotonicClassifier, MonotonicRegressor

N = 90
RNG = np.random.default_rng(0)
X = pd.DataFrame({"city": RNG.choice(["Lima", "Rome"], N), "debt": RNG.normal(size=N)})
Y = np.where(X["debt"] + 0.3 * RNG.normal(size=N) > 0, "late", "paid")
RARE = X.assign(city=["Bonn", *X["city"][1:]])
NEW = X[:3].assign(city=["Rome", "Bonn", "Lima"])
QUICK: dict[str, Any] = {
    "monotonic_cst": {"debt": -1},
    "max_iter": 3,
    "n_members": 1,
    "hidden_layer_sizes": (8,),
    "lipschitz": 2.0,
    "random_state": 0,
}
TOLD = "1 of 3 rows contain values never seen in training"


def classifier(policy: Any, table: Any = X) -> MonotonicClassifier:
    return MonotonicClassifier(on_unseen=policy, **QUICK).fit(table, Y)


def without(table: pd.DataFrame, city: str) -> Any:
    """Scores of rows none of whose categories is known."""
    network = classifier("error").network_
    encoded = network.encode(table.assign(city="Rome"))
    encoded[:, :2] *= (table["city"] != city).to_numpy()[:, None]
    return network.score_features(encoded)


def test_by_default_it_is_an_error() -> None:
    with pytest.raises(ValueError, match="'city' holds 'Bonn' in row 1"):
        classifier("error").predict(NEW)


def test_as_missing_a_new_category_is_none_of_those_known() -> None:
    model = classifier("missing")
    with pytest.warns(UserWarning, match=TOLD):
        scores = model.decision_function(NEW)
    assert scores[1] == without(NEW, "Bonn")[1]
    np.testing.assert_array_equal(scores[[0, 2]], model.decision_function(NEW.iloc[[0, 2]]))


def test_a_direction_holds_among_rows_of_new_categories() -> None:
    model = classifier("missing")
    rows = pd.DataFrame({"city": "Bonn", "debt": np.linspace(-3, 3, 500)})
    with pytest.warns(UserWarning, match="500 of 500 rows"):
        assert np.all(np.diff(model.predict_proba(rows)[:, 1]) <= 0)


def test_skipped_rows_have_no_prediction_and_do_not_count() -> None:
    model, y = classifier("skip"), Y[:3]
    with pytest.warns(UserWarning, match=TOLD):
        assert np.isnan(model.predict_proba(NEW)[1]).all()
    with pytest.warns(UserWarning, match=TOLD):
        predicted = model.predict(NEW)
    assert predicted[1] is None
    np.testing.assert_array_equal(predicted[[0, 2]], model.predict(NEW.iloc[[0, 2]]))
    with pytest.warns(UserWarning, match=TOLD):
        found = model.score(NEW, y, sample_weight=[1, 5, 2])
    assert found == accuracy_score(y[[0, 2]], predicted[[0, 2]].astype(str), sample_weight=[1, 2])


def test_a_number_is_the_score() -> None:
    with pytest.warns(UserWarning, match=TOLD):
        assert classifier(-2.5).decision_function(NEW)[1] == -2.5
    model = MonotonicRegressor(on_unseen=-2.5, **QUICK).fit(X, X["debt"])
    with pytest.warns(UserWarning, match=TOLD):
        assert model.predict(NEW)[1] == -2.5


def test_a_number_is_no_score_of_several_outputs() -> None:
    options = QUICK | {"monotonic_cst": None}
    several = np.column_stack([X["debt"], X["debt"]])
    for kind, y in ((MonotonicClassifier, np.arange(N) % 3), (MonotonicRegressor, several)):
        outputs = "`on_unseen=0.0` is one score, but there are [23] outputs.*choose .* 'skip'"
        with pytest.raises(ValueError, match=outputs):
            kind(on_unseen=0.0, **options).fit(X, y)
        with pytest.raises(ValueError, match=outputs):
            kind(**options).fit(X, y).set_params(on_unseen=0.0).predict(X)


@pytest.mark.parametrize("policy", ["missing", "skip"])
def test_a_regressor_judges_the_rows_it_scores(policy: Any) -> None:
    model = MonotonicRegressor(on_unseen=policy, **QUICK).fit(X[["debt"]], X["debt"])
    rows = pd.DataFrame({"debt": [0.5, math.nan, -0.5, 1.0]})
    with pytest.warns(UserWarning, match="1 of 4 rows"):
        assert np.isnan(model.predict(rows)).tolist() == [False, True, False, False]
    with pytest.warns(UserWarning, match="1 of 4 rows"):
        found = model.score(rows, [0.5, 9.0, -0.5, 1.0])
    assert found == model.score(rows.dropna(), [0.5, -0.5, 1.0])


@pytest.mark.parametrize("cell", [math.nan, math.inf])
def test_arrays_have_strange_rows_too(cell: float) -> None:
    model = MonotonicClassifier(on_unseen="skip", **QUICK | {"monotonic_cst": None})
    model.fit(RNG.normal(size=(N, 2)), Y)
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        scores = model.decision_function([[0.0, 1.0], [cell, 1.0]])
    assert np.isnan(scores).tolist() == [False, True]


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", None])
def test_a_rare_category_costs_no_cross_validation(scoring: str | None) -> None:
    """Exactly one fold is tested on a category that it was not trained on."""
    strict, tolerant = (MonotonicClassifier(on_unseen=p, **QUICK) for p in ("error", "missing"))
    with pytest.raises(ValueError, match="'city' holds 'Bonn'"):
        cross_val_score(strict, RARE, Y, scoring=scoring, error_score="raise")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        scores = cross_val_score(tolerant, RARE, Y, scoring=scoring, error_score="raise")
    assert np.isfinite(scores).all()
    assert sum("1 of 18 rows" in str(warning.message) for warning in told) == 1


def test_an_unknown_policy_is_refused_when_fitted() -> None:
    with pytest.raises(ValueError, match="`on_unseen='ignore'` is unknown; choose 'error'"):
        classifier("ignore")


def test_one_row_in_a_million_costs_no_other_its_score() -> None:
    network = classifier("error").network_
    n = 1_000_000
    city = np.where(np.arange(n) % 2, "Rome", "Lima").astype(object)
    city[777_777] = "Bonn"
    engine = isotone.Engine(network, on_unseen="missing")
    scores = engine({"city": city, "debt": np.linspace(-2, 2, n)})
    assert engine.n_unseen == 1
    assert np.isfinite(scores).all()
