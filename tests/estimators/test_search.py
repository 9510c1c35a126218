"""What estimators choose by themselves: knots, epochs and λ, on rows that members leave out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone.estimators.preparation.knots import knots_of
from isotone.estimators.preparation.view import View
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number
from isotone.inputs.scaling import Scaling
from isotone.training.fields import Field, compress

QUICK: dict[str, Any] = {"hidden_layer_sizes": (16, 16), "max_iter": 40, "random_state": 0}


def waves(n: int = 3000) -> tuple[pd.DataFrame, Any]:
    """Waves against a rising direction, a city that matters, and missing values that do."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(size=n),
            "city": rng.choice(["Lima", "Oslo", "Bonn"], n, p=[0.6, 0.3, 0.1]),
            "half": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    y = 5 * frame["x"] + np.sin(10 * np.pi * frame["x"]) + (frame["city"] == "Oslo")
    return frame, (y + frame["half"].isna() + 0.3 * rng.normal(size=n)).to_numpy()


def test_knots_are_chosen_where_columns_bend() -> None:
    X, y = waves()
    settings = QUICK | {"missing": "indicator"}
    chosen = isotone.MonotonicRegressor({"x": 1}, **settings).fit(X, y)
    plain = isotone.MonotonicRegressor({"x": 1}, knots=None, **settings).fit(X, y)
    assert chosen.certificate_.holds
    assert chosen.network_.inputs.counts.max() >= 16
    assert plain.network_.inputs.counts.max() == 1
    rest, target = waves(4000)
    scores = [model.score(rest[3000:], target[3000:]) for model in (chosen, plain)]
    assert scores[0] > scores[1] + 0.01


@pytest.mark.parametrize("knots", [4, [4, 4], np.array([4, 4]), {"x": 4}])
def test_knots_may_be_given_where_lambda_is_chosen(knots: Any) -> None:
    X, y = waves(300)
    X = pd.DataFrame({"x": X["x"], "z": X["x"][::-1].to_numpy()})
    model = isotone.MonotonicRegressor([1, 0], knots=knots, **QUICK | {"max_iter": 2}).fit(X, y)
    assert model.network_.inputs.counts.tolist() == [4, 1 if isinstance(knots, dict) else 4]


@pytest.mark.parametrize("n", [200, 2500])
def test_the_weighted_set_of_rows_decides_alone(n: int) -> None:
    X, y = waves(n)
    settings = QUICK | {"missing": "indicator", "max_iter": 6}
    weight = np.arange(n) % 3
    weighted = isotone.MonotonicRegressor({"x": 1}, **settings).fit(X, y, weight)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(n), weight))
    again = isotone.MonotonicRegressor({"x": 1}, **settings).fit(X.iloc[rows], y[rows])
    assert weighted.network_.fingerprint == again.network_.fingerprint


@pytest.mark.parametrize("n_members", [1, 2, 5])
def test_any_number_of_members_leaves_rows_out(n_members: int) -> None:
    X, y = waves(2500)
    settings = QUICK | {"max_iter": 4, "n_members": n_members}
    model = isotone.MonotonicRegressor({"x": 1}, **settings).fit(X[["x", "city"]], y)
    assert model.certificate_.holds
    assert len(model.history_.validation[0]) == n_members
    assert model.history_.best_epoch == [model.history_.best_epoch[0]] * n_members


def test_probabilities_are_calibrated_on_average() -> None:
    X, y = waves(6000)
    rare = (y > np.quantile(y, 0.95)).astype(int)
    model = isotone.MonotonicClassifier({"x": 1}, missing="indicator", **QUICK)
    model.fit(X[:3000], rare[:3000])
    mean = model.predict_proba(X[3000:])[:, 1].mean()
    error = np.sqrt(0.05 * 0.95 / 3000)
    assert mean == pytest.approx(rare[3000:].mean(), abs=4 * error)


@pytest.mark.parametrize("loss", ["absolute_error", "quantile"])
def test_other_losses_are_searched_too(loss: Any) -> None:
    X, y = waves(2500)
    settings = QUICK | {"max_iter": 8}
    model = isotone.MonotonicRegressor([1], loss=loss, quantile=(0.1, 0.9), **settings)
    model.fit(X[["x"]], y)
    assert model.certificate_.holds
    assert np.all(np.diff(model.predict(X[["x"]]).reshape(len(X), -1), axis=1) >= 0)


