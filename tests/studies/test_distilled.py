"""Distilled: students of trees are certified networks, and their teacher saw no other rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from studies.tabular.contest import Choice, Problem, Table
from studies.tabular.datasets import Dataset
from studies.tabular.models import distilled
from studies.tabular.models.ours import Setting
from studies.tabular.models.trees import HistGradientBoosting
from studies.tabular.protocols import cells
from studies.tabular.protocols.clean import split, violations

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=400), RNG.exponential(size=400), RNG.integers(0, 2, 400)])
Z = X[:, 0] - 0.5 * X[:, 1] + np.sin(3 * X[:, 2])
TEACHER = Choice({"max_leaf_nodes": 8, "learning_rate": 0.1}, 20, 0.0, np.empty(0))


def toy(task: Any) -> Dataset:
    y = Z if task == "regression" else (Z > 0).astype(float)
    metric: Any = "rmse" if task == "regression" else "accuracy"
    directions = np.array([1, -1, 0], dtype=np.int8)
    return Dataset("toy", task, metric, ("a", "b", "c"), directions, X, y)


def student(task: Any = "regression") -> tuple[Problem, Table, Choice]:
    """A problem, its rows, and the choice of students alone."""
    data = toy(task)
    part = {"setting": vars(Setting((32, 32), 0.5, 1.0, 256, 0.0)), "epochs": 1, "share": 1.0}
    choice = Choice({"parts": [part], "teacher": TEACHER}, 1, 0.0, np.empty(0))
    return Problem.of(data, 0, quick=True), split(data, 0).train, choice


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_students_score_without_their_teacher_and_keep_what_is_promised(
    task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, rows, choice = student(task)
    model = distilled.DISTILLED.fit(problem, rows, choice)
    monkeypatch.setattr(HistGradientBoosting, "_model", None)
    for kind in ("predict", "predict_proba"):
        monkeypatch.setattr(f"sklearn.ensemble.HistGradientBoostingClassifier.{kind}", None)
    monkeypatch.setattr("sklearn.ensemble.HistGradientBoostingRegressor.predict", None)
    assert violations(model.score, toy(task), split(toy(task), 0)) == 0.0
    assert model.slope is not None
    assert 0.0 < model.slope <= 1.0  # twice λ
    edge = np.array([rows.X.min(axis=0), rows.X.max(axis=0)])
    beyond = np.array([[-9.0], [9.0]]) + edge
    assert np.array_equal(model.score(beyond), model.score(edge))


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_students_are_told_what_their_teacher_says_and_a_share_of_the_truth(task: Any) -> None:
    problem, rows, _ = student(task)
    lesson = distilled.Lesson.of(problem, rows, TEACHER)
    pupils = replace(distilled.DISTILLED.pupils, lesson=lesson)
    says = distilled.TEACHER.fit(problem, rows, TEACHER).score(rows.X)
    for truth in (0.0, 0.5):
        setting = Setting((32, 32), 0.5, 1.0, 256, truth)
        told = pupils.rows(problem, lesson.view, rows, setting).y.ravel()
        assert np.allclose(
            lesson.view.restore(told), truth * rows.y + (1 - truth) * says, atol=1e-5
        )


def test_a_teacher_is_given_the_rows_to_learn_from_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Table] = []
    grow = HistGradientBoosting.grow

    def spy(self: Any, problem: Problem, rows: Table, choice: Choice) -> Any:
        given.append(rows)
        return grow(self, problem, rows, choice)

    monkeypatch.setattr(HistGradientBoosting, "grow", spy)
    data = toy("regression")
    parts, problem = split(data, 0), Problem.of(data, 0, quick=True)
    choice = distilled.DISTILLED.choose(problem, parts.train, parts.validation)
    assert len(given) == 1
    assert given[0] is parts.train
    distilled.DISTILLED.fit(problem, parts.train + parts.validation, choice)
    assert np.array_equal(given[1].y, np.append(parts.train.y, parts.validation.y))


def test_steps_of_few_thresholds_are_kept() -> None:
    x = np.arange(100.0)
    beside = distilled._knots(x, np.array([10.5, 10.5, 40.5]), 8)
    assert beside.tolist() == [0, 10, 11, 40, 41, 99]
    assert distilled._knots(x[:4], np.array([1.5]), 3).tolist() == [0, 1, 2, 3]
    assert distilled._knots(x, np.array([50.5]), 1).tolist() == [0, 99]
    many = distilled._knots(x, x[:60] + 0.5, 11)
    assert len(many) == 12
    assert many[0] == 0
    assert many[-2:].tolist() == [59.5, 99]


def test_students_see_columns_by_how_often_their_teacher_splits_them() -> None:
    problem, rows, _ = student()
    flat = Table(np.column_stack([rows.X, np.zeros(len(rows))]), rows.y)
    wider = Problem("regression", np.append(problem.directions, 1).astype(np.int8))
    view = distilled.seen(wider, flat, distilled.TEACHER.grow(wider, flat, TEACHER))
    n_copies = np.bincount(view.kept, minlength=4)
    assert n_copies[3] == 0  # never split
    assert n_copies[2] == 1  # two values
    assert n_copies[:2].min() > 8
    assert n_copies.sum() <= 258


def test_of_a_teacher_that_never_splits_students_see_one_copy_per_column() -> None:
    problem, rows, _ = student()
    silent = distilled.TEACHER.grow(problem, Table(rows.X, np.zeros(len(rows))), TEACHER)
    assert distilled.seen(problem, rows, silent).kept.tolist() == [0, 1, 2]


def test_a_cell_of_students_depends_on_the_library_of_their_teacher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = cells.Cell("clean", "heart", distilled.DISTILLED.name, 0)
    key = cell.key()
    cells._digest.cache_clear()
    monkeypatch.setattr(cells.importlib.metadata, "version", lambda package: "0")
    assert cell.key() != key
    cells._digest.cache_clear()
