r"""Look-up: dense steps on copies of columns, whose cost does not grow with their number.

A column x may enter a network as m copies, each of which runs from -1 to 1 over one tile of x (see
`isotone.inputs.knots`). At any x one copy t moves, all before it are +1 and all after it are -1:

.. math:: W \phi(x) + b = b + C_t + W_t\,\phi_t(x), \qquad
          C_t = \sum_{j<t} W_j - \sum_{j>t} W_j

so that two vectors are added, whatever m. The copy that moves is the first that is not +1 after
it was rounded to the grid, or the last one: the upper end of a tile is always written as the lower
end of the next. Equal copies therefore give equal bits, and a score that rises in every copy rises
in x.

:math:`C_t` is the exact sum rounded once. All code that computes gets the tables from here;
`isotone.frozen.reference` has the order of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from typing import Literal

import numpy as np

from isotone.elementary import snap_grid
from isotone.frozen.steps import read_only
from isotone.inputs.knots import check_tiles
from isotone.inputs.scaling import Scaling
from isotone.typing import Bools, Floats, Indices, Precision, Reals

_LARGEST = int(np.array(np.finfo(np.float64).max).view(np.int64))  # the key of this number


@dataclass(frozen=True, eq=False)
class Cells:
    """Which copy of every column moves, and where it is: (n_columns, n_rows) each.

    Where every column has one copy, `index` is the same in all rows, (n_columns, 1).
    """

    index: Indices
    phi: Reals


@dataclass(frozen=True, eq=False)
class Copies:
    """How the features of a network are copies of fewer columns.

    Parameters
    ----------
    counts : of every column the number of its copies; one copy is the column itself
    scaling : centers and factors of the copies, and logarithms of columns that have one copy
    clip, grid, precision : of the network; several copies are clamped to ±1
    ends : of every column the smallest numbers at which its copies but the last are +1, ascending
    """

    counts: tuple[int, ...]
    scaling: Scaling
    clip: float
    grid: float | None
    precision: Precision
    ends: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        sources: tuple[int, ...],
        scaling: Scaling,
        clip: float,
        grid: float | None,
        precision: Precision,
    ) -> Copies:
        """From the number of the column that every feature is a copy of, as `Inputs` checks it."""
        counts = _counts(sources, scaling)
        check_tiles(sources, scaling)
        copy = _Copy(scaling, grid, precision)
        tops = _smallest(lambda x: copy(x) == 1.0, *copy.tops())
        firsts = np.cumsum((0, *counts[:-1]))
        meets = copy(np.roll(tops, 1)) == -1.0
        meets[firsts] = True
        if not np.all(meets):
            j = int(np.argmin(meets))
            raise ValueError(
                f"copy {j} leaves -1 before copy {j - 1} reaches +1, as computed; within a column "
                "one must end where the next begins: use a finer grid, or tiles further apart"
            )
        ends = tuple(part[:-1] for part in np.split(tops, firsts[1:]))
        return cls(counts, scaling, clip, grid, precision, ends)

    @cached_property
    def firsts(self) -> Indices:
        """The first copy of every column."""
        return read_only(np.cumsum((0, *self.counts[:-1])))

    @property
    def is_several(self) -> list[bool]:
        return [count > 1 for count in self.counts]

    @cached_property
    def reach(self) -> Floats:
        """The largest absolute value of every feature."""
        return read_only(np.repeat(np.where(self.is_several, 1.0, self.clip), self.counts))

    def cells(self, X: Reals) -> Cells:
        """The copies that move for rows (n_rows, n_columns)."""
        columns = np.asarray(X, np.float64).T
        index = self.index_of(columns, self.ends, "right")
        limit = self.reach[self.firsts][:, None]
        with np.errstate(over="ignore"):
            scaled = (self._logged(columns) - self.scaling.center[index]) * (
                self.scaling.factor[index]
            )
            phi = np.clip(scaled, -limit, limit)
        phi = phi if self.grid is None else snap_grid(phi, self.grid)
        return Cells(index, phi.astype(self.precision))

    def index_of(
        self, places: Floats, ends: Sequence[Floats], side: Literal["left", "right"]
    ) -> Indices:
        """The copy of every column that moves at places (n_columns, n_rows), for `Cells`.

        Parameters
        ----------
        ends : of every column where its copies but the last end, ascending
        side : of an end on which its copy no longer moves
        """
        firsts = self.firsts[:, None]
        if not any(self.is_several):
            return firsts
        pairs = zip(ends, places, strict=True)
        found = [np.searchsorted(end, place, side) for end, place in pairs]
        return np.asarray(firsts + np.array(found), np.intp)

    def numbers(self, cells: Cells) -> Floats:
        """Numbers with nearly these cells, (n_columns, n_rows)."""
        values = cells.phi / self.scaling.factor[cells.index] + self.scaling.center[cells.index]
        for s, first in enumerate(self.firsts):
            if self.scaling.log[first]:
                values[s] = _part(self.scaling, first).inverse(values[s][:, None]).ravel()
        largest = np.finfo(np.float64).max
        return np.clip(values, -largest, largest)

    @cached_property
    def slack(self) -> Floats:
        """How much farther than the exact copies the computed ones can move, (n_features,).

        By rounding to the grid and to float32, and by the rounding of the scaling itself.
        """
        cast = self.reach * 2.0**-23 if self.precision == "float32" else 0.0
        return read_only(cast + (self.grid or 0.0) + self.scaling.slip(self.reach))

    def _logged(self, columns: Floats) -> Floats:
        """The columns, those with a logarithm taken; only such as have one copy may have one."""
        result = columns.copy()
        for s, first in enumerate(self.firsts):
            if self.scaling.log[first]:
                result[s] = _part(self.scaling, first).transform(columns[s][:, None]).ravel()
        return result

    def expand(self, cells: Cells) -> Reals:
        """All copies, (n_features, n_rows)."""
        u = np.empty((sum(self.counts), cells.phi.shape[1]), cells.phi.dtype)
        index = np.broadcast_to(cells.index, cells.phi.shape)
        for s, (first, count) in enumerate(zip(self.firsts, self.counts, strict=True)):
            before = np.arange(first, first + count)[:, None] < index[s]
            u[first : first + count] = np.where(before, 1.0, -1.0)
            np.put_along_axis(u, index[s][None], cells.phi[s][None], axis=0)
        return u

    def sums(self, weight: Reals) -> Reals:
        """C, (n_out, n_features): for every copy the sum of what does not move, rounded once."""
        table = np.zeros(weight.shape, self.precision)
        for first, count in zip(self.firsts, self.counts, strict=True):
            if count > 1:
                part = slice(first, first + count)
                with np.errstate(over="ignore"):
                    table[:, part] = [_still(row) for row in weight[:, part].tolist()]
        return table

    def interleaved(self, weight: Reals) -> Floats:
        """What the engine looks up: C and W of copy after copy, (2 n_features, n_out)."""
        both = np.stack([self.sums(weight).T, weight.T], axis=1).astype(np.float64)
        return np.ascontiguousarray(both.reshape(-1, len(weight)))


def _counts(sources: tuple[int, ...], scaling: Scaling) -> tuple[int, ...]:
    counts = tuple(len(list(group)) for _, group in groupby(sources))
    if np.any(scaling.log & (np.repeat(counts, counts) > 1)):
        raise ValueError(
            "a column with several copies cannot have a logarithm: take it of X first"
        )
    return counts


def _still(row: list[float]) -> list[float]:
    """For every number the sum of those before it less that of those after it, rounded once."""
    ratios = [number.as_integer_ratio() for number in row]
    unit = max(denominator for _, denominator in ratios)  # powers of two
    whole = [numerator * (unit // denominator) for numerator, denominator in ratios]
    total = sum(whole)
    # before - behind = before - (total - before - own)
    return [
        _quotient(2 * before + own - total, unit)
        for before, own in zip(accumulate(whole, initial=0), whole, strict=False)
    ]


def _quotient(numerator: int, denominator: int) -> float:
    """Of integers, rounded once; infinite beyond float64."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


