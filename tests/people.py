"""Quick estimators, and small tables about people for them to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from isotone import MonotonicClassifier, MonotonicRegressor

QUICK: dict[str, Any] = {
    "lipschitz": 2.0,
    "hidden_layer_sizes": (16,),
    "max_iter": 60,
    "batch_size": 256,
    "n_members": 2,
    "random_state": 0,
}
NAMES = ["income", "debt", "age"]


def classifier(*args: Any, **options: Any) -> MonotonicClassifier:
    return MonotonicClassifier(*args, **(QUICK | options))


def regressor(*args: Any, **options: Any) -> MonotonicRegressor:
    return MonotonicRegressor(*args, **(QUICK | options))


def people(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Raw columns of very different size, and a noisy decision."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    X = pd.DataFrame({"income": np.exp(10 + z[:, 0]), "debt": 5 * z[:, 1], "age": 40 + z[:, 2]})
    y = z[:, 0] - z[:, 1] + 0.5 * np.sin(3 * z[:, 2]) + 0.3 * rng.normal(size=n) > 0
    return X, y


def prices(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    X, _ = people(n, seed)
    noise = np.random.default_rng(seed).normal(size=n)
    return X, 3e5 + 2e4 * np.log(X["income"].to_numpy()) - 1e3 * X["debt"].to_numpy() + 500 * noise


def raise_column(X: pd.DataFrame, name: str, by: Any) -> pd.DataFrame:
    return X.assign(**{name: X[name] + by})
