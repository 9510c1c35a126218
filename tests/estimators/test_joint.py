"""Joint directions: a score never falls when columns move together."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone.estimators.preparation.oblique import Oblique, independent
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, change_first
from isotone.inputs.scaling import Scaling

QUICK: Any = {"max_iter": 10, "random_state": 0}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"lipschitz": 2.0},
    {"lipschitz": "learned"},
    {"lipschitz": {"a": 1.0}},
    {"knots": 8},
]
DIRECTIONS: list[tuple[dict[str, int], list[dict[str, float]]]] = [
    ({"a": 1, "b": 1}, [{"a": 1, "b": -1}]),
    ({}, [{"a": 2.0, "b": -0.5}]),
    ({"b": -1}, [{"a": 1, "b": 1, "skewed": 0.1}]),
    ({"skewed": 1}, [{"a": 1, "b": -1}, {"b": 1, "skewed": -3}]),
]


def table(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": 3.0 * rng.normal(size=n),
            "b": 40.0 + rng.normal(size=n),
            "skewed": rng.lognormal(sigma=1.5, size=n),
            "city": rng.choice(["Lima", "Bern"], size=n),
        }
    )
    y = np.tanh(X.a) - 0.5 * X.b * (X.a > 0) + X.skewed.clip(upper=5) + (X.city == "Bern")
    return X, y.to_numpy() + 0.1 * rng.normal(size=n)


def largest_fall(network: Any, X: pd.DataFrame, direction: dict[str, float]) -> float:
    before, falls = network.score(X), []
    for t in (1e-9, 1e-6, 1e-3, 0.1, 1.0, 7.0):
        moved = X.assign(**{name: X[name] + t * rate for name, rate in direction.items()})
        falls.append(float((before - network.score(moved)).max()))
    return max(falls)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [*product(SETTINGS, DIRECTIONS[:1]), *product(SETTINGS[2:3], DIRECTIONS[1:])],
)
def test_no_score_falls_along_a_joint_direction(settings: Any, wanted: Any) -> None:
    X, y = table()
    single, joint = wanted
    model = isotone.MonotonicRegressor(single, joint_cst=joint, **QUICK, **settings).fit(X, y)
    assert model.certificate_.holds
    verdicts = model.certificate_.joint
    assert [dict(v.direction) for v in verdicts] == joint
    for verdict in verdicts:
        assert verdict.real
        assert verdict.slope.low >= 0
        assert verdict.drop < 1e-3 * y.std()
        assert largest_fall(model.network_, X, dict(verdict.direction)) <= verdict.drop


def test_classes_have_joint_directions() -> None:
    X, y = table()
    model = isotone.MonotonicClassifier(
        {"b": 1}, joint_cst=[{"a": 1, "b": -1}], positive="no", **QUICK
    ).fit(X, np.where(y > np.median(y), "yes", "no"))
    (verdict,) = model.certificate_.joint
    assert verdict.about == "probability of no"
    assert largest_fall(model.network_, X, {"a": 1, "b": -1}) <= verdict.drop


def test_directions_of_single_columns_are_kept_to_the_last_bit() -> None:
    X, y = table()
    model = isotone.MonotonicRegressor({"a": 1, "b": 1}, joint_cst=[{"a": 1, "b": -1}], **QUICK)
    model.fit(X, y)
    assert "to the last bit" in model.certificate_.guarantee
    for name in ("a", "b"):
        assert largest_fall(model.network_, X, {name: 1.0}) <= 0.0


def test_what_the_directions_allow_can_be_learned() -> None:
    """A payment in time counts more than twice as much as a late one: nothing is lost."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.uniform(0, 9, 2000), "b": rng.uniform(0, 9, 2000)})
    y = np.sqrt(X.a + 0.4 * X.b)
    free, joint = (
        isotone.MonotonicRegressor({"b": 1}, joint_cst=cst, knots=None, random_state=0)
        .fit(X[:1000], y[:1000])
        .score(X[1000:], y[1000:])
        for cst in (None, [{"a": 1, "b": -1}])
    )
    assert joint > 0.995
    assert joint > free - 0.004


def test_a_false_joint_direction_is_not_proved() -> None:
    X, y = table()
    model = isotone.MonotonicRegressor({"a": 1}, knots=None, lipschitz=1.0, **QUICK).fit(X, y)
    certificate = isotone.certify(model.network_)
    assert not certificate.along({"a": -1})[0].real
    network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 1])
    both = isotone.certify(isotone.freeze(network, features=["a", "b"]))
    assert both.along({"a": 1, "b": 3})[0].real
    assert not both.along({"a": 1, "b": -3})[0].real
    declared = replace(both.frozen, joint_cst=({"a": 1, "b": -3},))
    assert not isotone.certify(declared).holds
    assert declared.fingerprint != both.frozen.fingerprint


