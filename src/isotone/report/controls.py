"""Controls: the sliders and choices of the page, one for every column of a table.

A column of categories is one choice though it is several features; the indicator of a gap
belongs to its column. Ranges come from the table, and without one from the scaling.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.elementary import log
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Category, Column, Ordered
from isotone.report.sample import Sample
from isotone.typing import Floats

N_BINS = 40
_REACH = 3.0  # scaled units on both sides of the center, where no table tells a range
_BEYOND = 0.2  # how far sliders go beyond most rows, of the width of those


def controls_of(frozen: FrozenNetwork, sample: Sample | None) -> list[dict[str, Any]]:
    """A description of every control, in the order of the columns."""
    return [_control(frozen, column, sample) for column in frozen.inputs.columns]


def _control(frozen: FrozenNetwork, column: Column, sample: Sample | None) -> dict[str, Any]:
    place = {name: i for i, name in enumerate(frozen.features)}
    features = [place[name] for name in column.features]
    if isinstance(column, Category):
        names = [text or "(missing)" for text in column.categories]
        return _category(column.name, features, names, sample)
    gap = None if column.fill is None else place[f"missing({column.name})"]
    control = _number(frozen, column.name, features[0], gap, sample)
    if gap is not None:
        control |= {"indicator": gap, "fill": column.fill}
    if isinstance(column, Ordered):
        control |= {"ranks": list(column.categories)}
    return control


def start_row(frozen: FrozenNetwork, sample: Sample | None) -> list[float]:
    """The median of every feature, the most frequent category; without rows the center."""
    columns, place = frozen.inputs.columns, frozen.features.index
    if sample is None:
        row = frozen.scaling.inverse(np.zeros((1, frozen.n_features)))[0]
    else:
        row = np.array([_median(column, sample.weight) for column in sample.X.T])
    row = np.array([float(f"{value:.5g}") for value in row])  # short numbers to begin with
    for column in (c for c in columns if isinstance(c, Category)):
        features = [place(f) for f in column.features]
        share = np.zeros(len(features)) if sample is None else sample.X[:, features].sum(axis=0)
        row[features] = np.eye(len(features))[share.argmax()]
    for name in (c.name for c in columns if c.fill is not None):
        row[place(f"missing({name})")] = 0.0
    return [float(value) for value in row]


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


def _number(
    frozen: FrozenNetwork, column: str, feature: int, gap: int | None, sample: Sample | None
) -> dict[str, Any]:
    values = None if sample is None else sample.X[:, feature]
    known = slice(None) if sample is None or gap is None else sample.X[:, gap] == 0
    low, high, inner = _range(frozen, feature, values)
    t = along(frozen, feature, np.array(inner))
    beyond = _BEYOND * (t[1] - t[0]) or 1.0 / frozen.scaling.factor[feature]
    axis = [float(t[0] - beyond), float(t[1] + beyond)]
    if frozen.scaling.log[feature]:
        axis[0] = max(axis[0], float(np.log(frozen.scaling.floor[feature])))
    control = {
        "kind": "number",
        "name": column,
        "feature": feature,
        "low": low,
        "high": high,
        "axis": axis,
        "whole": values is not None and bool(np.all(values == np.rint(values))),
        "density": None,
    }
    if sample is not None:
        where = along(frozen, feature, sample.X[known, feature])
        control["density"] = _density(where, axis, sample.weight[known])
    return control


def along(frozen: FrozenNetwork, feature: int, values: Floats) -> Floats:
    """Where values lie on the axis of a feature: themselves, or their logarithm if scaled so."""
    scaling = frozen.scaling
    if not scaling.log[feature]:
        return np.asarray(values, dtype=float)
    return log(np.maximum(values + scaling.offset[feature], scaling.floor[feature]))


def _range(
    frozen: FrozenNetwork, feature: int, values: Floats | None
) -> tuple[float, float, tuple[float, float]]:
    """Smallest and largest value, and the range of nearly all."""
    if values is None:
        x = np.zeros((2, frozen.n_features))
        x[:, feature] = -_REACH, _REACH
        low, high = frozen.scaling.inverse(x)[:, feature]
        return float(low), float(high), (float(low), float(high))
    low, bottom, top, high = np.quantile(values, [0.0, 0.005, 0.995, 1.0])
    return float(low), float(high), (float(bottom), float(top))


def _density(where: Floats, axis: list[float], weight: Floats) -> list[float]:
    counts, _ = np.histogram(where, N_BINS, (axis[0], axis[1]), weights=weight)
    return [float(f"{share:.4g}") for share in counts / weight.sum()]


def _median(values: Floats, weight: Floats) -> float:
    return float(np.quantile(values, 0.5, method="inverted_cdf", weights=weight))
