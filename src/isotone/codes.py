r"""Codes: a column as several columns, each for one interval of its values.

A network of bounded slope cannot bend sharply and goes on as steeply outside the training rows as
inside. Codes help with both, at no cost to what is guaranteed.

Let :math:`k_0 < k_1 < \ldots < k_m` be knots of column x. Copy j runs over one tile,

.. math:: \phi_j(x) = \mathrm{clamp}((x - c_j)\,a_j, -1, 1), \qquad
          c_j = \tfrac12 (k_{j-1} + k_j), \quad a_j = 2 / (k_j - k_{j-1}).

**Theorem.** Let f be a function of the copies.

1. If f rises in every copy, it rises in x: every :math:`\phi_j` does.
2. If f has slope at most :math:`\lambda_j` along copy j, it has slope at most
   :math:`\max_j \lambda_j a_j` along x: tiles do not overlap, so at any x one copy moves and the
   others are at ±1. With equal :math:`a_j` the map :math:`x \mapsto \phi(x)` is an isometry from
   the range of the knots to the 1-norm, up to the factor a.
3. Outside the knots f is constant in x, as trees are.

The first holds for computed numbers too, to the last bit, where it holds for the copies: the
computed :math:`\phi_j` are monotone, and one copy can be moved after the other. The second is
about real numbers: rounded tiles may overlap, or leave a gap, by a rounding error of the knots.

To train on codes, give a `MonotonicNetwork` the rows of `transform`, and `spread` what is known of
the raw columns over the copies. To freeze: `freeze(network, scaling=codes.scaling, clip=1.0)`,
which scores the rows of `repeat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.elementary import Floats
from isotone.scaling import Scaling, finite_table


@dataclass(frozen=True, eq=False)
class Codes:
    """Which column every copy is of, and the tile that it runs over.

    Parameters
    ----------
    columns : (n_copies,), the raw column of every copy, in ascending order
    scaling : centers and factors of the copies, without logarithms
    n_features : number of raw columns

    Examples
    --------
    >>> codes = Codes.fit([[0.0], [1.0], [3.0]], n_codes=2)
    >>> codes.transform([[0.5], [2.0], [9.0]])
    array([[ 0., -1.],
           [ 1.,  0.],
           [ 1.,  1.]])
    """

    columns: NDArray[np.intp]
    scaling: Scaling
    n_features: int

    def __post_init__(self) -> None:
        columns = np.array(self.columns, dtype=np.intp)
        columns.flags.writeable = False
        object.__setattr__(self, "columns", columns)
        present = np.unique(columns)
        if self.scaling.n_features != len(columns) or np.any(self.scaling.log):
            raise ValueError(
                f"codes of {len(columns)} copies need a scaling of as many columns, without "
                f"logarithms; got one of {self.scaling.n_features}"
            )
        if np.any(np.diff(columns) < 0) or not np.array_equal(present, np.arange(self.n_features)):
            raise ValueError(
                f"`columns` must name each of {self.n_features} raw columns, in ascending order; "
                f"got {columns.tolist()}"
            )

    @classmethod
    def fit(cls, X: ArrayLike, n_codes: int | Sequence[int]) -> Codes:
        """Put knots at values of training rows.

        A column of few values has a knot at each of them. Others have knots at equal shares of
        their values, from the smallest to the largest, where a value that n rows have counts √n:
        between quantiles of the rows and an even spread over the distinct values.

        Parameters
        ----------
        X : (n_rows, n_features)
        n_codes : copies per column, at most; one number or one per column
        """
        table = finite_table(X)
        if len(table) == 0:
            raise ValueError("`X` has no rows; codes are fitted on at least one")
        n = table.shape[1]
        most = np.asarray(n_codes)
        if most.shape not in ((), (n,)) or most.dtype.kind not in "iu" or np.any(most < 1):
            raise ValueError(
                f"`n_codes={n_codes}` must be a whole number of at least 1, or one for each of "
                f"{n} columns"
            )
        knots = [_knots(x, m) for x, m in zip(table.T, np.broadcast_to(most, (n,)), strict=True)]
        columns = np.repeat(np.arange(n), [len(k) - 1 for k in knots])
        tiles = np.array([tile for k in knots for tile in pairwise(k)])
        zeros, ones = np.zeros(len(tiles)), np.ones(len(tiles))
        center, factor = tiles.mean(axis=1), 2.0 / (tiles[:, 1] - tiles[:, 0])
        return cls(columns, Scaling(zeros > 0, zeros, ones, center, factor), n)

    @property
    def n_copies(self) -> int:
        return len(self.columns)

    def repeat(self, X: ArrayLike) -> Floats:
        """Raw rows (n_rows, n_features) with their columns repeated, (n_rows, n_copies)."""
        table = np.asarray(X, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != self.n_features:
            raise ValueError(
                f"`X` has shape {table.shape}; the codes have {self.n_features} columns: give "
                f"(n_rows, {self.n_features})"
            )
        return table[:, self.columns]

    def transform(self, X: ArrayLike) -> Floats:
        """The copies of raw rows, from -1 to 1, (n_rows, n_copies)."""
        return np.clip(self.scaling.transform(self.repeat(X)), -1.0, 1.0)

    def spread(self, values: ArrayLike) -> NDArray[np.generic]:
        """Directions or λ of raw columns, the last axis, given to every copy."""
        array = np.asarray(values)
        if array.ndim == 0 or array.shape[-1] != self.n_features:
            raise ValueError(
                f"`values` has shape {array.shape}; its last axis must be the "
                f"{self.n_features} raw columns"
            )
        return array[..., self.columns]

    def names(self, features: Sequence[str]) -> list[str]:
        """Names of the copies: `income[0]`, `income[1]`, ..."""
        first = np.searchsorted(self.columns, self.columns)
        numbers = np.arange(self.n_copies) - first
        repeated = self.spread(list(features))
        return [f"{name}[{k}]" for name, k in zip(repeated, numbers, strict=True)]

    def steepest(self, slopes: ArrayLike) -> Floats:
        r"""Slope bounds of raw columns, :math:`\max_j \lambda_j a_j`, (n_features,).

        Parameters
        ----------
        slopes : (n_copies,), bounds λ of the slope along every copy, per unit of the copy, such
            as the larger of `abs(low)` and `abs(high)` of `Certificate.slopes[j].scaled`
        """
        sizes = np.abs(np.asarray(slopes, dtype=np.float64))
        if sizes.shape != (self.n_copies,):
            raise ValueError(
                f"`slopes` has shape {sizes.shape}; give one for each of {self.n_copies} copies"
            )
        raw = np.nextafter(sizes * self.scaling.factor, np.inf)
        starts = np.searchsorted(self.columns, np.arange(self.n_features))
        steepest: Floats = np.maximum.reduceat(raw, starts)
        return steepest


def _knots(x: Floats, most: int) -> Floats:
    values, counts = np.unique(x, return_counts=True)
    if len(values) == 1:
        constant: Floats = values + np.array([-0.5, 0.5])  # any tile around it
        return constant
    if len(values) <= most + 1:
        return values
    weight = np.sqrt(counts)
    rank = np.cumsum(weight) - 0.5 * weight
    shares = np.linspace(rank[0], rank[-1], most + 1)
    return np.unique(np.interp(shares, rank, values))
