"""Inputs: the way from a raw row to the features of a network, as part of the model.

A raw table has columns of numbers, text, booleans and missing values, found by name and in any
order. Every column becomes features as its class in `isotone.inputs.columns` says. A column that
has a fill gets one more feature, `missing(name)`, after all others: 1 where the value is missing
and the fill stands in for it, 0 elsewhere. Among rows in which the value is present a direction
along the column therefore holds as it stands.

What training never saw, a new category or a value missing in a column that was complete, is an
error by default; see `Policy`. Where rare categories are pooled, a new one is one of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate
from typing import Any, Literal, NoReturn

import numpy as np

from isotone.inputs.columns import (
    Category,
    Column,
    Number,
    cell_of,
    decode,
    fill_array,
    from_dict,
    missing_code,
    missing_name,
    to_dict,
)
from isotone.inputs.frames import column_names, has_names, of_one_length
from isotone.inputs.scaling import as_numbers
from isotone.typing import Bools, Floats, Indices, Reals

# An error, as if it were missing (see `Inputs.complete`), no score (NaN), or this score.
Rule = Literal["error", "missing", "skip"]
Policy = Rule | float


@dataclass(frozen=True)
class Inputs:
    """The columns of a raw table, in the order of the features that they become.

    Parameters
    ----------
    columns : of the table
    copies : for every input of the network the number of the feature that it is a copy of,
        ascending, such as (0, 0, 0, 1); empty if the inputs are the features. See
        `isotone.inputs.knots`

    Examples
    --------
    >>> inputs = Inputs((Number("age", fill=35.0), Category("city", ("Oslo", "Rome"))))
    >>> inputs.encoded
    ('age', 'city=Oslo', 'city=Rome', 'missing(age)')
    >>> inputs.encode({"city": ["Rome", "Oslo"], "age": [31.0, None]})
    array([[31.,  0.,  1.,  0.],
           [35.,  1.,  0.,  1.]])
    """

    columns: tuple[Column, ...] = ()
    copies: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        sources = sorted(set(self.copies))
        ascending = list(self.copies) == sorted(self.copies)
        if self.copies and not (ascending and sources == list(range(len(self.encoded)))):
            raise ValueError(
                f"`copies` is {self.copies!r:.100}; it must name each of {len(self.encoded)} "
                "features by its number, in ascending order, such as (0, 0, 0, 1, 2, 2)"
            )
        self._check_names()

    def _check_names(self) -> None:
        """Refuse a name that could mean two columns, features or copies of them."""
        several = (self.counts[source] > 1 for source in self.sources)
        copies = [name for name, numbered in zip(self.features, several, strict=True) if numbered]
        for names, what in ((self.names, "columns"), ((*self.encoded, *copies), "features")):
            twice = [name for name, n in Counter(names).items() if n > 1]
            if twice:
                raise ValueError(
                    f"two {what} are called {twice[0]!r}; names must differ, also those made from "
                    "columns, categories and copies: rename a column"
                )

    @classmethod
    def numbers(cls, names: Sequence[str], copies: Sequence[int] = ()) -> Inputs:
        """Columns of numbers, none of which may be missing."""
        return cls(tuple(Number(name) for name in names), tuple(copies))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the features are the columns as they are."""
        return all(isinstance(c, Number) and c.fill is None for c in self.columns)

    @property
    def uncompleted(self) -> tuple[str, ...]:
        """Names of the features without the indicators of missing values."""
        return tuple(name for column in self.columns for name in column.features)

    @cached_property
    def encoded(self) -> tuple[str, ...]:
        """Names of the features, of which the network may see copies."""
        return (*self.uncompleted, *(missing_name(c.name) for c in self._filled))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs of the network; several copies are numbered, as in `age[0]`."""
        if not self.copies:
            return self.encoded
        counts, places = Counter(self.copies), Counter[int]()
        names = []
        for source in self.copies:
            name = self.encoded[source]
            names.append(f"{name}[{places[source]}]" if counts[source] > 1 else name)
            places[source] += 1
        return tuple(names)

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """For every input of the network the number of the feature that it is."""
        return self.copies or tuple(range(len(self.encoded)))

    @cached_property
    def counts(self) -> Indices:
        """How many inputs of the network every feature is, (n_encoded,)."""
        return np.bincount(self.sources)

    @cached_property
    def firsts(self) -> Indices:
        """The first input of the network that every feature is, (n_encoded,)."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def _filled(self) -> list[Column]:
        return [column for column in self.columns if column.fill is not None]

    def column(self, name: str) -> Column:
        return self.columns[self.names.index(name)]

    def with_fills(self, fills: Mapping[str, float]) -> Inputs:
        """The same with fills for columns of numbers and ordered categories, by name."""
        return Inputs(
            tuple(
                column
                if isinstance(column, Category) or column.name not in fills
                else replace(column, fill=fills[column.name])
                for column in self.columns
            )
        )

    def to_dict(self) -> dict[str, Any]:
        columns = [to_dict(column) for column in self.columns]
        return {"columns": columns, "copies": list(self.copies)}

    @classmethod
    def from_dict(cls, data: Any) -> Inputs:
        """What `to_dict` gave; anything else raises `ValueError`."""
        if not isinstance(data, dict) or not isinstance(data.get("columns"), list):
            raise ValueError(f"the inputs must have a list of columns; got {data!r:.100}")
        copies = data.get("copies")
        if not isinstance(copies, list) or not all(type(k) is int for k in copies):
            raise ValueError(f"`copies` must be a list of whole numbers; got {copies!r:.100}")
        return cls(tuple(from_dict(entry) for entry in data["columns"]), tuple(copies))

    def batches(self, X: Any) -> Iterator[list[Any]]:
        """The raw columns of a table, in pieces of rows if it is one of Arrow."""
        if not has_names(X):
            yield list(self._array(X).T)
            return
        labels = self._labels(column_names(X))
        if hasattr(X, "to_batches"):
            for batch in X.select(labels).to_batches():
                yield [batch.column(i) for i in range(len(labels))]
            return
        yield of_one_length({str(label): X[label] for label in labels})

    def _labels(self, found: list[Any]) -> list[Any]:
        """What a table, which must have each of the columns once, calls them."""
        labels, times = {str(label): label for label in found}, Counter(map(str, found))
        for name in self.names:
            if times[name] != 1:
                n = times[name] or "no"
                raise ValueError(
                    f"the table has {n} column{'s' * (n != 'no')} {name!r}; the model "
                    f"needs one of each: {', '.join(self.names[:20])}"
                )
        return [labels[name] for name in self.names]

    def _array(self, X: Any) -> Reals:
        """`X` without names, which must be numbers."""
        text = [column.name for column in self.columns if not isinstance(column, Number)]
        if text:
            raise ValueError(
                f"`X` has no column names, and column {text[0]!r} of the model holds text; give "
                "a data frame, an Arrow table or a dictionary of columns"
            )
        return as_numbers(X, self.names)

    def code(self, raw: list[Any]) -> list[Reals]:
        """One number per row and column: NaN where missing, infinite where unseen."""
        from isotone.inputs.cells import code  # imports Arrow, which arrays do not need

        return [code(column, values) for column, values in zip(self.columns, raw, strict=True)]

    def decode(self, codes: Floats) -> dict[str, list[Any]]:
        """Raw columns whose codes are (n_rows, n_columns)."""
        return {c.name: decode(c, codes[:, i]) for i, c in enumerate(self.columns)}

    def read(self, raw: list[Any]) -> list[Reals]:
        """Features without indicators: NaN where missing, infinite where unseen."""
        pairs = zip(self.columns, self.code(raw), strict=True)
        return [array for column, codes in pairs for array in column.expand(codes)]

    def count_pooled(self, uncompleted: Sequence[Reals]) -> int:
        """How many rows hold a category that is rare or new, and pooled with others."""
        hits = [uncompleted[k] == 1 for k in self._others]
        return int(np.count_nonzero(reduce(np.logical_or, hits))) if hits else 0

    @cached_property
    def _others(self) -> list[int]:
        """The features of pooled categories, by number."""
        places = zip(self.columns, self.places, strict=True)
        return [p + c.other for c, p in places if isinstance(c, Category) and c.other is not None]

    def complete(
        self, uncompleted: Sequence[Reals], unseen_as_missing: bool = False
    ) -> list[Reals]:
        """Features with missing values filled and flagged, one array each.

        Where nothing was learned about missing values, they stay NaN and the unseen infinite. If
        the unseen counts as missing, a category is then none of those known, all of whose features
        are 0; a number has nothing that could stand in for it, and is NaN.
        """
        if not (self._filled or unseen_as_missing):
            return list(uncompleted)
        arrays, indicators, place = [], [], 0
        for column in self.columns:
            own = list(uncompleted[place : place + len(column.features)])
            place += len(own)
            if unseen_as_missing:
                own = _unseen_as_missing(column, own)
            if column.fill is not None:
                filled = [fill_array(array, column.fill) for array in own]
                own = [array for array, _ in filled]
                indicators += [indicator for _, indicator in filled]
            arrays += own
        return [*arrays, *indicators]

    def encode(self, X: Any, first_row: int = 0, on_unseen: Policy = "error") -> Floats:
        """Features of raw rows, (n_rows, n_encoded), all of them finite.

        Parameters
        ----------
        first_row : number of the first row within a larger table, for messages
        on_unseen : what becomes of a row with values never seen in training: an "error", as if
            they were "missing", or NaN in all features
        """
        parts, start = [], first_row
        for raw in self.batches(X):
            parts.append(self._encode(raw, start, on_unseen))
            start += len(parts[-1])
        return np.concatenate(parts) if parts else np.empty((0, len(self.encoded)))

    def _encode(self, raw: list[Any], first_row: int, on_unseen: Policy) -> Floats:
        uncompleted = self.read(raw)
        arrays = self.complete(uncompleted)
        features = _stacked(arrays)
        if np.all(np.isfinite(features)):
            return features
        if on_unseen == "error":
            self.refuse(raw, arrays, first_row)
        if on_unseen == "missing":
            features = _stacked(self.complete(uncompleted, True))
        features[~has_features(features)] = np.nan
        return features

    def refuse(self, raw: list[Any], arrays: list[Reals], first_row: int = 0) -> NoReturn:
        """Raise the error about the first row that holds what training never saw."""
        bad = ~np.isfinite(np.column_stack(arrays))
        row, feature = (int(index) for index in np.argwhere(bad)[0])
        column = self.owner(feature)
        cell = cell_of(column, raw[self.columns.index(column)], row)
        raise ValueError(
            f"column {column.name!r} {cell} in row {first_row + row} (data rows, counted from 0)"
            f"{_expected(column, cell)}: correct or drop such rows, or choose what they get: "
            "`on_unseen`, on the command line `--on-unseen`"
        )

    def owner(self, feature: int) -> Column:
        """The column that a feature, counted from 0, comes from."""
        return self.columns[self.owners[feature]]

    @cached_property
    def owners(self) -> list[int]:
        """For every feature the number of the column that it comes from."""
        own = [i for i, column in enumerate(self.columns) for _ in column.features]
        return [*own, *(i for i, column in enumerate(self.columns) if column.fill is not None)]

    @cached_property
    def places(self) -> list[int]:
        """For every column the number of its first feature."""
        counts = (len(column.features) for column in self.columns[:-1])
        return list(accumulate(counts, initial=0))

    def movable(self, features: Floats) -> Bools:
        """What can move by a number or a rank, (n_rows, n_columns): no category, and not missing.

        Parameters
        ----------
        features : what `encode` made
        """
        orders = [not isinstance(column, Category) for column in self.columns]
        movable: Bools = np.tile(orders, (len(features), 1))
        n = len(self.uncompleted)
        movable[:, self.owners[n:]] = features[:, n:] == 0
        return movable

    def shift(self, features: Floats, amounts: Floats) -> Floats:
        """Features after everything `movable` moved, each column by its amount."""
        moved = features.copy()
        with np.errstate(over="ignore"):
            moved[:, self.places] += np.where(self.movable(features), amounts, 0.0)
        return moved


