"""How good a model is on the rows that `isotone train` holds out."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from isotone.cli.table.rows import Sample
from isotone.typing import Bools, Floats, Reals


def judge(estimator: Any, rows: Sample) -> dict[str, float]:
    """Metrics by name on rows that were not learned from, without those they do not define."""
    how = _judge_classes if hasattr(estimator, "classes_") else _judge_values
    if estimator.loss == "quantile":
        how = _judge_quantile
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about metrics that these rows do not define: left out
        found = how(estimator, rows)
    defined = {name: float(value) for name, value in found.items() if math.isfinite(value)}
    return {"validation rows": float(len(rows.y))} | defined


def _judge_values(estimator: Any, rows: Sample) -> dict[str, float]:
    from sklearn.metrics import root_mean_squared_error

    weights = {"sample_weight": rows.weight}
    return {
        "R2": estimator.score(rows.X, rows.y, **weights),
        "RMSE": root_mean_squared_error(rows.y, estimator.predict(rows.X), **weights),
    }


def _judge_quantile(estimator: Any, rows: Sample) -> dict[str, float]:
    """The pinball loss, and the share of rows at or below the prediction."""
    from sklearn.metrics import mean_pinball_loss

    level, prediction = estimator.quantile, estimator.predict(rows.X)
    loss = mean_pinball_loss(rows.y, prediction, alpha=level, sample_weight=rows.weight)
    below = np.average(rows.y <= prediction, weights=rows.weight)
    return {f"pinball loss, {level:g}": loss, f"coverage, {level:g}": float(below)}


def _judge_classes(estimator: Any, rows: Sample) -> dict[str, float]:
    from sklearn import metrics

    classes, weights = estimator.classes_, {"sample_weight": rows.weight}
    found = {"accuracy": estimator.score(rows.X, rows.y, **weights)}
    if len(classes) == 2:
        score = estimator.decision_function(rows.X)
        is_second = rows.y == classes[1]
        if rows.weight is not None and np.any(rows.weight < 0):
            found = {"AUC": signed_auc(is_second, score, rows.weight)} | found
        else:
            found = {"AUC": metrics.roc_auc_score(is_second, score, **weights)} | found
    if hasattr(estimator, "predict_proba"):
        p = estimator.predict_proba(rows.X)
        p /= p.sum(axis=1, keepdims=True)  # each is rounded on its own
        found["log loss"] = metrics.log_loss(rows.y, p, labels=classes, **weights)
    return found


def signed_auc(is_second: Bools, score: Floats, weight: Reals) -> float:
    r"""The probability that a row of the second class has the larger score, by signed weights.

    .. math:: \sum_{i \in S} \sum_{j \in B} w_i w_j \bigl([s_i > s_j] + \tfrac12 [s_i = s_j]\bigr)
        \Big/ \sum_{i \in S} w_i \sum_{j \in B} w_j

    >>> signed_auc(np.array([True, True, False]), np.array([2.0, 0.0, 1.0]), np.array([3, -1, 1]))
    1.5
    """
    values, place = np.unique(score, return_inverse=True)
    second = np.bincount(place, np.where(is_second, weight, 0.0), len(values))
    first = np.bincount(place, np.where(is_second, 0.0, weight), len(values))
    below = np.cumsum(first) - 0.5 * first
    return float(second @ below / (second.sum() * first.sum()))
