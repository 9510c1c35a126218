r"""Importance of columns: how much scores change when a value is that of another row.

A permitted slope says little about a column that hardly varies, or that the network ignores.
Importance is measured instead, on pairs of training rows (x, x') that are drawn by their weights.
With x_c for x whose column c is that of x',

.. math:: I_c = \langle |f(x_c) - f(x)| \rangle / \sum_d \langle |f(x_d) - f(x)| \rangle

f is a score of `network_`: a logit, or the target. With several outputs I is the mean of theirs;
of several logits only differences mean something, so the mean of the logits is subtracted first.
"""

from __future__ import annotations

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices

_MOST_PAIRS, _FEWEST_PAIRS = 2048, 16
_CELLS = 2**25  # features of all rows to be scored, beyond which there are fewer pairs
_AT_ONCE = 2**21  # of these


def importances(network: FrozenNetwork, rows: Rows, seed: int) -> Floats:
    """Importance of every raw column, (n_columns,), of sum 1; all 0 if scores are constant.

    It depends on the weighted set of rows and on the seed alone.

    Parameters
    ----------
    rows : complete features, as `FrozenNetwork.encode` makes them, sorted, with a weight each
    """
    n_columns, n_features = len(network.inputs.columns), len(network.inputs.encoded)
    x, other = _pairs(rows, seed, _CELLS // (n_columns * n_features))
    step = max(_AT_ONCE // x.size, 1)
    parts = np.split(np.arange(n_columns), range(step, n_columns, step))
    changes = np.concatenate([_changes(network, x, other, columns) for columns in parts])
    total = changes.sum(axis=0)
    shares = changes[:, total > 0] / total[total > 0]
    return shares.mean(axis=1) if shares.size else np.zeros(n_columns)


def _pairs(rows: Rows, seed: int, most: int) -> tuple[Floats, Floats]:
    """Rows by their weights, evenly, and the same in another order."""
    n_pairs = int(np.clip(most, _FEWEST_PAIRS, _MOST_PAIRS))
    total = np.cumsum(rows.weights())
    places = (np.arange(n_pairs) + 0.5) * (total[-1] / n_pairs)
    x = rows.x[np.searchsorted(total, places)]
    return x, x[np.random.default_rng(seed).permutation(n_pairs)]


def _changes(network: FrozenNetwork, x: Floats, other: Floats, columns: Indices) -> Floats:
    """Mean absolute change of the outputs, (len(columns), n_outputs).

    One column after the other is that of the other rows.
    """
    owners = np.array(network.inputs.owners)
    changed = np.tile(x, (len(columns), 1, 1))
    for rows, column in zip(changed, columns, strict=True):
        own = np.flatnonzero(owners == column)
        rows[:, own] = other[:, own]
    scores = _scores(network, changed.reshape(-1, x.shape[1])).reshape(*changed.shape[:2], -1)
    change: Floats = np.abs(scores - _scores(network, x)).mean(axis=1)
    return change


def _scores(network: FrozenNetwork, features: Floats) -> Floats:
    scores = network.score_features(features).astype(np.float64).reshape(len(features), -1)
    several = network.outputs == "logits" and scores.shape[1] > 1
    return scores - scores.mean(axis=1, keepdims=True) if several else scores
