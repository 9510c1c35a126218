"""Sweep: a grid of seeds, λ, widths and losses, in shards of batched members, by workers.

Members of one shard share their architecture and loss and are trained as one `Ensemble`. Every
finished shard is a file of its own, written whole, so a sweep that was killed resumes with the
shards that are missing. The work of a worker that dies is done by another (`isotone.workers`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import torch

from isotone.files import remove_leftovers, replacing
from isotone.files.locks import making, sole_use
from isotone.losses import check_targets, parse_loss
from isotone.nn.interactions import Groups
from isotone.nn.network import MonotonicNetwork
from isotone.training.ensemble import Ensemble
from isotone.training.recipe import Recipe
from isotone.training.rows import Rows
from isotone.workers import Workers, run


@dataclass(frozen=True)
class Grid:
    """What is varied: every combination is one run."""

    seeds: tuple[int, ...]
    lipschitz: tuple[float, ...] = (1.0,)
    hidden_layer_sizes: tuple[tuple[int, ...], ...] = ((20, 20),)
    losses: tuple[str, ...] = ("cross_entropy",)

    def __post_init__(self) -> None:
        for loss in self.losses:
            parse_loss(loss)
        if not len(self):
            raise ValueError(f"{self} has no runs; give at least one of each kind")

    def __len__(self) -> int:
        return math.prod(len(getattr(self, kind.name)) for kind in fields(self))

    def shards(self, size: int) -> Iterator[Shard]:
        """Runs of one architecture and loss, at most `size` in a shard."""
        members = list(product(self.lipschitz, self.seeds))
        for sizes, loss in product(self.hidden_layer_sizes, self.losses):
            for start in range(0, len(members), size):
                yield Shard(sizes, loss, tuple(members[start : start + size]))


@dataclass(frozen=True)
class Shard:
    """Members, pairs of λ and seed, that are trained together."""

    hidden_layer_sizes: tuple[int, ...]
    loss: str
    members: tuple[tuple[float, int], ...]

    def describe(self) -> str:
        tried = sorted({lipschitz for lipschitz, _ in self.members})
        values = ", ".join(f"{value:g}" for value in tried)
        return f"hidden_layer_sizes {self.sizes}, loss {self.loss}, λ {values}"

    @property
    def sizes(self) -> str:
        """The widths of the hidden layers as text, 20-20."""
        return "-".join(map(str, self.hidden_layer_sizes))


@dataclass(frozen=True, eq=False)
class Problem:
    """What all runs have in common: scaled rows, directions and how to train.

    Parameters
    ----------
    training, validation : scaled rows, without weights
    interaction_cst : groups of features that may interact, by position; None for one of all
    """

    training: Rows
    validation: Rows
    monotonic_cst: tuple[int, ...]
    recipe: Recipe
    group_size: int | None = None
    interaction_cst: Groups | None = None

    def key(self, shard: Shard) -> str:
        """A name for the result of a shard that depends on everything it depends on."""
        choices: list[Any] = [asdict(shard), asdict(self.recipe)]
        choices += [self.monotonic_cst, self.group_size]
        if self.interaction_cst is not None:  # so that sweeps without any keep their names
            choices.append(self.interaction_cst)
        digest = hashlib.sha256(json.dumps(choices).encode())
        for rows in (self.training, self.validation):
            digest.update(rows.identity())
        return digest.hexdigest()[:32]


def run_shard(problem: Problem, shard: Shard) -> pa.Table | str:
    """Train the members of one shard; one row of results per member.

    If that cannot be done, the reason. It is not raised, because Dask would try again and every
    worker would print a traceback.
    """
    torch.set_num_threads(1)
    try:
        return _train(problem, shard)
    except ValueError as error:
        return str(error)


def _train(problem: Problem, shard: Shard) -> pa.Table:
    rows, held_out = problem.training, problem.validation
    ensemble = Ensemble([_member(problem, shard, *pair) for pair in shard.members])
    loss = parse_loss(shard.loss)
    validation = held_out.x, held_out.y
    history = ensemble.train(rows.x, rows.y, loss, problem.recipe, validation=validation)
    n = len(shard.members)
    return pa.table(
        {
            "hidden_layer_sizes": [shard.sizes] * n,
            "loss": [shard.loss] * n,
            "lipschitz": [value for value, _ in shard.members],
            "seed": [seed for _, seed in shard.members],
            "training_loss": history.training[-1],
            "validation_loss": ensemble.losses().tolist(),
            "best_epoch": history.best_epoch,
            "n_epochs": [history.n_epochs] * n,
        }
    )


def sweep(
    problem: Problem,
    grid: Grid,
    directory: str | Path,
    workers: Workers,
    *,
    shard_size: int = 32,
    on_done: Any = lambda done, total: None,
) -> pa.Table:
    """Run every combination of a grid that has no result yet; the results of all of them.

    Parameters
    ----------
    directory : for a file per finished shard, and `results.parquet` at the end; one sweep at a
        time may write there
    workers : processes, or the client of a Dask cluster
    on_done : called with the numbers of finished and of all shards
    """
    for loss in grid.losses:  # refuse here what every worker would refuse
        for rows in (problem.training, problem.validation):
            check_targets(parse_loss(loss), Rows.of(rows.x, rows.y, parse_loss(loss)).y, 1)
    for shard in grid.shards(1):
        _member(problem, shard, *shard.members[0])
    with sole_use(Path(directory)), making(Path(directory) / "shards"):
        return _run(problem, list(grid.shards(shard_size)), Path(directory), workers, on_done)


def _run(
    problem: Problem, shards: list[Shard], directory: Path, workers: Workers, on_done: Any
) -> pa.Table:
    files = {shard: directory / "shards" / f"{problem.key(shard)}.parquet" for shard in shards}
    remove_leftovers(*files.values(), directory / "results.parquet")
    missing = [shard for shard, file in files.items() if not file.exists()]
    done = len(files) - len(missing)
    on_done(done, len(files))
    with run(workers, run_shard, problem, missing) as finished:
        for shard, table in finished:
            if isinstance(table, str):
                raise ValueError(f"the runs with {shard.describe()} fail: {table}")
            _write(files[shard], table)
            done += 1
            on_done(done, len(files))
    results = pa.concat_tables([pyarrow.parquet.read_table(file) for file in files.values()])
    _write(directory / "results.parquet", results)
    return results


def _member(problem: Problem, shard: Shard, lipschitz: float, seed: int) -> MonotonicNetwork:
    torch.manual_seed(seed)
    return MonotonicNetwork(
        [len(problem.monotonic_cst), *shard.hidden_layer_sizes, 1],
        monotonic_cst=problem.monotonic_cst,
        lipschitz=lipschitz,
        group_size=problem.group_size,
        interaction_cst=problem.interaction_cst,
        outputs=parse_loss(shard.loss).outputs,
    )


def _write(path: Path, table: pa.Table) -> None:
    with replacing(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)
