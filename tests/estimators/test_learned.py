"""Estimators that learn λ and see columns through knots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import isotone

QUICK: dict[str, Any] = {
    "lipschitz": "learned",
    "max_iter": 20,
    "batch_size": 64,
    "learning_rate_init": 0.01,
    "n_members": 2,
    "hidden_layer_sizes": (16, 16),
    "random_state": 0,
}


def table(n: int = 800) -> tuple[pd.DataFrame, Any]:
    """A step of x, and columns that say nothing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(size=n),
            "noise": rng.normal(size=n),
            "city": rng.choice(["Lima", "Oslo"], n),
            "half": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    return frame, 3.0 * (frame["x"] > 0.5) + 0.05 * rng.normal(size=n)


def test_a_column_that_matters_becomes_steep_and_noise_flat(tmp_path: Path) -> None:
    X, y = table()
    model = isotone.MonotonicRegressor({"x": 1}, knots=16, missing="indicator", **QUICK).fit(X, y)
    assert model.certificate_.holds
    assert model.lipschitz_[0] > 3 * model.lipschitz_[1]
    assert model.score(X, y) > 0.95
    model.save(tmp_path / "model.isotone")
    served = isotone.load(tmp_path / "model.isotone")
    np.testing.assert_array_equal(served.score(X), model.predict(X))
    assert served.inputs.counts.max() == 16
    again = clone(model).fit(X, y)
    assert again.network_.fingerprint == model.network_.fingerprint


@pytest.mark.parametrize("units", ["scaled", "raw"])
def test_lambda_is_capped_in_the_units_asked_for(units: Any) -> None:
    X, y = table()
    model = isotone.MonotonicRegressor(
        {"x": 1}, lipschitz_max=0.25, lipschitz_units=units, **QUICK
    ).fit(X[["x", "noise"]], y)
    assert np.all(model.lipschitz_ <= 0.25 * (1 + 1e-6))
    assert model.lipschitz_[0] == pytest.approx(0.25, rel=1e-5)
    if units == "raw":
        assert model.certificate_.slopes[0].raw.high <= 2 * 0.25 * (1 + 1e-6)


@pytest.mark.parametrize("knots", [4, [4, None], {"x": 4}])
def test_knots_are_for_the_columns_that_are_named(knots: Any) -> None:
    X, y = table(300)
    model = isotone.MonotonicClassifier([1, 0], knots=knots, **(QUICK | {"max_iter": 2}))
    model.fit(X[["x", "noise"]], y > 1)
    assert model.network_.inputs.counts.tolist() == ([4, 4] if knots == 4 else [4, 1])
    beyond = pd.DataFrame({"x": [X["x"].max(), 1e9], "noise": [0.0, 0.0]})
    low, high = model.decision_function(beyond)
    assert low == high


def test_missing_values_of_a_directed_column_may_be_directed_too() -> None:
    X, y = table(300)
    settings = QUICK | {"max_iter": 2, "missing": "indicator"}
    cst = {"half": 1, "missing(half)": -1}
    model = isotone.MonotonicRegressor(cst, **settings).fit(X, y)
    assert all(verdict.computed for verdict in model.certificate_.missing)
    with pytest.raises(ValueError, match="cannot prove the directions of missing values"):
        isotone.MonotonicRegressor({"missing(half)": -1}, **settings).fit(X, y)


def test_knots_are_kept_beside_directions_of_missing_values_and_logarithms() -> None:
    X, y = table(300)
    settings = QUICK | {"max_iter": 2, "missing": "indicator"}
    cst = {"half": 1, "missing(half)": -1}
    model = isotone.MonotonicRegressor(cst, knots={"half": 5}, **settings).fit(X, y)
    assert model.network_.inputs.counts.max() == 5
    zeros = pd.DataFrame({"z": np.where(np.arange(300) % 3, 0.0, X["x"])})
    zeros.loc[::7, "z"] = np.nan
    log = {"scaling": {"z": isotone.Log(offset=0.1)}, "knots": 8}
    model = isotone.MonotonicRegressor(**log, **settings).fit(zeros, y)
    assert model.network_.inputs.counts[0] > 2
    constant = pd.DataFrame({"c": np.full(300, 3.0), "x": X["x"]})
    model = isotone.MonotonicRegressor(knots=8, **settings).fit(constant, y)
    assert model.network_.inputs.counts.tolist() == [1, 8]
    with pytest.raises(ValueError, match="names the column 'city', which holds categories"):
        isotone.MonotonicRegressor(knots={"city": 4}, **settings).fit(X, y)


def test_weights_are_repetitions_also_with_knots_and_classes() -> None:
    X, y = table(200)
    weight = np.arange(200) % 4
    settings = QUICK | {"max_iter": 2, "class_weight": {False: 0.1, True: 0.7}, "knots": 8}
    columns = X[["x", "noise"]]
    weighted = isotone.MonotonicClassifier([1, 0], **settings).fit(columns, y > 1, weight)
    rows = np.repeat(np.arange(200), weight)
    again = isotone.MonotonicClassifier([1, 0], **settings)
    again.fit(columns.iloc[rows], (y > 1).to_numpy()[rows])
    assert weighted.network_.fingerprint == again.network_.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"knots": 1}, "`knots=1` must be 'auto', None or whole numbers of at least 2"),
        ({"knots": {"y": 3}}, "'y'"),
        ({"lipschitz_max": 0.0}, r"`lipschitz_max=0\.0` must be"),
        ({"lipschitz": "lerned"}, "must be 'auto', 'learned' or positive numbers"),
    ],
)
def test_bad_options_are_explained(options: dict[str, Any], message: str) -> None:
    X, y = table(50)
    with pytest.raises(ValueError, match=message):
        isotone.MonotonicRegressor(**(QUICK | options)).fit(X[["x", "noise"]], y)
