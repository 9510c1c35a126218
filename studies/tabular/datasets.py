"""Datasets: ten public tables with directions, ready for any learner.

A `Dataset` is numbers only: categories are indicator columns (one per value), rows with gaps are
left out. Directions are those of the literature on monotone learning. `test` marks the rows of the
publisher's test part where it is to be kept; by time for BlogFeedback and bike sharing.

COMPAS, Adult and German credit hold sex, race or age. They are benchmarks here; none of the models
is a recommendation to use such columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotone.typing import Floats
from studies.tabular.files import find

Task = Literal["classification", "regression"]
Metric = Literal["accuracy", "auc", "mse", "rmse"]

PARTS = ("train", "test")
_LATE = 0.2  # share of rows that are tested on when the split is by time
BLOG_QUANTILE = 0.9


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table to learn from; `directions` are -1, 0, +1 per column of `X`."""

    name: str
    task: Task
    metric: Metric
    features: tuple[str, ...]
    directions: NDArray[np.int8]
    X: Floats
    y: Floats
    test: NDArray[np.bool_] | None = None


def _dataset(
    name: str,
    metric: Metric,
    table: pd.DataFrame,
    target: str,
    directions: Mapping[str, int],
    test: NDArray[np.bool_] | None = None,
) -> Dataset:
    """A data set from a table whose categories are text."""
    missing = set(directions) - set(table.columns)
    if missing:
        raise ValueError(f"{name} has no columns {sorted(missing)}; directions must name columns")
    features = pd.get_dummies(table.drop(columns=target), dtype=float)
    task: Task = "classification" if metric in ("accuracy", "auc") else "regression"
    signs = [directions.get(column, 0) for column in features.columns]
    return Dataset(
        name,
        task,
        metric,
        tuple(features.columns),
        np.array(signs, dtype=np.int8),
        features.to_numpy(dtype=np.float64),
        table[target].to_numpy(dtype=np.float64),
        test,
    )


