"""Which columns of a table a network learns from, and in which direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from isotone import limits
from isotone.cli.console.options import Names, listed, one_number, orders_of, scaling_of, spelled
from isotone.cli.console.terminal import warn
from isotone.data.dataset import Dataset
from isotone.data.table import Table, index_columns
from isotone.inputs.columns import missing_name
from isotone.inputs.scaling import Kind, Log
from isotone.typing import Floats

SIGNS = {1: "increasing", -1: "decreasing"}


@dataclass(frozen=True)
class Direction:
    """The sign with which the target, or the probability of one of its classes, goes."""

    column: str
    sign: int
    of_class: str | None = None

    @property
    def name(self) -> str:
        """What stands in the option that asks for it."""
        return self.column if self.of_class is None else f"{self.column}:{self.of_class}"

    @property
    def option(self) -> str:
        """How a user asks for it."""
        return spelled(SIGNS[self.sign], self.name)


@dataclass(frozen=True)
class Columns:
    """Features with their directions, logarithms and categories, and the target.

    Parameters
    ----------
    offsets : of the logarithms, for the columns that take one
    kind, kinds : the scaling of all other columns, and of those that have their own
    categorical : features that hold categories without an order
    orders : categories from the lowest to the highest, of features that hold such
    """

    features: tuple[str, ...]
    target: str
    directions: tuple[Direction, ...] = ()
    offsets: tuple[tuple[str, float], ...] = ()
    kind: Kind | Literal["auto"] = "auto"
    kinds: Mapping[str, Kind | Literal["auto"]] = field(default_factory=dict)
    categorical: tuple[str, ...] = ()
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def monotonic_cst(self) -> tuple[int, ...]:
        """One direction per feature, for a target that is a number, or 0 and 1."""
        signs = {direction.column: direction.sign for direction in self.directions}
        return tuple(signs.get(name, 0) for name in self.features)

    @property
    def scaling(self) -> Any:
        """The scaling as estimators take it: a kind for all columns, or one for each."""
        own: dict[str, Any] = dict(self.kinds)
        own |= {name: Log(offset=offset) if offset else "log" for name, offset in self.offsets}
        return {name: own.get(name, self.kind) for name in self.features} if own else self.kind


def choose_columns(
    table: Table,
    target: str,
    features: Names,
    increasing: Names,
    decreasing: Names,
    log: Names,
    weights: str | None = None,
    categorical: Names = None,
    ordered: Names = None,
    scaling: Names = None,
    group_by: Names = None,
    gaps_allowed: bool = False,
    unasked: str = "auto",
) -> Columns:
    """Check what was asked for against the columns of the table.

    By default all columns are features but the target, the weights, those of groups, and an index
    of pandas that no option names. If missing values are learned from, they may have directions,
    too. `unasked` is the scaling of columns that no option scales.
    """
    grouped = listed(group_by)
    table.find([target, *([weights] if weights else []), *grouped])
    asked = target, weights, increasing, decreasing, log, categorical, ordered, scaling
    index = _unnamed_index(table, *asked)
    taken = (target, weights, *index, *grouped)
    others = tuple(name for name in table.columns if name not in taken)
    names = listed(features) or others
    if not listed(features):
        tell_left_out(index, "features")
        if isinstance(table, Dataset):
            table.refuse_partitions(f"add `{spelled('features', *others)}`")
    _check_roles(table, names, target, weights)
    known = (*names, *map(missing_name, names))
    directions = [
        _direction(part, sign, known)
        for text, sign in ((increasing, 1), (decreasing, -1))
        for part in listed(text)
    ]
    offsets = [_offset(part, names) for part in listed(log)]
    encoded = listed(categorical), orders_of(ordered)
    kinds = scaling_of(scaling, names, unasked)
    found = Columns(names, target, tuple(directions), tuple(offsets), *kinds, *encoded)
    _check_options(table, found, weights, gaps_allowed)
    return found


def _unnamed_index(table: Table, *options: Names) -> tuple[str, ...]:
    """Index columns of a table that no option names, be it as `column:class` or `column=1`."""
    parts = [part for option in options for part in listed(option)]
    return tuple(
        name
        for name in index_columns(table)
        if not any(
            part == name or (name and part.startswith((f"{name}:", f"{name}="))) for part in parts
        )
    )


def tell_left_out(index: Sequence[str], option: str) -> None:
    """Say which columns nobody asked for are not used, and how to use them."""
    if index:
        shown = ", ".join(repr(name) for name in index)
        warn(
            f"left out {shown}, which pandas wrote as the index of the rows; to use such a "
            f"column, name it in `--{option}`",
            "note",
        )


def _check_roles(table: Table, names: Sequence[str], target: str, weights: str | None) -> None:
    table.find(names)
    if not names:
        raise ValueError(
            f"{table.path!r} has no column other than {target!r}; features are needed"
        )
    for role, taken in (("target", target), ("weight", weights)):
        if taken in names:
            others = [name for name in names if name != taken]
            hint = f", as in `{spelled('features', *others)}`" if others else ""
            raise ValueError(
                f"`--features` names {taken!r}, which is the {role} and cannot be a feature too; "
                f"leave it out{hint}"
            )
    if target == weights:
        raise ValueError(f"{target!r} is both the target and the weights; choose one of them")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"`--features` names the column {repeated!r} twice; name each once")


def _check_options(
    table: Table, columns: Columns, weights: str | None, gaps_allowed: bool
) -> None:
    """Refuse options about columns that are no features, or that contradict each other."""
    gaps = {missing_name(name) for name in columns.features} - set(columns.features)
    asked = []
    for direction in columns.directions:
        if direction.column not in gaps:
            asked.append((direction.option, direction.column))
        elif not gaps_allowed:
            raise ValueError(
                f"`{direction.option}` is about missing values, which are refused here; add "
                "`--missing indicator` to `isotone train`, or leave it out"
            )
    asked += [(spelled("log", name), name) for name, _ in columns.offsets]
    asked += [(spelled("scaling", f"{name}={kind}"), name) for name, kind in columns.kinds.items()]
    encoded = [(spelled("categorical", name), name) for name in columns.categorical]
    encoded += [(spelled("ordered", name), name) for name in columns.orders]
    for option, name in [*asked, *encoded]:
        if name not in columns.features:
            table.find([name])
            _refuse_other_role(option, name, columns, weights)
    for option, name in asked:
        if name in columns.categorical:
            raise ValueError(
                f"`{option}` is impossible: {name!r} is categorical, and categories have no "
                "order; leave out one of the two options, or give their order with `--ordered` "
                "instead of `--categorical`"
            )
    for name, _ in columns.offsets:
        if name in columns.kinds:
            raise ValueError(
                f"`--log` and `--scaling` both name {name!r}; a column has one scaling: leave it "
                "out of one of them"
            )
    for name in columns.orders:
        if name in columns.categorical:
            raise ValueError(
                f"{name!r} is both categorical, without an order, and ordered; name it in one of "
                "`--categorical` and `--ordered`"
            )
    seen: dict[tuple[str, str | None], int] = {}
    for direction in columns.directions:
        key = direction.column, direction.of_class
        if seen.setdefault(key, direction.sign) != direction.sign:
            raise ValueError(
                f"{direction.column!r} is both increasing and decreasing; choose one of them"
            )


def _refuse_other_role(option: str, name: str, columns: Columns, weights: str | None) -> None:
    for role, taken in (("target", columns.target), ("weight of the rows", weights)):
        if name == taken:
            shown = ", ".join(columns.features[:20])
            raise ValueError(
                f"`{option}` names the {role}, which cannot be a feature; name one of the "
                f"features instead: {shown}"
            )
    raise ValueError(
        f"`{option}` is about {name!r}, which is not among the features; add it: "
        f"`{spelled('features', *columns.features, name)}`"
    )


def _direction(text: str, sign: int, names: Sequence[str]) -> Direction:
    """`column` or `column:class`; a colon in the name of a column is left alone."""
    column, colon, of_class = text.rpartition(":")
    if text in names or not colon:
        return Direction(text, sign)
    return Direction(column if column in names else column.strip(), sign, of_class.strip())


def _offset(text: str, names: Sequence[str]) -> tuple[str, float]:
    """`column` or `column=offset`."""
    column, sign, offset = text.rpartition("=")
    if text in names or not sign:
        return text, 0.0
    return column if column in names else column.strip(), one_number(offset, f"log {column}=")


def check_numbers(columns: Columns, numbers: Mapping[str, Floats]) -> None:
    """Raise `ValueError` if a column has numbers without a scale, or without a logarithm.

    Parameters
    ----------
    numbers : columns by name, which may hold NaN
    """
    for name, column in numbers.items():
        largest = float(np.nanmax(np.abs(column)))
        if largest > limits.NUMBER:
            raise ValueError(
                f"column {name!r} reaches {largest:g}; numbers up to {limits.NUMBER:g} can be "
                "used: choose other units, or leave the column out"
            )
    for name, offset in columns.offsets:
        if name not in numbers:
            raise ValueError(
                f"`{spelled('log', name)}` is impossible: {name!r} holds ordered categories, and "
                "only numbers have logarithms; leave it out of `--log`"
            )
        least = float(np.nanmin(numbers[name]))
        if not least + offset > 0:
            offsets = dict(columns.offsets) | {name: float(f"{1.0 - least:.3g}")}
            hint = spelled("log", *(f"{n}={o:g}" if o else n for n, o in offsets.items()))
            raise ValueError(
                f"`{spelled('log', name)}`: column {name!r} has a minimum of {least:g}, where "
                f"log(x + {offset:g}) is undefined; add an offset, as in `{hint}`, or leave "
                f"{name!r} out of `--log`"
            )
