"""Trees: boosted ones with monotone constraints, from four libraries.

They see the raw table. The number of trees is chosen on the validation rows, at most `ROUNDS`;
growing stops after `_PATIENCE` trees without a lower loss there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from isotone.typing import Floats
from studies.tabular.contest import BUDGET, Choice, Model, Problem, Table, best

ROUNDS, _PATIENCE = 600, 20

Setting = dict[str, Any]


def _settings(name: str, sizes: tuple[int, ...]) -> list[Setting]:
    settings = [{name: size, "learning_rate": r} for size, r in product(sizes, (0.05, 0.15))]
    assert len(settings) == BUDGET
    return settings


def _most(problem: Problem) -> int:
    return 5 if problem.quick else ROUNDS


class _Trees(ABC):
    """What all do: try every setting."""

    monotone = True
    settings: Sequence[Setting]

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        tried = self.settings[:2] if problem.quick else self.settings
        return best([self._grow(problem, setting, train, validation) for setting in tried])

    @abstractmethod
    def _grow(self, problem: Problem, setting: Setting, train: Table, validation: Table) -> Choice:
        """How many trees a setting needs, and its loss on the validation rows."""


def _as_model(problem: Problem, fitted: Any, nodes: int) -> Model:
    """An estimator with the methods of scikit-learn."""
    if problem.task == "regression":
        return Model(lambda X: fitted.predict(X), nodes)
    return Model(lambda X: fitted.predict_proba(X)[:, 1], nodes)


class LightGBM(_Trees):
    """LightGBM with its monotone constraints."""

    name, needs = "LightGBM", "lightgbm"
    settings = _settings("num_leaves", (4, 8, 16, 31))

    def _grow(self, problem: Problem, setting: Setting, train: Table, validation: Table) -> Choice:
        import lightgbm

        data = lightgbm.Dataset(train.X, train.y)
        booster = lightgbm.train(
            self._parameters(problem, setting),
            data,
            _most(problem),
            valid_sets=[lightgbm.Dataset(validation.X, validation.y, reference=data)],
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
        )
        rounds = booster.best_iteration or _most(problem)
        score = np.asarray(booster.predict(validation.X, num_iteration=rounds))
        return Choice(setting, rounds, problem.loss(validation.y, score))

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        import lightgbm

        parameters = self._parameters(problem, choice.setting)
        booster = lightgbm.train(parameters, lightgbm.Dataset(rows.X, rows.y), choice.rounds)
        leaves = [tree["num_leaves"] for tree in booster.dump_model()["tree_info"]]
        nodes = sum(2 * n - 1 for n in leaves)
        return Model(lambda X: np.asarray(booster.predict(X)), nodes)

    def _parameters(self, problem: Problem, setting: Setting) -> dict[str, Any]:
        return setting | {
            "objective": "binary" if problem.task == "classification" else "regression",
            "monotone_constraints": problem.directions.tolist(),
            "min_data_in_leaf": 10,
            "num_threads": 1,
            "seed": problem.seed,
            "verbosity": -1,
        }


class XGBoost(_Trees):
    """XGBoost with its monotone constraints."""

    name, needs = "XGBoost", "xgboost"
    settings = _settings("max_depth", (2, 3, 4, 6))

    def _grow(self, problem: Problem, setting: Setting, train: Table, validation: Table) -> Choice:
        import xgboost

        held_out = xgboost.DMatrix(validation.X, validation.y)
        booster = xgboost.train(
            self._parameters(problem, setting),
            xgboost.DMatrix(train.X, train.y),
            _most(problem),
            evals=[(held_out, "validation")],
            early_stopping_rounds=_PATIENCE,
            verbose_eval=False,
        )
        rounds = booster.best_iteration + 1
        score = booster.predict(held_out, iteration_range=(0, rounds)).astype(np.float64)
        return Choice(setting, rounds, problem.loss(validation.y, score))

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        import xgboost

        data = xgboost.DMatrix(rows.X, rows.y)
        booster = xgboost.train(self._parameters(problem, choice.setting), data, choice.rounds)
        nodes = sum(tree.count("\n") for tree in booster.get_dump())

        def score(X: Floats) -> Floats:
            values: Floats = booster.predict(xgboost.DMatrix(X)).astype(np.float64)
            return values

        return Model(score, nodes)

    def _parameters(self, problem: Problem, setting: Setting) -> dict[str, Any]:
        classes = problem.task == "classification"
        return setting | {
            "objective": "binary:logistic" if classes else "reg:squarederror",
            "monotone_constraints": tuple(problem.directions.tolist()),
            "tree_method": "hist",
            "nthread": 1,
            "seed": problem.seed,
            "verbosity": 0,
        }


class HistGradientBoosting(_Trees):
    """scikit-learn's boosted trees with its monotone constraints."""

    name, needs = "HistGradientBoosting", "sklearn"
    settings = _settings("max_leaf_nodes", (4, 8, 16, 31))

    def _grow(self, problem: Problem, setting: Setting, train: Table, validation: Table) -> Choice:
        """By the losses that a model notes while it grows."""
        model = self._model(problem, setting, _most(problem), stop=True)
        model.fit(train.X, train.y, X_val=validation.X, y_val=validation.y)
        losses = -model.validation_score_[1:]  # the first is that of no tree
        return Choice(setting, int(losses.argmin()) + 1, float(losses.min()))

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        model = self._model(problem, choice.setting, choice.rounds).fit(rows.X, rows.y)
        nodes = sum(len(tree.nodes) for stage in model._predictors for tree in stage)
        return _as_model(problem, model, nodes)

    def _model(self, problem: Problem, setting: Setting, rounds: int, stop: bool = False) -> Any:
        kind = (
            HistGradientBoostingClassifier
            if problem.task == "classification"
            else HistGradientBoostingRegressor
        )
        return kind(
            **setting,
            max_iter=rounds,
            min_samples_leaf=10,
            early_stopping=stop,
            n_iter_no_change=_PATIENCE,
            scoring="loss",
            tol=0.0,
            monotonic_cst=problem.directions,
            random_state=problem.seed,
        )


class CatBoost(_Trees):
    """CatBoost with its monotone constraints."""

    name, needs = "CatBoost", "catboost"
    settings = _settings("depth", (2, 3, 4, 6))

    def _grow(self, problem: Problem, setting: Setting, train: Table, validation: Table) -> Choice:
        """By the losses that a model notes while it grows."""
        model = self._model(problem, setting, _most(problem))
        held_out = validation.X, validation.y
        model.fit(train.X, train.y, eval_set=held_out, early_stopping_rounds=_PATIENCE)
        (loss,) = model.get_best_score()["validation"].values()
        return Choice(setting, model.get_best_iteration() + 1, loss)

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        model = self._model(problem, choice.setting, choice.rounds).fit(rows.X, rows.y)
        nodes = sum(2 * int(n) - 1 for n in model.get_tree_leaf_counts())
        return _as_model(problem, model, nodes)

    def _model(self, problem: Problem, setting: Setting, rounds: int) -> Any:
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostClassifier if problem.task == "classification" else CatBoostRegressor
        return kind(
            **setting,
            iterations=rounds,
            monotone_constraints=problem.directions.tolist(),
            random_seed=problem.seed,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )
