"""Statistics of a table: distributions of scores, how good they are, and against what columns.

All of them are of all rows, and rows count by their weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.report.outcomes import Outcomes
from isotone.report.table.curves import Binned, calibration, histogram, ranking
from isotone.report.table.residuals import describe_residuals
from isotone.report.table.sample import Column, Sample
from isotone.report.table.stops import by_stop
from isotone.trigger.efficiency import quantile_edges
from isotone.typing import Floats

N_BINS = 10
_MAX_TRUE_CLASSES = 6  # more of them are not told apart in a histogram


def describe(
    frozen: FrozenNetwork,
    outcomes: Outcomes,
    sample: Sample,
    scores: Floats,
    stops: Floats | None = None,
) -> dict[str, Any]:
    """Panels for every output, metrics, and efficiencies against every column."""
    probability = frozen.to_probability(scores) if outcomes.has_probability else None
    return {
        "metrics": metrics_of(outcomes, sample, scores, probability),
        "outputs": _outputs(outcomes, sample, scores, probability),
        "against": _against(outcomes, sample, scores, stops),
        "confusion": _confusion(outcomes, sample, scores),
        "residuals": _residuals(outcomes, sample, scores),
    }


def _residuals(outcomes: Outcomes, sample: Sample, scores: Floats) -> dict[str, Any] | None:
    if sample.y is None or outcomes.kind != "values":
        return None
    return describe_residuals(sample.y, scores, sample.weight)


def _confusion(outcomes: Outcomes, sample: Sample, scores: Floats) -> list[list[float]] | None:
    """Weight of the rows of every true class (first index) and decision, of several classes."""
    if outcomes.kind != "classes" or sample.y is None:
        return None
    n, decided = len(outcomes.classes), scores.argmax(axis=1)
    pairs = sample.y.astype(int) * n + decided
    counts = np.bincount(pairs, sample.weight, n * n).reshape(n, n)
    return [[float(count) for count in row] for row in counts]


def _outputs(
    outcomes: Outcomes, sample: Sample, scores: Floats, probability: Floats | None
) -> list[dict[str, Any]]:
    """Distribution, ranking and calibration of every output."""
    decided = outcomes.decide(scores)
    if decided is None:
        columns = [scores] if scores.ndim == 1 else list(scores.T)
        parts = {"all rows": np.ones(len(sample), bool)}
        return [{"histogram": histogram(each, parts, sample.weight)} for each in columns]
    if outcomes.kind == "two classes":
        return [_of_class(outcomes, sample, 1, scores, probability, decided)]
    assert probability is not None
    columns = list(probability.T)
    return [_of_class(outcomes, sample, k, p, p, decided) for k, p in enumerate(columns)]


def _of_class(
    outcomes: Outcomes,
    sample: Sample,
    k: int,
    score: Floats,
    probability: Floats | None,
    decided: Floats,
) -> dict[str, Any]:
    """What there is to say about one class against all others."""
    y, weight = sample.y, sample.weight
    whole = (0.0, 1.0) if outcomes.kind == "classes" else None
    parts = _parts(outcomes, sample, k)
    data: dict[str, Any] = {"histogram": histogram(score, parts, weight, whole)}
    if y is None:
        return data
    positive = y == k
    if weight[positive].any() and weight[~positive].any():
        data["ranking"] = ranking(score, positive, weight)
        data["point"] = _point(decided == k, positive, weight)
    if probability is not None:
        data["calibration"] = calibration(probability, positive, weight).to_dict()
    return data


def _parts(outcomes: Outcomes, sample: Sample, k: int) -> dict[str, Any]:
    """Rows by what they truly are."""
    if sample.y is None:
        return {"all rows": np.ones(len(sample), bool)}
    if len(outcomes.classes) <= _MAX_TRUE_CLASSES:
        return {outcomes.name(c): sample.y == c for c in range(len(outcomes.classes))}
    return {outcomes.name(k): sample.y == k, "all others": sample.y != k}


def _point(accepted: Any, positive: Any, weight: Floats) -> dict[str, float]:
    """Rates of a decision: true and false positives, and the precision."""
    hit, wrong = (weight[accepted & rows].sum() for rows in (positive, ~positive))
    return {
        "tpr": float(hit / weight[positive].sum()),
        "fpr": float(wrong / weight[~positive].sum()),
        "precision": float(hit / (hit + wrong)) if hit + wrong > 0 else 1.0,
    }


def metrics_of(
    outcomes: Outcomes, sample: Sample, scores: Floats, probability: Floats | None
) -> list[list[Any]]:
    """Names and numbers, best known first."""
    y, weight = sample.y, sample.weight
    if y is None:
        return []
    if outcomes.kind == "values":
        return _of_values(y, scores, weight)
    decided = outcomes.decide(scores)
    found: list[list[Any]] = []
    if decided is not None:
        found.append(["accuracy", float(np.average(decided == y, weights=weight))])
    if probability is not None:
        right = (
            probability if probability.ndim == 2 else np.stack([1 - probability, probability], 1)
        )
        found.append(["calibration error", _calibration_error(right, y, weight)])
        own = np.maximum(right[np.arange(len(y)), y.astype(int)], 1e-300)
        found.append(["mean logarithmic loss", float(np.average(-np.log(own), weights=weight))])
    return found


def _calibration_error(probability: Floats, y: Floats, weight: Floats) -> float:
    r"""Mean over rows of :math:`|\text{predicted} - \text{observed}|` in their bin.

    Bins are those of `curves.calibration`, for the second of two classes, and averaged over
    several.
    """
    classes = [1] if probability.shape[1] == 2 else range(probability.shape[1])
    return float(np.mean([calibration(probability[:, k], y == k, weight).gap for k in classes]))


def _of_values(y: Floats, score: Floats, weight: Floats) -> list[list[Any]]:
    error = y - score
    squared = float(np.average(error**2, weights=weight))
    spread = float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))
    return [
        ["share of variance explained (R²)", 1 - squared / spread if spread > 0 else None],
        ["root mean squared error", squared**0.5],
        ["mean absolute error", float(np.average(np.abs(error), weights=weight))],
    ]


def _against(
    outcomes: Outcomes, sample: Sample, scores: Floats, stops: Floats | None
) -> list[dict[str, Any]]:
    """For every column, curves over its bins or groups; of decisions also at every stop."""
    curves = _curves(outcomes, sample, scores)
    found = []
    for name, column in sample.columns.items():
        index, bins = bins_of(column)
        n = len(bins["at"])
        curve = [
            {"name": title}
            | Binned.mean(index, values, weight, n).to_dict()
            | by_stop(index, scores, weight, stops, n)
            for title, values, weight in curves
        ]
        found.append({"column": name} | bins | {"curves": curve})
    return found


def bins_of(column: Column) -> tuple[Any, dict[str, Any]]:
    """Number of the bin of every row, −1 for none, and what the bins are."""
    if column.dtype.kind != "f":
        names, index = np.unique(column, return_inverse=True)
        return index, {"at": names.tolist(), "edges": None}
    edges = quantile_edges(column.astype(float), N_BINS)
    index = np.searchsorted(edges, column, side="right") - 1
    index[(index >= len(edges) - 1) | ~np.isfinite(column)] = -1
    middles = 0.5 * (edges[:-1] + edges[1:])
    short = [float(f"{edge:.5g}") for edge in edges]  # an edge may be the number of one row
    return index, {"at": [float(f"{at:.5g}") for at in middles], "edges": short}


def _curves(
    outcomes: Outcomes, sample: Sample, scores: Floats
) -> list[tuple[str, Floats, Floats]]:
    """Title, numbers to average, and weights, of the curves against a column."""
    y, weight = sample.y, sample.weight
    decided = outcomes.decide(scores)
    if decided is None:
        columns = [scores] if scores.ndim == 1 else list(scores.T)
        names = ["predicted"] if len(columns) == 1 else list(outcomes.outputs)
        curves = [(name, each, weight) for name, each in zip(names, columns, strict=True)]
        return curves if y is None else [*curves, ("observed", y, weight)]
    classes = range(len(outcomes.classes))
    if outcomes.kind == "classes":
        if y is None:
            return [(outcomes.name(c), (decided == c).astype(float), weight) for c in classes]
        return [
            (outcomes.name(c), (decided == c).astype(float), weight * (y == c)) for c in classes
        ]
    if y is None:
        return [("all rows", decided, weight)]
    return [(outcomes.name(c), decided, weight * (y == c)) for c in classes]
