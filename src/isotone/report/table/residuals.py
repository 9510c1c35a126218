"""Residuals: how far predictions of numbers are off, and where; counts, without single rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.report.table.curves import histogram
from isotone.trigger.efficiency import quantile_edges
from isotone.typing import Floats

N_CELLS = 36  # of the picture of predicted against observed, along each axis
N_BINS = 10


def describe_residuals(y: Floats, predicted: Floats, weight: Floats) -> dict[str, Any]:
    """Observed minus predicted: its distribution, its spread by prediction, and all pairs."""
    residual = y - predicted
    every = {"all rows": np.ones(len(y), bool)}
    return {
        "histogram": histogram(residual, every, weight),
        "by_prediction": _by_prediction(residual, predicted, weight),
        "pairs": _pairs(y, predicted, weight),
    }


def _by_prediction(residual: Floats, predicted: Floats, weight: Floats) -> dict[str, Any]:
    """Quantiles of the residual in bins of the prediction with about equally many rows."""
    edges = quantile_edges(predicted, N_BINS)
    index = np.clip(np.searchsorted(edges, predicted, side="right") - 1, 0, len(edges) - 2)
    found: dict[str, Any] = {"at": [], "low": [], "middle": [], "high": []}
    for k in range(len(edges) - 1):
        rows = (index == k) & (weight > 0)
        if not rows.any():
            continue
        levels = np.quantile(
            residual[rows], [0.1, 0.5, 0.9], method="inverted_cdf", weights=weight[rows]
        )
        found["at"].append(float(np.average(predicted[rows], weights=weight[rows])))
        for name, level in zip(("low", "middle", "high"), levels, strict=True):
            found[name].append(float(level))
    return found


def _pairs(y: Floats, predicted: Floats, weight: Floats) -> dict[str, Any]:
    """How many rows have which observed and predicted number, in square cells."""
    both = np.concatenate([y, predicted])
    low, high = (float(end) for end in np.quantile(both, [0.001, 0.999]))
    if high <= low:
        low, high = low - 0.5, high + 0.5
    around = ((low, high), (low, high))
    counts, _, _ = np.histogram2d(y, predicted, N_CELLS, around, weights=weight)
    across, up = np.nonzero(counts)
    cells = zip(across.tolist(), up.tolist(), counts[across, up].tolist(), strict=True)
    return {"low": low, "high": high, "n": N_CELLS, "cells": [list(cell) for cell in cells]}
