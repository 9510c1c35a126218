"""Estimators that are told how missing values compare with present ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import isotone
from isotone.export import write
from isotone.typing import Floats

SETTINGS: dict[str, Any] = {
    "missing": "indicator",
    "lipschitz": 1.0,
    "max_iter": 3,
    "n_members": 2,
    "hidden_layer_sizes": (8, 8),
    "random_state": 0,
}
GRADES = ["C", "B", "A"]


def table(n: int, seed: int = 0, worst: bool = True) -> tuple[pd.DataFrame, Any]:
    """Loans; a missing income is a bad sign, or no sign at all."""
    rng = np.random.default_rng(seed)
    income, debt = rng.lognormal(3.0, 0.7, n), rng.normal(size=n)
    gone = rng.random(n) < 0.2
    z = 1.5 * np.log(income / 20.0)
    z = np.where(gone & worst, -2.5, z) - 0.7 * debt
    frame = pd.DataFrame(
        {
            "income": np.where(gone, np.nan, income),
            "debt": np.where(rng.random(n) < 0.1, np.nan, debt),
            "grade": pd.Categorical(
                rng.choice(np.array([*GRADES, None], object), n), GRADES, ordered=True
            ),
            "city": rng.choice(np.array(["Lima", "Oslo", "Rome", None], object), n),
            "age": rng.normal(40.0, 9.0, n),
        }
    )
    return frame, (z + rng.logistic(size=n) > 0).astype(int)


def some_values(column: pd.Series[Any]) -> list[Any]:
    """All categories; of numbers seen ones, their neighbors, far ones and zeros."""
    if column.dtype.kind != "f":
        return [value for value in column.unique() if not pd.isna(value)]
    seen = np.quantile(column.dropna(), np.linspace(0, 1, 9), method="lower").tolist()
    near = [float(np.nextafter(x, to)) for x in (seen[0], seen[-1]) for to in (-np.inf, np.inf)]
    return [*seen, *near, 0.0, -0.0, 5e-324, -1e308, 1e308, 1e-20, -3.0]


def breach(model: Any, frame: pd.DataFrame, name: str, direction: int, output: int = 0) -> float:
    """How far a missing value is on the wrong side of any value; at most 0 if nowhere."""

    def score(value: Any) -> Floats:
        one = pd.Series([value] * len(frame), dtype=frame[name].dtype, index=frame.index)
        changed = frame.assign(**{name: one})
        network = model.network_
        found = network.probability(changed) if network.of_classes else network.score(changed)
        return found.reshape(len(frame), -1)[:, output].astype(float)

    without = score(None)
    values = [score(value) for value in some_values(frame[name])]
    return float(max((direction * (one - without)).max() for one in values))


@pytest.mark.parametrize("own", [-1, 0, 1])
@pytest.mark.parametrize("direction", [-1, 1])
def test_a_missing_value_is_on_the_promised_side_of_every_value(direction: int, own: int) -> None:
    X, y = table(400)
    names = ["income", "debt", "grade", "city", "age"]  # no age is missing in training
    cst = {f"missing({name})": direction for name in names}
    cst |= dict.fromkeys(("income", "debt", "grade", "age"), own)
    model = isotone.MonotonicClassifier(cst, **SETTINGS).fit(X, y)
    assert {v.column for v in model.certificate_.missing if v.computed} == set(names)
    assert "no promise compares" not in model.certificate_.about_missing
    rows = table(1000, seed=1)[0]
    for name in names:
        assert breach(model, rows, name, direction) <= 0.0, name


def test_it_holds_for_classes_targets_and_quantiles() -> None:
    X, y = table(300)
    kind = np.where(X["age"] > 45, "fair", np.where(y > 0, "good", "bad"))
    cst = {
        "good": {"income": 1, "missing(income)": -1, "missing(city)": -1},
        "bad": {"income": -1, "missing(income)": 1, "debt": 1, "missing(debt)": 1},
    }
    classes = isotone.MonotonicClassifier(cst, **SETTINGS).fit(X, kind)
    assert classes.classes_.tolist() == ["bad", "fair", "good"]
    for name, direction, k in [
        *(("income", -1, 2), ("city", -1, 2)),
        *(("income", 1, 0), ("debt", 1, 0)),
    ]:
        assert breach(classes, X, name, direction, k) <= 0.0
    of_one = {"income": 1, "missing(income)": -1, "missing(debt)": -1}
    target = X["income"].fillna(3.0).to_numpy() * 1e3
    levels = isotone.MonotonicRegressor(
        of_one, loss="quantile", quantile=(0.1, 0.5, 0.9), **SETTINGS
    ).fit(X, target)
    both = isotone.MonotonicRegressor(of_one, **SETTINGS).fit(X, np.column_stack([target, y]))
    for model, n in ((levels, 3), (both, 2)):
        for k in range(n):
            assert breach(model, X, "income", -1, k) <= 0.0
            assert breach(model, X, "debt", -1, k) <= 0.0


@pytest.mark.parametrize(
    "cst",
    [
        {"good": {"missing(income)": -1}, "bad": {"income": -1}},
        {"good": {"grade": 1}, "bad": {"missing(grade)": 1}},
        {"good": {"income": 1, "missing(income)": -1}, "bad": {"missing(income)": 1}},
        {"good": {"debt": 1}, "bad": {"debt": -1}, "late": {"missing(debt)": -1}},
    ],
    ids=str,
)
def test_a_class_may_direct_missing_values_where_another_has_the_column(cst: Any) -> None:
    X, y = table(300)
    kind = np.where(np.arange(300) % 5 == 0, "late", np.where(y, "good", "bad"))
    model = isotone.MonotonicClassifier(cst, **SETTINGS).fit(X, kind)
    for k, name in enumerate(["bad", "good", "late"]):
        for column, direction in cst.get(name, {}).items():
            if column.startswith("missing("):
                own = column.removeprefix("missing(").removesuffix(")")
                assert breach(model, X[:20], own, direction, k) <= 0.0


def test_a_direction_of_a_class_is_the_opposite_one_of_the_other() -> None:
    X, y = table(200)
    names = np.array(["bad", "good"])[y]
    one = isotone.MonotonicClassifier({"bad": {"missing(income)": 1}}, **SETTINGS).fit(X, names)
    other = isotone.MonotonicClassifier({"missing(income)": -1}, **SETTINGS).fit(X, names)
    assert one.network_.fingerprint == other.network_.fingerprint
    with pytest.raises(ValueError, match="both classes move the same way with feature 'missing"):
        isotone.MonotonicClassifier(
            {c: {"missing(income)": 1} for c in ("bad", "good")}, **SETTINGS
        ).fit(X, names)


@pytest.mark.parametrize("values", [[], [7.0], [0.0, 1.0], [1.0, 1.0 + 2**-52], [1e99, -1e99]])
def test_columns_of_few_values_get_a_reach_too(values: list[float]) -> None:
    rng = np.random.default_rng(0)
    a = rng.choice([*values, np.nan], 80)
    X = pd.DataFrame({"a": a, "b": rng.normal(size=80)})
    y = (rng.random(80) < 0.5).astype(int)
    for own in (-1, 0, 1):
        cst = {"a": own, "missing(a)": -1}
        model = isotone.MonotonicClassifier(cst, **SETTINGS).fit(X, y)
        assert breach(model, X.fillna({"a": 0.0}), "a", -1) <= 0.0


def test_weights_count_as_repetitions_for_knots_too() -> None:
    X, y = table(120)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    settings = SETTINGS | {"monotonic_cst": {"debt": -1, "missing(debt)": -1}}
    weighted = isotone.MonotonicClassifier(**settings).fit(X, y, sample_weight=weight)
    repeated = np.repeat(np.arange(len(X)), weight)[::-1]
    again = isotone.MonotonicClassifier(**settings).fit(X.iloc[repeated], y[repeated])
    assert weighted.network_.fingerprint == again.network_.fingerprint


def test_a_raw_lambda_bounds_the_slope_between_knots() -> None:
    X, y = table(300)
    raw = {"income": 0.05, "debt": 1.0, "grade": 1.0, "city": 1.0, "age": 0.1}
    model = isotone.MonotonicClassifier(
        {"age": 1, "missing(age)": -1},
        **(SETTINGS | {"lipschitz": raw, "lipschitz_units": "raw"}),
    ).fit(X, y)
    assert model.network_.inputs.copies.count(7) == 8  # of age
    slopes = {slope.feature: slope.raw for slope in model.certificate_.slopes}
    assert 0.0 <= slopes["age"].low <= slopes["age"].high <= 0.2 * (1 + 1e-9)
    assert model.lipschitz_.tolist()[0] == 0.05


def test_a_logarithm_has_a_floor_and_needs_no_knots() -> None:
    X, y = table(300)
    cst = {"income": 1, "missing(income)": -1}
    plain = isotone.MonotonicClassifier(cst, scaling={"income": "log"}, **SETTINGS).fit(X, y)
    assert not plain.network_.inputs.copies
    assert plain.certified_radius(X).down.shape == (300, 5)
    assert plain.network_.inputs.column("income").fill == X["income"].min()
    tiled = isotone.MonotonicClassifier(cst, scaling={"income": "robust"}, **SETTINGS).fit(X, y)
    assert tiled.network_.inputs.copies.count(0) == 8


def test_saved_and_exported_models_keep_their_promise(tmp_path: Any) -> None:
    X, y = table(200)
    model = isotone.MonotonicClassifier({"debt": -1, "missing(debt)": -1}, **SETTINGS).fit(X, y)
    model.save(tmp_path / "m.isotone")
    frozen = isotone.load(tmp_path / "m.isotone")
    certificate = isotone.certify(frozen)
    assert certificate.about_missing == model.certificate_.about_missing
    assert "a missing debt never gives a higher probability of 1 than any present value" in (
        certificate.about_missing
    )
    assert np.array_equal(frozen.score(X), model.decision_function(X))
    claim = write(frozen, "sql", tmp_path / "m.sql")
    assert claim.to_the_last_bit
    assert claim.about_missing == certificate.about_missing


def test_the_fit_is_as_good_where_missing_is_worst_and_cautious_elsewhere() -> None:
    settings = SETTINGS | {"max_iter": 40, "hidden_layer_sizes": (16, 16)}
    cst = {"income": 1, "debt": -1}
    for worst, allowed in ((True, 0.005), (False, 0.04)):
        X, y = table(1500, worst=worst)
        new, truth = table(8000, seed=1, worst=worst)
        losses = [
            log_loss(
                truth,
                isotone.MonotonicClassifier(cst | more, **settings)
                .fit(X, y)
                .predict_proba(new)[:, 1],
            )
            for more in ({}, {"missing(income)": -1, "missing(debt)": -1})
        ]
        assert losses[1] <= losses[0] + allowed


def test_what_cannot_be_directed_is_explained() -> None:
    X, y = table(60)

    def fit(cst: Any, **more: Any) -> None:
        isotone.MonotonicClassifier(cst, **(SETTINGS | more)).fit(X, y)

    with pytest.raises(ValueError, match=r"'missing\(debt\)', but missing='error' refuses"):
        isotone.MonotonicClassifier({"missing(debt)": -1}).fit(X[["age", "debt"]].fillna(0), y)
    with pytest.raises(ValueError, match=r"'missing\(incme\)'.*did you mean 'missing\(income\)'"):
        fit({"missing(incme)": -1})
    with pytest.raises(ValueError, match="must hold -1"):
        fit({"missing(income)": 2})
    with pytest.raises(ValueError, match="has 10 entries but `X` has 5 features"):
        fit([0] * 10)
    X = X.rename(columns={"debt": "missing(income)"})
    with pytest.raises(ValueError, match="two features are called"):
        fit({"missing(income)": -1})