def test_several_classes_are_searched_too() -> None:
    X, y = waves(2500)
    classes = np.digitize(y, [2.0, 4.0])
    table = [[-1, 0], [0, 0], [1, 0]]
    settings = QUICK | {"max_iter": 8}
    model = isotone.MonotonicClassifier(table, **settings).fit(X[["x", "city"]], classes)
    assert model.certificate_.holds
    grid = pd.DataFrame({"x": np.linspace(-1, 2, 200), "city": "Lima"})
    probability = model.predict_proba(grid)
    assert np.all(np.diff(probability[:, 2]) >= 0)
    assert np.all(np.diff(probability[:, 0]) <= 0)


def test_rows_are_looked_up_as_if_all_copies_were_there() -> None:
    inputs = Inputs((Number("a"), Category("b", ("x", "y", "z")), Number("c")))
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), np.eye(4)[rng.integers(4, size=400)][:, :3]])
    X = np.column_stack([X, rng.exponential(size=400)])
    knots = knots_of(inputs, X, np.ones(400), {"a": 9})
    X[:2, 0] = -50.0, 50.0
    scaling = Scaling.fit(X, ["standard", *["identity"] * 3, "log"], features=inputs.encoded)
    view = View.of(scaling, inputs, knots, knots)
    assert view.fields == (Field(9), Field(3, is_category=True), Field(1))
    expected = compress(view.transform(X), view.fields)
    looked = view.look(X)
    inner = np.abs(expected.values[:, 0]) < 1  # a seam may belong to either side
    np.testing.assert_array_equal(looked.cells[inner], expected.cells[inner])
    np.testing.assert_allclose(looked.values[inner], expected.values[inner], rtol=1e-6, atol=1e-7)


def test_units_of_lambda_decide_nothing_when_it_is_chosen() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2500, 2)) * 1e-3
    y = 1e3 * X[:, 0] + 0.01 * rng.normal(size=2500)
    models = [
        isotone.MonotonicRegressor([1, 0], lipschitz_units=units, **QUICK | {"max_iter": 6})
        for units in ("scaled", "raw")
    ]
    scaled, raw = (model.fit(X, y) for model in models)
    assert scaled.network_.fingerprint == raw.network_.fingerprint
    assert raw.lipschitz_[0] > 100 * scaled.lipschitz_[0]


def test_rows_to_validate_on_decide_about_epochs() -> None:
    X, y = waves(400)
    X = X[["x"]]
    model = isotone.MonotonicRegressor([1], **QUICK)
    model.fit(X[:300], y[:300], eval_set=(X[300:], y[300:]))
    best = model.history_.best_epoch[0]
    losses = np.mean(model.history_.validation, axis=1)
    assert losses[best] == losses.min()


def test_infinite_validation_losses_are_refused() -> None:
    X, y = waves(300)
    far = np.where(np.arange(300) == 7, 1e25, y)
    with pytest.raises(ValueError, match="the validation loss is inf in epoch 0"):
        isotone.MonotonicRegressor([1], **QUICK).fit(X[["x"]], y, eval_set=(X[["x"]], far))


def test_columns_far_from_zero_can_have_knots() -> None:
    X, y = waves(2500)
    scores = []
    for offset in (0.0, 1e9):
        moved = X[["x"]] + offset
        model = isotone.MonotonicRegressor([1], knots=16, **QUICK).fit(moved, y)
        scores.append(model.score(moved, y))
    assert scores[1] == pytest.approx(scores[0], abs=0.01)


@pytest.mark.parametrize("options", [{}, {"lipschitz": 1.0, "knots": 8}])
def test_networks_that_are_too_deep_for_the_fused_trainer_are_trained_in_torch(
    options: Any,
) -> None:
    X, y = waves(60)
    settings = {"hidden_layer_sizes": (4,) * 33, "max_iter": 2, "n_members": 2}
    model = isotone.MonotonicRegressor({"x": 1}, **settings, **options)
    assert model.fit(X[["x", "city"]], y).certificate_.holds
