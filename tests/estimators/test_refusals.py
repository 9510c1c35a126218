"""What estimators cannot use is refused, with advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import isotone
from people import NAMES, classifier, people, prices, regressor

CLASS_ERRORS = [
    (
        {"income": 1},
        r"names 'income', which is not a class of `y` \(0, 1, 2\).*\{0: \{'income': 1\}\}",
    ),
    ({0: {"incme": 1}}, r"`monotonic_cst\[0\]` names the feature 'incme'.*did you mean 'income'"),
    ({0: [1, 0]}, r"`monotonic_cst\[0\]` has 2 entries but `X` has 3 features"),
    ({0: 1}, r"`monotonic_cst\[0\]=1` says nothing about single features"),
    ({0: [2, 0, 0]}, r"must hold -1 \(decreasing\), 0"),
    ([1, 0, 0], r"a table \(3, n_features\), a row for every class, or a dictionary by class"),
    ([[1, 0, 0]], r"`monotonic_cst` has shape \(1, 3\); give .* a table of shape \(3, 3\)"),
    (
        [[1, 0, 0]] * 3,
        r"0 and 1 and 2 must all rise with feature income, but each would have to gain on the",
    ),
]


@pytest.mark.parametrize(("cst", "message"), CLASS_ERRORS, ids=str)
def test_directions_that_classes_cannot_have_are_refused(cst: Any, message: str) -> None:
    X, _ = people(30)
    with pytest.raises(ValueError, match=message):
        classifier(cst).fit(X, np.arange(30) % 3)


ERRORS = [
    ({"monotonic_cst": {"incme": 1}}, r"'incme', which `X` does not have.*did you mean 'income'"),
    ({"monotonic_cst": {"zzz": 1}}, r"'zzz', which `X` does not have.*use one of these"),
    ({"monotonic_cst": [1, 0]}, r"`monotonic_cst` has 2 entries but `X` has 3 features; give"),
    ({"monotonic_cst": [2, 0, 0]}, r"must hold -1 \(decreasing\), 0 \(free\) or \+1"),
    (
        {"monotonic_cst": [[1, 0]]},
        r"`monotonic_cst` has shape \(1, 2\); give .* \(1, 3\)",
    ),
    ({"lipschitz": 0.0}, r"`lipschitz=0.0` must be positive and finite; choose larger"),
    ({"lipschitz": [1.0]}, r"`lipschitz` has 1 entries but `X` has 3 features"),
    ({"lipschitz": {"dept": 1.0}}, r"did you mean 'debt'"),
    ({"lipschitz": "big"}, r"`lipschitz='big'` must be 'auto', 'learned' or positive numbers"),
    ({"lipschitz": [1.0, np.nan, 1.0]}, r"must be positive and finite; choose larger"),
    ({"monotonic_cst": 1}, r"`monotonic_cst=1` says nothing about single features; give one"),
    ({"scaling": 5}, r"`scaling=5` says nothing about single features; give one"),
    ({"lipschitz_units": "feet"}, r"`lipschitz_units='feet'` is unknown; choose from"),
    ({"scaling": "cubic"}, r"`scaling` holds 'cubic'; it must be a known kind: choose from"),
    ({"scaling": {"agee": "log"}}, r"did you mean 'age'"),
    ({"n_jobs": 0}, r"`n_jobs=0` must be None, a number of threads, or -1 for one per core"),
    ({"n_jobs": "all"}, r"`n_jobs='all'` must be None, a number of threads, or -1"),
    ({"n_jobs": 1.5}, r"`n_jobs=1.5` must be None, a number of threads, or -1"),
    ({"n_jobs": True}, r"`n_jobs=True` must be None, a number of threads, or -1"),
    ({"loss": "mse"}, r"`loss='mse'` is unknown; choose from"),
    ({"missing": "drop"}, r"`missing='drop'` is unknown; choose from"),
    ({"max_iter": 0}, r"`max_iter=0` must be a whole number of at least 1"),
    ({"n_members": 1.5}, r"`n_members=1.5` must be a whole number of at least 1"),
    ({"batch_size": "all"}, r"`batch_size='all'` must be a whole number of at least 1, or 'auto'"),
    ({"group_size": 0}, r"`group_size=0` must be a whole number of at least 1, 'auto', or None"),
    ({"group_size": 3}, r"`group_size=3` does not divide"),
    ({"learning_rate_init": -1}, r"`learning_rate_init=-1` must be positive and finite"),
    ({"tol": -1}, r"`tol=-1` must be a number of at least 0"),
    ({"early_stopping": "auto"}, r"`early_stopping='auto'` is unknown; choose from"),
    ({"validation_fraction": 1.0}, r"`validation_fraction=1.0` must lie between 0 and 1; choose"),
    ({"hidden_layer_sizes": (0,)}, r"`hidden_layer_sizes=\(0,\)` must be whole numbers"),
]


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize(("options", "message"), ERRORS, ids=lambda value: str(value)[:30])
def test_wrong_parameters_are_refused_with_advice(make: Any, options: Any, message: str) -> None:
    X, y = people(20)
    with pytest.raises(ValueError, match=message):
        make(**options).fit(X, y)


def test_names_for_columns_without_names_are_refused() -> None:
    X, y = people(20)
    with pytest.raises(ValueError, match=r"3 columns have no names; give a frame, or a list"):
        classifier({"income": 1}).fit(X.to_numpy(), y)


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
        (
            {"monotonic_cst": [[1, 0, 0]] * 2},
            y,
            r"both classes move the same way with feature 'inc",
        ),
        ({"class_weight": {False: -1, True: 1}}, y, r"must be finite and not negative, and posit"),
        ({"class_weight": {False: 0, True: 0}}, y, r"positive for some class; give such weights"),
        ({"temperature": 0}, y, r"`temperature=0` must be positive and finite"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier(**options).fit(X, labels)


def test_what_only_a_regressor_refuses() -> None:
    X, y = prices(20)
    for options, targets, message in (
        ({"quantile": "high"}, y, r"`quantile=high` must be a level between 0 and 1"),
        ({"quantile": ()}, y, r"`quantile=\(\)` must be a level between 0 and 1"),
        ({"quantile": np.nan}, y, r"`quantile=nan` must be a level between 0 and 1"),
        ({"quantile": 0.5}, 1e200 * y, r"`y` reaches .* in 'column 0'; numbers up to 1e\+100 can"),
        ({"quantile": 1.5}, y, r"`quantile=1.5` must be a level between 0 and 1"),
        ({"quantile": (0.9, 0.1)}, y, r"or several in increasing order; choose"),
        ({"quantile": (0.1, 0.9)}, np.column_stack([y, y]), r"2 quantiles of 2 targets cannot"),
    ):
        with pytest.raises(ValueError, match=message):
            regressor(loss="quantile", **options).fit(X, targets)


def test_a_target_too_far_from_zero_is_refused() -> None:
    X, y = people(20)
    with pytest.raises(ValueError, match=r"nothing to certify: subtract a constant from `y`"):
        regressor().fit(X, 1e13 + y)


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
        (
            X.assign(age=pd.date_range("2020", periods=20)),
            r"column 'age' has type timestamp.*must hold numbers: leave it out",
        ),
        (X.to_numpy().astype(str) + "?", r"some columns of `X` are not numeric"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier().fit(frame, y)
    with pytest.raises(
        ValueError,
        match=r"1 missing values \(NaN\) in feature 'debt', the first in row 3 \(.*; missing=",
    ):
        classifier().fit(X.assign(debt=[np.nan if i == 3 else 1.0 for i in range(20)]), y)
    with pytest.raises(
        ValueError, match=r"column 'debt' is inf in row 3 \(counted from 0\); only finite numbers"
    ):
        classifier().fit(X.assign(debt=[np.inf if i == 3 else 1.0 for i in range(20)]), y)
    with pytest.raises(ValueError, match=r"at least one non-zero number"):
        classifier().fit(X, y, sample_weight=np.zeros(20))
    with pytest.raises(NotFittedError):
        classifier().predict_proba(X)
    with pytest.raises(NotFittedError):
        classifier().save("nowhere")


def test_what_is_not_a_table_is_refused_with_advice() -> None:
    X, y = people(20)
    for table, kind, message in (
        (X["age"], TypeError, r"`X` is one column or one row, of type Series; .*X.to_frame\(\)"),
        (X.iloc[0], TypeError, r"or X.to_frame\(\).T if X is a row"),
        (X[[]], ValueError, r"`X` has no columns; it must have some: select"),
        (X.to_dict("records"), TypeError, r"list of records; .*: give a data frame"),
        ({"age": 1.0}, ValueError, r"'age' is 1.0; a column must hold one value per row"),
        ({"age": [1.0, 2.0], "debt": [1.0]}, ValueError, r"'debt' has 1 values but column 'age'"),
        (X.assign(age=pd.cut(X["age"], 3)), ValueError, r"column 'age' of type .* as text"),
    ):
        with pytest.raises(kind, match=message):
            classifier().fit(table, y)


def test_a_table_without_rows_and_rows_without_a_class_are_refused() -> None:
    X, _ = people(4)
    with pytest.raises(ValueError, match=r"`X` has no rows; it must have some: check how"):
        classifier().fit(X.iloc[:0], [])
    for nothing in (None, pd.NA):
        with pytest.raises(ValueError, match=r"`y` is (None|<NA>) in row 2 .*: drop the others"):
            classifier().fit(X, np.array(["no", "yes", nothing, "no"], dtype=object))


def test_rivals_and_logarithms_are_told_by_column_not_by_feature() -> None:
    X, _ = people(30)
    y = np.arange(30) % 3
    X = X.assign(city="Rome", income=0.0)[["city", *NAMES]]
    X.loc[::2, "city"] = "Oslo"
    both = {0: {"debt": 1}, 1: {"debt": 1}}
    with pytest.raises(ValueError, match="classes 0 and 1 must all rise with feature debt, but"):
        classifier(both).fit(X, y)
    with pytest.raises(ValueError, match=r"column 'income' has a minimum of 0.0, where log"):
        classifier(scaling={"income": "log"}).fit(X, y)


def test_an_estimator_is_not_a_network(tmp_path: Path) -> None:
    message = "a FrozenNetwork; got MonotonicClassifier: give the `network_` of a fitted estimator"
    for use in (
        isotone.certify,
        lambda model: isotone.export.write(model, "json", tmp_path / "m.json"),
        lambda model: isotone.report.write(model, tmp_path / "report.html"),
    ):
        with pytest.raises(TypeError, match=message):
            use(classifier())


def test_a_score_of_no_rows_is_refused() -> None:
    X, y = people(20)
    model = classifier(on_unseen="skip").fit(X, y)
    with (
        pytest.warns(UserWarning, match="20 of 20 rows"),
        pytest.raises(ValueError, match=r"none of 20 rows gets a score: .* change `on_unseen`"),
    ):
        model.score(X.assign(debt=np.nan), y)


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_name_that_two_columns_share_is_named(kind: str) -> None:
    names = ["a", "b", "a"]
    X = {
        "pandas": pd.DataFrame(np.zeros((9, 3)), columns=names),
        "arrow": pa.Table.from_arrays([pa.array(np.zeros(9))] * 3, names=names),
    }
    with pytest.raises(ValueError, match=r"column 'a' occurs 2 times in `X`.*rename or drop"):
        regressor().fit(X[kind], np.arange(9.0))
