"""CatBoost with monotone constraints, on numbers alone and beside columns of categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor

from isotone.typing import Floats

N_TREES = 200  # with fewer than 200 trees CatBoost does not combine columns unless asked to
N_CATEGORIES = 20
LEVELS = (0.1, 0.5, 0.9)


def settings(directions: Sequence[int], **options: Any) -> dict[str, Any]:
    quiet = {"verbose": False, "thread_count": 1, "allow_writing_files": False, "random_seed": 0}
    return {"iterations": N_TREES, "monotone_constraints": list(directions)} | quiet | options


def train_classifier(
    X: Floats, y: Floats, directions: Sequence[int]
) -> Callable[[Floats], Floats]:
    """The logit of two classes."""
    model = CatBoostClassifier(**settings(directions)).fit(X, y)
    return lambda rows: np.asarray(model.predict(rows, prediction_type="RawFormulaVal"))


def falling_quantiles(X: Floats, z: Floats, rows: Floats, directions: Sequence[int]) -> float:
    """Share of rows in which a quantile falls when the first feature is raised by 0.5."""
    loss = f"MultiQuantile:alpha={','.join(map(str, LEVELS))}"
    model = CatBoostRegressor(**settings(directions, loss_function=loss)).fit(X, z)
    raised = rows + np.array([0.5, 0.0, 0.0])
    return float(np.mean((model.predict(raised) < model.predict(rows)).any(axis=1)))


def falling_beside_categories(
    X: Floats, z: Floats, rows: Floats, directions: Sequence[int], n_columns: int, **options: Any
) -> float:
    """The same of a mean, beside columns of random categories that mean nothing."""
    free = [*directions, *[0] * n_columns]
    names = [f"category {k}" for k in range(n_columns)]
    model = CatBoostRegressor(**settings(free, cat_features=names, **options))
    model.fit(with_categories(X, names, seed=2), z)
    table = with_categories(rows, names, seed=3)
    raised = table.assign(x0=table["x0"] + 0.5)
    return float(np.mean(model.predict(raised) < model.predict(table)))


def with_categories(X: Floats, names: Sequence[str], seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {f"x{k}": column for k, column in enumerate(X.T)}
    return pd.DataFrame(
        numbers | {name: rng.integers(N_CATEGORIES, size=len(X)) for name in names}
    )
