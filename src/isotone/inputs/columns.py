"""Columns: how one column of a raw table becomes features of a network.

Use `Number` for numbers and booleans, `Category` for text and codes without an order, `Ordered`
for text with one, such as low, medium, high. Each reads its column and gives one array per
feature, NaN where a value is missing and infinity where it was never seen in training: a new
category, a text that is not a number, an infinite number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isotone.inputs.cells import arrow_of, is_blank, labels, numbers_of
from isotone.typing import Floats, Reals

UNSEEN = math.inf


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
        _check_fill(self.name, self.fill)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def read(self, values: Any) -> list[Reals]:
        """The numbers, where they are if they can stay."""
        return [numbers_of(values, self.name)]

    def describe(self) -> str:
        return "number" if self.fill is None else f"number; missing → {self.fill:.6g} and flag"


@dataclass(frozen=True)
class Category:
    """A column of categories without an order: one feature each, 1 in the rows that have it.

    Parameters
    ----------
    name : of the column
    categories : texts, and None if a missing value is a category of its own
    """

    name: str
    categories: tuple[str | None, ...]
    kind: ClassVar[str] = "category"
    fill: ClassVar[None] = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_categories(self.name, [text for text in self.categories if text is not None])

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(
            f"missing({self.name})" if text is None else f"{self.name}={text}"
            for text in self.categories
        )

    def read(self, values: Any) -> list[Reals]:
        """One array per category."""
        index = _places(arrow_of(values, self.name), self.categories)
        hot = np.full((len(self.categories) + 1, len(self.categories)), UNSEEN)
        hot[:-1] = np.eye(len(self.categories))
        return list(np.ascontiguousarray(hot[index].T))

    def describe(self) -> str:
        shown = ", ".join("missing" if text is None else text for text in self.categories[:8])
        more = "" if len(self.categories) <= 8 else f", … ({len(self.categories)} in all)"
        return f"category: {shown}{more}"


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
        _check_categories(self.name, self.categories)
        _check_fill(self.name, self.fill)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def read(self, values: Any) -> list[Reals]:
        """The ranks."""
        index = _places(arrow_of(values, self.name), (*self.categories, None))
        return [np.array([*range(len(self.categories)), math.nan, UNSEEN])[index]]

    def describe(self) -> str:
        order = f"ordered: {' < '.join(self.categories)}"
        return order if self.fill is None else f"{order}; missing → rank {self.fill:g} and flag"


Column = Number | Category | Ordered
_KINDS: dict[str, type[Number] | type[Category] | type[Ordered]] = {
    kind.kind: kind for kind in (Number, Category, Ordered)
}


def to_dict(column: Column) -> dict[str, Any]:
    """A column as JSON can hold it."""
    content = {"kind": column.kind} | asdict(column)
    return {name: list(v) if isinstance(v, tuple) else v for name, v in content.items()}


def from_dict(data: dict[str, Any]) -> Column:
    """What `to_dict` gave; anything else raises `ValueError`."""
    if not isinstance(data, dict) or data.get("kind") not in _KINDS:
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
    cells = arrow_of(values, column.name)
    if is_blank(cells.slice(row, 1))[0]:
        return "is missing"
    cell = cells[row].as_py()
    if isinstance(column, Number):
        return f"holds the text {cell[:40]!r}" if isinstance(cell, str) else f"is {cell}"
    return f"holds {str(cell).strip()[:40]!r}"


def _places(column: pa.Array, categories: Sequence[str | None]) -> NDArray[np.intp]:
    """Number of every row's category; how many there are for a text that is none of them."""
    found = pc.index_in(labels(column), value_set=pa.array(categories, pa.string()))
    places: NDArray[np.intp] = pc.fill_null(found, len(categories)).to_numpy(zero_copy_only=False)
    return places


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise ValueError(f"the name of an input column is {name!r:.50}; it must be text")


def _check_fill(name: str, fill: Any) -> None:
    if fill is not None and (type(fill) not in (int, float) or not math.isfinite(fill)):
        raise ValueError(f"the fill of column {name!r} is {fill!r:.50}; it must be finite or None")


def _check_categories(name: str, categories: Sequence[Any]) -> None:
    texts = all(isinstance(text, str) for text in categories)
    if not texts or not categories or len(set(categories)) != len(categories):
        raise ValueError(
            f"the categories of column {name!r} are {list(categories)!r:.100}; they must be "
            "different texts, at least one"
        )


def fill_array(x: Reals, fill: float) -> tuple[Reals, Floats]:
    """A feature with NaN replaced by its fill, and the indicator of where that was."""
    gaps = np.isnan(x)
    return np.where(gaps, fill, x), gaps.astype(np.float64)
