"""Taught: certified networks that learn what boosted trees say of many rows.

The teacher, monotone trees of scikit-learn, learns from the rows that are given. It labels them
and nine times as many made-up rows; students learn the labels and see codes with knots where the
teacher splits. Handed back are students, networks without a teacher as "isotone" has them without
codes, or the average of the two, whichever is best on the validation rows: certified networks
only, no tree. How the rule was decided is in `docs/tabular.md`, "Taught".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors

from isotone.codes import Codes
from isotone.elementary import Floats
from isotone.rows import Rows
from isotone.training import Recipe
from studies.tabular.contest import Choice, Model, Problem, Table, View
from studies.tabular.ours import Both, Coded, Scout, Setting
from studies.tabular.trees import HistGradientBoosting

TEACHER = HistGradientBoosting(
    settings=tuple({"max_leaf_nodes": n, "learning_rate": 0.05} for n in (8, 31))
)
_MADE_UP = 9  # rows per real one
_NEAR, _EXCHANGED = 10, 0.3
_COPIES = 256  # of all columns together, about
_SLOPES = {"regression": (0.125, 1.0), "classification": (0.5, 1.0)}  # λ of students
_SHARES = (1.0, 0.0), (0.0, 1.0), (1 / 3, 2 / 3), (2 / 3, 1 / 3)  # the second is the students'
_EPOCHS, _VISITS = 8, 80_000  # of students, at least, each
_SCOUTS = 2  # students per setting while settings are compared


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a teacher says of real and made-up rows, and how students see them."""

    view: Coded
    rows: Rows

    @classmethod
    def of(cls, problem: Problem, rows: Table, choice: Choice) -> Lesson:
        """By a teacher of this setting that learned from these rows and no others."""
        teacher = TEACHER.grow(problem, rows, choice)
        X = np.vstack([rows.X, made_up(problem, rows.X)])
        view = seen(problem, rows, teacher)
        if problem.task == "classification":
            target = teacher.predict_proba(X)[:, 1]
        else:
            target = view.y(teacher.predict(X))[:, None]
        x, y = (torch.as_tensor(array.astype(np.float32)) for array in (view.x(X), target))
        return cls(view, Rows(x, y))


def made_up(problem: Problem, X: Floats) -> Floats:
    """Rows with some of their entries exchanged for those of a near row."""
    rng = np.random.default_rng([problem.seed, 11])
    spread = X.std(axis=0)
    x = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    n_near = min(_NEAR, len(X) - 1)
    near = NearestNeighbors(n_neighbors=n_near).fit(x).kneighbors(return_distance=False)
    row = np.repeat(np.arange(len(X)), _MADE_UP)
    other = near[row, rng.integers(0, n_near, len(row))]
    made: Floats = np.where(rng.random((len(row), X.shape[1])) < _EXCHANGED, X[other], X[row])
    return made


def seen(problem: Problem, rows: Table, teacher: Any) -> Coded:
    """Columns have copies by their share of the teacher's splits, with knots where it splits."""
    trees = chain.from_iterable(teacher._predictors)
    nodes = np.concatenate([tree.nodes[tree.nodes["is_leaf"] == 0] for tree in trees])
    column, threshold = nodes["feature_idx"].astype(np.intp), nodes["num_threshold"]
    share = _COPIES * np.bincount(column, minlength=rows.X.shape[1]) / max(1, len(column))
    kept = np.flatnonzero(share >= min(0.5, share.max()))
    most = np.maximum(1, np.round(share)).astype(int)
    knots = [_knots(rows.X[:, j], threshold[column == j], most[j]) for j in kept]
    codes, view = Codes.at(knots), View.of(problem, rows)
    kept = kept[codes.columns]
    return Coded(kept, codes.scaling, problem.directions[kept], view.center, view.spread)


