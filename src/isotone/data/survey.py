"""The survey: a first pass over a data set that does not fit into memory.

It counts what must be complete, and takes a sample from which the rest is decided. Rows are drawn
by their numbers alone. Rows that are like no others are added: the first of every category and
class, the first with a missing value in a column, and those with the lowest and the highest
number of a column. So the categories, the ranges and the missing values of the sample are those of
all rows. A row that was drawn stands for many, an added one for itself: their weights say so.

Rows to judge by are held out by their number, or with their whole group (`isotone.data.holdout`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from isotone.data.dataset import Dataset
from isotone.data.groups import Keys
from isotone.data.holdout import GROUP, DrawnGroups, DrawnRows
from isotone.data.source import Source
from isotone.data.table import BATCH_ROWS
from isotone.inputs.cells import decoded, is_text, labels, numbers_of
from isotone.inputs.frames import is_category
from isotone.typing import Bools, Floats, Integers

SMALL_ROWS = 2**18  # up to which a data set is read as a table
SAMPLE_ROWS = 2**17  # that are drawn, and held out at most
MAX_LABELS = 1024  # different values of a column that are told apart


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a data set.

    Parameters
    ----------
    X : the features
    cells : the target
    weight : of every row, times the number of rows that it stands for
    rows : their numbers within the data set
    stands_for : that number of rows
    group : the key of the group of every row; None if there are no groups
    """

    X: pa.Table
    cells: pa.Array
    weight: Floats
    rows: Integers
    stands_for: Floats
    group: Keys | None = None


@dataclass(frozen=True, eq=False)
class Survey:
    """What a first pass found.

    Parameters
    ----------
    sample : rows that stand for all
    held : rows to judge by, which are not in the sample, and not to be learned from
    n_rows, total : number of rows that count, and their weight
    is_negative : whether a weight is
    classes : weight of every value of the target; None if these are more than `MAX_LABELS`
    missing : number of missing values by feature, where there are some, and the file and the row
        of the first
    levels : rows of every category, None for a missing value, by feature that has such; those of
        ordered categories, and of more than `MAX_LABELS`, are not counted
    digest : tells the rows from others
    """

    source: Source
    sample: Part
    held: Part
    n_rows: int
    total: float
    classes: dict[Any, float] | None
    missing: dict[str, tuple[int, str, int]]
    levels: dict[str, dict[str | None, int]]
    digest: str
    is_negative: bool = False


def is_small(dataset: Dataset) -> bool:
    """Whether a data set is to be read as a table, and needs no survey."""
    return (dataset.n_rows or 0) <= SMALL_ROWS


def take_survey(
    source: Source,
    *,
    n_held: int = 0,
    seed: int = 0,
    on_rows: Callable[[int], object] = lambda n: None,
) -> Survey:
    """Read all rows once; `SAMPLE_ROWS` of them are the sample.

    Parameters
    ----------
    n_held : number of rows to hold out; more than `SAMPLE_ROWS` are not. With groups it is about
        that number, in whole groups
    on_rows : called with the number of rows of every batch that is read
    """
    n_rows, n_held = source.dataset.n_rows or 0, min(n_held, SAMPLE_ROWS)
    numbers = _draw(n_rows, 0 if source.group else n_held, SAMPLE_ROWS, seed)
    held, sample = (DrawnRows(drawn) for drawn in numbers)
    if source.group:
        held = DrawnGroups(n_held, n_rows, seed, source.group)
    survey = _Surveying(source, held, sample)
    for batch, path, first_row, number in _batches(source):
        rows, places = source.read(batch, path, first_row)
        survey.see(rows, path, first_row + places, number + places)
        on_rows(len(batch))
    return survey.finish()


def _draw(n_rows: int, n_held: int, n_sample: int, seed: int) -> tuple[Integers, Integers]:
    """Ascending numbers of rows to hold out, and of others to sample."""
    n_held = min(n_held, n_rows)
    n_drawn = min(n_held + n_sample, n_rows)
    drawn = np.random.default_rng(seed).choice(n_rows, n_drawn, replace=False)
    return np.sort(drawn[:n_held]), np.sort(drawn[n_held:])


def _batches(source: Source) -> Iterator[tuple[pa.RecordBatch, str, int, int]]:
    """Batches with their file, and the numbers of their first row in file and data set."""
    number = 0
    for file in source.dataset.files:
        first_row = 0
        for batch in file.batches(source.columns, BATCH_ROWS):
            yield batch, file.path, first_row, number
            first_row += len(batch)
            number += len(batch)


