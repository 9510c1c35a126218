"""Curves: histograms, means in bins, ranking by a score, calibration; rows count by weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.trigger.efficiency import quantile_edges
from isotone.typing import Bools, Floats, Indices, Integers

N_HISTOGRAM = 40
N_CALIBRATION = 10
N_POINTS = 240


@dataclass(frozen=True, eq=False)
class Binned:
    """Means in bins with their errors; NaN where a bin is empty."""

    value: Floats
    error: Floats
    n: Integers

    @classmethod
    def mean(cls, index: NDArray[Any], values: Floats, weight: Floats, n_bins: int) -> Binned:
        r"""Weighted means in bins.

        The error is that of a mean of :math:`m = (\sum w)^2 / \sum w^2` rows; for values 0 and 1
        with the variance of one more row of each kind, so that it is never 0.

        Parameters
        ----------
        index : of the bin of every row, negative for none
        """
        counts = (index >= 0) & (weight > 0)
        index, values, weight = index[counts], values[counts], weight[counts]

        def total(each: Floats) -> Floats:
            return np.bincount(index, each, n_bins).astype(float)

        n = np.bincount(index, minlength=n_bins)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = total(weight * values) / total(weight)
            effective = total(weight) ** 2 / total(weight**2)
            if np.all((values == 0) | (values == 1)):
                p = (value * effective + 1) / (effective + 2)
                return cls(value, np.sqrt(p * (1 - p) / (effective + 3)), n)
            spread = total(weight * (values - value[index]) ** 2) / total(weight)
            return cls(value, np.sqrt(spread / effective), n)

    def to_dict(self) -> dict[str, Any]:
        return {"value": _short(self.value), "error": _short(self.error), "n": self.n.tolist()}


@dataclass(frozen=True, eq=False)
class Calibration:
    """Mean predicted probability of every bin, the observed share, and the weight of its rows."""

    predicted: Floats
    observed: Binned
    weight: Floats

    @property
    def gap(self) -> float:
        """Mean distance between what is predicted and what is observed."""
        some = self.weight > 0
        apart = np.abs(self.predicted - self.observed.value)[some]
        return float(np.average(apart, weights=self.weight[some]))

    def to_dict(self) -> dict[str, Any]:
        return {"predicted": _short(self.predicted)} | self.observed.to_dict()


def calibration(probability: Floats, positive: Bools, weight: Floats) -> Calibration:
    """In bins with about equally many rows."""
    edges = quantile_edges(probability, N_CALIBRATION)
    n = len(edges) - 1
    index = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, n - 1)
    predicted = Binned.mean(index, probability, weight, n).value
    observed = Binned.mean(index, positive.astype(float), weight, n)
    return Calibration(predicted, observed, np.bincount(index, weight, n).astype(float))


def histogram(
    values: Floats,
    parts: Mapping[str, Bools],
    weight: Floats,
    whole: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Shares of every part of the rows in bins; each part sums to 1, with what lies outside."""
    finite = values[np.isfinite(values)]
    if whole is None:
        whole = tuple(np.quantile(finite, [0.001, 0.999]).tolist()) if len(finite) else (0.0, 1.0)
    low, high = whole if whole[1] > whole[0] else (whole[0] - 0.5, whole[0] + 0.5)
    counts = {}
    for name, rows in parts.items():
        found, _ = np.histogram(values[rows], N_HISTOGRAM, (low, high), weights=weight[rows])
        total = weight[rows].sum()
        counts[name] = {"share": _short(found / total) if total > 0 else [], "n": int(rows.sum())}
    return {"low": float(low), "high": float(high), "parts": counts}


def ranking(score: Floats, positive: Bools, weight: Floats) -> dict[str, Any]:
    r"""True and false positive rates for thresholds from above all scores to below them.

    The area under that curve counts ties half; the average precision is
    :math:`\sum_n (R_n - R_{n-1}) P_n` with recall R and precision P.
    """
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # of rows with equal scores
    hit = np.cumsum((weight * positive)[order])[last]
    wrong = np.cumsum((weight * ~positive)[order])[last]
    tpr, fpr = np.append(0.0, hit / hit[-1]), np.append(0.0, wrong / wrong[-1])
    precision = hit / np.maximum(hit + wrong, np.finfo(float).tiny)
    few = _spaced(tpr, fpr)
    return {
        "tpr": _short(tpr[few]),
        "fpr": _short(fpr[few]),
        "precision": _short(np.append(1.0, precision)[few]),
        "base": float(hit[-1] / (hit[-1] + wrong[-1])),
        "area": float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2)),
        "average_precision": float(np.sum(np.diff(tpr) * precision)),
    }


def _spaced(tpr: Floats, fpr: Floats) -> Indices:
    """Some of the points of a curve, evenly spaced along it, with both ends."""
    if len(tpr) <= N_POINTS:
        return np.arange(len(tpr))
    along = tpr + fpr
    places = np.searchsorted(along, np.linspace(0.0, along[-1], N_POINTS))
    return np.unique(np.append(places, len(tpr) - 1).clip(0, len(tpr) - 1))


def _short(values: Floats) -> list[float]:
    """Six digits are enough for a picture."""
    return [float(f"{value:.6g}") for value in values]
