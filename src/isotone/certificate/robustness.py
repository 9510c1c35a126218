"""Robustness: how far rows may move, and how many decisions can change, under bounded slopes.

A decision is score ≥ threshold for one output (`Decisions`), and the largest logit for several
classes (`Contest`), which stands as long as its difference to every other logit is not negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from isotone.certificate.coordinates import SHORTEN, Coordinates
from isotone.frozen.lookup import Copies
from isotone.frozen.notebook import card, text_table, visible
from isotone.inputs.columns import Category, Column
from isotone.rounding import digits_down
from isotone.typing import Bools, Floats

_MOST_ROWS, _MOST_COLUMNS = 10, 6  # that are printed
Shift = float | tuple[float, float]
Shifts = Sequence[Shift] | Mapping[str, Shift] | Floats


@dataclass(frozen=True, eq=False)
class Radius:
    """Distances within which a decision cannot change.

    Parameters
    ----------
    scaled : (n_rows,), L1 distance in scaled units, all features moving together; a column with
        several copies is scaled to their sum
    down, up : (n_rows, n_columns), raw distance of one column moving alone, in ranks for ordered
        categories; NaN for what cannot move, a category without an order or a missing value
    names : of the columns, if they are known
    """

    scaled: Floats
    down: Floats
    up: Floats
    names: tuple[str, ...] = field(default=(), kw_only=True)

    def __str__(self) -> str:
        more = len(self.scaled) - _MOST_ROWS
        table = text_table(*self._table())
        return table + (f"\n... and {more:,} more rows" if more > 0 else "")

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows."""
        head, rows = self._table()
        facts = {"rows": f"{len(self.scaled):,}", "shown": f"the first {len(rows)}"}
        return card("Certified radius", facts, head, rows)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """The first rows; of columns how far each may fall and rise alone, never rounded up."""
        columns = range(min(self.down.shape[1], _MOST_COLUMNS))
        names = self.names or [f"column {i}" for i in columns]
        moves = [f"{visible(names[i])} {word}" for i in columns for word in ("down", "up")]
        rows = [
            [str(r), digits_down(float(self.scaled[r]))]
            + [digits_down(float(side[r, i])) for i in columns for side in (self.down, self.up)]
            for r in range(min(len(self.scaled), _MOST_ROWS))
        ]
        return ["row", "together, scaled", *moves], rows

    def shrink(self, rows: Bools, other: Radius) -> None:
        """Let some rows have the smaller of their distances and `other`."""
        for name in ("scaled", "down", "up"):
            mine = getattr(self, name)
            mine[rows] = np.minimum(mine[rows], getattr(other, name))