def has_features(features: Floats) -> Bools:
    """The rows that a policy gave features, (n_rows,)."""
    return np.asarray(np.isfinite(features).all(axis=1))


def for_all_rows(values: Floats, known: Bools) -> Floats:
    """Values of the known rows as those of all, NaN for the others."""
    every: Floats = np.full((len(known), *values.shape[1:]), np.nan)
    every[known] = values
    return every


def _stacked(arrays: list[Reals]) -> Floats:
    return np.column_stack([array.astype(np.float64) for array in arrays])


def check_policy(on_unseen: Any) -> Policy:
    """The policy, if it is one."""
    if on_unseen in ("error", "missing", "skip"):
        return on_unseen  # type: ignore[no-any-return]
    if isinstance(on_unseen, bool) or not isinstance(on_unseen, int | float | np.number):
        raise ValueError(
            f"`on_unseen={on_unseen!r}` is unknown; choose 'error', 'missing', 'skip' (NaN), or "
            "give the score of such rows"
        )
    if not math.isfinite(on_unseen):
        raise ValueError(
            f"`on_unseen={on_unseen!r}` is not a score; give a finite number, or choose 'skip' "
            "for rows without a score"
        )
    return float(on_unseen)


def refuse_one_score(on_unseen: Policy, n_outputs: int) -> None:
    """Raise `ValueError` if one number would be the score of several outputs."""
    if n_outputs > 1 and not isinstance(on_unseen, str):
        raise ValueError(
            f"`on_unseen={on_unseen!r}` is one score, but there are {n_outputs} outputs, of which "
            "none would win; choose 'error', 'missing' or 'skip' (on the command line "
            "`--on-unseen skip`)"
        )


def _unseen_as_missing(column: Column, arrays: list[Reals]) -> list[Reals]:
    """Features of a column with infinite entries, which mark the unseen, as if missing."""
    if isinstance(column, Category):
        missing = missing_code(column)
        return [np.where(np.isfinite(a), a, k == missing) for k, a in enumerate(arrays)]
    return [np.where(np.isinf(a), np.nan, a) for a in arrays]


def _expected(column: Column, cell: str) -> str:
    """What a column may hold, for the message about something else."""
    if cell == "is missing":
        return ", and the model has not learned what a missing value means there"
    if isinstance(column, Number):
        return "; every row needs a finite number" + ("" if column.fill is None else ", or none")
    shown = ", ".join(text for text in column.categories[:10] if text is not None)
    return f", which no training row has; its categories are {shown}"
