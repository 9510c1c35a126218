"""Ours: the estimators of this library as a user gets them, with all defaults.

They see the raw table and choose λ, knots and epochs for themselves on rows that are given to
`fit`, so there is nothing to choose beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from isotone import MonotonicClassifier, MonotonicRegressor
from studies.tabular.contest import Choice, Model, Problem, Table


@dataclass(frozen=True)
class Estimator:
    """`MonotonicClassifier` or `MonotonicRegressor`, alone or with trees as a teacher."""

    name: str
    taught: bool = False
    needs: str = "isotone"
    monotone: bool = True

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        return Choice({}, 0, 0.0)

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        model = self._model(problem).fit(rows.X, rows.y)
        assert model.certificate_.holds
        n_parameters = model.network_.n_parameters
        if problem.task == "regression":
            return Model(model.predict, n_parameters)
        return Model(lambda X: model.predict_proba(X)[:, 1], n_parameters)

    def _model(self, problem: Problem) -> Any:
        is_classes = problem.task == "classification"
        kind = MonotonicClassifier if is_classes else MonotonicRegressor
        trees = HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor
        same: dict[str, Any] = {
            "monotonic_cst": problem.directions,
            "random_state": problem.seed,
        }
        model = kind(teacher=trees(**same) if self.taught else None, **same)
        return model.set_params(max_iter=20) if problem.quick else model


PLAIN = Estimator("isotone")
TAUGHT = Estimator("isotone, teacher", taught=True)
