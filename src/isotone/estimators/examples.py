"""Examples: the weighted set of rows that is learned from.

A row that occurs twice is a row of weight two, and a row of weight zero is no row. What is learned
from examples therefore depends on nothing but the weighted set of rows: not on their order, and
not on whether a weight or a repetition says how much a row counts.

Equal rows are one example where x decides the target: a copy would give the answer away. Where it
does not, as in every binned table, they are one for each observation. If all those of (x, 0) were
left out together, only the 1s would be left at x, and validation would favor what ignores them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.typing import Floats, Indices

_LEAST = 2.0**-64  # of the largest weight: less would vanish in float32
_MOST = 2**13  # observations that are told apart; if there are more, one stands for several
_ASSUMED = 16


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows in the order of their numbers.

    Parameters
    ----------
    X : (n_rows, n_features)
    y : (n_rows, n_targets), values or class numbers
    weight : (n_rows,), positive, with mean 1
    """

    X: Floats
    y: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.X)

    @classmethod
    def of(cls, X: Floats, y: Floats, weight: Floats) -> Examples:
        """Merge equal rows, leave out those that do not count, and tell observations apart.

        >>> X, y = np.array([[2.0], [2.0], [2.0], [1.0], [1.0]]), np.array([[5, 5, 5, 0, 1]]).T
        >>> np.hstack([getattr(Examples.of(X, y, np.ones(5)), part) for part in ("X", "y")])
        array([[1., 0.],
               [1., 1.],
               [2., 5.]])
        """
        exponent = np.frexp(weight.max())[1]  # of a power of two: sums neither overflow nor round
        weight = np.ldexp(weight, -exponent)
        # small weights first: sums then do not depend on the order of the rows, to the last bit
        order = np.argsort(weight)[np.count_nonzero(weight <= 0) :]
        joined = np.column_stack([X[order], y[order]]) + 0.0  # -0.0 becomes 0.0
        rows, member = np.unique(joined, axis=0, return_inverse=True)
        total = np.zeros(len(rows))
        np.add.at(total, member.ravel(), weight[order])
        X, y = np.split(rows, [X.shape[1]], axis=1)
        count = _observations(X, total, np.ldexp(1.0, min(-exponent, 1000)))
        each = np.repeat(np.maximum(total / total.max(), _LEAST) / count, count)
        return cls(X.repeat(count, axis=0), y.repeat(count, axis=0), each / each.mean())

    def folds(self, n_folds: int, seed: int) -> Indices:
        """A fold for every row, at random, with about the same targets in each."""
        folds = np.empty(len(self), dtype=np.intp)
        folds[self._by_target(np.random.default_rng(seed))] = np.arange(len(self)) % n_folds
        return folds

    def hold_out(self, fraction: float, seed: int) -> Indices:
        """0 for a fraction of the rows, spread evenly over the targets, and -1 for the others."""
        n_rows = len(self)
        if n_rows < 2:
            raise ValueError(
                f"validation needs at least 2 distinct rows; got n_samples={n_rows}: give more, "
                "or set early_stopping=False"
            )
        n_held = min(max(round(fraction * n_rows), 1), n_rows - 1)
        rng = np.random.default_rng(seed)
        places = (np.arange(n_held) + rng.random()) * (n_rows / n_held)
        folds = np.full(n_rows, -1, dtype=np.intp)
        folds[self._by_target(rng)[places.astype(np.intp)]] = 0
        return folds

    def _by_target(self, rng: np.random.Generator) -> Indices:
        """Numbers of the rows in the order of their first target, at random among equals."""
        shuffled = rng.permutation(len(self))
        return shuffled[np.argsort(self.y[shuffled, 0], kind="stable")]


def _observations(X: Floats, total: Floats, one: float) -> Indices:
    """How many observations distinct sorted rows stand for: 1 where an x has one target only.

    Elsewhere, and everywhere if that is most of the table, a weight is a count of `one`. Weights
    that are below that on average count nothing; `_ASSUMED` are then taken for the mean.
    """
    place = np.cumsum(np.append(True, np.any(X[1:] != X[:-1], axis=1))) - 1
    uncertain = np.bincount(place)[place] > 1
    if total[uncertain].sum() > 0.5 * total.sum():
        uncertain[:] = True
    unit = one if one <= total.mean() else total.mean() / _ASSUMED
    unit = max(unit, total[uncertain].sum() / max(_MOST, 2 * len(total)))
    return np.where(uncertain, np.maximum(np.rint(total / unit), 1.0), 1.0).astype(np.intp)
