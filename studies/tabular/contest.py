"""Contest: what a contestant is given, what it may choose, and what it hands back.

Peers have the same budget: `BUDGET` settings, each trained once on the training rows. They pick a
setting and a number of rounds (epochs, trees) by their loss on the validation rows, then learn
again from both. Ours have one setting and learn from both. Nobody sees test rows.

Other networks and linear models see the same columns: scaled by `isotone.Scaling` with the kinds
that the estimators of this library choose, and, of very wide tables, only the columns with a
direction and those most correlated with the target. Trees and ours see the raw table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isotone import Scaling
from isotone.estimators import choose_scaling
from isotone.typing import Floats
from studies.tabular.datasets import Dataset, Task

BUDGET = 8  # settings per peer
_WIDE = 64  # columns from which on networks are given fewer
_CORRELATED = 24  # that many, beside those with a direction


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to learn from or to be tested on, in raw units."""

    X: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.y)

    def __add__(self, other: Table) -> Table:
        return Table(np.vstack([self.X, other.X]), np.append(self.y, other.y))


@dataclass(frozen=True, eq=False)
class Problem:
    """What is known about a data set beside its rows."""

    task: Task
    directions: NDArray[np.int8]
    seed: int = 0
    quick: bool = False

    @classmethod
    def of(cls, data: Dataset, seed: int, quick: bool = False) -> Problem:
        return cls(data.task, data.directions, seed, quick)

    def loss(self, y: Floats, score: Floats) -> float:
        """Cross-entropy of probabilities, or mean squared error."""
        if self.task == "regression":
            return float(np.mean(np.square(y - score)))
        p = np.clip(score, 1e-7, 1 - 1e-7)
        return float(-np.mean(y * np.log(p) + (1 - y) * np.log1p(-p)))


@dataclass(frozen=True, eq=False)
class Choice:
    """A setting, the rounds it needs, and its loss on the validation rows."""

    setting: dict[str, Any]
    rounds: int
    loss: float


@dataclass(frozen=True, eq=False)
class Model:
    """What a contestant hands back.

    Parameters
    ----------
    score : raw rows to probabilities of class 1, or values
    n_parameters : numbers that were learned; for trees, nodes
    """

    score: Callable[[Floats], Floats]
    n_parameters: int


class Contestant(Protocol):
    """A way to learn; `needs` is the module it is made with."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> str: ...

    @property
    def monotone(self) -> bool: ...

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice: ...

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model: ...


@dataclass(frozen=True, eq=False)
class View:
    """How networks and linear models see a problem: scaled columns, standardized targets."""

    kept: NDArray[np.intp]
    scaling: Scaling
    directions: NDArray[np.int8]
    center: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, problem: Problem, rows: Table) -> View:
        """Everything is taken from the rows given."""
        kept = _columns(problem, rows)
        X = rows.X[:, kept]
        ones = np.ones(len(X))
        kinds = [choose_scaling(column, ones) for column in X.T]
        scaling, directions = Scaling.fit(X, kinds), problem.directions[kept]
        if problem.task == "classification":
            return cls(kept, scaling, directions)
        return cls(kept, scaling, directions, float(rows.y.mean()), float(rows.y.std()))

    def x(self, X: Floats) -> Floats:
        return self.scaling.transform(X[:, self.kept])

    def y(self, y: Floats) -> Floats:
        return (y - self.center) / self.spread

    def restore(self, score: Floats) -> Floats:
        return score * self.spread + self.center


def _columns(problem: Problem, rows: Table) -> NDArray[np.intp]:
    n = rows.X.shape[1]
    if n <= _WIDE:
        return np.arange(n)
    X, y = rows.X - rows.X.mean(axis=0), rows.y - rows.y.mean()
    size = np.linalg.norm(X, axis=0)
    correlation = np.abs(X.T @ y) / np.where(size > 0, size, np.inf)
    correlation[problem.directions != 0] = np.inf
    n_kept = _CORRELATED + np.count_nonzero(problem.directions)
    return np.sort(np.argsort(-correlation, kind="stable")[:n_kept])


def sigmoid(z: Floats) -> Floats:
    probability: Floats = 0.5 * (1.0 + np.tanh(0.5 * z))
    return probability


def batch_size(n_rows: int) -> int:
    """Of all networks."""
    return int(np.clip(n_rows // 8, 32, 256))


def n_epochs(problem: Problem) -> int:
    """Of all networks, at most."""
    return 3 if problem.quick else 300


def best(choices: list[Choice]) -> Choice:
    return min(choices, key=lambda choice: choice.loss)
