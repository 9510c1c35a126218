"""Importance of columns, measured on pairs of training rows; see `isotone.explanation`."""

from __future__ import annotations

import numpy as np

from isotone.explanation.importance import effects, most_pairs
from isotone.frozen.network import FrozenNetwork
from isotone.training.rows import Rows
from isotone.typing import Floats


def importances(network: FrozenNetwork, rows: Rows, seed: int) -> Floats:
    """Importance of every raw column, (n_columns,), of sum 1; all 0 if scores are constant.

    It depends on the weighted set of rows and on the seed alone.

    Parameters
    ----------
    rows : complete features, as `FrozenNetwork.encode` makes them, sorted, with a weight each
    """
    n_pairs, total = most_pairs(network), np.cumsum(rows.weights())
    places = (np.arange(n_pairs) + 0.5) * (total[-1] / n_pairs)  # by their weights, evenly
    return effects(network, rows.x[np.searchsorted(total, places)], seed)