@dataclass(frozen=True, eq=False)
class Decisions:
    """The decisions score ≥ `threshold`, and what can change them.

    The score is that of a network with one output, or a difference of two logits. Rows are those
    that `FrozenNetwork.encode` makes, (n_rows, n_features).

    Parameters
    ----------
    copies : of the features, one or more of each, which are the inputs of the network
    fall, rise : steepest fall and rise of the score along every copy, scaled, not negative
    exact : copies along which the computed score is monotone to the last bit
    error : bound on the rounding error of a computed score
    """

    copies: Copies
    threshold: float
    fall: Floats
    rise: Floats
    exact: Bools
    error: float

    def radius(self, features: Floats, score: Floats) -> Radius:
        """How far every row may move before its decision can change, given its score."""
        accepted, gap = self.gap(score)
        down, up = np.empty(features.shape), np.empty(features.shape)
        for rows, below, above in self.sides(accepted):
            down[rows] = self._distance(below, features[rows], gap[rows], -1)
            up[rows] = self._distance(above, features[rows], gap[rows], +1)
        return Radius(self._together(gap), down, up)

    def can_flip(self, features: Floats, score: Floats, low: Floats, high: Floats) -> Bools:
        """Rows whose decision can change when features move to between `low` and `high`."""
        accepted, gap = self.gap(score)
        moved = (low < features) | (high > features)
        change = np.empty(features.shape)
        for rows, below, above in self.sides(accepted):
            change[rows] = _most(below, above, features[rows], low[rows], high[rows])
        with np.errstate(over="ignore", invalid="ignore"):
            safe: Bools = np.where(moved, change, 0.0).sum(axis=1) / SHORTEN < gap
        flips: Bools = np.any(moved, axis=1) & ~safe  # NaN is not safe
        return flips

    def changes(self, features: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Largest fall and rise of the score as one feature moves to between `low` and `high`.

        One number for every row and feature, (n_rows, n_features) each; 0 for those that stay.
        When several features move, the changes add up at most.
        """
        fall, rise = self._coordinates
        moved = (low < features) | (high > features)
        most = (_most(*each, features, low, high) for each in ((rise, fall), (fall, rise)))
        down, up = (np.where(moved, change, 0.0) for change in most)
        return down, up

    def unsafe(self, score: Floats, fall: Floats, rise: Floats) -> tuple[Floats, Floats]:
        """Between which thresholds rows are not certified, given how far their scores can move.

        Rounded outward: a threshold outside leaves a decision that cannot change.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            down, up = (
                (change / SHORTEN + 2 * self.error) / SHORTEN / SHORTEN for change in (fall, rise)
            )
            low, high = np.nextafter(score - down, -np.inf), np.nextafter(score + up, np.inf)
        return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)

    def gap(self, score: Floats) -> tuple[Bools, Floats]:
        """Decision of every row, and how far its exact score surely lies off the threshold."""
        with np.errstate(invalid="ignore"):  # where both are infinite, nothing is sure
            off = np.abs(score - self.threshold) * SHORTEN - 2 * self.error
        return score >= self.threshold, np.maximum(off, 0.0)

    def sides(self, accepted: Bools) -> list[tuple[Bools, Coordinates, Coordinates]]:
        """Accepted and refused rows, each with what a move down costs, and a move up."""
        fall, rise = self._coordinates
        return [(accepted, rise, fall), (~accepted, fall, rise)]

    @cached_property
    def _coordinates(self) -> tuple[Coordinates, Coordinates]:
        return Coordinates(self.copies, self.fall), Coordinates(self.copies, self.rise)

    def _distance(
        self, coordinates: Coordinates, features: Floats, gap: Floats, side: int
    ) -> Floats:
        """Distances of features that move alone; 0 where errors decide and a move may hurt."""
        exact = np.logical_and.reduceat(self.exact, self.copies.firsts)
        helps = exact & (coordinates.totals == 0)
        trusted = helps | (gap[:, None] > 0)
        return np.where(trusted, coordinates.distance(features, gap, side), 0.0)

    def _together(self, gap: Floats) -> Floats:
        """Scaled distance over which no moves of the features can cross the gap."""
        firsts = self.copies.firsts
        steep = np.maximum.reduceat(np.maximum(self.fall, self.rise), firsts)
        slack = np.maximum.reduceat(self.copies.slack, firsts)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            room = np.maximum(gap * SHORTEN - (steep * slack).sum() / SHORTEN, 0.0)
            return np.where(room > 0, room / steep.max() * SHORTEN, 0.0)  # 0 for NaN