def compas() -> Dataset:
    """Two-year recidivism, the rows that ProPublica kept."""
    table = pd.read_csv(find("compas/compas_scores_two_years.csv"))
    kept = table["days_b_screening_arrest"].between(-30, 30) & (table["is_recid"] != -1)
    kept &= (table["c_charge_degree"] != "O") & table["score_text"].notna()
    counts = ["priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    table = table.loc[kept, [*counts, "age", "race", "sex", "two_year_recid"]]
    return _dataset("compas", "accuracy", table, "two_year_recid", dict.fromkeys(counts, 1))


def heart() -> Dataset:
    """Heart disease, Cleveland; 1 is a severity of about 2 or more. Both published parts."""
    parts = [pd.read_csv(find(f"heart_disease/heart_{p}.csv"), index_col=0) for p in PARTS]
    directions = {"trestbps": 1, "chol": 1}
    return _dataset("heart", "accuracy", pd.concat(parts), "target", directions)


def auto_mpg() -> Dataset:
    """Fuel consumption of cars, in miles per gallon."""
    table = pd.read_csv(find("auto_mpg/auto-mpg.csv"), na_values="?").dropna()
    directions = {"displacement": -1, "horsepower": -1, "weight": -1}
    return _dataset("auto_mpg", "mse", table.drop(columns="car name"), "mpg", directions)


def blog() -> Dataset:
    """Comments on blog posts within a day, for posts with few; the publisher's split, by time.

    Posts above the 90 % quantile of the training rows are left out and all is scaled to [0, 1] by
    the training rows, as is the custom, but nothing is taken from test rows.
    """
    parts = [
        pd.read_csv(find(f"blog_feedback/blogData_{part}.csv.gz"), header=None).to_numpy()
        for part in PARTS
    ]
    most = np.quantile(parts[0][:, -1], BLOG_QUANTILE)
    train, test = (part[part[:, -1] <= most] for part in parts)
    return blog_dataset(train, test, scale_by=train)


def blog_dataset(train: Floats, test: Floats, scale_by: Floats) -> Dataset:
    """BlogFeedback from its rows, columns that are constant in `scale_by` left out."""
    low, high = scale_by.min(axis=0), scale_by.max(axis=0)
    kept = np.flatnonzero(high > low)
    rows = (np.vstack([train, test])[:, kept] - low[kept]) / (high - low)[kept]
    signs = np.isin(kept[:-1], _BLOG_INCREASING).astype(np.int8)
    names = tuple(f"attribute {column + 1}" for column in kept[:-1])
    part = np.repeat([False, True], [len(train), len(test)])
    return Dataset("blog", "regression", "rmse", names, signs, rows[:, :-1], rows[:, -1], part)


def loan() -> Dataset:
    """LendingClub loans of 2007 to 2011: charged off or paid."""
    table = pd.read_csv(find("loan/lendingclub_2007_2011.csv.gz"))
    table = table[~table["loan_status"].str.startswith("Does not meet")]
    table = table.dropna(subset=["emp_length", "pub_rec_bankruptcies"])
    years = table["emp_length"].replace({"< 1 year": "0 years"}).str.extract(r"(\d+)")[0]
    numbers = ["pub_rec_bankruptcies", "dti", "annual_inc", "loan_amnt", "int_rate"]
    indicators = ["home_ownership", "verification_status", "purpose"]
    chosen = table[numbers + indicators].assign(
        grade=-table["grade"].map(ord) + ord("G"),  # G is 0 and A, the best, is 6
        emp_length=years.astype(float),
        long_term=(table["term"] == 60).astype(float),
        charged_off=(table["loan_status"] == "Charged Off").astype(float),
    )
    rising, falling = ["pub_rec_bankruptcies", "dti"], ["grade", "emp_length", "annual_inc"]
    directions = dict.fromkeys(rising, 1) | dict.fromkeys(falling, -1)
    return _dataset("loan", "auc", chosen, "charged_off", directions)


def adult() -> Dataset:
    """Census income above 50 000 dollars; the publisher's split."""
    names = [
        *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
        *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
        *("hours-per-week", "native-country", "income"),
    ]
    files = {"adult/adult.data": 0, "adult/adult.test": 1}
    parts = [
        pd.read_csv(
            find(name), names=names, skiprows=skip, na_values="?", skipinitialspace=True
        ).dropna()
        for name, skip in files.items()
    ]
    table = pd.concat(parts).drop(columns=["fnlwgt", "education"])
    table["income"] = table["income"].str.startswith(">50K").astype(float)
    table["native-country"] = np.where(table["native-country"] == "United-States", "US", "other")
    directions = dict.fromkeys(["education-num", "capital-gain", "hours-per-week"], 1)
    test = np.repeat([False, True], [len(part) for part in parts])
    return _dataset("adult", "accuracy", table, "income", directions, test)


def german() -> Dataset:
    """German credit: 1 is a bad risk. Ordered categories are numbers, from worst to best."""
    names = [
        *("checking", "duration", "history", "purpose", "amount", "savings", "employment"),
        *("rate", "status", "debtors", "residence", "property", "age", "plans", "housing"),
        *("credits", "job", "liable", "telephone", "foreign", "risk"),
    ]
    table = pd.read_csv(find("german_credit/german.data"), sep=" ", names=names)
    # no account and unknown savings have no place in the order: a column of their own
    table["no_checking"] = (table["checking"] == "A14").astype(float)
    table["no_savings"] = (table["savings"] == "A65").astype(float)
    order = {"A11": 0, "A12": 1, "A13": 2, "A14": 1}
    table["checking"] = table["checking"].map(order).astype(float)
    savings = {"A61": 0, "A62": 1, "A63": 2, "A64": 3, "A65": 1}
    table["savings"] = table["savings"].map(savings).astype(float)
    table["employment"] = table["employment"].str[-1].astype(float)
    table["risk"] = (table["risk"] == 2).astype(float)
    falling = ["checking", "savings", "employment"]
    directions = {"duration": 1, "amount": 1} | dict.fromkeys(falling, -1)
    return _dataset("german", "accuracy", table, "risk", directions)


def california() -> Dataset:
    """Median house values of 1990, in 100 000 dollars; rooms and people also per household."""
    names = ["longitude", "latitude", "age", "rooms", "bedrooms", "population", "households"]
    path = find("california_housing/cal_housing.data")
    table = pd.read_csv(path, names=[*names, "income", "value"])
    for column in ("rooms", "bedrooms", "population"):
        table[column] /= table["households"]
    table["value"] /= 100_000.0
    return _dataset("california", "rmse", table, "value", {"income": 1})


def boston() -> Dataset:
    """House values of 1978 in 1000 dollars, 12 features."""
    table = pd.read_csv(find("boston_housing/Boston.csv")).astype(float)
    return _dataset("boston", "rmse", table, "medv", {"rm": 1, "crim": -1, "lstat": -1})


def bike() -> Dataset:
    """Rented bikes per hour; the last fifth of the time is for tests."""
    table = pd.read_csv(find("bike_sharing/hour.csv"))
    table = table.drop(columns=["instant", "dteday", "casual", "registered"]).astype(float)
    for name, period in {"hr": 24, "mnth": 12}.items():
        for k in (1, 2):
            angle = 2 * np.pi * k * table[name] / period
            table[f"{name}_cos{k}"], table[f"{name}_sin{k}"] = np.cos(angle), np.sin(angle)
    test = np.arange(len(table)) >= int((1 - _LATE) * len(table))
    return _dataset("bike", "rmse", table, "cnt", {"weathersit": -1, "windspeed": -1}, test)


_BLOG_INCREASING = (50, 51, 52, 53, 55, 56, 57, 58)

LOADERS: dict[str, Callable[[], Dataset]] = {
    "heart": heart,
    "auto_mpg": auto_mpg,
    "boston": boston,
    "german": german,
    "compas": compas,
    "california": california,
    "loan": loan,
    "bike": bike,
    "adult": adult,
    "blog": blog,
}


@cache
def load(name: str) -> Dataset:
    """A data set by name; raises `NoDataError` if it is not to be had."""
    if name not in LOADERS:
        raise ValueError(f"`name={name!r}` is unknown; choose from {', '.join(LOADERS)}")
    return LOADERS[name]()
