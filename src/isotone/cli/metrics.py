"""How good a model is on rows that it has not seen."""

from __future__ import annotations

import math
import warnings

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.training.rows import Rows


def judge(frozen: FrozenNetwork, rows: Rows) -> dict[str, float]:
    """Metrics by name, without those that these rows do not define."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about metrics that these rows do not define: left out
        if frozen.outputs == "values":
            found = _of_values(frozen, rows)
        elif frozen.n_outputs == 1:
            found = _of_two_classes(frozen, rows)
        else:
            found = _of_classes(frozen, rows)
    defined = {name: float(value) for name, value in found.items() if math.isfinite(value)}
    return {"validation rows": float(len(rows))} | defined


def _of_values(frozen: FrozenNetwork, rows: Rows) -> dict[str, float]:
    from sklearn import metrics

    score, weights = frozen.score_features(rows.x), {"sample_weight": rows.weight}
    return {
        "R2": metrics.r2_score(rows.y, score, **weights),
        "RMSE": metrics.root_mean_squared_error(rows.y, score, **weights),
    }


def _of_two_classes(frozen: FrozenNetwork, rows: Rows) -> dict[str, float]:
    from sklearn import metrics

    score, weights = frozen.score_features(rows.x), {"sample_weight": rows.weight}
    probability = frozen.to_probability(score)
    return {
        "AUC": metrics.roc_auc_score(rows.y, score, **weights),
        "accuracy": metrics.accuracy_score(rows.y, score >= 0, **weights),
        "log loss": metrics.log_loss(rows.y, probability, labels=[0, 1], **weights),
    }


def _of_classes(frozen: FrozenNetwork, rows: Rows) -> dict[str, float]:
    from sklearn import metrics

    score, weights = frozen.score_features(rows.x), {"sample_weight": rows.weight}
    probability, numbers = frozen.to_probability(score), np.arange(frozen.n_outputs)
    probability /= probability.sum(axis=1, keepdims=True)  # each is rounded on its own
    return {
        "accuracy": metrics.accuracy_score(rows.y, score.argmax(axis=1), **weights),
        "log loss": metrics.log_loss(rows.y, probability, labels=numbers, **weights),
    }
