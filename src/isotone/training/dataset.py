"""Dataset: rows to train on, checked once, in the memory layout of the compiled engine."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.typing import Reals

Labels = Literal["binary", "classes"]


class Dataset(NamedTuple):
    """Contiguous finite arrays of one precision; fields are named as the engine's arguments.

    Parameters
    ----------
    x : (n_rows, n_features)
    y : (n_rows,) or (n_rows, n_outputs)
    sample_weight : (n_rows,) or (n_members, n_rows), not negative
    """

    x: Reals
    y: Reals | None = None
    sample_weight: Reals | None = None

    @classmethod
    def checked(cls, x: Reals, y: ArrayLike, n_outputs: int, labels: Labels | None) -> Dataset:
        """The dataset for checked features; `labels` says if targets are classes, and which."""
        if len(x) == 0:
            raise ValueError("`x` has no row to take the mean loss of; give at least one")
        targets = _check_targets(y, len(x), 1 if labels == "classes" else n_outputs, x.dtype)
        if labels is not None:
            _check_labels(targets, labels, n_outputs)
        return cls(x, targets)


def check_features(x: ArrayLike, n_features: int, dtype: np.dtype[Any]) -> Reals:
    """Features as the engine reads them, (n_rows, n_features)."""
    features: Reals = np.ascontiguousarray(x, dtype)
    if features.ndim != 2 or features.shape[1] != n_features:
        raise ValueError(
            f"`x` has shape {features.shape}; give (n_rows, {n_features}), one column per feature"
        )
    if not np.all(np.isfinite(features)):
        raise ValueError(f"`x` holds NaN or infinity in {dtype}; remove or replace such rows")
    return features


def check_order(order: ArrayLike, n_members: int, n_rows: int) -> NDArray[np.int32]:
    """Numbers of rows, (n_visits,) or (n_members, n_visits)."""
    rows = np.asarray(order)
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"`order` holds {rows.dtype}; give row numbers, as int32")
    if rows.size == 0 or (rows.ndim != 1 and rows.shape[:-1] != (n_members,)):
        raise ValueError(
            f"`order` has shape {rows.shape}; give (n_visits,), or ({n_members}, n_visits) with "
            "one row per member"
        )
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(
            f"`order` holds numbers from {rows.min()} to {rows.max()} but `x` has {n_rows} rows; "
            "give row numbers from 0 on"
        )
    return np.ascontiguousarray(rows, np.int32)


def check_weight(sample_weight: ArrayLike, n_members: int, x: Reals) -> Reals:
    """Weights of the rows of x, (n_rows,) or (n_members, n_rows)."""
    weight: Reals = np.ascontiguousarray(sample_weight, x.dtype)
    n_rows = len(x)
    if weight.shape not in ((n_rows,), (n_members, n_rows)):
        raise ValueError(
            f"`sample_weight` has shape {weight.shape}; give ({n_rows},), one per row, or "
            f"({n_members}, {n_rows}) with one row per member"
        )
    if not np.all((weight >= 0) & np.isfinite(weight)) or not np.all(np.any(weight > 0, axis=-1)):
        raise ValueError("`sample_weight` must be finite, not negative, and positive for some row")
    return weight


def _check_targets(y: ArrayLike, n_rows: int, n_targets: int, dtype: np.dtype[Any]) -> Reals:
    targets: Reals = np.ascontiguousarray(y, dtype)
    shapes = [(n_rows, n_targets)] + [(n_rows,)] * (n_targets == 1)
    if targets.shape not in shapes:
        raise ValueError(
            f"`y` has shape {targets.shape}; give {' or '.join(map(str, shapes))}, targets for "
            "each row of `x`"
        )
    if not np.all(np.isfinite(targets)):
        raise ValueError(f"`y` holds NaN or infinity in {dtype}; remove such rows")
    return targets


def _check_labels(y: Reals, labels: Labels, n_classes: int) -> None:
    if labels == "binary" and np.any((y < 0) | (y > 1)):
        raise ValueError("`y` must hold labels 0 and 1; map the two classes to them")
    if labels == "classes" and np.any((y < 0) | (y >= n_classes) | (y != np.floor(y))):
        raise ValueError(f"`y` must hold class numbers from 0 to {n_classes - 1}")
