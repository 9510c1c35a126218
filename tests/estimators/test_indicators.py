"""Columns of a one-hot encoding are learned as one column of categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isotone import MonotonicRegressor
from isotone.estimators.preparation.indicators import is_run, runs_of
from isotone.inputs.chain import Inputs


def table(n_rows: int = 300) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(
        {"a": rng.normal(size=n_rows), "city": rng.choice(["Bern", "Oslo", "Rome"], n_rows)}
    )
    y = x.a + x.city.map({"Bern": 0.0, "Oslo": 1.0, "Rome": -2.0}) + 0.1 * rng.normal(size=n_rows)
    return x, y


def test_runs_end_where_two_columns_are_one_at_once() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    X = np.array(
        [
            [1, 0, 0, 1, 0, 0.5],
            [0, 1, 0, 1, 1, 0.0],
            [0, 0, 1, 0, 0, 1.0],
            [0, 0, 0, 0, 1, 1.0],
        ]
    )
    assert runs_of(Inputs.numbers(names), X, ()) == (range(3),)
    assert runs_of(Inputs.numbers(names), X, ("b",)) == (range(2, 4),)
    assert runs_of(Inputs.numbers(names[:3]), X[:, [0, 3, 1]], ()) == ()
    two = runs_of(Inputs.numbers(names[:4]), X[:, [0, 1, 4, 2]], ())
    assert two == (range(2), range(2, 4))
    assert is_run(X, range(3))
    assert not is_run(X, range(2, 5))
    assert not is_run(X, range(4, 6))


def test_they_are_learned_as_categories_are() -> None:
    """To the bit, but for the order of the columns, which is that of the encoding."""
    x, y = table()
    encoded = pd.get_dummies(x, columns=["city"], prefix="", prefix_sep="", dtype=float)
    one, other = (
        MonotonicRegressor({"a": 1}, max_iter=5, random_state=0).fit(X, y) for X in (x, encoded)
    )
    assert one.predict(x).tolist() == other.predict(encoded).tolist()
    assert other.certificate_.holds


def test_rows_with_several_ones_are_scored_and_may_have_directions() -> None:
    x, y = table()
    encoded = pd.get_dummies(x, columns=["city"], dtype=float)
    up = {"city_Oslo": 1, "city_Rome": -1}
    model = MonotonicRegressor(up, max_iter=5, random_state=0).fit(encoded, y)
    more, less = encoded.assign(city_Oslo=1.0), encoded.assign(city_Rome=1.0)
    assert np.all(model.predict(more) >= model.predict(encoded))
    assert np.all(model.predict(less) <= model.predict(encoded))


def test_validation_rows_with_several_ones_are_not_looked_up_wrongly() -> None:
    x, y = table(6000)  # so many that one candidate is kept
    encoded = pd.get_dummies(x, columns=["city"], dtype=float)
    odd = encoded.assign(city_Oslo=1.0)
    model = MonotonicRegressor(max_iter=4, n_members=1, random_state=0)
    model.fit(encoded, y, eval_set=(odd, y))
    mean = np.mean((model.predict(odd) - y) ** 2)
    scale = min(map(min, model.history_.validation)) / mean
    assert np.log2(scale) / 2 == pytest.approx(round(np.log2(scale) / 2), abs=1e-3)  # units


def test_a_warm_start_may_bring_rows_with_several_ones() -> None:
    x, y = table()
    encoded = pd.get_dummies(x, columns=["city"], dtype=float)
    model = MonotonicRegressor(max_iter=20, random_state=0, warm_start=True).fit(encoded, y)
    model.fit(encoded.assign(city_Oslo=1.0), y)
    assert model.score(encoded.assign(city_Oslo=1.0), y) > 0.8
