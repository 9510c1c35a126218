"""Changes: what of a row may change, how far, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from isotone.checks import check_positive, is_number, suggest
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Ordered
from isotone.typing import Bools, Floats, Signs

_LARGEST = float(np.finfo(np.float64).max)
_MOST_CHOICES = 256


@dataclass(frozen=True)
class AllowedChange:
    """How a column may change.

    Parameters
    ----------
    cost : per unit of a number, per rank of an ordered column, or for another category
    up, down : the sides to which a number or a rank may move
    low, high : the least and the largest value that it may get; for ordered columns, ranks
    whole : whether it must become a whole number, as ranks always do
    categories : that a category may become; all that the model knows by default
    """

    cost: float = 1.0
    up: bool = True
    down: bool = True
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_positive("cost", self.cost)
        for name, end in (("low", self.low), ("high", self.high)):
            if not is_number(end) or math.isnan(end):
                raise ValueError(f"`{name}={end!r}` must be a number; give one, or leave it out")
        if self.low > self.high:
            raise ValueError(
                f"`low={self.low:g}` is above `high={self.high:g}`; a value must fit in between: "
                "swap them"
            )
        if not (self.up or self.down):
            raise ValueError("neither `up` nor `down` is allowed; leave the column out instead")


@dataclass(frozen=True, eq=False)
class Choice:
    """Categories that some columns become together.

    Parameters
    ----------
    features : (n_encoded,), their features after the change, NaN for all others
    owned : features of every changed column, with its cost
    missing : those that say that a category is missing, and stays so
    """

    features: Floats
    owned: tuple[tuple[list[int], float], ...]
    missing: tuple[int | None, ...]

    def apply(self, features: Floats) -> tuple[Floats, Floats]:
        """Rows after the change, and what it costs them: nothing where it is no change."""
        moved, cost = features.copy(), np.zeros(len(features))
        for (own, price), missing in zip(self.owned, self.missing, strict=True):
            known = np.full(len(features), True) if missing is None else features[:, missing] == 0
            moved[np.ix_(np.flatnonzero(known), np.array(own))] = self.features[own]
            cost += price * np.any(moved[:, own] != features[:, own], axis=1)
        return moved, cost


@dataclass(frozen=True, eq=False)
class ColumnMoves:
    """The columns of numbers and ranks that may move, (n_columns,) each.

    Parameters
    ----------
    numbers : of the columns
    places : of their features
    cost, low, high, whole : as in `AllowedChange`
    up, down : whether they may move there
    """

    numbers: list[int]
    places: list[int]
    cost: Floats
    low: Floats
    high: Floats
    whole: Bools
    up: Bools
    down: Bools

    @classmethod
    def of(cls, inputs: Inputs, changes: Mapping[str, AllowedChange]) -> ColumnMoves:
        names = [n for n in changes if not isinstance(inputs.column(n), Category)]
        given, numbers = [changes[name] for name in names], [inputs.names.index(n) for n in names]
        ranks = [inputs.columns[number] for number in numbers]
        tops = [len(c.categories) - 1.0 if isinstance(c, Ordered) else _LARGEST for c in ranks]
        bottoms = [0.0 if isinstance(c, Ordered) else -_LARGEST for c in ranks]
        whole = np.array([c.whole for c in given], bool)
        low = np.maximum([c.low for c in given], bottoms)
        high = np.minimum([c.high for c in given], tops)
        whole |= np.array([isinstance(c, Ordered) for c in ranks], bool)
        return cls(
            numbers=numbers,
            places=[inputs.places[number] for number in numbers],
            cost=np.array([c.cost for c in given], float),
            low=np.where(whole, np.ceil(low), low),
            high=np.where(whole, np.floor(high), high),
            whole=whole,
            up=np.array([c.up for c in given], bool),
            down=np.array([c.down for c in given], bool),
        )

    def __len__(self) -> int:
        return len(self.places)

    def far(self, x: Floats, side: int) -> Floats:
        """How far values (n_rows, n_columns) may move up (+1) or down (-1), not negative."""
        room = self.high - x if side > 0 else x - self.low
        allowed = (self.up if side > 0 else self.down) & (self.low <= self.high)
        return np.where(allowed, np.clip(room, 0.0, _LARGEST), 0.0)

    def helpful(self, directions: Signs, goal: int) -> tuple[Bools, Bools]:
        """Sides that can bring a score nearer to a goal: up, and down, (n_columns,) each.

        A column with a direction helps on one side alone.

        Parameters
        ----------
        directions : of the score along features, proved to the last bit
        goal : +1 if the score is to rise, -1 if it is to fall
        """
        signs = goal * directions[self.places]
        return self.up & (signs >= 0), self.down & (signs <= 0)


def choices_of(inputs: Inputs, changes: Mapping[str, AllowedChange]) -> list[Choice]:
    """Every combination of categories that columns may become; the first changes nothing."""
    options: list[list[tuple[int, int | None, float]]] = []
    for name, change in changes.items():
        column = inputs.column(name)
        if not isinstance(column, Category):
            continue
        number = inputs.names.index(name)
        known = [text for text in column.categories if text is not None]
        wanted = known if change.categories is None else list(change.categories)
        for text in wanted:
            if text not in known:
                advice = suggest(text, known, f"choose from {', '.join(known[:20])}")
                raise ValueError(
                    f"{text!r} is not a category of column {name!r} that the model knows; {advice}"
                )
        places = [column.categories.index(text) for text in wanted]
        options.append([(number, None, 0.0), *((number, p, change.cost) for p in places)])
    if math.prod(map(len, options)) > _MOST_CHOICES:
        raise ValueError(
            f"categories can change in {math.prod(map(len, options)):,} ways; at most "
            f"{_MOST_CHOICES} are tried: allow fewer `categories`"
        )
    return [_choice(inputs, combination) for combination in product(*options)]


def _choice(inputs: Inputs, combination: tuple[tuple[int, int | None, float], ...]) -> Choice:
    features, owned, missing = np.full(len(inputs.encoded), np.nan), [], []
    for number, place, cost in combination:
        if place is not None:
            first, column = inputs.places[number], inputs.columns[number]
            own = list(range(first, first + len(column.features)))
            features[own] = np.arange(len(own)) == place
            owned.append((own, cost))
            names = column.categories if isinstance(column, Category) else ()
            missing.append(first + names.index(None) if None in names else None)
    return Choice(features, tuple(owned), tuple(missing))


def check_changes(frozen: FrozenNetwork, changes: Mapping[str, AllowedChange]) -> None:
    """Raise `ValueError` unless changes name some of the columns, and fit what they hold."""
    if not changes:
        raise ValueError("`changes` is empty; something must be allowed to change: name columns")
    names = frozen.inputs.names
    for name, change in changes.items():
        if name not in names:
            known = f"choose from {', '.join(names[:20])}"
            raise ValueError(
                f"`changes` names {name!r}, which is not a column of the model; "
                f"{suggest(name, names, known)}"
            )
        if not isinstance(frozen.inputs.column(name), Category):
            if change.categories is not None:
                raise ValueError(
                    f"`changes` gives categories of column {name!r}, which has an order; limit it "
                    "with `low` and `high` instead"
                )
        elif ordered := _ordered(change):
            raise ValueError(
                f"`changes` sets {ordered} of column {name!r}, which holds categories without an "
                "order and can only become another category; leave it out, or limit the column "
                "with `categories`"
            )


def _ordered(change: AllowedChange) -> str:
    """The settings of a change that only an order gives a meaning."""
    usual = AllowedChange()
    names = ("up", "down", "low", "high", "whole")
    return " and ".join(f"`{n}`" for n in names if getattr(change, n) != getattr(usual, n))