def test_the_verdict_follows_from_the_stored_weights() -> None:
    X, y = table()
    model = isotone.MonotonicRegressor({"b": 1}, joint_cst=[{"a": 1, "b": -1}], **QUICK).fit(X, y)
    network = model.network_

    def steeper(step: Dense) -> Dense:
        factors = np.ones(network.n_features)
        factors[network.features.index("b")] = 1.5
        return Dense(step.weight * factors, step.bias)

    altered = replace(network, steps=change_first(network.steps, steeper))
    certificate = isotone.certify(altered)
    assert not certificate.holds


def crafted(scaling: Scaling, residual: list[float], rates: dict[str, float]) -> Any:
    """A network without weights: r·u alone, with a declared joint direction."""
    return FrozenNetwork(
        features=("a", "b"),
        scaling=scaling,
        steps=(Dense(np.zeros((1, 2)), np.zeros(1)),),
        residual=np.array([residual]),
        lipschitz=np.ones(2),
        monotonic_cst=np.zeros((1, 2), np.int8),
        joint_cst=(rates,),
    )


def linear(center: list[float], factor: float) -> Scaling:
    return replace(Scaling.identity(2), center=np.array(center), factor=np.full(2, factor))


def test_the_drop_covers_numbers_that_float64_rounds() -> None:
    """Whole numbers beyond 2⁵³ are rounded before the center is subtracted."""
    base = 2**60
    frozen = crafted(linear([float(base)] * 2, 1.0), [-1.0, 1.0], {"a": 1, "b": 1})
    X = pd.DataFrame({"a": [base + 127, base + 129], "b": [base, base + 2]})
    fall = -np.diff(frozen.score(X))[0]
    verdict = isotone.certify(frozen).joint[0]
    assert fall > 100
    assert fall <= verdict.drop


def test_nothing_is_promised_where_a_difference_overflows() -> None:
    frozen = crafted(linear([-1e308, 0.0], 1e-307), [-1.0, 1.0 + 2**-30], {"a": 1, "b": 1})
    low, high = frozen.score(np.array([[0.7e308] * 2, [0.9e308] * 2]))
    assert high < low
    assert not isotone.certify(frozen).holds


def test_the_direction_is_told_with_every_digit() -> None:
    frozen = crafted(Scaling.identity(2), [1.0, 1.0000003], {"a": 1.0000004, "b": -1})
    certificate = isotone.certify(frozen)
    assert "a + 1.0000004, b - 1" in certificate.about_joint
    assert not certificate.along({"a": 1, "b": -1})[0].real


def test_all_outputs_are_judged() -> None:
    network = isotone.MonotonicNetwork([2, 8, 2], monotonic_cst=[[1, 1], [-1, -1]])
    certificate = isotone.certify(isotone.freeze(network, features=["a", "b"]))
    assert [v.real for v in certificate.along({"a": 1, "b": 1})] == [True, False]


def test_another_grid_keeps_joint_directions() -> None:
    X, y = table()
    options: Any = {"joint_cst": [{"a": 1, "b": -1}], "lipschitz": 2.0, **QUICK}
    network = isotone.MonotonicRegressor({"b": 1}, **options).fit(X, y).network_
    finer = isotone.freeze(network, grid=2**-22)
    assert isotone.certify(finer).holds
    assert finer.joint_cst == network.joint_cst


def test_directions_of_different_columns_may_be_in_different_groups() -> None:
    X, y = table()
    joint: Any = [{"a": 1, "b": -1}, {"skewed": 1}]
    groups = [["a", "b"], ["skewed"], ["city"]]
    model = isotone.MonotonicRegressor(
        joint_cst=joint, interaction_cst=groups, lipschitz="learned", **QUICK
    ).fit(X, y)
    assert set(model.certificate_.interactions) == {("a", "b"), ("skewed",), ("city",)}


