"""Rays: the search for the cheapest move of several columns that flips a decision.

Along a ray columns move together, each at a rate of its own, until its limit. Where all of them
have a direction that helps, a decision that flipped along a ray stays so, and the search for the
first flip is exact up to a part in 1e9; a ray of one column then finds the least move of that
column. Several columns are searched by many rays, drawn at first from all and then nearer and
nearer to the best, and at last every column goes back as far as the flip permits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isotone.typing import Bools, Floats

_SECTIONS, _ROUNDS = 8, 14
_LEAST = 1e-24  # of a ray; sections are equal factors until the ends are within one of 10
_AND_MORE = 1.0 + 2.0**-50  # than rounding errors take
_FIRST, _NEAR, _WAVES = 32, 12, 6  # rays that are drawn from all, near the best, and how often

Flips = Callable[[Floats], Bools]  # of values (n_rows, n_rays, n_columns), shape (n_rows, n_rays)


@dataclass(frozen=True, eq=False)
class Space:
    """Where the values of some rows may move.

    Parameters
    ----------
    x : (n_rows, n_columns), where they are
    up, down : (n_rows, n_columns), how far they may move; 0 for not at all
    low, high : (n_columns,), the least and the largest value of those that moved
    cost : (n_columns,), per unit
    whole : (n_columns,), whether a value that moved must be a whole number
    flips : whether rows with other values have another decision
    """

    x: Floats
    up: Floats
    down: Floats
    low: Floats
    high: Floats
    cost: Floats
    whole: Bools
    flips: Flips

    def values(self, shares: Floats, sides: Floats, budget: Floats) -> Floats:
        """Values after a budget was spent, (n_rows, n_rays, n_columns).

        Parameters
        ----------
        shares : of the budget that is spent on every column, (n_rows, n_rays, n_columns)
        sides : -1 or +1, to which columns move
        budget : (n_rows, n_rays)
        """
        far = np.where(sides > 0, self.up[:, None], self.down[:, None])
        move = np.minimum(budget[:, :, None] * shares / self.cost, far)
        x = self.x[:, None]
        there = np.where(sides * move >= self.high - x, self.high, x + sides * move)
        there = np.where(-sides * move >= x - self.low, self.low, there)
        outward = np.where(sides > 0, np.ceil(there), np.floor(there))
        within = np.clip(np.where(self.whole, outward, there), self.low, self.high)
        return np.where(move > 0, within, x)

    def price(self, values: Floats) -> Floats:
        """What values (n_rows, n_rays, n_columns) cost."""
        price: Floats = (np.abs(values - self.x[:, None]) * self.cost).sum(axis=2)
        return price

    def most(self, shares: Floats, sides: Floats) -> Floats:
        """The budget with which every column of a ray is at its limit, (n_rows, n_rays)."""
        far = np.where(sides > 0, self.up[:, None], self.down[:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(shares > 0, far * self.cost / shares * _AND_MORE, 0.0)
        most: Floats = needed.max(axis=2, initial=0.0)
        return most


def cheapest(space: Space, seed: int) -> tuple[Floats, Floats]:
    """The best values that were found, (n_rows, n_columns), and their price, infinite if none."""
    rng, (n_rows, k) = np.random.default_rng(seed), space.x.shape
    values, price = space.x.copy(), np.full(n_rows, np.inf)
    if k == 0 or n_rows == 0:
        return values, price
    shares, sides = _spread(space, rng)
    best_shares, best_sides = shares[:, 0], sides[:, 0]
    for wave in range(_WAVES + 1):
        found, prices = _first_flips(space, shares, sides)
        ray = prices.argmin(axis=1)[:, None]
        least = np.take_along_axis(prices, ray, axis=1)[:, 0]
        better = least < price
        price = np.where(better, least, price)
        for old, new in ((values, found), (best_shares, shares), (best_sides, sides)):
            chosen = np.take_along_axis(new, ray[:, :, None], axis=1)[:, 0]
            old[better] = chosen[better]
        shares, sides = _nearby(best_shares, best_sides, 0.5**wave, rng)
    return _go_back(space, values, price)


def _spread(space: Space, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """One ray for every column and side, one for all together, and others at random."""
    n_rows, k = space.x.shape
    alone = np.tile(np.eye(k), (2, 1))
    drawn = rng.dirichlet(np.ones(k), _FIRST) * (rng.random((_FIRST, k)) < 0.7)
    drawn[~drawn.any(axis=1)] = 1.0 / k
    shares = np.concatenate([alone, np.full((1, k), 1.0 / k), drawn])
    sides = np.where(rng.random(shares.shape) < 0.5, -1.0, 1.0)
    sides[:k], sides[k : 2 * k] = 1.0, -1.0
    shares, sides = (np.repeat(a[None], n_rows, axis=0).copy() for a in (shares, sides))
    up, down = space.up[:, None] > 0, space.down[:, None] > 0
    sides = np.where(up & ~down, 1.0, np.where(down & ~up, -1.0, sides))
    return np.where(up | down, shares, 0.0), sides


def _nearby(
    shares: Floats, sides: Floats, width: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Rays near one ray of every row, which is not in doubt about sides."""
    n_rows, k = shares.shape
    noise = np.exp(width * rng.normal(size=(n_rows, _NEAR, k)))
    near = shares[:, None] * noise * (rng.random((n_rows, _NEAR, k)) < 1.0 - 0.2 * width)
    near += 0.1 * width * rng.random(near.shape) * (rng.random(near.shape) < 0.3)
    total = near.sum(axis=2, keepdims=True)
    near = np.where(total > 0, near / np.where(total > 0, total, 1.0), shares[:, None])
    return near, np.repeat(sides[:, None], _NEAR, axis=1)


