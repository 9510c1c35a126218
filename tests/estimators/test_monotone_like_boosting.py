"""What scikit-learn tests of monotonic constraints in HistGradientBoosting holds here, too.

Idea by idea after its `test_monotonic_constraints.py`; where that speaks of nodes and leaves, this
speaks of scores. Bits are compared, not values within a tolerance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from isotone.inputs.columns import Category
from people import classifier, regressor

NAMES = ["a", "up", "b", "down", "c"]
SIGNS = [0, 1, 0, -1, 0]
LINE = np.linspace(0.0, 1.0, 100)


def waves(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One column up, one down, each with waves against its direction, among three of codes."""
    rng = np.random.default_rng(seed)
    up, down = rng.random(n), rng.random(n)
    a, b, c = rng.integers(0, 9, (3, n))
    y = 5 * up + np.sin(10 * np.pi * up) - 5 * down - np.cos(10 * np.pi * down)
    return np.column_stack([a, up, b, down, c]), y + 0.01 * rng.normal(size=n)


def along(column: int, values: np.ndarray) -> np.ndarray:
    """Rows that differ in one column; codes are 5 and numbers 0.5 elsewhere."""
    rows = np.tile([5.0, 0.5, 5.0, 0.5, 5.0], (len(values), 1))
    rows[:, column] = values
    return rows


@pytest.fixture(scope="module", params=["array", "frame"])
def fitted(request: pytest.FixtureRequest) -> Any:
    """A function of rows: predictions of a model with directions and columns of codes."""
    X, y = waves()
    options = {"max_iter": 40, "batch_size": 64}
    if request.param == "array":
        model = regressor(SIGNS, categorical_features=[0, 2, 4], **options)
        return model.fit(X, y).predict
    model = regressor({"up": 1, "down": -1}, categorical_features=["a", "b", "c"], **options)
    model.fit(pd.DataFrame(X, columns=NAMES), y)
    return lambda rows: model.predict(pd.DataFrame(rows, columns=NAMES))


@pytest.mark.parametrize(("column", "sign"), [(1, 1), (3, -1)])
def test_predictions_go_the_way_of_their_column(fitted: Any, column: int, sign: int) -> None:
    """Among columns of categories, which become several features each and have no direction."""
    prediction = fitted(along(column, LINE))
    assert np.all(sign * np.diff(prediction) >= 0)
    assert sign * (prediction[-1] - prediction[0]) > 1
    there_and_back = np.sin(np.pi * LINE)
    steps = np.diff(fitted(along(column, there_and_back)))
    assert np.all(sign * steps * np.diff(there_and_back) >= 0)


