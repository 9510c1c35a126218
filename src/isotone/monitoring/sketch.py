r"""Sketch: the distribution of a stream of numbers in bounded memory, with bounded error.

A sketch holds values and how often each occurred. While a stream is short it is exact. Longer ones
are compressed: neighbors become one value, their mean, finer toward both ends. What that costs is
added up, so that a sketch knows two bounds on its distance from the numbers it stands for: `moved`
in the Wasserstein distance and `jump` in that of Kolmogorov and Smirnov. Distances of two sketches
therefore bound those of the streams, by the triangle inequality.

.. math:: |W_1(P, Q) - W_1(\hat P, \hat Q)| \le W_1(P, \hat P) + W_1(Q, \hat Q)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.typing import Floats

EXACT = 2**15  # numbers of a stream that are kept as they are
SIZE = 2048  # values of a compressed sketch
STORED = 512  # of one that is written to a file
_SLACK = 1.0 + 2.0**-30  # more than sums of products can be rounded


@dataclass(frozen=True, eq=False)
class Sketch:
    """Values with counts, and how far they may be from the numbers that were counted.

    Parameters
    ----------
    values : (k,), ascending
    counts : (k,), positive
    moved : bound on the Wasserstein distance from those numbers
    jump : bound on the largest difference of cumulative distributions

    Examples
    --------
    >>> sketch = Sketch.of(np.array([2.0, 1.0, 2.0]))
    >>> sketch.values.tolist(), sketch.counts.tolist(), sketch.moved
    ([1.0, 2.0], [1.0, 2.0], 0.0)
    """

    values: Floats
    counts: Floats
    moved: float = 0.0
    jump: float = 0.0

    @classmethod
    def of(cls, numbers: Floats) -> Sketch:
        """All numbers, which must be finite."""
        values, counts = np.unique(numbers, return_counts=True)
        return cls(values.astype(float), counts.astype(float))

    @property
    def n(self) -> int:
        """How many numbers were counted."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        return float(self.counts @ self.values / self.n) if self.n else np.nan

    @property
    def deviation(self) -> float:
        """The standard deviation, too small by no more than the spread within merged values."""
        if not self.n:
            return np.nan
        return float(np.sqrt(self.counts @ (self.values - self.mean) ** 2 / self.n))

    def cumulative(self, at: Floats) -> Floats:
        """The share of numbers at or below each of `at`."""
        steps = np.concatenate([[0.0], np.cumsum(self.counts)]) / max(self.n, 1)
        return np.asarray(steps[np.searchsorted(self.values, at, side="right")])

    def quantile(self, shares: Floats) -> Floats:
        """The smallest values with at least these shares at or below them."""
        steps = np.cumsum(self.counts) / self.n
        index = np.searchsorted(steps, np.asarray(shares) * (1 - 2.0**-40), side="left")
        return np.asarray(self.values[np.minimum(index, len(self.values) - 1)])

    def merged(self, other: Sketch) -> Sketch:
        """Both together."""
        values, index = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        both = np.concatenate([self.counts, other.counts])
        counts: Floats = np.bincount(index, both, len(values)).astype(float)
        share = self.n / max(self.n + other.n, 1)
        moved = share * self.moved + (1 - share) * other.moved
        return Sketch(values, counts, moved, share * self.jump + (1 - share) * other.jump)

    def compressed(self, size: int) -> Sketch:
        r"""At most about `size` values; parts of :math:`\arcsin(2F - 1)` are merged."""
        if len(self.values) <= size:
            return self
        middle = (np.cumsum(self.counts) - 0.5 * self.counts) / self.n
        part = np.floor(size * (0.5 + np.arcsin(2.0 * middle - 1.0) / np.pi))
        first = np.flatnonzero(np.diff(part, prepend=-1.0))
        counts = np.add.reduceat(self.counts, first)
        means = np.add.reduceat(self.counts * self.values, first) / counts
        low, high = self.values[first], self.values[np.append(first[1:], len(self.values)) - 1]
        values = np.clip(means, low, high)  # one value stays what it is
        each = np.repeat(values, np.diff(np.append(first, len(self.values))))
        moved = float(self.counts @ np.abs(self.values - each)) / self.n * _SLACK
        sides = (self.counts * (self.values < each), self.counts * (self.values > each))
        jump = max(float(np.add.reduceat(side, first).max()) for side in sides) / self.n
        return Sketch(values, counts, self.moved + moved, self.jump + jump)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON content, compressed."""
        small = self.compressed(STORED)
        return {
            "values": small.values.tolist(),
            "counts": small.counts.tolist(),
            "moved": small.moved,
            "jump": small.jump,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Sketch:
        """What `to_dict` gave; anything else raises `ValueError`."""
        values, counts = (np.array(data[name], dtype=float) for name in ("values", "counts"))
        moved, jump = float(data["moved"]), float(data["jump"])
        fit = values.ndim == 1 and values.shape == counts.shape
        if not (fit and (np.diff(values) > 0).all() and (counts > 0).all()):
            raise ValueError("a sketch must have ascending values, and a positive count for each")
        if not (np.isfinite([*values, *counts]).all() and moved >= 0 and jump >= 0):
            raise ValueError("a sketch must have finite numbers, and bounds that are not negative")
        return cls(values, counts, moved, jump)


EMPTY = Sketch(np.empty(0), np.empty(0))


class Sketcher:
    """Numbers that come in batches, as a sketch.

    Sketches of equally many batches are merged in pairs, so that each number is compressed only as
    often as the number of batches can be halved.
    """

    def __init__(self) -> None:
        self._first = EMPTY
        self._levels: list[Sketch | None] = []

    def add(self, numbers: Floats) -> None:
        """Count finite numbers."""
        fresh = Sketch.of(numbers)
        if not self._levels and self._first.n + fresh.n <= EXACT:
            self._first = self._first.merged(fresh)
            return
        for each in (self._first, fresh):
            if each.n:
                self._push(each.compressed(SIZE))
        self._first = EMPTY

    def _push(self, sketch: Sketch) -> None:
        for i, level in enumerate(self._levels):
            if level is None:
                self._levels[i] = sketch
                return
            sketch, self._levels[i] = level.merged(sketch).compressed(SIZE), None
        self._levels.append(sketch)

    def sketch(self) -> Sketch:
        """All that was counted."""
        total = self._first
        for level in self._levels:
            total = total if level is None else total.merged(level)
        return total if not self._levels else total.compressed(SIZE)


def wasserstein(P: Sketch, Q: Sketch) -> float:
    r"""The distance of two sketches, :math:`\int |F_P - F_Q|\,dx`, exact but for rounding.

    >>> wasserstein(Sketch.of(np.array([0.0, 1.0])), Sketch.of(np.array([2.0, 3.0])))
    2.0
    """
    at = np.union1d(P.values, Q.values)
    apart = np.abs(P.cumulative(at) - Q.cumulative(at))
    return float(apart[:-1] @ np.diff(at)) if len(at) else 0.0


def kolmogorov_smirnov(P: Sketch, Q: Sketch) -> float:
    r"""The largest difference of cumulative distributions, :math:`\sup_x |F_P - F_Q|`."""
    at = np.union1d(P.values, Q.values)
    return float(np.abs(P.cumulative(at) - Q.cumulative(at)).max()) if len(at) else 0.0