def _knots(x: Floats, thresholds: Floats, most: int) -> Floats:
    """The values of a column, those beside thresholds, or thresholds at equal shares of them.

    Whichever first gives no more than so many tiles: of few thresholds steps are kept. A threshold
    of n splits counts √n.
    """
    values = np.unique(x)
    if len(values) <= most + 1:
        return values
    ends = values[[0, -1]]
    unique, counts = np.unique(np.clip(thresholds, *ends), return_counts=True)
    after = np.clip(np.searchsorted(values, unique, side="right"), 1, len(values) - 1)
    beside = np.unique(np.concatenate([ends, values[after - 1], values[after]]))
    if len(beside) <= most + 1:
        return beside
    weight = np.sqrt(counts)
    rank = np.cumsum(weight) - 0.5 * weight
    shares = np.linspace(rank[0], rank[-1], most - 1)
    return np.unique(np.append(ends, np.interp(shares, rank, unique)))


@dataclass(frozen=True)
class Pupils(Both):
    """As "isotone", but networks that see codes are students: they have a lesson."""

    shares: Sequence[tuple[float, float]] = _SHARES
    lesson: Lesson | None = None

    def settings(self, problem: Problem) -> list[Setting]:
        """Four without codes, as "isotone" has them, and two with a lesson."""
        plain = [setting for setting in super().settings(problem) if setting.n_codes is None]
        shape = (self.width, self.width)
        return plain + [Setting(shape, slope, 1.0, _COPIES) for slope in _SLOPES[problem.task]]

    def view(self, problem: Problem, rows: Table, setting: Setting) -> View:
        if setting.n_codes is None or self.lesson is None:
            return super().view(problem, rows, setting)
        return self.lesson.view

    def rows(self, problem: Problem, view: View, table: Table) -> Rows:
        if self.lesson is None or view is not self.lesson.view:
            return super().rows(problem, view, table)
        return self.lesson.rows

    def recipe(self, problem: Problem, n_rows: int, setting: Setting) -> Recipe:
        if setting.n_codes is None:
            return super().recipe(problem, n_rows, setting)
        n = 1 if problem.quick else max(_EPOCHS, _VISITS // ((1 + _MADE_UP) * n_rows))
        return Recipe(n, batch_size=32, learning_rate=0.02, final_rate=0.02, seed=problem.seed)

    def _scan(
        self, problem: Problem, train: Table, validation: Table, settings: list[Setting]
    ) -> list[Scout]:
        if settings[0].n_codes is None:
            return super()._scan(problem, train, validation, settings)
        return [self._scout(problem, train, validation, setting) for setting in settings]

    def _scout(self, problem: Problem, train: Table, validation: Table, setting: Setting) -> Scout:
        n = self.recipe(problem, len(train), setting).epochs
        score = self._fit(problem, train, setting, n, _SCOUTS).score(validation.X)
        return Scout(setting, n, problem.loss(validation.y, score), score)

    def _fit(self, problem: Problem, rows: Table, setting: Setting, n: int, members: int) -> Model:
        """Students learn to the end: in what a teacher says there is no noise to be wary of."""
        if setting.n_codes is not None:
            n = self.recipe(problem, len(rows), setting).epochs
        return super()._fit(problem, rows, setting, n, members)


@dataclass(frozen=True)
class Taught:
    """Networks with a lesson, without one, or the average of the two."""

    name: str = "isotone, taught"
    needs: str = "isotone"
    monotone: bool = True
    pupils: Pupils = Pupils("pupils", 32, members=9)

    def settings(self, problem: Problem) -> list[Any]:
        """Eight: two of the teacher, six of networks."""
        return [*TEACHER.settings, *self.pupils.settings(problem)]

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        """The teacher, then the networks, by their losses on the validation rows."""
        teacher = TEACHER.choose(problem, train, validation)
        pupils = replace(self.pupils, lesson=Lesson.of(problem, train, teacher))
        choice = pupils.choose(problem, train, validation)
        return replace(choice, setting=choice.setting | {"teacher": teacher})

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        """The teacher learns again, from all rows, and gives the lesson."""
        lesson = Lesson.of(problem, rows, choice.setting["teacher"])
        return replace(self.pupils, lesson=lesson).fit(problem, rows, choice)


TAUGHT = Taught()
