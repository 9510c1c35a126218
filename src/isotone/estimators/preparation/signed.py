r"""Signed weights, as sWeights and generators at next-to-leading order give them, made positive.

A loss :math:`\sum_i w_i \ell(f(x_i), y_i)` has no lower bound where the weights of neighbors add
up to less than zero: a network that is flexible enough makes it as negative as it likes. Its
expectation is bounded, and depends on the weights through their mean alone,

.. math:: \bar w(x, y) = \mathrm{E}[w \mid x, y] \ge 0,

which is a ratio of densities. An estimate of it takes the place of the weights (Borisyak and
Kazeev, arXiv:1905.11719): boosted trees of squared error, each row predicted by trees that have
not seen it, or its group, cut off at zero, and scaled so that every class keeps its total.

The rows of a stream are not all in memory. Their mean weights are those that the trees of a sample
predict; these trees have not seen them either, but for the few of the sample itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from isotone.estimators.preparation.observations import folds
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices

_N_FOLDS = 5
_FEWEST = 50  # rows of a class from which on a mean can depend on the features
_MANY = 100_000  # rows from which on threads help; they wait for each other where others compute
_SMALLEST_LEAF, _LARGEST_LEAF, _LEAVES = 20, 500, 50  # rows of a leaf


@dataclass(frozen=True, eq=False)
class MeanWeight:
    """The mean weight of rows of one class, or of all, as a function of what decides it.

    Parameters
    ----------
    trees : whose mean is predicted, in units of `scale`; none if the mean is the same everywhere
    factor : of what they predict, cut off at zero
    """

    trees: tuple[Any, ...]
    scale: float
    factor: float

    def __call__(self, x: Floats) -> Floats:
        if not self.trees:
            return np.full(len(x), self.scale * self.factor)
        mean = np.mean([trees.predict(x) for trees in self.trees], axis=0)
        return np.asarray(np.maximum(mean, 0.0) * self.scale * self.factor)

    def times(self, factor: float) -> MeanWeight:
        return replace(self, factor=self.factor * factor)


@dataclass(frozen=True, eq=False)
class MeanWeights:
    """Mean weights of rows that were not seen: by class, or of all rows together."""

    parts: tuple[MeanWeight, ...]
    of_classes: bool

    def __call__(self, x: Floats, y: Floats) -> Floats:
        """Those of rows with features and targets, or numbers of classes, (n_rows,)."""
        if not self.of_classes:
            return self.parts[0](np.column_stack([x, y]))
        found = np.zeros(len(x))
        for k, part in enumerate(self.parts):
            own = y == k
            if own.any():
                found[own] = part(x[own])
        return found


def mean_weights(rows: Rows, classes: Indices | None, names: Any = None) -> Floats:
    """The weights of rows, replaced by their mean given features and target if some are negative.

    Parameters
    ----------
    rows : features (n_rows, n_features), NaN where they are missing, targets and weights
    classes : of every row, whose totals are kept; None if targets are values
    names : of the classes, for messages
    """
    weight = np.asarray(rows.weights(), np.float64)
    if not np.any(weight < 0):
        return weight
    found = weight.copy()
    for _, name, own in _parts(rows, classes, names):
        if np.any(weight[own] < 0):
            found[own] = _mean(*_of(rows, classes, own), name)[0]
        else:
            _total(weight[own], name)
    return found


def learn_mean_weights(
    rows: Rows, classes: Indices | None, names: Any = None
) -> tuple[Floats, MeanWeights]:
    """The mean weights of rows of a sample, and a function that tells those of other rows.

    The parameters are those of `mean_weights`; weights without a negative one are averaged, too.
    """
    found = np.zeros(len(rows))
    parts = []
    for _, name, own in _parts(rows, classes, names):
        found[own], part = _mean(*_of(rows, classes, own), name)
        parts.append(part)
    return found, MeanWeights(tuple(parts), classes is not None)


def _parts(
    rows: Rows, classes: Indices | None, names: Any
) -> Iterator[tuple[int, str, NDArray[Any]]]:
    """Rows whose mean weight is learned together: numbers and names of classes, and their rows."""
    if classes is None:
        yield 0, "all rows", np.ones(len(rows), bool)
        return
    for k in np.unique(classes).tolist():
        yield k, f"class {k if names is None else names[k]!r}", classes == k


def _of(
    rows: Rows, classes: Indices | None, own: NDArray[Any]
) -> tuple[Floats, Floats, Indices | None]:
    """What decides a mean weight, the weights, and the groups of some rows."""
    x = rows.x if classes is not None else np.column_stack([rows.x, rows.y])
    weight = np.asarray(rows.weights(), np.float64)
    return x[own], weight[own], None if rows.group is None else rows.group[own]


def _total(weight: Floats, name: str) -> float:
    total = float(np.sort(weight).sum())  # sums of any order of the rows
    if not total > 0:
        raise ValueError(
            f"the weights of {name} add up to {total:.4g}; their total must be positive, since it "
            "says how often such rows occur: correct the weights, or give more rows"
        )
    return total


def _mean(
    x: Floats, weight: Floats, group: Indices | None, name: str
) -> tuple[Floats, MeanWeight]:
    total = _total(weight, name)
    order = np.lexsort((weight, *x.T))  # so that the order of the rows changes no bit
    own = None if group is None else group[order]
    predicted, trees, scale = _predict(x[order], weight[order], own)
    mean = np.empty_like(weight)
    mean[order] = np.maximum(predicted, 0.0)
    if not mean.any() or not trees:
        same = total / len(weight)
        return np.full_like(weight, same), MeanWeight((), same, 1.0)
    factor = total / np.sort(mean).sum()
    return mean * factor, MeanWeight(tuple(trees), scale, factor)


def _predict(x: Floats, weight: Floats, group: Indices | None) -> tuple[Floats, list[Any], float]:
    """The mean weight at every row, by trees that have not seen it; and these, and their unit."""
    scale = float(np.abs(weight).mean())
    if len(x) < _FEWEST:
        return np.full(len(x), weight.mean()), [], scale
    # targets do not matter for folds, weights are what is predicted
    part = folds(Rows(x, weight[:, None], np.ones(len(x)), group), _N_FOLDS, seed=0)
    found, every = np.empty(len(x)), []
    leaf = int(np.clip(len(x) // _LEAVES, _SMALLEST_LEAF, _LARGEST_LEAF))
    with threadpool_limits(1 if len(x) < _MANY else None, user_api="openmp"):
        for k in np.unique(part).tolist():
            trees = HistGradientBoostingRegressor(
                min_samples_leaf=leaf, early_stopping=True, random_state=0
            )
            left = part == k
            found[left] = trees.fit(x[~left], weight[~left] / scale).predict(x[left]) * scale
            every.append(trees)
    return found, every, scale
