r"""Shapley values: what every column contributes to the difference between two scores.

For a row x and a row b of the background let :math:`v(S)` be the score of x whose columns outside
S are those of b. A column of categories, with knots or with missing values is one column. Then

.. math:: \phi_i = \sum_{S \not\ni i} \frac{|S|!\,(k - |S| - 1)!}{k!}\,
          \bigl(v(S \cup \{i\}) - v(S)\bigr), \qquad \sum_i \phi_i = f(x) - f(b).

`exact` enumerates all S. `along` follows one order of the columns, there and back; the mean over
orders drawn at random is an unbiased estimate, and its sum is right for every one of them.

Both are sums of differences of computed scores with positive weights. If none of the differences
is negative, then neither is the result, and if all are 0, then so is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import factorial

import numpy as np

from isotone.typing import Floats, Indices, Reals

MOST_COLUMNS = 12  # that are enumerated unless one asks for more
Value = Callable[[list[Reals]], Floats]  # of features, an array (n_rows,) each


@dataclass(frozen=True, eq=False)
class Game:
    """Rows against one row of the background.

    Parameters
    ----------
    value : what is explained
    rows, background : features, an array (n_rows,) each
    owned : of every column the numbers of its features
    """

    value: Value
    rows: Sequence[Reals]
    background: Sequence[Reals]
    owned: Sequence[Sequence[int]]

    def __call__(self, columns: Iterable[int]) -> Floats:
        """v(S), (n_rows,): these columns are those of the rows, all others of the background."""
        features = list(self.background)
        for column in columns:
            for feature in self.owned[column]:
                features[feature] = self.rows[feature]
        return self.value(features)


def exact(game: Game, block: Sequence[int]) -> Floats:
    """Shapley values of the columns of a block, (len(block), n_rows), by enumeration.

    The columns outside the block are those of the background throughout.
    """
    k, n_rows = len(block), len(game.rows[0])
    v = np.empty((2**k, n_rows))
    for mask in range(2**k):
        v[mask] = game(column for bit, column in enumerate(block) if mask >> bit & 1)
    values, rises = np.empty((k, n_rows)), np.empty((2 ** (k - 1), n_rows))
    for bit in range(k):
        pairs = v.reshape(2 ** (k - 1 - bit), 2, 2**bit, n_rows)
        np.subtract(pairs[:, 1], pairs[:, 0], out=rises.reshape(len(pairs), 2**bit, n_rows))
        values[bit] = _weights(k) @ rises
    return values


def along(game: Game, block: Sequence[int], order: Indices) -> Floats:
    """What columns of a block contribute in one order and its reverse, (len(block), n_rows).

    Of two columns these are the only orders, and the result is exact.

    Parameters
    ----------
    order : places in the block
    """
    values, ends = np.zeros((len(block), len(game.rows[0]))), (game(()), game(block))
    for path in (order.tolist(), order[::-1].tolist()):
        inner = (game(block[i] for i in path[:stop]) for stop in range(1, len(path)))
        for i, (before, after) in zip(path, pairwise([ends[0], *inner, ends[1]]), strict=True):
            values[i] += 0.5 * (after - before)
    return values


@lru_cache(maxsize=32)
def _weights(k: int) -> Floats:
    """The weight of every S among the other k - 1 columns, (2 ** (k - 1),)."""
    by_size = [factorial(s) * factorial(k - s - 1) / factorial(k) for s in range(k)]
    weights = np.array([by_size[mask.bit_count()] for mask in range(2 ** (k - 1))])
    weights.setflags(write=False)
    return weights