def test_a_file_keeps_its_joint_directions(tmp_path: Path) -> None:
    X, y = table()
    joint = [{"a": 1.0, "b": -1.0}]
    model = isotone.MonotonicRegressor(joint_cst=joint, **QUICK).fit(X, y)
    model.save(tmp_path / "model.isotone")
    loaded = isotone.load(tmp_path / "model.isotone")
    assert list(loaded.joint_cst) == joint
    assert loaded.fingerprint == model.network_.fingerprint
    assert isotone.certify(loaded).about_joint == model.certificate_.about_joint
    isotone.export.write(loaded, "json", tmp_path / "model.json")
    assert isotone.export.json.read(tmp_path / "model.json").joint_cst == loaded.joint_cst


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"joint_cst": [{"a": 1, "nope": -1}]}, "names the feature 'nope'"),
        ({"joint_cst": [{"city": 1}]}, "categories without an order"),
        ({"joint_cst": [{"a": 0.0}]}, "not all of them zero"),
        ({"joint_cst": [{}]}, "must give columns finite numbers"),
        ({"joint_cst": [{"a": "1"}]}, "must give columns finite numbers"),
        ({"joint_cst": [[1.0, 2.0]]}, "2 entries but `X` has 4"),
        ({"joint_cst": [{"a": 1, "b": -1}, {"a": -1, "b": 1}]}, "a [+] 1, b - 1; a - 1, b [+] 1"),
        ({"joint_cst": {"a": 1, "b": -1}}, "put even one into a list"),
        ({"joint_cst": [1, -1]}, "1 entries but `X` has 4"),
        ({"joint_cst": [{"a": 1}], "knots": {"a": 8}}, "both name 'a'"),
        ({"joint_cst": [{"a": 1}], "scaling": {"a": isotone.Log(offset=99.0)}}, "no logarithm"),
        (
            {
                "joint_cst": [{"a": 1}],
                "monotonic_cst": {"missing(a)": -1},
                "missing": "indicator",
            },
            "missing values have a direction",
        ),
    ],
)
def test_what_cannot_be_is_refused(options: Any, message: str) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=message):
        isotone.MonotonicRegressor(**options, **QUICK).fit(X, y)


def test_columns_of_an_array_have_rates_by_place() -> None:
    X, y = table()
    numbers = X[["a", "b"]].to_numpy()
    model = isotone.MonotonicRegressor(joint_cst=[[1.0, -1.0]], **QUICK).fit(numbers, y)
    assert dict(model.certificate_.joint[0].direction) == {"x0": 1.0, "x1": -1.0}


def test_units_may_be_far_apart_but_not_beyond_rounding() -> None:
    X, y = table()
    joint = [{"a": 1.0, "b": -1.0}]
    model = isotone.MonotonicRegressor({"b": 1}, joint_cst=joint, lipschitz=1.0, **QUICK)
    for scale in (1e-7, 1e3):
        assert model.fit(X.assign(a=scale * X["a"]), y).certificate_.holds
    with pytest.raises(ValueError, match="leaves 'b' a slope that is smaller than rounding"):
        model.fit(X.assign(a=1e7 * X["a"]), y)


def test_ranks_and_missing_values_may_be_joined() -> None:
    X, y = table()
    X["size"] = pd.Categorical.from_codes(np.arange(300) % 3, ["S", "M", "L"], ordered=True)
    X.loc[::7, "a"] = np.nan
    joint = [{"a": 1.0, "size": -1.0}]
    options: Any = {"joint_cst": joint, "missing": "indicator", "lipschitz": "learned"}
    model = isotone.MonotonicRegressor({"size": 1}, **options, **QUICK).fit(X, y)
    below = X[X["size"].ne("S") & X["a"].notna()]
    ranks = below["size"].cat.codes - 1
    smaller = pd.Categorical.from_codes(ranks, ["S", "M", "L"], ordered=True)
    moved = below.assign(a=below["a"] + 1, size=smaller)
    (verdict,) = model.certificate_.joint
    assert (model.predict(below) - model.predict(moved)).max() <= verdict.drop


def test_joined_columns_are_in_the_same_groups() -> None:
    X, y = table()
    options: Any = {"joint_cst": [{"a": 1, "b": -1}], "lipschitz": "learned", **QUICK}
    groups = [["a", "b"], ["skewed", "city"]]
    model = isotone.MonotonicRegressor(interaction_cst=groups, **options).fit(X, y)
    assert model.certificate_.holds
    assert set(model.certificate_.interactions) == {("a", "b"), ("skewed", "city")}
    with pytest.raises(ValueError, match="each group must have all of them or none"):
        isotone.MonotonicRegressor(interaction_cst="no_interactions", **options).fit(X, y)


def test_several_outputs_are_refused() -> None:
    X, y = table()
    with pytest.raises(ValueError, match="about one output"):
        isotone.MonotonicRegressor(joint_cst=[{"a": 1}], **QUICK).fit(X, np.stack([y, y], 1))


def test_directions_that_follow_from_others_are_left_out() -> None:
    a, b = np.eye(2)
    assert len(independent([a - b, a, b], [])) == 2
    assert len(independent([a - b, 2 * a - 2 * b], [])) == 1


def test_coordinates_turn_directions_into_single_ones() -> None:
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=4) for _ in range(3)]
    rows = rng.normal(size=(50, 4))
    coordinates = Oblique.of(directions, rows, range(4))
    moved = np.array(directions) @ coordinates.matrix.T
    np.testing.assert_allclose(moved - np.diag(np.diag(moved))[:, :3] @ np.eye(3, 4), 0, atol=1e-9)
    assert np.all(np.diag(moved) > 0)
    lipschitz = rng.uniform(1, 2, size=4)
    kept = coordinates.of_columns(coordinates.limits(lipschitz))
    assert np.all(kept <= lipschitz * (1 + 1e-12))
