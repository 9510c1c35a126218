"""Robustness: how far rows may move, and how many decisions can change, under bounded slopes.

A decision is score ≥ threshold for one output (`Decisions`), and the largest logit for several
classes (`Contest`), which stands as long as its difference to every other logit is not negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.typing import Bools, Floats

Shift = float | tuple[float, float]
Shifts = Sequence[Shift] | Mapping[str, Shift] | Floats

_SHORTEN = 1.0 - 2.0**-30  # distances are multiplied by this, more than they can be rounded


@dataclass(frozen=True, eq=False)
class Radius:
    """Distances within which a decision cannot change.

    Parameters
    ----------
    scaled : (n_rows,), L1 distance in scaled units, all features moving together
    down, up : (n_rows, n_features), raw distance of one feature moving alone
    """

    scaled: Floats
    down: Floats
    up: Floats

    def shrink(self, rows: Bools, other: Radius) -> None:
        """Let some rows have the smaller of their distances and `other`."""
        for name in ("scaled", "down", "up"):
            mine = getattr(self, name)
            mine[rows] = np.minimum(mine[rows], getattr(other, name))


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions score ≥ `threshold`, and what can change them.

    The score is that of a network with one output, or a difference of two logits.

    Parameters
    ----------
    fall, rise : steepest fall and rise of the score along every feature, scaled, not negative
    exact : features along which the computed score is monotone to the last bit
    error : bound of the rounding error of a computed score
    """

    frozen: FrozenNetwork
    threshold: float
    fall: Floats
    rise: Floats
    exact: Bools
    error: float

    def radius(self, table: Floats, score: Floats) -> Radius:
        """How far every row may move before its decision can change, given its score."""
        accepted, gap = self._gap(score)
        # what hurts when a feature goes down, and when it goes up: (n_rows, n_features)
        down = np.where(accepted[:, None], self.rise, self.fall)
        up = np.where(accepted[:, None], self.fall, self.rise)
        both, cells = np.maximum(down, up), self._cells()
        with np.errstate(over="ignore", invalid="ignore"):
            together = _reach(gap, both.max(axis=1), (both * cells).sum(axis=1))
            reach_down = self._one_by_one(_reach(gap[:, None], down, down * cells), gap, down)
            reach_up = self._one_by_one(_reach(gap[:, None], up, up * cells), gap, up)
            return Radius(
                scaled=together,
                down=self._raw_distance(table, -reach_down),
                up=self._raw_distance(table, reach_up),
            )

    def can_flip(self, table: Floats, score: Floats, shifts: Shifts) -> Bools:
        """Rows whose decision can change under shifts of the features."""
        accepted, gap = self._gap(score)
        low, high = _shift_ranges(shifts, self.frozen.features)
        moved = (low != 0) | (high != 0)
        if not moved.any():
            return np.zeros(len(table), dtype=bool)
        with np.errstate(over="ignore", invalid="ignore"):
            x, lowest, highest = (self._clamped(table + shift) for shift in (0.0, low, high))
            down = np.where(moved, np.maximum(x - lowest, 0.0) / _SHORTEN + self._cells(), 0.0)
            up = np.where(moved, np.maximum(highest - x, 0.0) / _SHORTEN + self._cells(), 0.0)
            safe: Bools = self._largest_change(accepted, down, up) < gap  # false for NaN
        return ~safe

    def _gap(self, score: Floats) -> tuple[Bools, Floats]:
        """Decision of every row, and how far its exact score surely lies off the threshold."""
        off = np.abs(score - self.threshold) * _SHORTEN - 2 * self.error
        return score >= self.threshold, np.maximum(off, 0.0)

    def _cells(self) -> Floats:
        """How much farther than a scaled feature what enters the network can move, (n_features,).

        By rounding to the grid and to float32, and by the rounding of the scaling itself.
        """
        frozen = self.frozen
        cast = frozen.clip * 2.0**-23 if frozen.precision == "float32" else 0.0
        return cast + (frozen.grid or 0.0) + frozen.scaling.scaled_slip(frozen.clip)

    def _one_by_one(self, reach: Floats, gap: Floats, slope: Floats) -> Floats:
        """Infinite where the move only helps, to the last bit or with room for errors."""
        helps = np.where(self.exact | (gap[:, None] > 0), math.inf, 0.0)
        return np.where(slope > 0, reach, helps)

    def _raw_distance(self, table: Floats, reach: Floats) -> Floats:
        """Raw distance that surely stays within the scaled distance |`reach`|, on its side."""
        scaling = self.frozen.scaling
        x = scaling.transform(table)
        moved = x + np.where(np.isinf(reach), 0.0, reach)
        there = scaling.inverse(moved)
        slip = scaling.slip(table) + scaling.slip(there)
        distance = np.copysign(1.0, reach) * (there - table) * _SHORTEN - slip
        trusted = scaling.invertible(x) & scaling.invertible(moved) & (distance > 0)
        return np.where(np.isinf(reach), math.inf, np.where(trusted, distance, 0.0))

    def _clamped(self, table: Floats) -> Floats:
        return np.clip(self.frozen.scaling.transform(table), -self.frozen.clip, self.frozen.clip)

    def _largest_change(self, accepted: Bools, down: Floats, up: Floats) -> Floats:
        """How much every score can change for the worse when features move so far down or up."""
        worse = np.where(
            accepted[:, None],
            np.maximum(self.rise * down, self.fall * up),
            np.maximum(self.rise * up, self.fall * down),
        )
        total: Floats = worse.sum(axis=1) / _SHORTEN
        return total


