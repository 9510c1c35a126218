"""Estimators: what is learned, and the guarantees that no option may break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotone
from isotone import Log
from isotone.training import learners
from people import NAMES, classifier, people, prices, raise_column, regressor


@pytest.mark.parametrize("cst", [[1, -1, 0], {"income": 1, "debt": -1}])
def test_probabilities_follow_their_directions(cst: Any) -> None:
    X, y = people()
    model = classifier(cst).fit(X, y)
    before = model.predict_proba(X)[:, 1]
    assert model.certificate_.holds
    assert np.all(model.predict_proba(raise_column(X, "income", 1e3))[:, 1] >= before)
    assert np.all(model.predict_proba(raise_column(X, "debt", 1e-9))[:, 1] <= before)
    assert model.score(X, y) > 0.8


def test_predictions_follow_their_directions_in_the_units_of_the_target() -> None:
    X, y = prices()
    model = regressor({"income": 1, "debt": -1}).fit(X, y)
    before = model.predict(X)
    assert model.certificate_.holds
    assert model.score(X, y) > 0.8
    assert np.all(model.predict(raise_column(X, "income", 1e-6)) >= before)
    assert np.all(model.predict(raise_column(X, "debt", 0.1)) <= before)


def test_every_class_of_several_follows_its_row() -> None:
    X, _ = people()
    y = np.digitize(np.log(X["income"]), [9.5, 10.5])
    cst = [[-1, 0, 0], [0, 0, 0], [1, 0, 0]]
    model = classifier(cst).fit(X, y)
    gain = model.predict_proba(raise_column(X, "income", 1e3)) - model.predict_proba(X)
    assert np.all(gain[:, 0] <= 0)
    assert np.all(gain[:, 2] >= 0)
    assert model.decision_function(X).shape == (200, 3)
    assert model.score(X, y) > 0.8


def test_classes_have_directions_by_name() -> None:
    X, _ = people(100)
    y = np.array(["low", "mid", "high"])[np.digitize(np.log(X["income"]), [9.5, 10.5])]
    model = classifier({"high": {"income": 1}, "low": [-1, 0, 0]}).fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.network_.monotonic_cst.tolist() == [[1, 0, 0], [-1, 0, 0], [0, 0, 0]]
    numbered = classifier({2: {"income": 1}, 0: {"income": -1}}).fit(
        X, np.digitize(X["age"], [40]) + (X["debt"] > 3)
    )
    assert numbered.network_.monotonic_cst.tolist() == [[-1, 0, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    "cst",
    [
        [[-1, 1, 0], [1, 0, 0]],
        {True: {"income": 1, "debt": -1}},
        {False: [-1, 1, 0]},
        {False: {"income": -1}, True: {"debt": -1}},
    ],
    ids=str,
)
def test_either_of_two_classes_may_have_the_directions(cst: Any) -> None:
    X, y = people(50)
    assert classifier(cst).fit(X, y).network_.monotonic_cst.tolist() == [[1, -1, 0]]


def test_several_targets_have_directions_and_scales_of_their_own() -> None:
    X, y = prices()
    Y = np.column_stack([y, -1e-3 * y])
    model = regressor([[1, 0, 0], [-1, 0, 0]], max_iter=200).fit(X, Y)
    gain = model.predict(raise_column(X, "income", 1e3)) - model.predict(X)
    assert np.all(gain[:, 0] >= 0)
    assert np.all(gain[:, 1] <= 0)
    assert model.score(X, Y) > 0.8


def test_quantiles_never_cross_and_follow_the_directions() -> None:
    X, y = prices(300)
    levels = (0.1, 0.5, 0.9)
    model = regressor({"income": 1}, loss="quantile", quantile=levels, max_iter=150).fit(X, y)
    far = X * np.random.default_rng(1).uniform(-5, 5, X.shape)
    assert np.all(np.diff(model.predict(far), axis=1) >= 0)
    assert np.all(model.predict(raise_column(X, "income", 1e3)) >= model.predict(X))
    below = (y[:, None] <= model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(below, levels, atol=0.07)
    assert 0.3 < model.score(X, y) < 1
    one = regressor(loss="quantile", quantile=0.9, max_iter=150).fit(X, y)
    assert (y <= one.predict(X)).mean() == pytest.approx(0.9, abs=0.07)


def test_one_quantile_of_several_targets_leaves_them_in_place() -> None:
    X, y = prices()
    model = regressor(loss="quantile", quantile=0.5).fit(X, np.column_stack([y, -y]))
    assert np.all(model.predict(X)[:, 0] > model.predict(X)[:, 1])


def test_a_saved_model_gives_the_same_numbers(tmp_path: Path) -> None:
    X, y = people()
    model = classifier({"income": 1}, temperature=3.0).fit(X, y)
    model.save(tmp_path / "model.isotone")
    network = isotone.load(tmp_path / "model.isotone")
    np.testing.assert_array_equal(network.probability(X), model.predict_proba(X)[:, 1])
    assert network.features == tuple(NAMES)
    assert network.classes == ("False", "True")
    assert isotone.certify(network).holds


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e12])
def test_units_of_the_target_do_not_matter(scale: float) -> None:
    X, y = prices()
    unit = regressor([1, 0, 0]).fit(X, y)
    scaled = regressor([1, 0, 0]).fit(X, scale * y)
    assert scaled.certificate_.holds
    np.testing.assert_allclose(scaled.lipschitz_, unit.lipschitz_)
    assert scaled.score(X, scale * y) == pytest.approx(unit.score(X, y), abs=0.02)


def test_a_target_far_from_zero_keeps_its_certificate() -> None:
    X, y = people()
    model = regressor([1, 0, 0]).fit(X, 1e9 + y)
    assert model.certificate_.holds
    assert model.score(X, 1e9 + y) > 0.2


def test_a_raw_slope_is_never_exceeded() -> None:
    X, y = prices()
    options = {"scaling": {"income": Log(floor=1e3)}, "lipschitz_units": "raw"}
    limits = {"income": 5.0, "debt": 800.0, "age": 100.0}
    model = regressor(lipschitz=limits, **options).fit(X, y)
    np.testing.assert_allclose(model.lipschitz_, list(limits.values()))
    for slope in model.certificate_.slopes:
        assert slope.raw.high <= limits[slope.feature] * (1 + 1e-12)


def test_auto_picks_a_slope_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    steep = (rng.random(300) < 1 / (1 + np.exp(-8 * X[:, 0]))).astype(int)
    flat = (rng.random(300) < 1 / (1 + np.exp(-0.3 * X[:, 0]))).astype(int)
    models = [
        classifier(lipschitz="auto", knots=None, verbose=True).fit(X, y) for y in (steep, flat)
    ]
    assert models[0].lipschitz_[0] > models[1].lipschitz_[0]
    assert "loss on rows not learned from" in capsys.readouterr().out


@pytest.mark.parametrize("widths", [(), 7, (11,), (20, 30), [16, 24], np.array([4, 8])])
def test_any_widths_will_do(widths: Any) -> None:
    X, y = people(50)
    assert classifier([1, 0, 0], hidden_layer_sizes=widths).fit(X, y).certificate_.holds


def test_a_dictionary_leaves_the_other_slopes_to_the_scan() -> None:
    X, y = people(100)
    model = classifier(lipschitz={"debt": 0.3}).fit(X, y)
    assert model.lipschitz_[1] == 0.3
    assert model.lipschitz_[0] == model.lipschitz_[2]


def test_auto_with_few_rows_does_not_scan() -> None:
    model = classifier(lipschitz="auto").fit([[0.0], [1.0]], [0, 1])
    assert model.lipschitz_.tolist() == [1.0]


def test_missing_values_are_learned_about_and_directions_hold_among_the_present() -> None:
    X, y = people(300)
    gaps = np.random.default_rng(1).random(300) < 0.3
    y = np.where(gaps, True, y)
    X.loc[gaps, "debt"] = np.nan
    model = classifier({"debt": -1}, missing="indicator").fit(X, y)
    assert model.predict_proba(X)[gaps, 1].mean() > 0.8
    lower = model.predict_proba(raise_column(X, "debt", 1.0))[:, 1]
    assert np.all(lower[~gaps] <= model.predict_proba(X)[~gaps, 1])
    assert model.network_.features == (*NAMES, "missing(debt)")
    with pytest.raises(ValueError, match=r"'age' is missing in row 0 .*has not learned what"):
        model.predict(X.assign(age=np.nan))


def test_certified_radii_hold() -> None:
    X, y = people()
    model = classifier({"income": 1}).fit(X, y)
    radius = model.certified_radius(X)
    decision = model.predict(X)
    assert np.all(np.isinf(radius.up[decision, 0]))
    for name, column in (("debt", 1), ("age", 2)):
        moved = X.assign(**{name: X[name] + radius.up[:, column]})
        np.testing.assert_array_equal(model.predict(moved), decision)


def test_certified_radii_of_classes_hold() -> None:
    X, _ = people()
    y = np.digitize(np.log(X["income"]), [9.5, 10.5])
    model = classifier({2: {"income": 1}}).fit(X, y)
    radius, decision = model.certified_radius(X), model.predict(X)
    assert np.all(np.isinf(radius.up[decision == 2, 0]))
    assert np.median(radius.scaled) > 0.01
    for column, name in enumerate(NAMES):
        for sign, distance in ((1, radius.up[:, column]), (-1, radius.down[:, column])):
            step = sign * np.where(np.isinf(distance), 1e3, distance)
            np.testing.assert_array_equal(model.predict(raise_column(X, name, step)), decision)


def test_missing_values_have_no_radius_and_indicators_are_not_shown() -> None:
    X, y = people(100)
    X.loc[:20, "debt"] = np.nan
    model = classifier({"income": 1}, missing="indicator").fit(X, y)
    radius, decision = model.certified_radius(X), model.predict(X)
    assert radius.up.shape == radius.down.shape == X.shape
    np.testing.assert_array_equal(np.isnan(radius.up), X.isna())
    step = radius.up[:, 2]
    np.testing.assert_array_equal(model.predict(raise_column(X, "age", step)), decision)


def test_hinge_has_no_probabilities_and_temperature_multiplies_the_slope() -> None:
    X, y = people()
    hinge = classifier(loss="dynamic_hinge").fit(X, y)
    assert hinge.score(X, y) > 0.8
    assert not hasattr(hinge, "predict_proba")
    warm = classifier(temperature=4.0).fit(X, y)
    np.testing.assert_allclose(warm.network_.lipschitz, 4.0 * warm.lipschitz_)


def test_early_stopping_ends_before_the_last_epoch() -> None:
    X, y = people()
    model = classifier(early_stopping=True, max_iter=1000, n_iter_no_change=5).fit(X, y)
    assert model.n_iter_ < 1000
    assert len(model.history_.validation) == model.n_iter_


def test_torch_and_fused_members_learn_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = people()
    options = {"early_stopping": True, "max_iter": 10, "n_iter_no_change": 100}
    fused = classifier({"income": 1}, **options).fit(X, y)
    monkeypatch.setattr(learners, "why_not_fused", lambda network, loss: "it is switched off")
    batched = classifier({"income": 1}, **options).fit(X, y)
    for name in ("training", "validation"):
        a, b = (np.array(getattr(model.history_, name)) for model in (fused, batched))
        np.testing.assert_allclose(a[0], b[0], rtol=1e-6 if name == "training" else 0.03)
        np.testing.assert_allclose(a, b, rtol=0.1)  # weights begin on the bound, a kink


def test_a_constant_target_is_predicted() -> None:
    X, _ = people(30)
    for value in (-7e9, 0.0, 3.0):
        model = regressor({"income": 1}).fit(X, np.full(30, value))
        np.testing.assert_allclose(model.predict(X), value, rtol=1e-8, atol=1e-8)
        assert model.certificate_.holds


@pytest.mark.parametrize("size", [5e-324, 1e-315, 1e-9, 1e308])
def test_the_size_of_equal_weights_does_not_matter(size: float) -> None:
    X, y = np.round(np.random.default_rng(0).normal(size=(60, 1))), np.arange(60) % 2
    model = classifier(max_iter=2).fit(X, y, sample_weight=np.full(60, size))
    assert model.certificate_.holds


def test_weights_of_any_size_can_be_used() -> None:
    X, y = people(40)
    model = classifier(lipschitz="auto").fit(
        X, y, sample_weight=10.0 ** np.linspace(-200, 200, 40)
    )
    assert model.predict(X.iloc[[-1]])[0] == y[-1]


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_of_several_members_are_certified(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2))
    y = 40 + 10 * (X[:, 0] + rng.normal(size=300))
    model = isotone.MonotonicRegressor(
        [1, 0], loss="quantile", quantile=(0.1, 0.5, 0.9), max_iter=5, random_state=seed
    ).fit(X, y)
    assert model.certificate_.holds
    assert np.all(np.diff(model.predict(X), axis=1) >= 0)
