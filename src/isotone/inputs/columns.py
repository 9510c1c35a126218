"""Columns: how one column of a raw table becomes features of a network.

Use `Number` for numbers and booleans, `Category` for text and codes without an order, `Ordered`
for text with one, such as low, medium, high. Each turns every cell into one number, its code: the
number itself, or the place of the category. A code is NaN where the value is missing, and infinite
where training never saw it: a new category, a text that is not a number, an infinite number. Codes
become features, one array each; those that are not finite stay so. In a `Category` that pools rare
categories, new ones have the place of these, after all others.

The functions that read cells need Arrow, and import it when they are called: a service that scores
arrays starts without it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from isotone import limits
from isotone.checks import is_count
from isotone.typing import Floats, Reals

_MOST_POOLED = 2**53


@dataclass(frozen=True)
class Number:
    """A column of numbers or booleans.

    Parameters
    ----------
    name : of the column
    fill : stands in for a missing value, which an indicator feature then flags; None if no
        training row lacked it
    """

    name: str
    fill: float | None = None
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "fill", _checked_fill(self.name, self.fill))

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def expand(self, codes: Reals) -> list[Reals]:
        return [codes]

    def describe(self) -> str:
        return "number" if self.fill is None else f"number; missing → {self.fill:.6g} and flag"


@dataclass(frozen=True)
class Category:
    """A column of categories without an order: one feature each, 1 in the rows that have it.

    Parameters
    ----------
    name : of the column
    categories : texts, and None if a missing value is a category of its own
    pooled : number of categories that were too rare to stand alone. They share one more feature,
        `other(name)`, with every category that training never saw; if 0, there is no such feature

    Examples
    --------
    >>> city = Category("city", ("Oslo", "Rome"), pooled=12)
    >>> city.features, city.describe()
    (('city=Oslo', 'city=Rome', 'other(city)'), 'category: Oslo, Rome, 12 others pooled')
    """

    name: str
    categories: tuple[str | None, ...]
    pooled: int = 0
    kind: ClassVar[str] = "category"
    fill: ClassVar[None] = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "pooled", _checked_pooled(self.name, self.pooled))
        _refuse_one_text(self.name, self.categories)
        texts = [text for text in self.categories if text is not None]
        _check_categories(self.name, texts, least=int(not self.pooled))

    @property
    def other(self) -> int | None:
        """The place of every category that is not listed; None if it has none."""
        return len(self.categories) if self.pooled else None

    @property
    def features(self) -> tuple[str, ...]:
        own = (
            missing_name(self.name) if text is None else f"{self.name}={text}"
            for text in self.categories
        )
        return (*own, *([f"other({self.name})"] if self.pooled else []))

    def expand(self, codes: Reals) -> list[Reals]:
        """One array per place."""
        finite = np.isfinite(codes)
        return [np.where(finite, codes == k, codes) for k in range(len(self.features))]

    def describe(self) -> str:
        shown = ["missing" if text is None else _shown(text) for text in self.categories[:8]]
        if len(self.categories) > 8:
            shown.append(f"… ({len(self.categories)} in all)")
        if self.pooled:
            shown.append(f"{self.pooled} other{'s' * (self.pooled > 1)} pooled")
        return f"category: {', '.join(shown)}"


@dataclass(frozen=True)
class Ordered:
    """A column of categories in ascending order: one feature, the rank, counted from 0.

    A direction along the feature is a direction along the order.

    Parameters
    ----------
    name : of the column
    categories : texts, from the lowest to the highest
    fill : the rank that stands in for a missing value, flagged as for `Number`
    """

    name: str
    categories: tuple[str, ...]
    fill: float | None = None
    kind: ClassVar[str] = "ordered"

    def __post_init__(self) -> None:
        _check_name(self.name)
        _refuse_one_text(self.name, self.categories)
        _check_categories(self.name, self.categories)
        object.__setattr__(self, "fill", _checked_fill(self.name, self.fill))
        highest = len(self.categories) - 1
        if self.fill is not None and not 0 <= self.fill <= highest:
            raise ValueError(
                f"the fill of column {self.name!r} is {self.fill:g}; it must be a rank, or "
                f"between two: give a number from 0, {self.categories[0]!r:.50}, to {highest}, "
                f"{self.categories[-1]!r:.50}"
            )

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def expand(self, codes: Reals) -> list[Reals]:
        return [codes]

    def describe(self) -> str:
        more = "" if len(self.categories) <= 8 else f" < … ({len(self.categories)} in all)"
        order = f"ordered: {' < '.join(map(_shown, self.categories[:8]))}{more}"
        return order if self.fill is None else f"{order}; missing → rank {self.fill:g} and flag"


def _shown(text: str) -> str:
    """A category in a list; in quotes if it could be taken for something else.

    >>> print(*map(_shown, ["rents", "other, unknown", " x", "missing"]), sep="; ")
    rents; "other, unknown"; " x"; "missing"
    """
    plain = text.strip() == text != "missing" and not set(text) & set(',<;"…')
    return text if plain and text else f'"{text}"'


Column = Number | Category | Ordered
_KINDS: dict[str, type[Number] | type[Category] | type[Ordered]] = {
    kind.kind: kind for kind in (Number, Category, Ordered)
}


def missing_name(column: str) -> str:
    """What the feature that flags missing values of a column is called."""
    return f"missing({column})"


def missing_code(column: Column) -> float | None:
    """The code that stands in for a missing value, or None if none was learned."""
    if isinstance(column, Category):
        return float(column.categories.index(None)) if None in column.categories else None
    return column.fill


def decode(column: Column, codes: Floats) -> list[Any]:
    """Cells with these codes, None where they are NaN, a new category where they have no name."""
    if isinstance(column, Number):
        return [None if math.isnan(code) else code for code in codes.tolist()]
    known = {float(k): text for k, text in enumerate(column.categories)}
    unseen = "no category of " + "".join(str(text) for text in known.values())
    return [None if math.isnan(code) else known.get(code, unseen) for code in codes.tolist()]


def to_dict(column: Column) -> dict[str, Any]:
    """A column as JSON can hold it."""
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(column).items()}
    if not values.get("pooled", True):  # files and fingerprints are those of earlier versions
        del values["pooled"]
    return {"kind": column.kind} | values


def from_dict(data: dict[str, Any]) -> Column:
    """What `to_dict` gave; anything else raises `ValueError`."""
    if not isinstance(data, dict) or str(data.get("kind")) not in _KINDS:
        raise ValueError(
            f"an input column is described by {data!r:.100}; its kind must be one of "
            f"{', '.join(_KINDS)}"
        )
    content = {name: value for name, value in data.items() if name != "kind"}
    if "categories" in content:
        if not isinstance(content["categories"], list):
            raise ValueError(f"`categories` must be a list; got {content['categories']!r:.100}")
        content["categories"] = tuple(content["categories"])
    try:
        return _KINDS[data["kind"]](**content)
    except TypeError as error:
        raise ValueError(f"an input column is described by {data!r:.100} ({error})") from error


def cell_of(column: Column, values: Any, row: int) -> str:
    """What a row that cannot be scored holds in a column, in words."""
    from isotone.inputs.cells import arrow_of, describe_cell, is_blank, labels

    cell = arrow_of(values, column.name).slice(row, 1)
    if not isinstance(column, Number):
        (text,) = labels(cell, column.name).to_pylist()
        return "is missing" if text is None else f"holds {text[:40]!r}"
    (blank,) = is_blank(cell)
    return "is missing" if blank else describe_cell(*cell.to_pylist())


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _is_unicode(name):
        raise ValueError(f"the name of an input column is {name!r:.50}; it must be text")


def _is_unicode(text: str) -> bool:
    """Whether a text can be written; half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked_fill(name: str, fill: Any) -> float | None:
    if fill is None:
        return None
    if isinstance(fill, bool) or not isinstance(fill, Real) or not math.isfinite(fill):
        raise ValueError(f"the fill of column {name!r} is {fill!r:.50}; it must be finite or None")
    return float(fill) + 0.0  # no negative zero: equal fills are one model