@dataclass(frozen=True, eq=False)
class Contest:
    r"""The decisions for the class with the largest logit, and what can change them.

    Parameters
    ----------
    rivals : for every class k, the decisions :math:`z_k - z_l \ge 0`, one for each other class l
    """

    rivals: Callable[[int], dict[int, Decisions]]

    def radius(self, table: Floats, scores: Floats) -> Radius:
        """How far every row may move before another class can win, given its logits."""
        smallest = Radius(
            np.full(len(table), math.inf), *(np.full(table.shape, math.inf) for _ in range(2))
        )
        for rows, difference, decisions in self._pairs(scores):
            smallest.shrink(rows, decisions.radius(table[rows], difference))
        return smallest

    def can_flip(self, table: Floats, scores: Floats, shifts: Shifts) -> Bools:
        """Rows in which another class can win under shifts of the features."""
        flips = np.zeros(len(table), dtype=bool)
        for rows, difference, decisions in self._pairs(scores):
            flips[rows] |= decisions.can_flip(table[rows], difference, shifts)
        return flips

    def _pairs(self, scores: Floats) -> Iterator[tuple[Bools, Floats, Decisions]]:
        """For every class that wins rows and every rival: the rows, their lead, what decides."""
        winner = scores.argmax(axis=1)
        for k in np.unique(winner):
            rows = winner == k
            for other, decisions in self.rivals(int(k)).items():
                yield rows, scores[rows, k] - scores[rows, other], decisions


def _reach(gap: Floats, slope: Floats, lost: Floats) -> Floats:
    """Scaled distance over which a score of this slope cannot cross the gap, less what is lost."""
    room = np.maximum(gap * _SHORTEN - lost / _SHORTEN, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(slope > 0, np.nan_to_num(room / slope * _SHORTEN, nan=0.0), math.inf)


def _shift_ranges(shifts: Shifts, features: tuple[str, ...]) -> tuple[Floats, Floats]:
    if isinstance(shifts, int | float):
        raise ValueError(f"`shifts={shifts}` must have one entry per feature, 0 for none")
    named = _named(shifts)
    if named is not None:
        shifts = _by_name(named, features)
    if len(shifts) != len(features):
        raise ValueError(
            f"`shifts` has {len(shifts)} entries but the network has {len(features)} features "
            f"({', '.join(features)}); give one per feature, 0 for none"
        )
    low, high = np.array([_pair(shift) for shift in shifts], dtype=np.float64).T
    if not np.all(np.isfinite(low) & np.isfinite(high)):
        raise ValueError(f"`shifts` must hold finite numbers or pairs (low, high); got {shifts}")
    if np.any(low > high):
        raise ValueError(f"`shifts` must have low ≤ high; got {shifts}")
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _named(shifts: Any) -> Mapping[str, Shift] | None:
    """Shifts by name: a dictionary, or a series of pandas whose index holds names."""
    if isinstance(shifts, Mapping):
        return shifts
    index = getattr(shifts, "index", None)  # a method of lists
    if index is None or callable(index) or not all(isinstance(name, str) for name in index):
        return None
    return dict(zip(index, shifts, strict=True))


def _by_name(shifts: Mapping[str, Shift], features: tuple[str, ...]) -> list[Shift]:
    """One shift per feature, 0 for those that are not named."""
    unknown = [name for name in shifts if name not in features]
    if unknown:
        raise ValueError(
            f"`shifts` names {', '.join(map(repr, unknown))}; the features are "
            f"{', '.join(map(repr, features))}: name some of these"
        )
    return [shifts.get(name, 0.0) for name in features]


def _pair(shift: Any) -> tuple[float, float]:
    """Lowest and highest shift; NaN for what is neither a number nor two."""
    try:
        values = np.asarray(shift, dtype=np.float64)
    except (TypeError, ValueError):
        return math.nan, math.nan
    if values.ndim == 0:
        return -abs(float(values)), abs(float(values))
    return (float(values[0]), float(values[1])) if values.shape == (2,) else (math.nan, math.nan)
