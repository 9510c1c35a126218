"""Estimators take the raw table, and the file that they save scores it alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import isotone
from isotone.inputs.columns import Category, Number, Ordered

N = 400
RNG = np.random.default_rng(0)
SIZES = pd.CategoricalDtype(["small", "medium", "large"], ordered=True)
SETTINGS: dict[str, Any] = {"max_iter": 3, "n_members": 2, "hidden_layer_sizes": (8,)}


def people() -> pd.DataFrame:
    income = RNG.exponential(30_000, N)
    return pd.DataFrame(
        {
            "city": RNG.choice(["Rome", "Oslo", "Lima"], N),
            "income": np.where(RNG.random(N) < 0.2, np.nan, income),
            "size": pd.Series(RNG.choice(SIZES.categories, N)).astype(SIZES),
            "member": RNG.random(N) < 0.5,
            "debt": RNG.exponential(5_000, N),
        }
    )


X = people()
RANK = X["size"].cat.codes.to_numpy().astype(float)
Y = (X["income"].fillna(20_000) - 3 * X["debt"] + 8_000 * RANK > 20_000).to_numpy().astype(int)
CST = {"income": 1, "size": 1, "debt": -1}


@pytest.fixture(scope="module")
def model() -> isotone.MonotonicClassifier:
    chosen = isotone.MonotonicClassifier(CST, missing="indicator", random_state=0, **SETTINGS)
    return chosen.fit(X, Y)


def test_the_columns_are_what_their_types_say(model: isotone.MonotonicClassifier) -> None:
    fill = model.network_.inputs.column("income").fill
    assert model.network_.inputs.columns == (
        Category("city", ("Lima", "Oslo", "Rome")),
        Number("income", fill),
        Ordered("size", ("small", "medium", "large")),
        Number("member"),
        Number("debt"),
    )
    assert fill == pytest.approx(X["income"].median(), rel=0.05)
    assert model.n_features_in_ == 5
    assert list(model.feature_names_in_) == list(X.columns)


def test_directions_hold_on_the_raw_table(model: isotone.MonotonicClassifier) -> None:
    assert model.certificate_.holds
    before = model.predict_proba(X)[:, 1]
    for column, better in (
        ("income", X["income"] + 1e4),
        ("debt", X["debt"] / 2),
        ("size", pd.Series(["large"] * N).astype(SIZES)),
    ):
        after = model.predict_proba(X.assign(**{column: better}))[:, 1]
        assert np.all(after >= before)


def test_one_table_in_other_frames_and_orders_has_the_same_scores(
    model: isotone.MonotonicClassifier,
) -> None:
    expected = model.decision_function(X)
    text = X.astype({"size": str})
    for frame in (text, pl.from_pandas(text), pa.Table.from_pandas(X, preserve_index=False)):
        np.testing.assert_array_equal(model.network_.score(frame), expected)
    np.testing.assert_array_equal(model.network_.score(X[X.columns[::-1]]), expected)
    np.testing.assert_array_equal(model.network_.score(X.to_dict("list")), expected)


def test_the_file_alone_scores_the_raw_table_without_torch(
    model: isotone.MonotonicClassifier, tmp_path: Path
) -> None:
    model.save(tmp_path / "m.isotone")
    X.astype({"size": str}).to_csv(tmp_path / "x.csv", index=False)
    code = """
    import sys
    sys.modules["torch"] = sys.modules["sklearn"] = None
    import isotone, pandas
    from isotone import export
    frozen = isotone.load("m.isotone")
    table = pandas.read_csv("x.csv")
    print(isotone.certify(frozen).holds, *(x.hex() for x in frozen.score(table).tolist()))
    export.write(frozen, "sql", "m.sql")
    export.write(frozen, "onnx", "m.onnx")
    """
    text = "\n".join(line[4:] for line in code.splitlines())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    holds, *scores = done.stdout.split()
    assert holds == "True"
    assert scores == [float(x).hex() for x in model.decision_function(X).tolist()]


def test_a_new_category_is_named(model: isotone.MonotonicClassifier) -> None:
    strange = X.assign(city=["Rome"] * 7 + ["Bonn"] + ["Oslo"] * (N - 8))
    with pytest.raises(ValueError, match=r"'city' holds 'Bonn' in row 7 .*Lima, Oslo, Rome"):
        model.predict(strange)


def test_the_radius_of_a_column_is_that_of_its_feature(model: isotone.MonotonicClassifier) -> None:
    radius = model.certified_radius(X)
    assert radius.down.shape == (N, 5)
    assert np.isnan(radius.down[:, 0]).all()  # a city cannot move by a number
    np.testing.assert_array_equal(np.isnan(radius.down[:, 1]), X["income"].isna())
    assert not np.isnan(radius.down[:, 4]).any()
    again = model.certificate_.certified_radius(X)
    np.testing.assert_array_equal(again.down, radius.down)


def test_parameters_are_per_column() -> None:
    scaling = {"income": isotone.Log(offset=1.0), "debt": "standard"}
    model = isotone.MonotonicRegressor(
        CST, lipschitz={"debt": 0.5}, scaling=scaling, missing="indicator", **SETTINGS
    ).fit(X, Y.astype(float))
    names = model.network_.features
    assert model.network_.scaling.log.tolist() == [name == "income" for name in names]
    assert model.lipschitz_[names.index("debt")] == 0.5


def test_missing_values_are_refused_by_default() -> None:
    with pytest.raises(ValueError, match=r"missing values \(NaN\) in feature 'income'"):
        isotone.MonotonicClassifier(CST, **SETTINGS).fit(X, Y)
    some = X.assign(income=1.0, city=[None, *X["city"][1:]])
    with pytest.raises(ValueError, match=r"1 missing values \(NaN\) in feature 'city'"):
        isotone.MonotonicClassifier(CST, **SETTINGS).fit(some, Y)


def test_a_direction_needs_an_order() -> None:
    with pytest.raises(ValueError, match="'city' holds categories without an order"):
        isotone.MonotonicClassifier({"city": 1}, missing="indicator", **SETTINGS).fit(X, Y)


def test_names_of_rows_are_no_categories() -> None:
    with pytest.raises(ValueError, match="'name' holds more than 64 categories"):
        isotone.MonotonicClassifier(**SETTINGS).fit(
            X[["debt"]].assign(name=[f"n{i}" for i in range(N)]), Y
        )


def test_a_dictionary_of_columns_is_a_table(model: isotone.MonotonicClassifier) -> None:
    columns = {name: X[name] for name in X}
    same = isotone.MonotonicClassifier(CST, missing="indicator", random_state=0, **SETTINGS)
    same.fit(columns, Y)
    assert same.network_.fingerprint == model.network_.fingerprint
    assert list(same.feature_names_in_) == list(X.columns)
    np.testing.assert_array_equal(same.predict_proba(columns), model.predict_proba(X))
    assert same.score(columns, Y) == model.score(X, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        same.predict({name: X[name] for name in list(X)[:-1]})