class _Surveying:
    """What was seen so far."""

    def __init__(self, source: Source, held: DrawnRows, sample: DrawnRows) -> None:
        self.source, self.held, self.sample = source, held, sample
        self.columns = {
            n: _Column(n in source.categories, n == source.target) for n in source.cells
        }
        self.single: dict[tuple[str, Any], tuple[int, pa.RecordBatch]] = {}
        self.classes: dict[Any, float] | None = {}
        self.n_rows, self.total, self.is_negative = 0, 0.0, False
        self.digest = hashlib.sha256(repr(source.group).encode() if source.group else b"")

    def see(self, rows: pa.RecordBatch, path: str, places: Integers, numbers: Integers) -> None:
        """Rows of a file: their numbers there, and within the data set."""
        if not len(rows):
            return
        for drawn in (self.held, self.sample):
            drawn.see(rows, numbers)
        for name, column in self.columns.items():
            for key, row in column.see(rows.column(name), name, (path, places)):
                self.single[name, key] = int(numbers[row]), rows.take([row])
            self.digest.update(f"{name} {column.sum}".encode())
        weight = _weights(rows, self.source)
        self.n_rows, self.total = self.n_rows + len(rows), self.total + float(weight.sum())
        self.is_negative |= bool(weight.min() < 0)
        self._count_classes(rows.column(self.source.target), weight)

    def _count_classes(self, cells: pa.Array, weight: Floats) -> None:
        if self.classes is None:
            return
        encoded = decoded(cells).dictionary_encode()
        sums = np.bincount(encoded.indices.to_numpy(), weight, len(encoded.dictionary))
        for value, total in zip(encoded.dictionary.to_pylist(), sums.tolist(), strict=True):
            self.classes[value] = self.classes.get(value, 0.0) + total
        if len(self.classes) > MAX_LABELS:
            self.classes = None

    def finish(self) -> Survey:
        if not self.total > 0 or not np.isfinite(self.total):
            what = (
                "no rows" if self.source.weight is None else f"a weight of {self.total:g} in all"
            )
            raise ValueError(
                f"{self.source.dataset.path!r} has {what}; training needs rows of positive, "
                "finite weight: give others"
            )
        held, sample = self._parts()
        features = {name: self.columns[name] for name in self.source.features}
        gaps = {name: column.gaps() for name, column in features.items()}
        return Survey(
            self.source,
            sample,
            held,
            self.n_rows,
            self.total,
            self.classes,
            {name: (found.n, found.path, found.row) for name, found in gaps.items() if found.n},
            {name: column.labels for name, column in features.items() if column.has_counts},
            self.digest.hexdigest(),
            self.is_negative,
        )

    def _parts(self) -> tuple[Part, Part]:
        """Rows that are held out, and the sample: rows that were drawn, and added ones."""
        numbers = _all(self.sample.numbers)
        known = set(numbers.tolist())
        added = {n: row for n, row in self.single.values() if n not in known}
        kept = self.held.kept(added)
        seen = np.flatnonzero(~self.held.hides(self.sample.batches, kept))
        stands_for = np.repeat([self.n_rows / max(len(seen), 1), 1.0], [len(seen), len(added)])
        own = np.concatenate([seen, len(numbers) + np.arange(len(added))])
        numbers = np.concatenate([numbers, np.array(list(added), np.int64)])
        sample = self._part([*self.sample.batches, *added.values()], numbers, own, stands_for)
        held, ones = np.flatnonzero(kept), np.ones(int(kept.sum()))
        return self._part(self.held.batches, _all(self.held.numbers), held, ones), sample

    def _part(
        self, batches: list[pa.RecordBatch], numbers: Integers, rows: Integers, stands_for: Floats
    ) -> Part:
        nothing = [batch.slice(0, 0) for batch in self.sample.batches]
        table = joined(batches or nothing, self.source).take(rows)
        weight = _weights(table, self.source) * stands_for
        X, cells = table.select(self.source.features), table[self.source.target].combine_chunks()
        group = table[GROUP].to_numpy() if self.source.group else None
        return Part(X, cells, weight, numbers[rows], stands_for, group)


def _all(numbers: list[Integers]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *numbers])


def joined(batches: Iterable[pa.RecordBatch], source: Source) -> pa.Table:
    """One table of what a source read, in which categories are stored as such."""
    parts, columns = list(batches), {}
    for name in source.names:
        chunks = [batch.column(name) for batch in parts]
        _check_alike(chunks, name)
        column = pa.chunked_array(chunks).combine_chunks()
        columns[name] = column.dictionary_encode() if name in source.categories else column
    return pa.table(columns)


def _check_alike(chunks: list[pa.Array], name: str) -> None:
    ordered = [is_category(chunk.type) and chunk.type.ordered for chunk in chunks]
    orders = [c.dictionary if known else None for c, known in zip(chunks, ordered, strict=True)]
    if any(order != orders[0] for order in orders):
        raise ValueError(
            f"the categories of column {name!r} are stored in different orders in different "
            "files; they must have one order: write the files with the same one, or give it with "
            "`--ordered`"
        )
    kinds = sorted({str(chunk.type) for chunk in chunks if not is_category(chunk.type)})
    if len(kinds) > 1:
        raise ValueError(
            f"column {name!r} is of type {kinds[0]} in some files and {kinds[1]} in others; types "
            "must agree: write the files with the same types"
        )


