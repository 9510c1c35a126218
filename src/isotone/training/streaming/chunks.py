"""Chunks: training of a stack in C++ on rows that stay on disk, in bounded memory.

One thread reads a chunk while another trains on the one before, so the slower of the two decides.
What is learned depends on neither. Weights become visits: in a pass over the data a row of weight
w, in units of the mean, comes ⌊w⌋ or ⌈w⌉ times, w times on average. Batches of weights of any
spread are unbiased that way, whatever chunk they are in, and no row dominates one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotone.data.dataset import Dataset
from isotone.data.table import BATCH_ROWS
from isotone.training.fields import Field, Looked, compress
from isotone.training.learners import FusedLearner
from isotone.training.orders import order_of_rows
from isotone.training.recipe import Recipe, Tensors
from isotone.training.rows import Rows
from isotone.training.streaming.lanes import N_LANES, Lanes, Piece, ahead, plan_chunks
from isotone.typing import Floats, Integers

CHUNK_NUMBERS = 2**22  # 16 MB in float32
_COLUMNS_AT_ONCE = 128  # of all lanes
_POSITION = ("n_chunks", "n_visits", "loss")


class Chunk(NamedTuple):
    """Rows in memory, the order of visits, and which part of an epoch they are."""

    x: Any
    y: NDArray[Any]
    order: NDArray[np.int32]
    start: float
    end: float


@dataclass(frozen=True, eq=False)
class Chunks:
    """Rows of a data set, which are read in chunks.

    Parameters
    ----------
    columns : names of those that `convert` needs
    convert : scaled rows of a batch, whose `x` may be `Looked`, or None if none of them count; it
        gets the file, too, and the number of the first row there. Weights are not divided by
        anything
    width : numbers that are kept of a row
    batch_rows : rows that are converted at once, at most
    left_out : numbers of rows not to learn from, ascending
    mean_weight : of all rows
    key : what tells this conversion from others
    chunk_numbers : that a network sees of a chunk
    """

    dataset: Dataset
    columns: Sequence[str]
    convert: Callable[[pa.RecordBatch, str, int], Rows | None]
    width: int
    batch_rows: int = BATCH_ROWS
    left_out: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    mean_weight: float = 1.0
    key: bytes = b""
    chunk_numbers: int = field(default_factory=lambda: CHUNK_NUMBERS)

    def __len__(self) -> int:
        return sum(self.lengths)

    @property
    def lengths(self) -> list[int]:
        return [group.n_rows for group in self.dataset.groups]

    def identity(self) -> bytes:
        """What tells these rows from others, without reading them."""
        content = self.dataset.sizes, self.lengths, list(self.columns), self.mean_weight
        sizes = self.width, self.chunk_numbers
        return repr([content, sizes]).encode() + self.left_out.tobytes() + self.key

    def plan(self, epoch: int, recipe: Recipe) -> list[list[Piece]]:
        """What every chunk of an epoch consists of: whole batches but for the last one."""
        batches = max(self.chunk_numbers // (self.width * recipe.batch_size), 1)
        n_rows = batches * recipe.batch_size
        # a lane has some pages of every column in memory, up to three megabytes each
        n_lanes = int(np.clip(_COLUMNS_AT_ONCE // len(self.columns), 2, N_LANES))
        return plan_chunks(self.lengths, n_rows, seed=recipe.seed, epoch=epoch, n_lanes=n_lanes)

    def read(
        self, epoch: int, recipe: Recipe, first: int, fields: Sequence[Field]
    ) -> Iterator[Chunk]:
        """The chunks of an epoch from a number on."""
        lanes = Lanes(self.dataset, self.columns, self.batch_rows)
        plan = self.plan(epoch, recipe)
        sizes = [sum(piece.n_rows for piece in chunk) for chunk in plan]
        ends = np.cumsum(sizes) / len(self)
        for number in range(first, len(plan)):
            rows = _Gathered(sizes[number])
            for piece in plan[number]:
                for part in self._rows(lanes, piece, fields):
                    rows.add(part)
            x, y, weight = rows.all()
            start = ends[number - 1] if number else 0.0
            order = self._order(len(y), weight, f"{recipe.seed} {epoch} {number}")
            yield Chunk(x, y, order, float(start), float(ends[number]))

    def _rows(self, lanes: Lanes, piece: Piece, fields: Sequence[Field]) -> Iterator[_Part]:
        group = self.dataset.groups[piece.group]
        for batch, row in lanes.read(piece):
            number = group.start + row
            low, high = np.searchsorted(self.left_out, [number, number + batch.num_rows])
            if high > low:
                kept = np.delete(np.arange(len(batch)), self.left_out[low:high] - number)
                batch = batch.take(kept)
            rows = self.convert(batch, group.path, group.first_row + row) if len(batch) else None
            if rows is not None:
                whole = bool(fields) and not isinstance(rows.x, Looked)
                yield _Part(compress(rows.x, fields) if whole else rows.x, rows.y, rows.weight)

    def _order(self, n_rows: int, weight: Floats | None, key: str) -> NDArray[np.int32]:
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "little")
        order = order_of_rows(n_rows, seed, 0)
        if weight is not None:
            offset = np.random.default_rng(seed).random()
            order = np.repeat(order, visits(weight[order] / self.mean_weight, offset))
            order = order[order_of_rows(len(order), seed, 1)]
        return order.astype(np.int32)


class _Part(NamedTuple):
    x: Any
    y: NDArray[Any]
    weight: NDArray[Any] | None


def visits(weight: Floats, offset: float) -> Integers:
    """How often every row comes, ⌊w⌋ or ⌈w⌉ times, so that all together come ∑w times, rounded.

    For an offset that is drawn evenly from 0 to 1, row i comes :math:`w_i` times on average.

    >>> visits(np.array([0.25, 2.5, 0.25, 1.0]), offset=0.5).tolist()
    [0, 3, 0, 1]
    """
    ends = np.floor(np.cumsum(weight.astype(np.float64)) + offset)
    return np.diff(ends, prepend=0.0).astype(np.int64)


class _Gathered:
    """Parts, copied as they come into arrays with room for all their rows."""

    def __init__(self, n_rows: int) -> None:
        self._arrays: list[NDArray[Any]] = []
        self._n_rows, self._end = n_rows, 0
        self._has_weight = False
        self._fields: tuple[Field, ...] = ()

    def add(self, part: _Part) -> None:
        self._fields = part.x.fields if isinstance(part.x, Looked) else ()
        self._has_weight = part.weight is not None
        x = [part.x.cells, part.x.values] if isinstance(part.x, Looked) else [part.x]
        given = [*x, part.y, *([] if part.weight is None else [part.weight])]
        if not self._arrays:
            self._arrays = [np.empty((self._n_rows, *a.shape[1:]), a.dtype) for a in given]
        start, self._end = self._end, self._end + len(part.y)
        for whole, array in zip(self._arrays, given, strict=True):
            whole[start : self._end] = array

    def all(self) -> _Part:
        arrays = [array[: self._end] for array in self._arrays]
        if not arrays:
            return _Part(np.empty((0, 0)), np.empty(0), None)
        weight = arrays.pop() if self._has_weight else None
        y = arrays.pop()
        x = Looked(arrays[0], arrays[1], self._fields) if self._fields else arrays[0]
        return _Part(x, y, weight)


class ChunkLearner(FusedLearner):
    """S dense networks in the C++ trainer, which learn from `Chunks`.

    Its state includes the chunk that comes next, so that a run resumes within an epoch.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pause: Callable[[float], object] = lambda fraction: None
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self._n_chunks, self._n_visits = 0, 0
        self._loss = np.zeros(self.n_members)

    def learn(self, rows: Chunks, epoch: int, recipe: Recipe) -> Tensor:  # type: ignore[override]
        """One pass over the data; `pause` is called with the fraction that is done."""
        chunks = rows.read(epoch, recipe, self._n_chunks, self.trainer.fields)
        for chunk in ahead(chunks):
            if len(chunk.order):
                self._learn_chunk(chunk, epoch, recipe)
            self._n_chunks += 1
            if not np.all(np.isfinite(self._loss)):
                break
            self.pause(chunk.end)
        loss = torch.as_tensor(self._loss / max(self._n_visits, 1))
        self._begin_epoch()
        return loss

    def _learn_chunk(self, chunk: Chunk, epoch: int, recipe: Recipe) -> None:
        n_steps = -(-len(chunk.order) // recipe.batch_size)
        x, y, _ = self._arrays(Rows(chunk.x, chunk.y))
        losses = self.trainer.train_epoch(
            x,
            y,
            order=chunk.order,
            batch_size=recipe.batch_size,
            learning_rates=recipe.rates_between(epoch + chunk.start, epoch + chunk.end, n_steps),
            threads=self.threads,
        )
        self._loss += losses * len(chunk.order)
        self._n_visits += len(chunk.order)

    def state(self) -> Tensors:
        position = self._n_chunks, self._n_visits, self._loss.copy()
        named = zip(_POSITION, position, strict=True)
        return super().state() | {name: torch.as_tensor(value) for name, value in named}

    def load_state(self, state: Tensors) -> None:
        n_chunks, n_visits, loss = (state[name] for name in _POSITION)
        self._n_chunks, self._n_visits, self._loss = (
            int(n_chunks),
            int(n_visits),
            loss.numpy().copy(),
        )
        super().load_state({name: x for name, x in state.items() if name not in _POSITION})
