r"""Signed weights, as sWeights and generators at next-to-leading order give them, made positive.

A loss :math:`\sum_i w_i \ell(f(x_i), y_i)` has no lower bound where the weights of neighbors add
up to less than zero: a network that is flexible enough makes it as negative as it likes. Its
expectation is bounded, and depends on the weights through their mean alone,

.. math:: \bar w(x, y) = \mathrm{E}[w \mid x, y] \ge 0,

which is a ratio of densities. An estimate of it takes the place of the weights (Borisyak and
Kazeev, arXiv:1905.11719): boosted trees of squared error, each row predicted by trees that have
not seen it, or its group, cut off at zero, and scaled so that every class keeps its total.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from isotone.estimators.preparation.observations import folds
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices

_N_FOLDS = 5
_FEWEST = 50  # rows of a class from which on a mean can depend on the features
_MANY = 100_000  # rows from which on threads help; they wait for each other where others compute
_SMALLEST_LEAF, _LARGEST_LEAF, _LEAVES = 20, 500, 50  # rows of a leaf


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
    if classes is None:
        table = np.column_stack([rows.x, rows.y])
        return _mean(table, weight, rows.group, "all rows")
    found = np.zeros_like(weight)
    for k in np.unique(classes).tolist():
        own = classes == k
        group = None if rows.group is None else rows.group[own]
        name = f"class {k if names is None else names[k]!r}"
        found[own] = _mean(rows.x[own], weight[own], group, name)
    return found


def _mean(x: Floats, weight: Floats, group: Indices | None, name: str) -> Floats:
    total = float(np.sort(weight).sum())  # sums of any order of the rows
    if not total > 0:
        raise ValueError(
            f"the weights of {name} add up to {total:.4g}; their total must be positive, since it "
            "says how often such rows occur: correct the weights, or give more rows"
        )
    if not np.any(weight < 0):
        return weight
    order = np.lexsort((weight, *x.T))  # so that the order of the rows changes no bit
    own = None if group is None else group[order]
    mean = np.empty_like(weight)
    mean[order] = np.maximum(_predict(x[order], weight[order], own), 0.0)
    if not mean.any():
        return np.full_like(weight, total / len(weight))
    scaled: Floats = mean * (total / np.sort(mean).sum())
    return scaled


def _predict(x: Floats, weight: Floats, group: Indices | None) -> Floats:
    """The mean weight at every row, by trees that have not seen it."""
    if len(x) < _FEWEST:
        return np.full(len(x), weight.mean())
    # targets do not matter for folds, weights are what is predicted
    part = folds(Rows(x, weight[:, None], np.ones(len(x)), group), _N_FOLDS, seed=0)
    found, scale = np.empty(len(x)), np.abs(weight).mean()
    leaf = int(np.clip(len(x) // _LEAVES, _SMALLEST_LEAF, _LARGEST_LEAF))
    with threadpool_limits(1 if len(x) < _MANY else None, user_api="openmp"):
        for k in np.unique(part).tolist():
            trees = HistGradientBoostingRegressor(
                min_samples_leaf=leaf, early_stopping=True, random_state=0
            )
            left = part == k
            found[left] = trees.fit(x[~left], weight[~left] / scale).predict(x[left]) * scale
    return found
