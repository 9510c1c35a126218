"""Mixtures: members that see different inputs are members that see one set of copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import isotone
from isotone.estimators.fitting import mixture
from isotone.estimators.fitting.mixture import Found, Mixture
from isotone.frozen.steps import Members

QUICK: Any = {"max_iter": 12, "random_state": 0}


def table(n: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """A wave that rises, a step, a tail with a logarithm, and cities."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.uniform(size=n),
            "step": rng.integers(0, 9, size=n).astype(float),
            "skewed": rng.lognormal(sigma=2.0, size=n),
            "city": rng.choice(["Lima", "Bern", "Oslo"], size=n),
        }
    )
    y = 5 * X.x + np.sin(9 * X.x) + (X.step > 4) + 0.3 * np.log(X.skewed) + (X.city == "Oslo")
    return X, y.to_numpy() + 0.3 * rng.normal(size=n)


def mixed(monkeypatch: pytest.MonkeyPatch, estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """The candidates of a fit, and the mixture that it made of them with equal weights."""
    seen: dict[str, Any] = {}

    def equal(found: list[Found]) -> Any:
        seen["found"] = found
        return np.full(len(found), 1.0 / len(found))

    made = Mixture.freeze

    def freeze(self: Mixture) -> Any:
        seen["mixture"] = self
        seen["scores"] = _scores(self)
        seen["each"] = [_scores_of(one.trial, one.members) for one in seen["found"]]
        return made(self)

    monkeypatch.setattr(mixture, "choose_weights", equal)
    monkeypatch.setattr(Mixture, "freeze", freeze)
    estimator.fit(X, y)
    return seen, estimator


def _scores_of(trial: Any, members: list[Any]) -> Any:
    rows = torch.as_tensor(trial.view.transform(trial.task.rows.x))
    with torch.no_grad():
        return np.array([m(rows.to(m.dtype)).double().numpy() for m in members])


def _scores(found: Mixture) -> Any:
    return _scores_of(found.trial, found.members)


def kept(seen: dict[str, Any]) -> Any:
    """What two members of every candidate say."""
    return np.concatenate([scores[:2] for scores in seen["each"]])


def test_members_say_the_same_of_the_inputs_that_all_have_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table(400)
    model = isotone.MonotonicRegressor({"x": 1, "skewed": 1}, scaling={"skewed": "log"}, **QUICK)
    seen, model = mixed(monkeypatch, model, X, y)
    knots = seen["mixture"].trial.knots
    assert len(knots["x"]) > 64
    # the logarithm is nearly linear between knots, everything else is so exactly
    np.testing.assert_allclose(seen["scores"], kept(seen), atol=0.02)
    assert model.certificate_.holds
    assert isinstance(model.network_.steps[0], Members)
    assert model.network_.steps[0].weights == (1 / 8,) * 8  # two of every candidate


def test_without_a_logarithm_they_say_it_to_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(300)
    model = isotone.MonotonicRegressor({"x": 1, "skewed": 1}, scaling="standard", **QUICK)
    seen, _ = mixed(monkeypatch, model, X, y)
    np.testing.assert_allclose(seen["scores"], kept(seen), atol=2e-6)


@pytest.mark.parametrize("deviation", [1.0, 10.0, 50.0])
def test_knots_of_a_logarithm_are_close_enough(deviation: float) -> None:
    x = np.random.default_rng(0).lognormal(sigma=deviation, size=(300, 1))
    scaling = isotone.Scaling.fit(x, ["log"])
    knots = mixture._refined(np.quantile(x, np.linspace(0, 1, 17)), scaling)
    rows = np.sort(x, axis=0)
    line = np.interp(rows[:, 0], knots, scaling.transform(knots[:, None])[:, 0])
    assert np.abs(line - scaling.transform(rows)[:, 0]).max() < 0.01


def test_a_floor_of_a_logarithm_is_a_knot() -> None:
    x = np.linspace(0.0, 100.0, 200)[:, None]
    scaling = isotone.Scaling.fit(x, [isotone.Log(floor=99.0)])
    assert 99.0 in mixture._refined(np.array([0.0, 50.0, 100.0]), scaling)


@pytest.mark.parametrize("center", [1e6, 3e8, 1e10])
def test_targets_far_from_zero_are_fitted(center: float) -> None:
    X, y = table(300)
    rows = X[["x", "skewed", "step"]]
    model = isotone.MonotonicRegressor([1, 1, 1], **QUICK).fit(rows, y + center)
    assert model.certificate_.holds
    assert model.score(rows, y + center) > 0.5


def test_mixtures_of_too_many_copies_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "MOST_COPIES", 10)
    X, y = table(200)
    seen, model = mixed(monkeypatch, isotone.MonotonicRegressor({"x": 1}, **QUICK), X, y)
    assert seen["mixture"].trial is seen["found"][0].trial
    assert model.certificate_.holds


def test_classes_and_quantiles_are_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(300)
    classes = np.digitize(y, [2.0, 4.0])
    directions = [[-1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    models = [
        (isotone.MonotonicClassifier(directions, **QUICK), classes),
        (isotone.MonotonicRegressor({"x": 1}, quantile=(0.1, 0.9), **QUICK), y),
    ]
    for model, target in models:
        seen, fitted = mixed(monkeypatch, model, X, target)
        np.testing.assert_allclose(seen["scores"], kept(seen), atol=0.02)
        assert fitted.certificate_.holds


def test_weights_follow_the_least_loss_on_rows_that_were_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table(400)
    seen: list[Any] = []
    choose = mixture.choose_weights

    def listen(found: Any) -> Any:
        seen.append((found, choose(found)))
        return seen[-1][1]

    monkeypatch.setattr(mixture, "choose_weights", listen)
    isotone.MonotonicRegressor({"x": 1}, **QUICK).fit(X, y)
    (found, weights) = seen[0]
    assert weights.sum() == 1.0
    assert np.all(8 * weights % 1 == 0)
    said = [one.left_out() for one in found]
    target = said[0][0].y
    assert len(target) == 400  # every row is left out by one member
    scores = np.array([score.numpy() for _, score in said])

    def loss(shares: Any) -> float:
        return float(np.mean((np.tensordot(shares, scores, 1) - target) ** 2))

    even = np.full(len(found), 1 / len(found))
    best = min(mixture._simplex(len(found)), key=loss)
    assert all(loss(best) <= loss(one) + 1e-12 for one in np.eye(len(found)))
    # and are then drawn to equal ones, as much as 100 rows of 500 would, but for an eighth
    assert np.abs(weights - (0.8 * best + 0.2 * even)).max() < 1 / 8


@pytest.mark.parametrize(
    ("wanted", "rounded"),
    [([1.0, 0.0], [1.0, 0.0]), ([0.9, 0.1], [0.875, 0.125]), ([1 / 3] * 3, [0.375, 0.375, 0.25])],
)
def test_weights_are_rounded_to_eighths_whose_sum_is_one(wanted: Any, rounded: Any) -> None:
    np.testing.assert_array_equal(mixture._rounded(np.array(wanted)), rounded)


def test_rows_to_validate_on_weigh_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(300)
    sizes: list[int] = []
    choose = mixture.choose_weights

    def listen(found: Any) -> Any:
        sizes.extend(len(one.left_out()[0]) for one in found)
        return choose(found)

    monkeypatch.setattr(mixture, "choose_weights", listen)
    model = isotone.MonotonicRegressor({"x": 1}, **QUICK)
    model.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
    assert sizes == [100] * 4
    assert model.certificate_.holds
