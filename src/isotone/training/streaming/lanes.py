"""Lanes: row groups of a data set that are read side by side, so that their rows mix.

A chunk consists of pieces of several row groups that are far apart in the data set, and its rows
are shuffled. Tables that are sorted by what is learned can be streamed that way, and row groups of
any size: a lane has a few pages of its group in memory. What a chunk consists of is planned from
the sizes of the row groups alone, so a run that was killed resumes with any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import pyarrow as pa

from isotone.data.dataset import Dataset
from isotone.data.table import BATCH_ROWS
from isotone.training.orders import order_of_rows

N_LANES = 8

T = TypeVar("T")


class Piece(NamedTuple):
    """Rows of a row group, by its number, from `start` on."""

    group: int
    start: int
    n_rows: int


def plan_chunks(
    lengths: Sequence[int], n_rows: int, *, seed: int, epoch: int, n_lanes: int = N_LANES
) -> list[list[Piece]]:
    """Chunks of `n_rows` rows, the last one smaller, in which every row of the groups comes once.

    Parameters
    ----------
    lengths : rows of every row group

    Examples
    --------
    >>> for chunk in plan_chunks([2, 3], 4, seed=0, epoch=0, n_lanes=1):
    ...     print([tuple(piece) for piece in chunk])
    [(1, 0, 3), (0, 0, 1)]
    [(0, 1, 1)]
    """
    waiting = order_of_rows(len(lengths), seed, epoch).tolist()
    most = min(max(n_rows // n_lanes, 1), BATCH_ROWS)
    lanes: list[tuple[int, int]] = []  # the groups that are being read, and where
    chunks: list[list[Piece]] = [[]]
    room = n_rows
    while lanes or waiting:
        while waiting and len(lanes) < n_lanes:
            lanes.append((waiting.pop(0), 0))
        if room == 0:
            chunks.append([])
            room = n_rows
        group, start = lanes.pop(0)
        piece = Piece(group, start, min(most, room, lengths[group] - start))
        chunks[-1].append(piece)
        room -= piece.n_rows
        if start + piece.n_rows < lengths[group]:
            lanes.append((group, start + piece.n_rows))
    return [chunk for chunk in chunks if chunk]


class Lanes:
    """The row groups of a data set that are being read.

    Parameters
    ----------
    columns : names of those to read
    batch_rows : rows of a batch, at most
    """

    def __init__(
        self, dataset: Dataset, columns: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> None:
        self.dataset, self.columns = dataset, dataset.find(columns)
        self.batch_rows = batch_rows
        self._lanes: dict[int, _Lane] = {}

    def read(self, piece: Piece) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The rows of a piece, and the number of the first of each batch within its group.

        Pieces of a group must come one after the other; the first may begin anywhere.
        """
        if piece.group not in self._lanes:
            group = self.dataset.groups[piece.group]
            n_rows = min(piece.n_rows, self.batch_rows)
            batches = self.dataset.group_batches(group, self.columns, n_rows)
            self._lanes[piece.group] = _Lane(batches)
        yield from self._lanes[piece.group].read(piece.start, piece.n_rows)
        if piece.start + piece.n_rows == self.dataset.groups[piece.group].n_rows:
            del self._lanes[piece.group]


class _Lane:
    """One row group, from which rows are taken in their order."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._row = batches, 0
        self._rest: pa.RecordBatch = None

    def read(self, start: int, n_rows: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        while self._row < start + n_rows:
            if self._rest is None or self._rest.num_rows == 0:
                self._rest = next(self._batches)
            wanted = n_rows + start - self._row if self._row >= start else start - self._row
            batch = self._rest.slice(0, wanted)
            self._rest = self._rest.slice(batch.num_rows)
            if self._row >= start:
                yield batch, self._row
            self._row += batch.num_rows


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items; another thread makes the next one while one is in use.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, None)
        while (item := following.result()) is not None:
            following = pool.submit(next, items, None)
            yield item
