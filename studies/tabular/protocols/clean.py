"""The clean protocol, by which contestants are compared: nothing is chosen on test rows.

Ten splits. A fifth of the rows is for the test, or the publisher's test part, or the last fifth of
the time; the rest is cut to `MOST_ROWS` rows, of which a quarter validates. Setting and epoch are
chosen on the validation rows, then the contestant learns from all rows that are not for the test,
and the test rows are scored once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from isotone.typing import Floats
from studies.tabular.contest import Contestant, Problem, Table
from studies.tabular.datasets import Dataset, Metric, load

N_SPLITS = 10
MOST_ROWS = 4000
_TEST, VALIDATION = 0.2, 0.25
_PROBES, _GRID, _TOLERANCE = 200, 16, 1e-6


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from, to choose on, and to be judged on."""

    train: Table
    validation: Table
    test: Table


@dataclass(frozen=True)
class Score:
    """The outcome of one contestant on one split."""

    value: float
    n_parameters: int
    violations: float
    setting: str


def split(data: Dataset, k: int, quick: bool = False) -> Split:
    """The k-th clean split."""
    rng = np.random.default_rng([k, 2023])
    n = len(data.y)
    if data.test is None:
        order = rng.permutation(n)
        test, rest = np.split(order, [int(_TEST * n)])
    else:
        test, rest = np.flatnonzero(data.test), rng.permutation(np.flatnonzero(~data.test))
    rest = rest[: 300 if quick else MOST_ROWS]
    validation, train = np.split(rest, [int(VALIDATION * len(rest))])
    return Split(*(Table(data.X[i], data.y[i]) for i in (train, validation, test)))


def clean(contestant: Contestant, name: str, k: int, quick: bool = False) -> Score:
    """The clean protocol on the k-th split of a data set."""
    data = load(name)
    problem, parts = Problem.of(data, k, quick), split(data, k, quick)
    choice = contestant.choose(problem, parts.train, parts.validation)
    model = contestant.fit(problem, parts.train + parts.validation, choice)
    value = measure(data.metric, parts.test.y, model.score(parts.test.X))
    setting = f"{choice.setting}, {choice.rounds} rounds"
    return Score(value, model.n_parameters, violations(model.score, data, parts), setting)


def measure(metric: Metric, y: Floats, score: Floats, threshold: float = 0.5) -> float:
    """Accuracy at a threshold, area under the ROC curve, or an error."""
    if metric == "accuracy":
        return float(np.mean((score >= threshold) == (y == 1)))
    if metric == "auc":
        return float(roc_auc_score(y, score))
    mse = float(np.mean(np.square(y - score)))
    return mse if metric == "mse" else float(np.sqrt(mse))


def best_threshold(y: Floats, score: Floats, thresholds: Floats) -> float:
    """The threshold of the highest accuracy; of several, the one nearest to a half."""
    accuracy = np.mean((score[:, None] >= thresholds) == (y[:, None] == 1), axis=0)
    best = thresholds[accuracy == accuracy.max()]
    return float(best[np.argmin(np.abs(best - 0.5))])


def violations(score: Callable[[Floats], Floats], data: Dataset, parts: Split) -> float:
    """Share of (test row, constrained feature) whose score moves the wrong way somewhere.

    The feature takes 16 values over the range of the training rows. A step counts if it is larger
    than 1e-6 standard deviations of the target, or 1e-6 in probability.
    """
    X = parts.test.X[:_PROBES]
    wrong = []
    unit = data.y.std() if data.task == "regression" else 1.0
    for i in np.flatnonzero(data.directions):
        column = parts.train.X[:, i]
        rows = np.repeat(X, _GRID, axis=0)
        rows[:, i] = np.tile(np.linspace(column.min(), column.max(), _GRID), len(X))
        steps = np.diff(score(rows).reshape(len(X), _GRID), axis=1) * data.directions[i]
        wrong.append((steps < -_TOLERANCE * unit).any(axis=1))
    return float(np.mean(wrong)) if wrong else 0.0