def _weights(rows: pa.RecordBatch | pa.Table, source: Source) -> Floats:
    if source.weight is None:
        return np.ones(len(rows))
    return np.asarray(rows.column(source.weight).to_numpy(), dtype=np.float64)


@dataclass
class _Gaps:
    """How many values are missing, and the file and the row of the first."""

    n: int = 0
    path: str = ""
    row: int = 0

    def add(self, gaps: Bools, path: str, places: Integers) -> int | None:
        """Count those of a batch; the first of all, if it is among them."""
        found = np.flatnonzero(gaps)
        is_first = bool(len(found)) and not self.n
        self.n += len(found)
        if not is_first:
            return None
        self.path, self.row = path, int(places[found[0]])
        return int(found[0])


@dataclass
class _Column:
    """What was seen of one column: labels, or the lowest and the highest number.

    Parameters
    ----------
    is_category : whether texts are never numbers
    is_target : whether numbers may be labels as well
    labels : rows of every label
    is_text, is_number : whether cells are texts, and if so each of them a number, or blank
    missing, blank : values that are missing, and in a column of numbers also texts such as NA
    sum : of numbers, or of places of labels, in the latest batch
    """

    is_category: bool
    is_target: bool
    labels: dict[Any, int] = field(default_factory=dict)
    is_text: bool = False
    is_number: bool = True
    missing: _Gaps = field(default_factory=_Gaps)
    blank: _Gaps = field(default_factory=_Gaps)
    low: float = np.inf
    high: float = -np.inf
    sum: float = 0.0

    @property
    def has_levels(self) -> bool:
        """Whether the labels are categories without an order."""
        return self.is_category or (self.is_text and not self.is_number)

    @property
    def has_counts(self) -> bool:
        """Whether rows of every category are counted."""
        return self.has_levels and self._is_open

    def gaps(self) -> _Gaps:
        return self.blank if self.is_text and not self.has_levels else self.missing

    def see(
        self, cells: pa.Array, name: str, where: tuple[str, Integers]
    ) -> Iterator[tuple[Any, int]]:
        """Rows that are like none before, each with what it is the first of.

        Parameters
        ----------
        where : the file, and the numbers of the rows there
        """
        if pa.types.is_floating(cells.type):
            yield from self._numbers(cells.to_numpy(zero_copy_only=False), where)
        if not pa.types.is_floating(cells.type) or (self.is_target and self._is_open):
            yield from self._labels(cells, name, where)

    @property
    def _is_open(self) -> bool:
        """Whether labels are still told apart."""
        return len(self.labels) <= MAX_LABELS

    def _numbers(self, values: Floats, where: tuple[str, Integers]) -> Iterator[tuple[Any, int]]:
        first = self.missing.add(np.isnan(values), *where)
        if first is not None:
            yield "missing", first
        self.sum = float(np.nansum(values))
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        if low < self.low:
            self.low = float(low)
            yield "low", int(np.nanargmin(values))
        if high > self.high:
            self.high = float(high)
            yield "high", int(np.nanargmax(values))

    def _labels(
        self, cells: pa.Array, name: str, where: tuple[str, Integers]
    ) -> Iterator[tuple[Any, int]]:
        encoded = cells if is_category(cells.type) else cells.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy()
        self.sum = float(codes.sum())
        texts = [*labels(encoded.dictionary, name).to_pylist(), None]  # -1 is the last
        self.missing.add(np.array([text is None for text in texts])[codes], *where)
        if is_text(cells.type):
            yield from self._texts(encoded.dictionary, codes, name, where)
        if self._is_open:
            new = self._count(codes, texts)
            if self._is_open or not pa.types.is_floating(cells.type):
                yield from list(new.items())[: MAX_LABELS + 1]  # numbers are no labels if so many

    def _texts(
        self, known: pa.Array, codes: Integers, name: str, where: tuple[str, Integers]
    ) -> Iterator[tuple[Any, int]]:
        """The first of the texts that are blank if the others are numbers."""
        self.is_text = True
        if self.is_category or not self.is_number:
            return
        values = np.append(numbers_of(known, name), np.nan)
        self.is_number = not np.isinf(values).any()
        first = self.blank.add(np.isnan(values)[codes], *where)
        if first is not None:
            yield "blank", first

    def _count(self, codes: Integers, texts: list[Any]) -> dict[Any, int]:
        """Labels that are new, each with the place of its first row; the rows of all."""
        places, firsts, counts = np.unique(codes, return_index=True, return_counts=True)
        new: dict[Any, int] = {}
        for place, row, n in zip(places, firsts.tolist(), counts.tolist(), strict=True):
            if texts[place] not in self.labels:
                new[texts[place]] = row
            self.labels[texts[place]] = self.labels.get(texts[place], 0) + n
        return new