def _first_flips(space: Space, shares: Floats, sides: Floats) -> tuple[Floats, Floats]:
    """Values at the first flip that is found along every ray, and their price."""
    high = space.most(shares, sides)
    low = np.zeros_like(high)
    ends = space.flips(space.values(shares, sides, high))
    for _ in range(_ROUNDS):
        points = _sections(low, high)
        first, before = high.copy(), low.copy()
        is_open = np.ones(high.shape, bool)
        for point in points:
            flipped = space.flips(space.values(shares, sides, point))
            first = np.where(flipped & is_open, point, first)
            is_open &= ~flipped
            before = np.where(is_open, point, before)
        low, high = before, first
    values = space.values(shares, sides, high)
    return values, np.where(ends, space.price(values), np.inf)


def _sections(low: Floats, high: Floats) -> list[Floats]:
    """Budgets between two others, by equal factors if these are far apart, else by equal steps."""
    least = np.maximum(low, _LEAST * high)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(high > 0, high / least, 1.0)
    parts = np.arange(1, _SECTIONS + 1) / (_SECTIONS + 1)
    return [
        np.where(ratio > 10.0, least * ratio**part, low + part * (high - low)) for part in parts
    ]


def _go_back(space: Space, values: Floats, price: Floats) -> tuple[Floats, Floats]:
    """Every column in turn, the dearest move first, back as far as rows stay flipped."""
    k = values.shape[1]
    moved = np.abs(values - space.x) * space.cost
    for place in np.argsort(-moved, axis=1, kind="stable").T:
        chosen = np.arange(k) == place[:, None]
        start = np.where(chosen, space.x, values)
        own = Space(
            x=start,
            up=np.where(chosen, np.maximum(values - space.x, 0.0), 0.0),
            down=np.where(chosen, np.maximum(space.x - values, 0.0), 0.0),
            low=space.low,
            high=space.high,
            cost=space.cost,
            whole=space.whole,
            flips=space.flips,
        )
        sides = np.where(values >= space.x, 1.0, -1.0)[:, None]
        at_once = space.flips(start[:, None])[:, 0]
        back, _ = _first_flips(own, chosen[:, None].astype(float), sides)
        nearer = np.where(at_once[:, None], start, back[:, 0])
        cheaper = space.price(nearer[:, None])[:, 0]
        better = (cheaper < price) & space.flips(nearer[:, None])[:, 0] & np.isfinite(price)
        values, price = np.where(better[:, None], nearer, values), np.where(better, cheaper, price)
    return values, price
