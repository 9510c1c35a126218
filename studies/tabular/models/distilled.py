"""Distilled: certified networks that learn what boosted trees say.

The teacher, monotone trees of scikit-learn, is fitted on the rows that are given. Students learn
its predictions for these rows, for values mixed with a quarter of the true targets, and see their
columns through knots where the teacher splits. The model is the students, networks without a
teacher (those of "isotone" without knots), or an average of the two, whichever is best on the
validation rows: certified networks only, no tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from isotone import Knots, Recipe
from isotone.training import Rows
from isotone.typing import Floats
from studies.tabular.contest import Choice, Model, Problem, Table, View
from studies.tabular.models.ours import Both, Coded, Scout, Setting
from studies.tabular.models.trees import HistGradientBoosting

TEACHER = HistGradientBoosting(
    settings=tuple({"max_leaf_nodes": n, "learning_rate": 0.05} for n in (8, 31))
)
_COPIES = 256  # of all columns together, about
_SLOPES = {"regression": (0.125, 1.0), "classification": (0.5, 1.0)}  # λ of students
_TRUTH = {"regression": 0.25, "classification": 0.0}  # share of the true targets
_SHARES = (1.0, 0.0), (0.0, 1.0), (1 / 3, 2 / 3), (2 / 3, 1 / 3)  # the second is the students'
_EPOCHS, _VISITS = 80, 80_000  # of students, at least, each
_SCOUTS = 2  # students per setting while settings are compared


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a teacher says of the rows it learned from, and how students see them."""

    view: Coded
    said: Floats

    @classmethod
    def of(cls, problem: Problem, rows: Table, choice: Choice) -> Lesson:
        """By a teacher of this setting that learned from these rows and no others."""
        teacher = TEACHER.grow(problem, rows, choice)
        if problem.task == "classification":
            return cls(seen(problem, rows, teacher), teacher.predict_proba(rows.X)[:, 1])
        return cls(seen(problem, rows, teacher), teacher.predict(rows.X))


def seen(problem: Problem, rows: Table, teacher: Any) -> Coded:
    """Columns have copies by their share of the teacher's splits, with knots where it splits."""
    trees = chain.from_iterable(teacher._predictors)
    nodes = np.concatenate([tree.nodes[tree.nodes["is_leaf"] == 0] for tree in trees])
    column, threshold = nodes["feature_idx"].astype(np.intp), nodes["num_threshold"]
    share = _COPIES * np.bincount(column, minlength=rows.X.shape[1]) / max(1, len(column))
    kept = np.flatnonzero(share >= min(0.5, share.max()))
    most = np.maximum(1, np.round(share)).astype(int)
    knots = [_knots(rows.X[:, j], threshold[column == j], most[j]) for j in kept]
    encoded, view = Knots.at(knots), View.of(problem, rows)
    kept = kept[encoded.columns]
    return Coded(kept, encoded.scaling, problem.directions[kept], view.center, view.spread)


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
    """As "isotone", but networks that see knots are students: they have a lesson."""

    shares: Sequence[tuple[float, float]] = _SHARES
    lesson: Lesson | None = None

    def settings(self, problem: Problem) -> list[Setting]:
        """Four without knots, as "isotone" has them, and two with a lesson."""
        plain = [setting for setting in super().settings(problem) if setting.n_tiles is None]
        shape, truth = (self.width, self.width), _TRUTH[problem.task]
        slopes = _SLOPES[problem.task]
        return plain + [Setting(shape, slope, 1.0, _COPIES, truth) for slope in slopes]

    def view(self, problem: Problem, rows: Table, setting: Setting) -> View:
        if setting.n_tiles is None or self.lesson is None:
            return super().view(problem, rows, setting)
        return self.lesson.view

    def rows(self, problem: Problem, view: View, table: Table, setting: Setting) -> Rows:
        if setting.n_tiles is None or self.lesson is None:
            return super().rows(problem, view, table, setting)
        target = view.y(setting.truth * table.y + (1.0 - setting.truth) * self.lesson.said)
        x, y = (np.asarray(a, np.float32) for a in (view.x(table.X), target))
        return Rows(x, y if problem.task == "classification" else y[:, None])

    def recipe(self, problem: Problem, n_rows: int, setting: Setting) -> Recipe:
        if setting.n_tiles is None:
            return super().recipe(problem, n_rows, setting)
        n = 10 if problem.quick else max(_EPOCHS, _VISITS // n_rows)
        return Recipe(n, batch_size=32, learning_rate=0.02, final_rate=0.02, seed=problem.seed)

    def _scan(
        self, problem: Problem, train: Table, validation: Table, settings: list[Setting]
    ) -> list[Scout]:
        if settings[0].n_tiles is None:
            return super()._scan(problem, train, validation, settings)
        return [self._scout(problem, train, validation, setting) for setting in settings]

    def _scout(self, problem: Problem, train: Table, validation: Table, setting: Setting) -> Scout:
        n = self.recipe(problem, len(train), setting).epochs
        score = self._fit(problem, train, setting, n, _SCOUTS).score(validation.X)
        return Scout(setting, n, problem.loss(validation.y, score), score)

    def _fit(self, problem: Problem, rows: Table, setting: Setting, n: int, members: int) -> Model:
        """Students learn to the end: in what a teacher says there is little noise."""
        if setting.n_tiles is not None:
            n = self.recipe(problem, len(rows), setting).epochs
        return super()._fit(problem, rows, setting, n, members)


@dataclass(frozen=True)
class Distilled:
    """Networks with a lesson, without one, or the average of the two."""

    name: str = "isotone, distilled"
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


DISTILLED = Distilled()
