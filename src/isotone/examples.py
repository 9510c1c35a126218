"""Examples: the distinct rows of a table with their targets and total weights.

A row that occurs twice is a row of weight two, and a row of weight zero is no row. What is learned
from examples therefore depends on nothing but the weighted set of rows: not on their order, and
not on whether a weight or a repetition says how much a row counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.elementary import Floats

_LEAST = 2.0**-64  # of the largest weight: less would vanish in float32

Folds = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Examples:
    """Distinct rows, sorted.

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
        """Merge equal rows, leave out those that do not count.

        >>> Examples.of(np.array([[2.0], [1.0], [2.0]]), np.ones((3, 1)), np.ones(3)).X
        array([[1.],
               [2.]])
        """
        # small weights first: sums then do not depend on the order of the rows, to the last bit
        order = np.argsort(weight)[np.count_nonzero(weight <= 0) :]
        joined = np.column_stack([X[order], y[order]]) + 0.0  # -0.0 becomes 0.0
        rows, member = np.unique(joined, axis=0, return_inverse=True)
        total = np.bincount(member.ravel(), weights=weight[order], minlength=len(rows))
        total = np.maximum(total / total.max(), _LEAST)
        n_features = X.shape[1]
        return cls(rows[:, :n_features], rows[:, n_features:], total / total.mean())

    def folds(self, n_folds: int, seed: int) -> Folds:
        """A fold for every row, at random, with about the same targets in each."""
        folds = np.empty(len(self), dtype=np.intp)
        folds[self._by_target(np.random.default_rng(seed))] = np.arange(len(self)) % n_folds
        return folds

    def hold_out(self, fraction: float, seed: int) -> Folds:
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

    def _by_target(self, rng: np.random.Generator) -> Folds:
        """Numbers of the rows in the order of their first target, at random among equals."""
        shuffled = rng.permutation(len(self))
        return shuffled[np.argsort(self.y[shuffled, 0], kind="stable")]
