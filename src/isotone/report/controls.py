"""Controls: the sliders and choices of the page, one for every column of a table.

A column of categories is one choice though it is several features; the indicator of a
missing value belongs to its column. Ranges come from the table, and without one from the scaling
or the knots.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isotone.frozen.axes import along, usual_values
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Category, Column, Ordered, missing_name
from isotone.report.table.effects import effects
from isotone.report.table.sample import Sample
from isotone.typing import Floats

N_BINS = 40
_BEYOND = 0.2  # how far sliders go beyond most rows, of the width of those
_FAR = 2.0  # knots or rows that would make a slider wider than this are left out of it


def controls_of(frozen: FrozenNetwork, sample: Sample | None) -> list[dict[str, Any]]:
    """A description of every control, in the order of the columns, with its measured effect."""
    measured = effects(frozen, sample, np.array(start_row(frozen, sample)))
    return [
        _control(frozen, column, sample) | {"effect": effect}
        for column, effect in zip(frozen.inputs.columns, measured, strict=True)
    ]


def _control(frozen: FrozenNetwork, column: Column, sample: Sample | None) -> dict[str, Any]:
    place = {name: i for i, name in enumerate(frozen.inputs.encoded)}
    features = [place[name] for name in column.features]
    if isinstance(column, Category):
        names = [text or "(missing)" for text in column.categories]
        names += [f"(other: {column.pooled} pooled)"] * bool(column.pooled)
        return _category(column.name, features, names, sample)
    if isinstance(column, Ordered):
        control = _ordered(column, features[0])
    else:
        control = _number(frozen, column.name, features[0], _present(frozen, column, sample))
    if column.fill is not None:
        control |= {"indicator": place[missing_name(column.name)], "fill": column.fill}
    return control


def _present(frozen: FrozenNetwork, column: Column, sample: Sample | None) -> Sample | None:
    """The rows in which the value of a column is present; None if there are none."""
    if sample is None or column.fill is None:
        return sample
    rows = sample.X[:, frozen.inputs.encoded.index(missing_name(column.name))] == 0
    some = replace(sample, X=sample.X[rows], weight=sample.weight[rows])
    return some if some.weight.any() else None


def start_row(frozen: FrozenNetwork, sample: Sample | None) -> list[float]:
    """The median of present values, the most frequent category; without rows the center."""
    place = frozen.inputs.encoded.index
    row = np.zeros(len(frozen.inputs.encoded))  # nothing is missing
    for column in frozen.inputs.columns:
        features = [place(name) for name in column.features]
        row[features] = _start(frozen, column, features, _present(frozen, column, sample))
    return [float(value) for value in row]


def _start(
    frozen: FrozenNetwork, column: Column, features: list[int], sample: Sample | None
) -> Floats:
    """The values of the features of a column to begin with."""
    if isinstance(column, Category):
        share = np.zeros(len(features)) if sample is None else sample.X[:, features].sum(axis=0)
        return np.asarray(np.eye(len(features))[share.argmax()])
    if sample is None:
        middle = usual_values(frozen)[1, features[0]]
    else:
        middle = _median(sample.X[:, features[0]], sample.weight)
    if isinstance(column, Ordered):
        return np.clip(np.rint([middle]), 0, len(column.categories) - 1)
    return np.array([float(f"{middle:.5g}")])  # a short number


def _category(
    column: str, features: list[int], names: list[str], sample: Sample | None
) -> dict[str, Any]:
    share = None
    if sample is not None:
        share = (sample.weight @ sample.X[:, features] / sample.weight.sum()).tolist()
    return {
        "kind": "category",
        "name": column,
        "features": features,
        "labels": names,
        "share": share,
    }


def _ordered(column: Ordered, feature: int) -> dict[str, Any]:
    names = list(column.categories)
    return {"kind": "ordered", "name": column.name, "feature": feature, "labels": names}


def _number(
    frozen: FrozenNetwork, column: str, feature: int, sample: Sample | None
) -> dict[str, Any]:
    usual = usual_values(frozen)[[0, 2], feature]
    values = usual if sample is None else sample.X[:, feature]
    whole = sample is not None and bool(np.all(values == np.rint(values)))
    axis = _axis(frozen, feature, values, usual)
    if sample is not None:
        axis = _bounded(frozen, feature, axis, values, whole)
    control = {
        "kind": "number",
        "name": column,
        "feature": feature,
        "low": float(values.min()),
        "high": float(values.max()),
        "axis": axis,
        "whole": whole,
        "spread": None if sample is None else float(np.std(values)),
        "density": None,
    }
    if sample is not None:
        control["density"] = _density(along(frozen, feature, values), axis, sample.weight)
    return control


def _axis(frozen: FrozenNetwork, feature: int, values: Floats, usual: Floats) -> list[float]:
    """The ends of a slider: nearly all values, the knots unless they are far off, and beyond.

    All values, if that makes it no more than twice as wide.
    """
    low, high = along(frozen, feature, np.quantile(values, [0.005, 0.995]))
    width, ends = high - low, along(frozen, feature, np.array([values.min(), values.max()]))
    knots = along(frozen, feature, usual)
    beyond = _BEYOND * width or _BEYOND * (knots[1] - knots[0]) or 1.0
    low, high = low - beyond, high + beyond
    covered = [ends, knots] if frozen.inputs.counts[feature] > 1 else [ends]
    for least, most in covered:
        margin = 0.0 if (least, most) == tuple(ends) else beyond
        if width > 0 and most - least <= _FAR * (width + 2 * beyond):
            low, high = min(low, least - margin), max(high, most + margin)
    first = frozen.inputs.firsts[feature]
    least = np.log(frozen.scaling.floor[first]) if frozen.scaling.log[first] else -np.inf
    return [float(max(low, least)), float(high)]


def _bounded(
    frozen: FrozenNetwork, feature: int, axis: list[float], values: Floats, whole: bool
) -> list[float]:
    """An axis on the side of zero where all values are, and between whole numbers."""
    first = frozen.inputs.firsts[feature]
    if frozen.scaling.log[first]:
        zero = along(frozen, feature, np.zeros(1))[0] if values.min() >= 0 else -np.inf
        return [float(max(axis[0], zero)), axis[1]]
    low = max(axis[0], 0.0) if values.min() >= 0 else axis[0]
    high = min(axis[1], 0.0) if values.max() <= 0 and values.min() < 0 else axis[1]
    return [float(np.floor(low)), float(np.ceil(high))] if whole else [low, high]


def _density(where: Floats, axis: list[float], weight: Floats) -> list[float]:
    counts, _ = np.histogram(where, N_BINS, (axis[0], axis[1]), weights=weight)
    return [float(f"{share:.4g}") for share in counts / weight.sum()]


def _median(values: Floats, weight: Floats) -> float:
    return float(np.quantile(values, 0.5, method="inverted_cdf", weights=weight))
