"""The signed distance function of two sets of points, Sec. 5 of the paper."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from isotone.typing import Floats


class SignedDistance:
    r"""±d(B, x) in the 1-norm, positive where the class with label 1 is nearer.

    B is where both classes are equally far. It is found on a grid around the points, by linear
    interpolation between neighbors on either side. (The paper's sign is the opposite one, which
    would be negative on the class +1.)

    Parameters
    ----------
    x : (n, 2)
    labels : 0 and 1
    step : spacing of the grid; the distance is exact up to about as much
    """

    def __init__(self, x: Floats, labels: Floats, step: float = 0.01) -> None:
        self._trees = [cKDTree(x[labels == label]) for label in (0.0, 1.0)]
        low, high = x.min(axis=0) - 1.0, x.max(axis=0) + 1.0
        axes = [np.arange(a, b, step) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        gap = self._gap(grid.reshape(-1, 2)).reshape(grid.shape[:2])
        self._boundary = cKDTree(np.concatenate([_crossings(grid, gap, k) for k in (0, 1)]))

    def __call__(self, x: Floats) -> Floats:
        signed: Floats = np.sign(self._gap(x)) * self._boundary.query(x, p=1)[0]
        return signed

    def _gap(self, x: Floats) -> Floats:
        """d(C⁻, x) - d(C⁺, x)"""
        away, near = (tree.query(x, p=1)[0] for tree in self._trees)
        gap: Floats = away - near
        return gap


def _crossings(grid: Floats, gap: Floats, axis: int) -> Floats:
    """Points where the gap changes its sign between neighbors along an axis, (n, 2)."""
    n = gap.shape[axis] - 1
    a, b = (np.take(gap, range(s, n + s), axis) for s in (0, 1))
    p, q = (np.take(grid, range(s, n + s), axis) for s in (0, 1))
    crossing = (a > 0) != (b > 0)
    share = (a / np.where(crossing, a - b, 1.0))[crossing][:, None]
    points: Floats = p[crossing] + share * (q - p)[crossing]
    return points
