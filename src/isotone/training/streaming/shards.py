"""Shards: training on Parquet files that do not fit into memory, in one process or in many.

One process trains in C++ where it can, see `isotone.training.streaming.chunks`. Otherwise torch
trains, and every batch consists of `shards` parts, each read from row groups of its own. How many
processes share the parts does not matter: the batches are the same. Under ``torchrun`` each
process works on its part of every batch, and gradients are added up by DistributedDataParallel.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from isotone.data.dataset import open_dataset
from isotone.data.parquet import restore_categories
from isotone.data.table import numbers
from isotone.inputs.scaling import Scaling
from isotone.losses import DynamicHinge, KantorovichRubinstein, Loss
from isotone.nn.network import LipschitzNetwork
from isotone.training.learners import Backend, is_fused
from isotone.training.optimizer import take_step
from isotone.training.orders import order_of_rows
from isotone.training.recipe import History, Recipe, fit
from isotone.training.rows import Rows
from isotone.training.streaming.chunks import ChunkLearner, Chunks
from isotone.training.train import NetworkLearner, few_threads, why_torch
from isotone.typing import Floats, Precision


@dataclass(frozen=True, eq=False)
class ParquetRows:
    """Rows of Parquet files, of which a few row groups at a time are in memory.

    Parameters
    ----------
    paths : files of one schema
    features, target, weight : names of columns
    scaling : applied to the features as they are read
    shards : number of parts of every batch, at least the number of processes
    buffer_groups : row groups of a part that are shuffled together
    dtype : that of the features
    """

    paths: Sequence[str | Path]
    features: Sequence[str]
    target: str
    scaling: Scaling
    loss: Loss
    weight: str | None = None
    shards: int = 1
    buffer_groups: int = 4
    dtype: type[np.floating[Any]] = np.float32

    def __post_init__(self) -> None:
        if len(self.groups) < self.shards:
            raise ValueError(
                f"{len(self.groups)} row groups cannot be divided among {self.shards} shards; "
                "write the files with smaller row groups, or use fewer processes"
            )
        if isinstance(self.loss, DynamicHinge | KantorovichRubinstein):
            raise ValueError(
                f"{type(self.loss).__name__} needs all rows at once; train on rows in memory, or "
                "choose another loss"
            )

    @cached_property
    def groups(self) -> list[tuple[str, int, int]]:
        """File, number and length of every row group."""
        found = []
        for path in self.paths:
            metadata = pyarrow.parquet.read_metadata(path)
            lengths = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            found += [(str(path), i, length) for i, length in enumerate(lengths)]
        return found

    def __len__(self) -> int:
        return sum(length for _, _, length in self.groups)

    @cached_property
    def mean_weight(self) -> float:
        """Mean weight of all rows: what a row of a batch counts on average."""
        if self.weight is None:
            return 1.0
        total = sum(float(self._read_weights(*group[:2]).sum()) for group in self.groups)
        if not 0 < total < np.inf:
            raise ValueError(
                f"the weight {self.weight!r} sums to {total:g}; it must be positive in some rows "
                "and finite in all: correct it, or leave the weight out"
            )
        return total / len(self)

    def identity(self) -> bytes:
        """What tells these rows from others, without reading them."""
        sizes = [Path(path).stat().st_size for path in self.paths]
        columns = list(self.features), self.target, self.weight, self.shards, self.buffer_groups
        return repr((sizes, self.groups, columns, self.scaling.to_dict())).encode()

    def chunks(self) -> Chunks:
        """The same rows for the fused trainer."""
        columns = [*self.features, self.target, *([] if self.weight is None else [self.weight])]
        where = Path(self.paths[0]).parent
        return Chunks(
            open_dataset(where, self.paths),
            list(dict.fromkeys(columns)),
            self._convert,
            width=len(self.features),
            mean_weight=self.mean_weight,
            key=self.identity(),
        )

    def _convert(self, batch: pa.RecordBatch, path: str, first_row: int) -> Rows:
        values = numbers(batch, [*self.features, self.target], first_row)
        rows = self._scaled(values)
        if self.weight is None:
            return rows
        return replace(rows, weight=numbers(batch, [self.weight], first_row)[:, 0])

    def n_steps(self, epoch: int, recipe: Recipe) -> int:
        """Batches of one epoch; parts that run out of rows early are empty at the end."""
        part = self.part_size(recipe)
        lengths = [sum(g[2] for g in self._deal(s, epoch, recipe)) for s in range(self.shards)]
        return max(-(-length // part) for length in lengths)

    def batches(self, shard: int, epoch: int, recipe: Recipe) -> Iterator[Rows]:
        """The parts of one shard, all of one epoch, shuffled."""
        part, groups = self.part_size(recipe), self._deal(shard, epoch, recipe)
        left: Rows | None = None
        for start in range(0, len(groups), self.buffer_groups):
            rows = self._read(groups[start : start + self.buffer_groups])
            seed = recipe.seed + 1_000_003 * (shard + 1) + start
            rows = rows[order_of_rows(len(rows), seed, epoch)]
            left = rows if left is None else _join([left, rows])
            while len(left) >= part:
                yield left[:part]
                left = left[part:]
        if left is not None and len(left):
            yield left

    def part_size(self, recipe: Recipe) -> int:
        return max(1, recipe.batch_size // self.shards)

    def _deal(self, shard: int, epoch: int, recipe: Recipe) -> list[tuple[str, int, int]]:
        """The row groups of one shard in the order of this epoch."""
        order = order_of_rows(len(self.groups), recipe.seed, epoch).tolist()
        return [self.groups[i] for i in order[shard :: self.shards]]

    def _read(self, groups: list[tuple[str, int, int]]) -> Rows:
        return _join([self._read_group(path, i) for path, i, _ in groups])

    def _read_group(self, path: str, group: int) -> Rows:
        rows = self._scaled(_read_columns(path, group, [*self.features, self.target]))
        if self.weight is None:
            return rows
        weight = self._read_weights(path, group) / self.mean_weight
        return replace(rows, weight=weight.astype(np.float32))

    def _scaled(self, values: Floats) -> Rows:
        """Rows of features, followed by the target."""
        x = self.scaling.transform(values[:, :-1])
        return Rows.of(x, values[:, -1], self.loss, dtype=self.dtype)

    def _read_weights(self, path: str, group: int) -> Floats:
        """Weights of a row group; they may all be 0, unlike those of a whole table."""
        assert self.weight is not None
        values = _read_columns(path, group, [self.weight])[:, 0]
        if not np.all(values >= 0):
            raise ValueError(
                f"the weight {self.weight!r} has a minimum of {values.min():g}; weights must be 0 "
                "or more: correct or drop such rows"
            )
        return values


class StreamLearner(NetworkLearner):
    """One network that learns from `ParquetRows`, alone or with other processes."""

    def __init__(self, network: LipschitzNetwork, loss: Loss, recipe: Recipe) -> None:
        super().__init__(network, loss, recipe)
        self.rank, self.world = _place()
        self.parallel = DistributedDataParallel(network) if self.world > 1 else network

    def learn(self, rows: ParquetRows, epoch: int, recipe: Recipe) -> Tensor:  # type: ignore[override]
        self.network.train()
        mine = range(self.rank, rows.shards, self.world)
        parts = [rows.batches(shard, epoch, recipe) for shard in mine]
        total = torch.zeros((), dtype=torch.float64)
        with few_threads(self.network, rows.part_size(recipe) * len(parts)):
            for rate in recipe.rates(epoch, rows.n_steps(epoch, recipe)):
                batch = _join([next(part, None) for part in parts], rows)
                total += self._learn_batch(batch, rate)
        return total[None] / len(rows)

    def _learn_batch(self, batch: Rows, rate: float) -> Tensor:
        """One update; sum of the weighted losses over all processes."""
        x, y, weight = self._tensors(batch)
        losses = self.loss(self.parallel(x), y)
        local = (losses if weight is None else losses * weight).sum()
        sums = torch.tensor([float(local.detach()), len(batch)], dtype=torch.float64)
        if self.world > 1:
            dist.all_reduce(sums)
        # DistributedDataParallel takes the mean over processes: the factor makes it the sum
        take_step(self.optimizer, local * (self.world / float(sums[1])), rate)
        self.network.limit_lipschitz()
        return sums[0]


def train_stream(
    network: LipschitzNetwork,
    rows: ParquetRows,
    recipe: Recipe | None = None,
    *,
    validation: Rows | None = None,
    backend: Backend = "auto",
    checkpoint: str | Path | None = None,
    progress: bool = False,
) -> History:
    """Train one network on Parquet files; under ``torchrun``, together with the other processes.

    Parameters
    ----------
    backend : "fused" is C++, many times as fast, for one process and what `isotone.train` trains
        with it; "torch" takes any network; "auto" is "fused" where possible
    validation : rows in memory that are not trained on
    checkpoint : written by the first process only, read by all
    """
    recipe = recipe or Recipe()
    if "RANK" in os.environ and not dist.is_initialized():
        dist.init_process_group("gloo")
    rank, world = _place()
    if rows.shards % world:
        raise ValueError(
            f"`shards={rows.shards}` cannot be divided among {world} processes; choose a multiple"
        )
    if network.dtype == torch.float64:
        rows = replace(rows, dtype=np.float64)
    learner = _make_learner(network, rows, recipe, backend, world)
    try:
        return fit(
            learner,
            rows.chunks() if isinstance(learner, ChunkLearner) else rows,
            recipe,
            validation=validation,
            checkpoint=checkpoint,
            write_checkpoint=rank == 0,
            identity=f"{type(learner).__name__} {network} {network.describe_lipschitz()} "
            f"{rows.loss}",
            progress=progress and rank == 0,
        )
    finally:
        learner.unstack([network])


def _make_learner(
    network: LipschitzNetwork, rows: ParquetRows, recipe: Recipe, backend: Backend, world: int
) -> StreamLearner | ChunkLearner:
    reason = why_torch(network, rows.loss)
    if world > 1 or rows.shards > 1:
        reason = f"it is for one process with `shards=1`, not {world} with `shards={rows.shards}`"
    if not is_fused(backend, reason):
        return StreamLearner(network, rows.loss, recipe)
    precision: Precision = "float64" if network.dtype == torch.float64 else "float32"
    return ChunkLearner([network], rows.loss, recipe, precision=precision)


def _place() -> tuple[int, int]:
    """Rank of this process, and number of processes."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def _read_columns(path: str, group: int, names: list[str]) -> Floats:
    with pyarrow.parquet.ParquetFile(path) as file:
        table, notes = file.read_row_group(group, columns=names), file.metadata.metadata
    return numbers(restore_categories(table.combine_chunks().to_batches()[0], notes), names)


def _join(parts: Sequence[Rows | None], empty: ParquetRows | None = None) -> Rows:
    """Rows of several parts; none at all once no parts are left."""
    present = [part for part in parts if part is not None]
    if not present:
        assert empty is not None
        return empty._read_group(*empty.groups[0][:2])[:0]
    weights = [part.weight for part in present if part.weight is not None]
    return Rows(
        np.concatenate([part.x for part in present]),
        np.concatenate([part.y for part in present]),
        np.concatenate(weights) if weights else None,
    )