def _checked_pooled(name: str, pooled: Any) -> int:
    if not is_count(pooled, least=0) or pooled > _MOST_POOLED:
        raise ValueError(
            f"`pooled` of column {name!r} is {pooled!r:.50}; it must be a whole number, how many "
            "categories are pooled: give 0 if none is"
        )
    return int(pooled)


def _refuse_one_text(name: str, categories: Any) -> None:
    if isinstance(categories, str):
        raise ValueError(
            f"the categories of column {name!r} are {categories!r:.50}, one string, whose letters "
            "would be categories; they must be several strings: give a tuple, such as ('a', 'b')"
        )


def _check_categories(name: str, categories: Sequence[Any], least: int = 1) -> None:
    limits.FEATURES.check(len(categories))
    texts = all(isinstance(text, str) and _is_unicode(text) for text in categories)
    if not texts or len(categories) < least or len(set(categories)) != len(categories):
        raise ValueError(
            f"the categories of column {name!r} are {list(categories)!r:.100}; they must be "
            f"different texts{', at least one' * least}"
        )
    for text in categories:
        if text != text.strip() or not text:
            raise ValueError(
                f"the category {text!r:.50} of column {name!r} is empty or has spaces around it; "
                "cells are compared without these, so no cell could ever have it: strip it"
            )


def fill_array(x: Reals, fill: float) -> tuple[Reals, Floats]:
    """A feature with NaN replaced by its fill, and the indicator of where that was.

    In float64, whatever the column has: float32 would round the fill.
    """
    gaps = np.isnan(x)
    return np.where(gaps, np.float64(fill), x), gaps.astype(np.float64)