@dataclass(frozen=True, eq=False)
class _Copy:
    """Copies as computed, each from its own number, (n_features,), without logarithms."""

    scaling: Scaling
    grid: float | None
    precision: Precision

    def __call__(self, x: Floats) -> Reals:
        with np.errstate(over="ignore"):
            phi = np.clip((x - self.scaling.center) * self.scaling.factor, -1.0, 1.0)
        return (phi if self.grid is None else snap_grid(phi, self.grid)).astype(self.precision)

    def tops(self) -> tuple[Floats, Floats]:
        """Where copies reach +1 in real numbers, but for a grid, and about how far off that is."""
        cell = 0.0 if self.grid is None else self.grid / 2.0
        with np.errstate(over="ignore"):
            half = (1.0 - cell) / self.scaling.factor
            return self.scaling.center + half, (np.abs(self.scaling.center) + half) * 2.0**-48


def _smallest(holds: Callable[[Floats], Bools], guess: Floats, width: Floats) -> Floats:
    """The smallest numbers with a property that all larger ones have: bisection of their bits.

    It begins within `width` of the `guess` where that is right, and with all numbers elsewhere.
    """
    with np.errstate(invalid="ignore"):
        low, high = _key(guess - width), _key(guess + width)
    low = np.where(holds(_number(low)), -_LARGEST - 1, low)  # below all
    high = np.where(holds(_number(high)), high, _LARGEST + 1)  # infinity
    for _ in range(64):  # bits
        inside = low + 1 < high  # not their difference, which may overflow
        if not np.any(inside):
            break
        middle = (low & high) + ((low ^ high) >> 1)  # nor their sum
        found = holds(_number(middle)) & inside
        high, low = np.where(found, middle, high), np.where(found | ~inside, low, middle)
    return _number(high)


def _key(number: Floats) -> Indices:
    """The key of a float64; 0 of those that are not finite."""
    finite = np.where(np.isfinite(number), number, 0.0)
    size = np.abs(finite).view(np.int64)
    return np.where(finite < 0, -size, size)


def _number(key: Indices) -> Floats:
    """The float64 of a key; larger keys are larger numbers."""
    size: Floats = np.abs(key).astype(np.int64).view(np.float64)
    return np.where(key < 0, -size, size)


def _part(scaling: Scaling, i: int) -> Scaling:
    """The logarithm of one feature, without center and factor."""
    one = slice(i, i + 1)
    zeros, ones = np.zeros(1), np.ones(1)
    return Scaling(scaling.log[one], scaling.offset[one], scaling.floor[one], zeros, ones)
