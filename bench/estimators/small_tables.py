"""The estimators with all defaults against HistGradientBoosting, default and lightly tuned.

Question: are the defaults good on small tables they have not seen?
Data: tables that come with scikit-learn, and with --tables DIR a few public ones read from there
      (auto_mpg, heart_disease and compas, laid out as DIR/auto_mpg/auto-mpg.csv and so on).
Protocol: 5 folds, 2 seeds; the same directions for all; tuning by 3 folds of the training rows.
Run time: some ten minutes on one quiet core; --quick does half of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from isotone import MonotonicClassifier, MonotonicRegressor

GRID = {
    "learning_rate": [0.03, 0.1],
    "max_leaf_nodes": [4, 15],
    "min_samples_leaf": [5, 20],
}
NAMES = ("isotone", "boosting", "tuned boosting")
Row = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A table with what is known about its directions."""

    name: str
    X: pd.DataFrame
    y: NDArray[Any]
    classes: bool
    directions: dict[str, int]


def bundled() -> Iterator[Problem]:
    """Tables of scikit-learn."""
    frame = datasets.load_breast_cancer(as_frame=True)
    sizes = ("radius", "perimeter", "area", "concavity", "concave points")
    worse = {f"{kind} {size}": -1 for kind in ("mean", "worst") for size in sizes}
    yield Problem("breast_cancer", frame.data, frame.target.to_numpy(), True, worse)
    frame = datasets.load_wine(as_frame=True)
    yield Problem("wine", frame.data, frame.target.to_numpy(), True, {})
    frame = datasets.load_diabetes(as_frame=True)
    rising = {"bmi": 1, "bp": 1, "s5": 1}
    yield Problem("diabetes", frame.data, frame.target.to_numpy(), False, rising)
    for name, make, noise, known in (
        ("friedman2", datasets.make_friedman2, 125.0, {"x0": 1}),
        ("friedman3", datasets.make_friedman3, 0.1, {"x2": 1, "x3": 1}),
    ):
        X, y = make(n_samples=500, noise=noise, random_state=0)
        yield Problem(name, pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]), y, False, known)


def from_directory(tables: Path) -> Iterator[Problem]:
    """Public tables, cleaned as their publishers do."""
    cars = pd.read_csv(tables / "auto_mpg" / "auto-mpg.csv", na_values="?").dropna()
    X = cars.drop(columns=["mpg", "car name"]).astype(float)
    falling = {"displacement": -1, "horsepower": -1, "weight": -1}
    yield Problem("auto_mpg", X, cars["mpg"].to_numpy(float), False, falling)
    parts = [tables / "heart_disease" / f"heart_{part}.csv" for part in ("train", "test")]
    heart = pd.concat([pd.read_csv(part, index_col=0) for part in parts], ignore_index=True)
    X, y = heart.drop(columns="target").astype(float), heart["target"].to_numpy(int)
    yield Problem("heart_disease", X, y, True, {"trestbps": 1, "chol": 1})
    people = pd.read_csv(tables / "compas" / "compas_scores_two_years.csv")
    people = people[people["days_b_screening_arrest"].between(-30, 30)]
    counts = ["priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    X = pd.get_dummies(people[[*counts, "age", "sex"]], dtype=float).astype(float)
    y = people["two_year_recid"].to_numpy(int)
    yield Problem("compas", X, y, True, dict.fromkeys(counts, 1))


def contestants(problem: Problem, seed: int) -> dict[str, Any]:
    """Estimators by name, unfitted."""
    monotonic = MonotonicClassifier if problem.classes else MonotonicRegressor
    boosting = HistGradientBoostingClassifier if problem.classes else HistGradientBoostingRegressor
    default = boosting(monotonic_cst=problem.directions or None, random_state=seed)
    scoring = "neg_log_loss" if problem.classes else "neg_mean_squared_error"
    ours = monotonic(problem.directions or None, random_state=seed)
    tuned = GridSearchCV(default, GRID, cv=3, scoring=scoring)
    return dict(zip(NAMES, (ours, default, tuned), strict=True))


def error_of(problem: Problem, model: Any, test: Row) -> float:
    """Log-loss, or 1 - R² with the spread of the whole target: 1 is a model that knows nothing."""
    X, y = problem.X.iloc[test], problem.y[test]
    if problem.classes:
        probability = model.predict_proba(X)
        return float(log_loss(y, probability, labels=np.unique(problem.y)))
    return float(np.mean((model.predict(X) - y) ** 2) / np.var(problem.y))


def compare(problem: Problem, seeds: range) -> tuple[Row, Row]:
    """Errors and seconds of every contestant, (n_runs, 3)."""
    errors, seconds = [], []
    folds: Callable[..., Any] = StratifiedKFold if problem.classes else KFold
    for seed in seeds:
        splits = folds(5, shuffle=True, random_state=seed).split(problem.X, problem.y)
        for train, test in splits:
            results = [
                _run(problem, model, train, test) for model in contestants(problem, seed).values()
            ]
            errors.append([error for error, _ in results])
            seconds.append([spent for _, spent in results])
    return np.array(errors), np.array(seconds)


def _run(problem: Problem, model: Any, train: Row, test: Row) -> tuple[float, float]:
    start = time.process_time()
    model.fit(problem.X.iloc[train], problem.y[train])
    return error_of(problem, model, test), time.process_time() - start


def report(problem: Problem, errors: Row, seconds: Row) -> str:
    """A row of the table; ± is the standard error of the difference to the better booster."""
    mean = errors.mean(axis=0)
    gap = errors[:, 0] - errors[:, 1:][:, mean[1:].argmin()]
    rows, columns = problem.X.shape
    cells = [
        f"{problem.name}, {rows} × {columns}",
        "log-loss" if problem.classes else "1 - R²",
        *(f"{value:.4f}" for value in mean),
        f"{gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.4f}",
        *(f"{value:.1f}" for value in seconds.mean(axis=0)),
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, help="directory of further tables")
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    parser.add_argument("--quick", action="store_true", help="one seed")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    print("| table | error | " + " | ".join(NAMES) + " | difference to the better | s | s | s |")
    print("| --- " * 9 + "|")
    problems = [*bundled(), *(from_directory(options.tables) if options.tables else ())]
    for problem in problems:
        if not options.only or problem.name in options.only.split(","):
            result = compare(problem, range(1 if options.quick else 2))
            print(report(problem, *result), flush=True)


if __name__ == "__main__":
    main()