def _most(
    below: Coordinates, above: Coordinates, features: Floats, low: Floats, high: Floats
) -> Floats:
    """The larger change of a move down to `low` and one up to `high`, by row and feature."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.maximum(below.change(low, features), above.change(features, high))


@dataclass(frozen=True, eq=False)
class Contest:
    r"""The decisions for the class with the largest logit, and what can change them.

    Parameters
    ----------
    rivals : for every class k, the decisions :math:`z_k - z_l \ge 0`, one for each other class l
    """

    rivals: Callable[[int], dict[int, Decisions]]

    def radius(self, features: Floats, scores: Floats) -> Radius:
        """How far every row may move before another class can win, given its logits."""
        shapes = features.shape[:1], features.shape, features.shape
        smallest = Radius(*(np.full(shape, math.inf) for shape in shapes))
        for rows, difference, decisions in self._pairs(scores):
            smallest.shrink(rows, decisions.radius(features[rows], difference))
        return smallest

    def can_flip(self, features: Floats, scores: Floats, low: Floats, high: Floats) -> Bools:
        """Rows in which another class can win when features move to between `low` and `high`."""
        flips = np.zeros(len(features), dtype=bool)
        for rows, difference, decisions in self._pairs(scores):
            flips[rows] |= decisions.can_flip(features[rows], difference, low[rows], high[rows])
        return flips

    def _pairs(self, scores: Floats) -> Iterator[tuple[Bools, Floats, Decisions]]:
        """For every class that wins rows and every rival: the rows, their lead, what decides."""
        winner = scores.argmax(axis=1)
        for k in np.unique(winner):
            rows = winner == k
            for other, decisions in self.rivals(int(k)).items():
                yield rows, scores[rows, k] - scores[rows, other], decisions


def shift_ranges(shifts: Shifts, columns: Sequence[Column]) -> tuple[Floats, Floats]:
    """Lowest and highest shift of every column, at most and at least 0, (n_columns,) each."""
    if isinstance(shifts, int | float):
        raise ValueError(f"`shifts={shifts}` must have one entry per column, 0 for none")
    names = tuple(column.name for column in columns)
    named = _named(shifts)
    if named is not None:
        shifts = _by_name(named, names)
    if len(shifts) != len(columns):
        raise ValueError(
            f"`shifts` has {len(shifts)} entries but the model has {len(columns)} columns "
            f"({', '.join(names)}); give one per column, 0 for none"
        )
    low, high = np.array([_pair(shift) for shift in shifts], dtype=np.float64).T
    if not np.all(np.isfinite(low) & np.isfinite(high)):
        raise ValueError(f"`shifts` must hold finite numbers or pairs (low, high); got {shifts}")
    if np.any(low > high):
        raise ValueError(f"`shifts` must have low ≤ high; got {shifts}")
    _refuse_categories(columns, (low != 0) | (high != 0))
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _refuse_categories(columns: Sequence[Column], moved: Bools) -> None:
    for column, move in zip(columns, moved, strict=True):
        if move and isinstance(column, Category):
            raise ValueError(
                f"`shifts` moves {column.name!r}, which holds categories without an order; only "
                "numbers and ordered categories can be shifted: give it 0, or leave it out"
            )


def _named(shifts: Any) -> Mapping[str, Shift] | None:
    """Shifts by name: a dictionary, or a series of pandas whose index holds names."""
    if isinstance(shifts, Mapping):
        return shifts
    index = getattr(shifts, "index", None)  # a method of lists
    if index is None or callable(index) or not all(isinstance(name, str) for name in index):
        return None
    return dict(zip(index, shifts, strict=True))


def _by_name(shifts: Mapping[str, Shift], names: tuple[str, ...]) -> list[Shift]:
    """One shift per column, 0 for those that are not named."""
    unknown = [name for name in shifts if name not in names]
    if unknown:
        raise ValueError(
            f"`shifts` names {', '.join(map(repr, unknown))}; the columns are "
            f"{', '.join(map(repr, names))}: name some of these"
        )
    return [shifts.get(name, 0.0) for name in names]


def _pair(shift: Any) -> tuple[float, float]:
    """Lowest and highest shift; NaN for what is neither a number nor two."""
    try:
        values = np.asarray(shift, dtype=np.float64)
    except (TypeError, ValueError):
        return math.nan, math.nan
    if values.ndim == 0:
        return -abs(float(values)), abs(float(values))
    return (float(values[0]), float(values[1])) if values.shape == (2,) else (math.nan, math.nan)