def test_predictions_go_their_way_from_anywhere_by_any_step(fitted: Any) -> None:
    X, _ = waves(300, seed=1)
    rng = np.random.default_rng(2)
    for column, sign in ((1, 1), (3, -1)):
        for size in (1e-12, 1e-3, 1.0, 1e6):
            further = X.copy()
            further[:, column] += size * rng.random(len(X))
            assert np.all(sign * (fitted(further) - fitted(X)) >= 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_noise_leaves_no_step_against_the_direction(sign: int, seed: int) -> None:
    """As nodes and leaves of a tree that is grown on random gradients."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 255, (500, 1)), rng.normal(size=500)
    model = regressor([sign], lipschitz=16.0, knots=32, batch_size=64).fit(X, y)
    steps = np.diff(model.predict(np.arange(-5.0, 260.0, 0.5)[:, None]))
    if sign == 0:
        assert steps.min() < 0 < steps.max()
    else:
        assert np.all(sign * steps >= 0)
        assert np.any(steps != 0)


@pytest.mark.parametrize("sign", [-1, 1])
def test_data_of_the_other_direction_cannot_turn_it(sign: int) -> None:
    """The best that is left is a constant."""
    X = LINE[:, None]
    for make, target in ((regressor, -sign * LINE), (classifier, sign * LINE < 0.5 * sign)):
        model, free = (make(cst, batch_size=8).fit(X, target) for cst in ([sign], [0]))
        scores = model.network_.score(X)
        assert np.all(sign * np.diff(scores) >= 0)
        assert np.ptp(scores) < 0.1 * np.ptp(free.network_.score(X))


def test_probabilities_of_two_classes_go_opposite_ways() -> None:
    X, y = waves()
    model = classifier(SIGNS, categorical_features=[0, 2, 4]).fit(X, y > np.median(y))
    for column, sign in ((1, 1), (3, -1)):
        probability = model.predict_proba(along(column, LINE))
        assert np.all(sign * np.diff(probability[:, 1]) >= 0)
        assert np.all(sign * np.diff(probability[:, 0]) <= 0)


def test_several_classes_have_directions_of_their_own() -> None:
    """HistGradientBoosting refuses any; here a direction is about one class."""
    X, y = waves()
    labels = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    with pytest.raises(ValueError, match="one direction per feature but `y` holds 3 classes"):
        classifier(SIGNS).fit(X, labels)
    model = classifier([[0, -1, 0, 1, 0], [0] * 5, SIGNS]).fit(X, labels)
    for column, sign in ((1, 1), (3, -1)):
        probability = model.predict_proba(along(column, LINE))
        assert np.all(sign * np.diff(probability[:, 2]) >= 0)
        assert np.all(sign * np.diff(probability[:, 0]) <= 0)


def test_several_targets_have_directions_of_their_own() -> None:
    X, y = waves()
    model = regressor([SIGNS, [-sign for sign in SIGNS]]).fit(X, np.column_stack([y, -y]))
    for column, sign in ((1, 1), (3, -1)):
        steps = sign * np.diff(model.predict(along(column, LINE)), axis=0)
        assert np.all(steps[:, 0] >= 0)
        assert np.all(steps[:, 1] <= 0)
    both = regressor(SIGNS).fit(X, np.column_stack([y, 2 * y]))  # one list is for all targets
    assert np.all(np.diff(both.predict(along(1, LINE)), axis=0) >= 0)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_names_say_what_positions_say(make: Any) -> None:
    X, y = waves(200)
    frame, target = pd.DataFrame(X, columns=NAMES), y > 0 if make is classifier else y
    named, listed, array = (
        make(signs, max_iter=10).fit(frame, target)
        for signs in ({"down": -1, "up": 1}, SIGNS, np.array(SIGNS))
    )
    assert named.network_.fingerprint == listed.network_.fingerprint
    assert named.network_.fingerprint == array.network_.fingerprint
    moved = make({"down": -1, "up": 1}, max_iter=10).fit(frame[NAMES[::-1]], target)
    assert moved.network_.monotonic_cst.tolist() == [SIGNS[::-1]]


@pytest.mark.parametrize("nothing", [None, [0] * 5, {}, {"up": 0}])
def test_nothing_is_directed_by_default(nothing: Any) -> None:
    X, y = waves(200)
    frame = pd.DataFrame(X, columns=NAMES)
    model = regressor(nothing, max_iter=10).fit(frame, y)
    assert model.network_.fingerprint == regressor(max_iter=10).fit(frame, y).network_.fingerprint
    assert not model.network_.monotonic_cst.any()


@pytest.mark.parametrize(
    ("codes", "signs"),
    [(["a"], {"a": 1}), ([0], [-1, 0, 0, 0, 0]), ([True] + [False] * 4, {"a": -1})],
)
def test_categories_have_no_direction(codes: Any, signs: Any) -> None:
    X, y = waves(50)
    with pytest.raises(ValueError, match="direction to 'a', but 'a' holds categories without an"):
        regressor(signs, categorical_features=codes).fit(pd.DataFrame(X, columns=NAMES), y)


def test_directions_stay_with_their_columns_among_categories() -> None:
    """scikit-learn once gave them to other columns, since it puts categories first (28898)."""
    X, y = waves(200)
    model = regressor(SIGNS, categorical_features=[0, 2, 4], max_iter=5).fit(X, y)
    network = model.network_
    signs = dict(zip(network.features, network.monotonic_cst[0], strict=True))
    directed = [name for name, sign in signs.items() if sign]
    assert directed == ["x1", "x3"]
    assert [isinstance(c, Category) for c in network.inputs.columns] == [True, False] * 2 + [True]


X_SMALL = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [0.0, 1.0, 2.0]})


@pytest.mark.parametrize(
    ("signs", "message"),
    [
        ([1, 0, -1], "`monotonic_cst` has 3 entries but `X` has 2 features; give one per feature"),
        ([1, 3], "must hold -1"),
        ([1, -3], "must hold -1"),
        ([0.3, -0.7], "must hold -1"),
        ({"b": -1, "a": "+"}, "must hold -1"),
        ({"d": 1, "a": 1, "c": -1}, "names the feature 'd', which `X` does not have"),
        (dict.fromkeys("abcdefgh", 1), "names the feature 'c', which `X` does not have"),
    ],
)
def test_what_is_no_direction_is_refused(signs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        regressor(signs).fit(X_SMALL, [0.0, 1.0, 0.0])


def test_arrays_have_no_names() -> None:
    with pytest.raises(ValueError, match="a dictionary by name but `X` is an array"):
        regressor({"a": 1}).fit(X_SMALL.to_numpy(), [0.0, 1.0, 0.0])


def test_the_parameters_of_boosting_are_taken_as_they_are() -> None:
    """Directions and columns of codes of a booster mean the same here."""
    X, y = waves(300)
    given: dict[str, Any] = {"monotonic_cst": SIGNS, "categorical_features": [0, 2, 4]}
    booster = HistGradientBoostingRegressor(max_iter=20, **given).fit(X, y)
    model = regressor(**given).fit(X, y)
    for column, sign in ((1, 1), (3, -1)):
        for predictor in (booster, model):
            assert np.all(sign * np.diff(predictor.predict(along(column, LINE))) >= 0)
