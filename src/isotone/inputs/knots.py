r"""Knots: a column as several columns, each for one interval of its values.

A network of bounded slope cannot bend sharply and continues as steeply outside the training rows
as inside. Knots help with both, at no cost to the guarantees.

Let :math:`k_0 < k_1 < \ldots < k_m` be knots of column x. Copy j runs over one tile,

.. math:: \phi_j(x) = \mathrm{clamp}((x - c_j)\,a_j, -1, 1), \qquad
          c_j = \tfrac12 (k_{j-1} + k_j), \quad a_j = 2 / (k_j - k_{j-1}),

where :math:`a_j` is rounded up, so that a tile never leaves the interval between its knots.

**Theorem.** Let f be a function of the copies.

1. If f rises in every copy, it rises in x: every :math:`\phi_j` does.
2. If f has slope at most :math:`\lambda_j` along copy j, it has slope at most
   :math:`\max_j \lambda_j a_j` along x: tiles do not overlap, so at any x one copy moves and the
   others are at ±1. With equal :math:`a_j` the map :math:`x \mapsto \phi(x)` is an isometry from
   the range of the knots to the 1-norm, up to the factor a.
3. Outside the knots f is constant in x, as trees are.

The first and the third hold for computed scores to the last bit: the computed :math:`\phi_j` are
monotone and reach ±1 at their knots. The second is about the numbers that are stored.

To train with knots, give a `MonotonicNetwork` the rows of `transform`, and `spread` what is known
of the raw columns over the copies. To freeze: `freeze(network, knots=knots)`, which scores raw
rows by look-up, see `isotone.frozen.lookup`, and whose certificate is about the raw columns.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.checks import is_count
from isotone.inputs.scaling import Scaling, as_numbers, finite_table
from isotone.typing import Floats, Indices

_LEAST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Knots:
    """Which column every copy is of, and the tile that it runs over.

    Parameters
    ----------
    columns : (n_copies,), the raw column of every copy, in ascending order
    scaling : centers and factors of the copies, without logarithms
    n_features : number of raw columns

    Examples
    --------
    >>> knots = Knots.fit([[0.0], [1.0], [3.0]], n_tiles=2)
    >>> knots.transform([[0.5], [2.0], [9.0]])
    array([[ 0., -1.],
           [ 1.,  0.],
           [ 1.,  1.]])
    """

    columns: Indices
    scaling: Scaling
    n_features: int

    def __post_init__(self) -> None:
        columns = np.array(self.columns)
        if columns.dtype.kind not in "iu" or not np.array_equal(
            np.unique(columns), np.arange(self.n_features)
        ):
            raise ValueError(
                f"`columns` must name each of {self.n_features} raw columns by its number; got "
                f"{columns.tolist()}"
            )
        columns = columns.astype(np.intp)
        columns.flags.writeable = False
        object.__setattr__(self, "columns", columns)
        if self.scaling.n_features != len(columns):
            raise ValueError(
                f"`columns` names {len(columns)} copies but the scaling has "
                f"{self.scaling.n_features}; the numbers must agree"
            )
        if np.any(self.scaling.log):
            raise ValueError("knots need a scaling without logarithms: take logarithms of X first")
        check_tiles(columns.tolist(), self.scaling)

    @classmethod
    def fit(cls, X: ArrayLike, n_tiles: int | Sequence[int]) -> Knots:
        """Put knots where the values of training rows are.

        A column of few values has a knot at each of them. Others have knots at equal shares of
        their values, from the smallest to the largest, where a value that n rows have counts √n:
        between quantiles of the rows and an even spread over the distinct values. A
        constant column has one constant copy.

        Parameters
        ----------
        X : (n_rows, n_features)
        n_tiles : copies per column, at most; one number or one per column
        """
        table = finite_table(X)
        if table.size == 0:
            raise ValueError(
                f"`X` has shape {table.shape}; knots need at least one row and column"
            )
        n = table.shape[1]
        most = np.asarray(n_tiles, dtype=object)
        counts = np.broadcast_to(most, (n,)).tolist() if most.shape in ((), (n,)) else []
        if not counts or not all(is_count(count) for count in counts):
            raise ValueError(
                f"`n_tiles={n_tiles}` must be a whole number of at least 1, or one for each of "
                f"{n} columns"
            )
        return cls.at([_knots(x, most) for x, most in zip(table.T, counts, strict=True)])

    @classmethod
    def at(cls, knots: Sequence[ArrayLike]) -> Knots:
        """Put knots where they are wanted, such as at the thresholds of trees.

        Between neighbors of the knots of a column lies a tile, over which one copy of the column
        goes from -1 to 1. Where two knots are too close for that, the tile extends to the next.

        Parameters
        ----------
        knots : a list of lists, for every column one or more finite numbers, in any order; one
            alone gives a constant copy

        Examples
        --------
        >>> Knots.at([[0.0, 1.0, 3.0], [5.0, 7.0]]).transform([[2.0, 6.0]])
        array([[1., 0., 0.]])
        """
        if isinstance(knots, str) or not isinstance(knots, Sequence) or not knots:
            raise ValueError(
                f"`knots` is a {type(knots).__name__}, {reprlib.repr(knots)}; give a list of "
                "columns, each a list of numbers, such as [[0, 1, 3], [5, 7]]"
            )
        wanted = [_wanted(column, j) for j, column in enumerate(knots)]
        tiles = [_tiles(column, j) for j, column in enumerate(wanted)]
        columns = np.repeat(np.arange(len(tiles)), [len(one) for one in tiles])
        center, factor = np.concatenate(tiles).T
        zeros, ones = np.zeros(len(center)), np.ones(len(center))
        return cls(columns, Scaling(zeros > 0, zeros, ones, center, factor), len(tiles))

    @property
    def n_copies(self) -> int:
        return len(self.columns)

    def repeat(self, X: ArrayLike) -> Floats:
        """Raw rows (n_rows, n_features) with their columns repeated, (n_rows, n_copies)."""
        table = as_numbers(X).astype(np.float64)
        if table.shape[1] != self.n_features:
            raise ValueError(
                f"`X` has shape {table.shape}; the knots have {self.n_features} columns: give "
                f"(n_rows, {self.n_features})"
            )
        return table[:, self.columns]

    def transform(self, X: ArrayLike) -> Floats:
        """The copies of raw rows, from -1 to 1, (n_rows, n_copies)."""
        with np.errstate(over="ignore"):
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


def check_tiles(columns: Sequence[int], scaling: Scaling) -> None:
    """Raise `ValueError` unless copies are in order and the tiles of a column are disjoint.

    Exactly, as the slope along a column depends on it, and in integers, as fractions are slow.

    Parameters
    ----------
    columns : of every copy the number of its column
    scaling : centers c and factors a of the copies, whose tiles are from c - 1/a to c + 1/a
    """
    centers = [center.as_integer_ratio() for center in scaling.center.tolist()]
    factors = [factor.as_integer_ratio() for factor in scaling.factor.tolist()]
    for j, (column, after) in enumerate(pairwise(columns)):
        if after > column:
            continue
        (c, c_unit), (d, d_unit) = centers[j : j + 2]
        (a, a_unit), (b, b_unit) = factors[j : j + 2]
        # c + 1/a ≤ d - 1/b, times the positive a b
        apart = (d * c_unit - c * d_unit) * a * b >= (a * b_unit + b * a_unit) * c_unit * d_unit
        if after < column or not apart:
            raise ValueError(
                f"copies {j} and {j + 1} are out of order, or their tiles overlap; copies "
                "must be in the order of columns, and within a column in that of its values"
            )


def _wanted(knots: ArrayLike, column: int) -> Floats:
    """The knots of a column, ascending, each once."""
    try:
        numbers = np.asarray(knots, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array([np.nan])
    if numbers.ndim != 1 or numbers.size == 0 or not np.all(np.isfinite(numbers)):
        raise ValueError(
            f"`knots[{column}]` is {reprlib.repr(knots)}; the knots of a column must be a list of "
            "one or more finite numbers; drop the others"
        )
    return np.unique(numbers)


def _tiles(wanted: Floats, column: int) -> Floats:
    """Centers and factors of the tiles between ascending knots, (n_tiles, 2)."""
    if len(wanted) == 1:
        return np.array([[wanted[0], _LEAST]])
    knots = [wanted[0]]
    for knot in wanted[1:]:  # where numbers are too close for a tile, it extends to the next
        if _reach(knots[-1], knot) >= _LEAST:
            knots.append(knot)
    if len(knots) == 1:
        raise ValueError(
            f"column {column} runs from {float(wanted[0])!r} to {float(wanted[-1])!r}, too close "
            "together for a tile between them; subtract an offset or choose a smaller unit"
        )
    knots[-1] = wanted[-1]
    tiles = [
        (low / 2 + high / 2, np.nextafter(1.0 / _reach(low, high), np.inf))
        for low, high in pairwise(knots)
    ]
    return np.array(tiles)


def _reach(low: float, high: float) -> float:
    """No further from the center than both ends, as computed and in fact."""
    center = low / 2 + high / 2
    return float(np.nextafter(min(center - low, high - center), 0.0))


def _knots(x: Floats, most: int) -> Floats:
    return place_knots(*np.unique(x, return_counts=True), most)


def place_knots(values: Floats, counts: Floats | Indices, most: int) -> Floats:
    """At most a given number of tiles between ascending values, given how often each occurs."""
    if len(values) <= most + 1:
        return values
    weight = np.sqrt(counts)
    rank = np.cumsum(weight) - 0.5 * weight
    shares = np.linspace(rank[0], rank[-1], most + 1)
    return np.unique(np.interp(shares, rank, values))
