"""Warm starts: a fit that continues with the networks of the last one."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from isotone import MonotonicRegressor
from isotone.data import survey
from isotone.estimators.preparation.observations import lasting_folds, observations
from isotone.training.rows import Rows
from people import classifier, people, prices, regressor

X, Y = people(200)
MORE_X, MORE_Y = people(400)


def table(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    x = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.normal(size=n_rows)})
    x["city"] = rng.choice(["Oslo", "Rome"], n_rows)
    return x, np.sin(3 * x.a) + x.b + (x.city == "Rome") + 0.1 * rng.normal(size=n_rows)


@pytest.mark.parametrize("options", [{}, {"lipschitz": "learned"}, {"lipschitz": 2.0, "knots": 8}])
def test_a_warm_start_begins_where_the_last_fit_ended(options: dict[str, Any]) -> None:
    x, y = table(300)
    model = MonotonicRegressor({"b": 1}, max_iter=30, random_state=0, warm_start=True, **options)
    first = model.fit(x, y).history_.training[0]
    last, inputs = model.history_.training[-1], model.network_.inputs
    model.fit(*table(600))
    again = model.history_.training[0]
    assert abs(np.mean(again) - np.mean(last)) < 0.2 * abs(np.mean(first) - np.mean(last))
    assert model.network_.inputs.encode(x).tolist() == inputs.encode(x).tolist()
    assert model.certificate_.holds


def test_two_short_fits_are_better_than_one() -> None:
    x, y = table(600)
    short = MonotonicRegressor(lipschitz="learned", max_iter=5, random_state=0)
    one, two = clone(short).fit(x, y), clone(short).set_params(warm_start=True)
    assert two.fit(x, y).fit(x, y).score(x, y) > one.score(x, y) + 0.02


@pytest.mark.parametrize("columns", [["b", "a"], ["a"]])
def test_nothing_is_left_of_a_fit_once_another_one_began(columns: list[str]) -> None:
    x, y = table(300)
    expected = MonotonicRegressor(max_iter=3, random_state=0, warm_start=True).fit(x[columns], y)
    model = MonotonicRegressor(max_iter=3, random_state=0, warm_start=True).fit(x, y)

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(warm_start=False).fit(x[columns], y, callbacks=[fail])
    model.set_params(warm_start=True).fit(x[columns], y)
    assert model.network_.fingerprint == expected.network_.fingerprint


def test_a_handful_of_rows_is_too_few() -> None:
    x, y = table(300)
    model = MonotonicRegressor(max_iter=3, random_state=0, warm_start=True).fit(x, y)
    with pytest.raises(ValueError, match="1 distinct rows; `warm_start` needs at least 12"):
        model.fit(x[:1], y[:1])


def test_a_warm_start_continues_after_a_pickle_bit_for_bit() -> None:
    model = classifier(warm_start=True).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    here, there = model.fit(MORE_X, MORE_Y).network_, copy.fit(MORE_X, MORE_Y).network_
    assert here.fingerprint == there.fingerprint


def test_without_it_and_in_a_clone_everything_begins_anew() -> None:
    expected = classifier().fit(MORE_X, MORE_Y).network_.fingerprint
    model = classifier(warm_start=True).fit(X, Y)
    assert (
        clone(model).set_params(warm_start=False).fit(MORE_X, MORE_Y).network_.fingerprint
        == expected
    )
    assert model.set_params(warm_start=False).fit(MORE_X, MORE_Y).network_.fingerprint == expected


def test_rows_of_some_classes_are_enough() -> None:
    model = classifier(warm_start=True).fit(X, Y)
    only = model.classes_[0] == Y
    model.fit(X[only], Y[only])
    assert len(model.classes_) == 2
    with pytest.raises(ValueError, match="`y` holds the class 'maybe', which was not learned"):
        model.fit(X, ["maybe"] * len(X))


def test_several_targets_and_their_number_stay() -> None:
    x, y = prices(100)
    model = regressor(warm_start=True).fit(x, np.column_stack([y, y]))
    assert model.fit(x, np.column_stack([y, y])).predict(x).shape == (100, 2)
    with pytest.raises(ValueError, match="`y` has 1 targets but the model has 2"):
        model.fit(x, y)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"knots": 4}, "knots"),
        ({"monotonic_cst": [0, 0]}, "monotonic_cst"),
        ({"n_members": 3}, "n_members"),
    ],
)
def test_what_decides_about_networks_must_stay(changed: dict[str, Any], name: str) -> None:
    x, y = table(100)
    model = MonotonicRegressor(lipschitz=1.0, max_iter=3, warm_start=True).fit(x, y)
    model.set_params(**changed)
    with pytest.raises(ValueError, match=f"`{name}` is not what it was at the last fit"):
        model.fit(x, y)


def test_columns_and_categories_must_be_known() -> None:
    x, y = table(100)
    model = MonotonicRegressor(lipschitz=1.0, max_iter=3, warm_start=True).fit(x, y)
    with pytest.raises(ValueError, match="Paris"):
        model.fit(x.assign(city="Paris"), y)
    with pytest.raises(ValueError, match="feature names"):
        model.fit(x.rename(columns={"a": "c"}), y)


def test_a_data_set_that_is_streamed_is_refused(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(survey, "SMALL_ROWS", 50)
    x, y = table(100)
    pa.parquet.write_table(pa.table(x.assign(y=y).to_dict("list")), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="`warm_start` needs rows in memory"):
        MonotonicRegressor(warm_start=True).fit(tmp_path, "y")


def test_more_rows_do_not_change_what_a_member_leaves_out() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4000, 3)), rng.normal(size=(4000, 1))
    few, all_ = (observations(Rows(x[:n], y[:n], np.ones(n))) for n in (1000, 4000))
    fold = dict(zip(map(bytes, all_.x), lasting_folds(all_, 8, seed=3), strict=True))
    assert [fold[bytes(row)] for row in few.x] == lasting_folds(few, 8, seed=3).tolist()
    sizes = np.bincount(lasting_folds(all_, 8, seed=3))
    assert np.all(np.abs(sizes - 500) < 5 * np.sqrt(500))
    assert lasting_folds(all_, 8, seed=4).tolist() != lasting_folds(all_, 8, seed=3).tolist()


def test_equal_rows_are_in_different_folds_and_few_are_dealt_out() -> None:
    rows = Rows(np.zeros((1000, 2)), np.zeros((1000, 1)), np.ones(1000))
    assert np.bincount(lasting_folds(rows, 4, seed=0)).min() > 180
    assert np.bincount(lasting_folds(rows[:12], 4, seed=0)).tolist() == [3, 3, 3, 3]
