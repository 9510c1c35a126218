r"""Coordinates: moves of a feature, measured by how much they can change a score.

A feature x enters a network as one or more copies (`isotone.inputs.knots`), of which each is a
monotone function :math:`\phi_j` of x, also as computed. Let a score change by at most :math:`w_j`
per unit of copy j. When x moves alone to y, the score changes by at most :math:`|W(y) - W(x)|`:

.. math:: W(x) = \sum_j w_j \phi_j(x).

W is monotone, so that this is a bound for all numbers between x and y. It is computed from what
enters the network: the clip, the grid and the rounding of the scaling are part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from isotone.frozen.lookup import Cells, Copies
from isotone.typing import Floats, Indices

SHORTEN = 1.0 - 2.0**-30  # distances are multiplied by this, more than they can be rounded
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinate W of every feature, counted from the lowest that it can be.

    Parameters
    ----------
    copies : of the features
    slopes : (n_copies,), the largest change of a score per unit of every copy, not negative
    """

    copies: Copies
    slopes: Floats

    @cached_property
    def starts(self) -> Floats:
        """W where every copy begins, (n_copies,)."""
        parts = np.split(self._lengths, self.copies.firsts[1:])
        return np.concatenate([np.cumsum([0.0, *part[:-1]]) for part in parts])

    @cached_property
    def totals(self) -> Floats:
        """The largest W of every feature, (n_features,)."""
        return np.add.reduceat(self._lengths, self.copies.firsts)

    @property
    def _lengths(self) -> Floats:
        return 2.0 * self.copies.reach * self.slopes

    @cached_property
    def rounding(self) -> Floats:
        """Bound on the error of a difference of two W, (n_features,): sums of m positive terms."""
        return (np.array(self.copies.counts) + 8) * 2.0**-51 * self.totals

    def transform(self, features: Floats) -> Floats:
        """W of encoded rows (n_rows, n_features), NaN where it is not known."""
        cells = self.copies.cells(features)
        with np.errstate(invalid="ignore"):
            along = (cells.phi + self.copies.reach[cells.index]) * self.slopes[cells.index]
            return (self.starts[cells.index] + along).T

    def change(self, low: Floats, high: Floats) -> Floats:
        """How much a score can change at most as a feature goes from `low` to `high`."""
        change: Floats = np.maximum(self.transform(high) - self.transform(low), 0.0)
        return change + self.rounding

    def distance(self, features: Floats, room: Floats, side: int) -> Floats:
        """How far every feature may move alone, down (-1) or up (+1), (n_rows, n_features).

        So far that W changes by no more than `room`, (n_rows,); infinite where it never does.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            room = room[:, None] * SHORTEN - self.rounding
            start, end = self.transform(features), self._ends[side]
            there = self._inverse(start + side * np.maximum(room, 0.0), side)
            far = np.minimum(side * (there - features), _LARGEST) * SHORTEN
            safe = (side * (self.transform(there) - start) <= room) & (far > 0)
            unlimited = side * (end - start) <= room
        return np.where(unlimited, np.inf, np.where(safe, far, 0.0))

    @cached_property
    def _ends(self) -> dict[int, Floats]:
        """W of the lowest and of the highest number, (n_features,) each."""
        ends = np.full((1, len(self.copies.counts)), _LARGEST)
        return {side: self.transform(side * ends)[0] for side in (-1, 1)}

    def _inverse(self, w: Floats, side: int) -> Floats:
        """Numbers whose W lies a little before `w`, seen from the other side."""
        index = self._find(w, side)
        slope, reach = self.slopes[index], self.copies.reach[index]
        phi = (w.T - self.starts[index]) / slope - reach - side * self.copies.slack[index]
        phi = np.where(slope > 0, np.clip(phi, -reach, reach), side * reach)
        return self.copies.numbers(Cells(index, phi)).T

    def _find(self, w: Floats, side: int) -> Indices:
        """The copy that moves at `w`, as in `Cells`; at a seam the farther one."""
        parts = np.split(self.starts, self.copies.firsts[1:])
        return self.copies.index_of(w.T, [p[1:] for p in parts], "right" if side > 0 else "left")
