"""Cloud: weighted points, the empirical measures whose distance is wanted.

Weights need not sum to one: only their ratios count, and they are taken as exact numbers. What is
checked here is checked once; everything after it may rely on finite points and positive weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isotone import limits
from isotone.inputs.scaling import Scaling, finite_table
from isotone.typing import Bools, Floats

_SMALLEST = 1e-200
FARTHEST = 2.0**16  # in units of the spread; what lies beyond is clamped, which is 1-Lipschitz


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points with positive weights, the largest of which lies in [1/2, 1).

    Parameters
    ----------
    points : (n, d), finite
    weights : (n,)
    """

    points: Floats
    weights: Floats

    @classmethod
    def of(cls, points: ArrayLike, weights: ArrayLike | None = None, name: str = "P") -> Cloud:
        """Check points (n, d) and weights (n,), all equal if None; weights of zero are dropped."""
        table = _points(points, name)
        if weights is None:
            return cls(table, np.full(len(table), 0.5))
        values = _weights(weights, len(table), name)
        kept = values > 0
        if not kept.all():
            table, values = table[kept], values[kept]
        # a power of two: exact, but for weights 10^300 times smaller than the largest
        return cls(table, np.ldexp(values, -math.frexp(float(values.max()))[1]))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows: Bools) -> Cloud:
        return Cloud(self.points[rows], self.weights[rows])

    @property
    def n_features(self) -> int:
        return int(self.points.shape[1])

    def shares(self) -> Floats:
        """The weights, divided by their sum."""
        result: Floats = self.weights / self.weights.sum()
        return result

    def mean(self, values: Floats) -> tuple[float, float]:
        r"""Weighted mean of one value per point, and a bound on its rounding error.

        Products, two correctly rounded sums and a division are each off by a factor
        :math:`1 + \delta` with :math:`|\delta| \le u = 2^{-53}`, together by less than
        :math:`5u \max|v|`; products that underflow add at most :math:`2^{-1074}` each, and the sum
        of the weights is at least 1/2.
        """
        total = math.fsum((self.weights * values).tolist())
        error = 2.0**-50 * float(np.abs(values).max()) + len(values) * 2.0**-1022
        return total / math.fsum(self.weights.tolist()), error


def read_pair(
    P: ArrayLike, Q: ArrayLike, weights_p: ArrayLike | None, weights_q: ArrayLike | None
) -> tuple[Cloud, Cloud]:
    """Two clouds in one space; tables must name their columns alike, or coordinates would mix."""
    first, second = clouds = Cloud.of(P, weights_p, "P"), Cloud.of(Q, weights_q, "Q")
    if first.n_features != second.n_features:
        raise ValueError(
            f"`P` has {first.n_features} columns and `Q` has {second.n_features}; both clouds "
            "must lie in the same space: give the same coordinates of both"
        )
    columns = [getattr(table, "columns", None) for table in (P, Q)]
    names = [[str(name) for name in c] for c in columns if c is not None and not callable(c)]
    if len(names) == 2 and names[0] != names[1]:
        raise ValueError(
            f"`P` has the columns {names[0]} and `Q` has {names[1]}; coordinates are compared by "
            "their place, so names and order must agree: choose the same columns of both"
        )
    return clouds


def common_scaling(P: Cloud, Q: Cloud) -> Scaling:
    r"""One center and one factor for all coordinates: distances only change their unit.

    The factor is a power of two near one over the largest standard deviation, so that multiplying
    by it is exact.
    """
    shares = (P.shares(), Q.shares())
    d, both = P.n_features, tuple(zip(shares, (P, Q), strict=True))
    center = sum((0.5 * (share @ cloud.points) for share, cloud in both), np.zeros(d))
    largest = max(float(np.abs(cloud.points - center).max()) for cloud in (P, Q))
    if largest < _SMALLEST:  # one point, or as good as that
        return Scaling(np.zeros(d, bool), np.zeros(d), np.ones(d), center, np.ones(d))
    unit = math.ldexp(1.0, -math.frexp(largest)[1])  # so that squares do not underflow
    squares = [share @ np.square((cloud.points - center) * unit) for share, cloud in both]
    spread = math.sqrt(0.5 * float((squares[0] + squares[1]).max()))
    factor = np.full(d, unit * 2.0 ** -round(math.log2(spread)))
    return Scaling(np.zeros(d, bool), np.zeros(d), np.ones(d), center, factor)


def reach(scaling: Scaling, *clouds: Cloud) -> float:
    """A power of two that no scaled coordinate exceeds, if that is no more than 2¹⁶."""
    largest = max(float(np.abs(scaling.transform(cloud.points)).max()) for cloud in clouds)
    return float(min(2.0 ** math.ceil(math.log2(max(largest, 1.0))), FARTHEST))


def _points(points: ArrayLike, name: str) -> Floats:
    try:
        table = finite_table(points)
    except (ValueError, RuntimeError) as error:  # the latter from tensors that need gradients
        raise ValueError(f"`{name}` cannot be used: {error}") from error
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise ValueError(
            f"`{name}` has shape {table.shape}; a cloud needs at least one point with at least "
            "one coordinate: give (n_points, n_coordinates)"
        )
    if np.abs(table).max() > limits.NUMBER:
        raise ValueError(
            f"`{name}` holds {np.abs(table).max():g}; coordinates must be at most "
            f"{limits.NUMBER:g} in size, so that squares do not overflow: choose other units"
        )
    return table


def _weights(weights: ArrayLike, n: int, name: str) -> Floats:
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"the weights of `{name}` are not numeric ({error}); give a list or an array of one "
            "number per point"
        ) from error
    if values.shape != (n,):
        raise ValueError(
            f"the weights of `{name}` have shape {values.shape} but it has {n} points; give one "
            "weight per point"
        )
    bad = ~((values >= 0) & (values < np.inf))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"the weight of point {row} of `{name}` is {values[row]}; weights must be finite and "
            "at least 0: drop such points, or correct their weights"
        )
    if not values.any():
        raise ValueError(
            f"all weights of `{name}` are 0; a cloud needs some mass: give at least one positive "
            "weight, or leave the weights out"
        )
    return values
