"""The hold-out of a survey: rows to judge by, drawn by their number or group by group.

A group is held out if its key, mixed with the seed, is among the smallest, so that one pass in
bounded memory finds all of its rows: where they become too many, the groups with the largest keys
are let go. All rows of a group are on one side. More groups than are wanted are kept until the
end, since those with a row that must be learned from, being like no others, are let go as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from isotone.data.groups import Keys, mixed
from isotone.typing import Bools, Integers

GROUP = "\0group"  # the name of the column of keys
_MORE = 3  # times the groups that are wanted, that are kept
_MOST = 4  # times the rows that are wanted, that one group may have


class DrawnRows:
    """Rows by their numbers."""

    def __init__(self, drawn: Integers) -> None:
        self.drawn = drawn
        self.batches: list[pa.RecordBatch] = []
        self.numbers: list[Integers] = []

    def see(self, rows: pa.RecordBatch, numbers: Integers) -> None:
        """Keep those of these rows that were drawn; their numbers within the data set ascend."""
        low, high = np.searchsorted(self.drawn, [numbers[0], numbers[-1] + 1])
        wanted = self.drawn[low:high]
        own = np.searchsorted(numbers, wanted)
        own = own[numbers[own] == wanted]
        self.batches.append(rows.take(own))
        self.numbers.append(numbers[own])

    def kept(self, added: Mapping[int, pa.RecordBatch]) -> Bools:
        """Which rows stay; those that are learned from after all do not."""
        return ~np.isin(np.concatenate(self.numbers), list(added))

    def hides(self, batches: list[pa.RecordBatch], kept: Bools) -> Bools:
        """Which of these rows must not be learned from: none, since others were drawn."""
        return np.zeros(sum(map(len, batches)), bool)


class DrawnGroups(DrawnRows):
    """Whole groups with about the given number of rows in all.

    Parameters
    ----------
    wanted : rows to hold out, about
    of : number of all rows
    by : the columns that name groups, for messages
    """

    def __init__(self, wanted: int, of: int, seed: int, by: tuple[str, ...]) -> None:
        super().__init__(np.empty(0, np.int64))
        self.below = int(min(_MORE * wanted / max(of, 1), 1.0) * 2.0**64)
        self.wanted, self.by, self.n_rows = wanted, by, 0
        self.salt = mixed(np.array([seed + 1], np.uint64))

    def see(self, rows: pa.RecordBatch, numbers: Integers) -> None:
        own = np.flatnonzero(self._ranks([rows]) < self.below)
        if not len(own):
            return
        self.batches.append(rows.take(own))
        self.numbers.append(numbers[own])
        self.n_rows += len(own)
        if self.n_rows > 2 * _MORE * self.wanted:
            self._let_go()

    def kept(self, added: Mapping[int, pa.RecordBatch]) -> Bools:
        """Which rows stay; those of a group that is partly learned from do not."""
        ranks = self._ranks(self.batches)
        stay = ~np.isin(ranks, self._ranks(list(added.values())))
        if self.wanted and not stay.any():
            raise ValueError(
                f"{', '.join(self.by)} name too few groups to hold some out at random; there must "
                "be many, as there are events: name columns that divide the rows more finely, or "
                "validate on a table of other rows"
            )
        return np.asarray(stay & (ranks < _end(ranks[stay], self.wanted)))

    def hides(self, batches: list[pa.RecordBatch], kept: Bools) -> Bools:
        """Which of these rows belong to groups that are held out."""
        return np.isin(self._ranks(batches), self._ranks(self.batches)[kept])

    def _ranks(self, batches: list[pa.RecordBatch]) -> Keys:
        keys = [batch.column(GROUP).to_numpy() for batch in batches]
        return mixed(np.concatenate([np.empty(0, np.uint64), *keys]) ^ self.salt)

    def _let_go(self) -> None:
        """Keep the groups of the smallest ranks that have about as many rows as are wanted."""
        ranks = self._ranks(self.batches)
        if len(np.unique(ranks)) == 1:
            self._refuse_large(len(ranks))
            return
        self.below = _end(ranks, _MORE * self.wanted)
        ends = np.cumsum([0, *map(len, self.batches)])
        stay = [ranks[a:b] < self.below for a, b in pairwise(ends.tolist())]
        self.numbers = [each[own] for each, own in zip(self.numbers, stay, strict=True)]
        self.batches = [
            batch.filter(pa.array(own)) for batch, own in zip(self.batches, stay, strict=True)
        ]
        self.n_rows = sum(map(len, self.batches))

    def _refuse_large(self, n_rows: int) -> None:
        if n_rows > _MOST * self.wanted:
            raise ValueError(
                f"one group of {', '.join(self.by)} has more than {_MOST * self.wanted:,} rows; a "
                "group is held out as a whole, in memory, and must be smaller: name columns that "
                "divide the rows more finely, or validate on a table of other rows"
            )


def _end(ranks: Keys, n_rows: int) -> int:
    """Up to where groups have about that number of rows, one group at least."""
    known, counts = np.unique(ranks, return_counts=True)
    n = max(int(np.searchsorted(np.cumsum(counts), n_rows, side="right")), 1)
    return int(known[n]) if n < len(known) else 2**64
