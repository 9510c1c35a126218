"""Estimators: scikit-learn's own checks, its tools, and the guarantees that no tool may break."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import isotone
from isotone import Log, MonotonicClassifier, MonotonicRegressor, committee

QUICK: dict[str, Any] = {
    "lipschitz": 2.0,
    "hidden_layer_sizes": (16,),
    "max_iter": 60,
    "batch_size": 256,
    "n_members": 2,
    "random_state": 0,
}
NAMES = ["income", "debt", "age"]
CHECKED = {
    "lipschitz": 4.0,
    "hidden_layer_sizes": (16, 16),
    "max_iter": 60,
    "n_members": 1,
    "batch_size": 256,
}


def classifier(*args: Any, **options: Any) -> MonotonicClassifier:
    return MonotonicClassifier(*args, **(QUICK | options))


def regressor(*args: Any, **options: Any) -> MonotonicRegressor:
    return MonotonicRegressor(*args, **(QUICK | options))


def people(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Raw columns of very different size, and a noisy decision."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    X = pd.DataFrame({"income": np.exp(10 + z[:, 0]), "debt": 5 * z[:, 1], "age": 40 + z[:, 2]})
    y = z[:, 0] - z[:, 1] + 0.5 * np.sin(3 * z[:, 2]) + 0.3 * rng.normal(size=n) > 0
    return X, y


def prices(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    X, _ = people(n, seed)
    noise = np.random.default_rng(seed).normal(size=n)
    return X, 3e5 + 2e4 * np.log(X["income"].to_numpy()) - 1e3 * X["debt"].to_numpy() + 500 * noise


def raise_column(X: pd.DataFrame, name: str, by: Any) -> pd.DataFrame:
    return X.assign(**{name: X[name] + by})


@parametrize_with_checks(
    [
        MonotonicClassifier(**CHECKED),
        MonotonicClassifier(loss="hinge", missing="indicator", **CHECKED),
        MonotonicRegressor(**CHECKED),
    ]
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


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


CLASS_ERRORS = [
    (
        {"income": 1},
        r"names 'income', which is no class of `y` \(0, 1, 2\).*\{0: \{'income': 1\}\}",
    ),
    ({0: {"incme": 1}}, r"`monotonic_cst\[0\]` names the feature 'incme'.*did you mean 'income'"),
    ({0: [1, 0]}, r"`monotonic_cst\[0\]` has 2 entries but `X` has 3 features"),
    ({0: 1}, r"`monotonic_cst\[0\]=1` says nothing about single features"),
    ({0: [2, 0, 0]}, r"must hold -1 \(decreasing\), 0"),
    ([1, 0, 0], r"a table \(3, n_features\), a row for every class, or a dictionary by class"),
    ([[1, 0, 0]], r"`monotonic_cst` has shape \(1, 3\); 3 outputs and 3 features need \(3, 3\)"),
    ([[1, 0, 0]] * 3, r"must all rise with feature 0: no proof exists"),
]


@pytest.mark.parametrize(("cst", "message"), CLASS_ERRORS, ids=str)
def test_directions_that_classes_cannot_have_are_refused(cst: Any, message: str) -> None:
    X, _ = people(30)
    with pytest.raises(ValueError, match=message):
        classifier(cst).fit(X, np.arange(30) % 3)


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


@pytest.mark.parametrize("make", [classifier, regressor])
def test_weights_are_repetitions_and_order_does_not_matter(make: Any) -> None:
    X, y = people(60)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    order = np.random.default_rng(1).permutation(len(X))
    weighted = make(early_stopping=True, batch_size=16).fit(X, y, sample_weight=weight)
    again = np.repeat(order, weight[order])
    repeated = make(early_stopping=True, batch_size=16).fit(X.iloc[again], y[again])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


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
    models = [classifier(lipschitz="auto", verbose=True).fit(X, y) for y in (steep, flat)]
    assert models[0].lipschitz_[0] > models[1].lipschitz_[0]
    again = classifier(lipschitz=models[0].lipschitz_).fit(X, steep)
    np.testing.assert_array_equal(again.predict_proba(X), models[0].predict_proba(X))
    assert "lipschitz='auto' picked" in capsys.readouterr().out


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
    with pytest.raises(ValueError, match=r"NaN in feature 'age', row 0, which had no missing"):
        model.predict(X.assign(age=np.nan))


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


def test_balanced_classes_count_alike() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1)), np.arange(400) < 40
    plain, balanced = (classifier(class_weight=w).fit(X, y) for w in (None, "balanced"))
    assert plain.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=0.03)
    assert balanced.predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)


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


def test_torch_and_fused_members_learn_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = people()
    options = {"early_stopping": True, "max_iter": 10, "n_iter_no_change": 100}
    fused = classifier({"income": 1}, **options).fit(X, y)
    monkeypatch.setattr(committee, "why_not_fused", lambda network, loss: "it is switched off")
    batched = classifier({"income": 1}, **options).fit(X, y)
    for name in ("training", "validation"):
        a, b = (np.array(getattr(model.history_, name)) for model in (fused, batched))
        np.testing.assert_allclose(a[0], b[0], rtol=1e-6 if name == "training" else 0.01)
        np.testing.assert_allclose(a, b, rtol=0.1)  # weights begin on the bound, a kink


ERRORS = [
    ({"monotonic_cst": {"incme": 1}}, r"'incme', which `X` does not have.*did you mean 'income'"),
    ({"monotonic_cst": {"zzz": 1}}, r"'zzz', which `X` does not have.*use one of these"),
    ({"monotonic_cst": [1, 0]}, r"`monotonic_cst` has 2 entries but `X` has 3 features; give"),
    ({"monotonic_cst": [2, 0, 0]}, r"must hold -1 \(decreasing\), 0 \(free\) or \+1"),
    ({"monotonic_cst": [[1, 0]]}, r"`monotonic_cst` has shape \(1, 2\); 1 outputs and 3 features"),
    ({"lipschitz": 0.0}, r"`lipschitz=0.0` must be positive and finite; choose larger"),
    ({"lipschitz": [1.0]}, r"`lipschitz` has 1 entries but `X` has 3 features"),
    ({"lipschitz": {"dept": 1.0}}, r"did you mean 'debt'"),
    ({"lipschitz": "big"}, r"`lipschitz='big'` must be 'auto' or positive numbers"),
    ({"lipschitz": [1.0, np.nan, 1.0]}, r"must be positive and finite; choose larger"),
    ({"monotonic_cst": 1}, r"`monotonic_cst=1` says nothing about single features; give one"),
    ({"scaling": 5}, r"`scaling=5` says nothing about single features; give one"),
    ({"lipschitz_units": "feet"}, r"`lipschitz_units='feet'` is unknown; choose from"),
    ({"scaling": "cubic"}, r"`scaling` holds 'cubic'; it must be of a known kind: choose from"),
    ({"scaling": {"agee": "log"}}, r"did you mean 'age'"),
    ({"loss": "mse"}, r"`loss='mse'` is unknown; choose from"),
    ({"missing": "drop"}, r"`missing='drop'` is unknown; choose from"),
    ({"max_iter": 0}, r"`max_iter=0` must be a whole number of at least 1"),
    ({"n_members": 1.5}, r"`n_members=1.5` must be a whole number of at least 1"),
    ({"batch_size": "all"}, r"`batch_size='all'` must be a whole number of at least 1, or 'auto'"),
    ({"group_size": 0}, r"`group_size=0` must be a whole number of at least 1, 'auto', or None"),
    ({"group_size": 3}, r"`group_size=3` does not divide"),
    ({"learning_rate_init": -1}, r"`learning_rate_init=-1` must be a positive finite number"),
    ({"tol": -1}, r"`tol=-1` must be a number of at least 0"),
    ({"early_stopping": "auto"}, r"`early_stopping='auto'` is unknown; choose from"),
    ({"validation_fraction": 1.0}, r"`validation_fraction=1.0` must lie between 0 and 1; choose"),
    ({"hidden_layer_sizes": (0,)}, r"`hidden_layer_sizes=\(0,\)` must hold whole numbers"),
]


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize(("options", "message"), ERRORS, ids=lambda value: str(value)[:30])
def test_wrong_parameters_are_refused_with_advice(make: Any, options: Any, message: str) -> None:
    X, y = people(20)
    with pytest.raises(ValueError, match=message):
        make(**options).fit(X, y)


def test_what_only_a_classifier_refuses() -> None:
    X, y = people(20)
    for options, labels, message in (
        (
            {},
            np.zeros(20),
            r"`y` holds 1 class, .*; a classifier needs rows of at least 2",
        ),
        ({"loss": "hinge"}, np.arange(20) % 3, r"'hinge'` is for 2 classes but `y` holds 3; use"),
        ({"monotonic_cst": [1, 0, 0]}, np.arange(20) % 3, r"a table \(3, n_features\), a row for"),
        ({"monotonic_cst": [[1, 0, 0]] * 2}, y, r"both classes go the same way with feature 'inc"),
        ({"class_weight": {False: -1, True: 1}}, y, r"must be finite and not negative, and posit"),
        ({"class_weight": {False: 0, True: 0}}, y, r"positive for some class; give such weights"),
        ({"temperature": 0}, y, r"`temperature=0` must be a positive finite number"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier(**options).fit(X, labels)


def test_what_only_a_regressor_refuses() -> None:
    X, y = prices(20)
    for options, targets, message in (
        ({"quantile": "high"}, y, r"`quantile=high` must lie between 0 and 1"),
        ({"quantile": ()}, y, r"`quantile=\(\)` must lie between 0 and 1"),
        ({"quantile": np.nan}, y, r"`quantile=nan` must lie between 0 and 1"),
        ({"quantile": 0.5}, 1e200 * y, r"`y` reaches .* in 'column 0'; numbers up to 1e\+100 can"),
        ({"quantile": 1.5}, y, r"`quantile=1.5` must lie between 0 and 1"),
        ({"quantile": (0.9, 0.1)}, y, r"several levels in increasing order; choose"),
        ({"quantile": (0.1, 0.9)}, np.column_stack([y, y]), r"2 quantiles of 2 targets cannot"),
    ):
        with pytest.raises(ValueError, match=message):
            regressor(loss="quantile", **options).fit(X, targets)


def test_a_target_too_far_from_zero_is_refused() -> None:
    X, y = people(20)
    with pytest.raises(ValueError, match=r"nothing to certify: subtract a constant from `y`"):
        regressor().fit(X, 1e13 + y)


def test_a_constant_target_is_predicted() -> None:
    X, _ = people(30)
    for value in (-7e9, 0.0, 3.0):
        model = regressor({"income": 1}).fit(X, np.full(30, value))
        np.testing.assert_allclose(model.predict(X), value, rtol=1e-8, atol=1e-8)
        assert model.certificate_.holds


def test_weights_of_any_size_can_be_used() -> None:
    X, y = people(40)
    model = classifier(lipschitz="auto").fit(
        X, y, sample_weight=10.0 ** np.linspace(-200, 200, 40)
    )
    assert model.predict(X.iloc[[-1]])[0] == y[-1]


@pytest.mark.parametrize("name", NAMES)
def test_far_away_rows_are_scored_but_not_learned_from(name: str) -> None:
    X, y = people(40)
    far = X.assign(**{name: 1e300})
    assert np.all(np.isfinite(classifier().fit(X, y).decision_function(far)))
    with pytest.raises(
        ValueError, match=rf"`X` reaches 1e\+300 in '{name}'; numbers up to 1e\+100"
    ):
        classifier().fit(far, y)


def test_rows_that_cannot_be_used_are_refused_with_advice() -> None:
    X, y = people(20)
    for frame, message in (
        (X.assign(age=pd.date_range("2020", periods=20)), r"the columns age of `X` are no numb"),
        (X.to_numpy().astype(str) + "?", r"some columns of `X` are no numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier().fit(frame, y)
    with pytest.raises(ValueError, match=r"NaN\), the first in feature 'debt', row 3; missing="):
        classifier().fit(X.assign(debt=[np.nan if i == 3 else 1.0 for i in range(20)]), y)
    city = ["Rome"] * 20
    for frame in (X.assign(city=city), pl.from_pandas(X).with_columns(pl.Series("city", city))):
        with pytest.raises(ValueError, match=r"columns city of `X` are no numbers .* leave them"):
            classifier().fit(frame, y)
    with pytest.raises(ValueError, match=r"at least one non-zero number"):
        classifier().fit(X, y, sample_weight=np.zeros(20))
    with pytest.raises(NotFittedError):
        classifier().predict_proba(X)
    with pytest.raises(NotFittedError):
        classifier().save("nowhere")
