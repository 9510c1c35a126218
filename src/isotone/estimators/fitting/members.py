"""Members: networks of one architecture that learn together, each from rows of its own.

A member leaves out one fold of the rows, on which its loss is validated, or none. That is all it
takes for cross-validated scans of λ, early stopping, and averages of members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from isotone.losses import Loss, mean
from isotone.nn.initialization import Init
from isotone.nn.interactions import Groups
from isotone.nn.network import MonotonicNetwork
from isotone.training.fields import Field
from isotone.training.learners import FusedLearner, StackLearner, make_learner
from isotone.training.orders import Orders
from isotone.training.recipe import AnyRows, History, Recipe, fit
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices, Signs

N_AVERAGED = 2  # members per fold and candidate of a scan
CHECKPOINT_SECONDS = 5.0  # between two of them

_SEEDING = Lock()  # torch has one state of random numbers for all threads


@dataclass(frozen=True, eq=False)
class Run:
    """How a fit is run.

    Parameters
    ----------
    checkpoints : directory of files to resume from after a run was killed
    stops : asked after every epoch of members that may be kept whether that was the last one
    """

    seed: int
    checkpoints: Path | None = None
    stops: Callable[[History], bool] | None = None

    def file(self, name: str) -> Path | None:
        return None if self.checkpoints is None else self.checkpoints / name


@dataclass(frozen=True, eq=False)
class Design:
    """What all members have in common.

    Parameters
    ----------
    directions : (n_outputs, n_features), -1, 0 or +1
    reaches : for features that need a least slope how far others may move, (n_moves, n_features):
        it must be as steep as the largest move times λ
    groups : of features that may interact, one of all if any may
    fields : which features are of one column
    learns_lipschitz : whether λ are learned, up to those that members are built with
    init, start : how weights begin, and λ that are learned
    threads : of the fused trainer, which gives the same bits with any number
    """

    hidden_layer_sizes: tuple[int, ...]
    directions: Signs
    group_size: int | None
    loss: Loss
    reaches: Mapping[int, Floats]
    groups: Groups
    fields: tuple[Field, ...] = ()
    learns_lipschitz: bool = False
    init: Init = "orthogonal"
    start: float = 0.1
    threads: int = 1

    def identity(self) -> str:
        """What tells members of this design from others."""
        groups = f"{self.groups} " if len(self.groups) > 1 else ""
        return (
            f"{groups}{self.hidden_layer_sizes} {self.directions.tolist()} {self.group_size} "
            f"{self.loss} {[(k, moves.tolist()) for k, moves in self.reaches.items()]} "
            f"{self.fields} {self.learns_lipschitz} {self.init} {self.start}"
        )

    def least_slopes(self, lipschitz: Floats) -> Floats:
        """Of every feature, for these λ."""
        least = np.zeros(len(lipschitz))
        for feature, moves in self.reaches.items():
            least[feature] = (moves @ lipschitz).max()
        return least

    def build(self, lipschitz: Floats, seed: int) -> MonotonicNetwork:
        """A new member; the state of torch's random numbers is left as it was."""
        n_outputs, n_features = self.directions.shape
        with _SEEDING, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = MonotonicNetwork(
                [n_features, *self.hidden_layer_sizes, n_outputs],
                monotonic_cst=self.directions.astype(np.float64),
                lipschitz="learned" if self.learns_lipschitz else lipschitz,
                lipschitz_max=lipschitz,
                init=self.init,
                least_slopes=self.least_slopes(lipschitz),
                group_size=self.group_size,
                interaction_cst=self.groups,
                outputs=self.loss.outputs,
            )
        if network.log_lipschitz is not None:
            start = torch.as_tensor(np.log(np.minimum(self.start, lipschitz)))
            network.log_lipschitz.data.copy_(start)
        return network


def learn(
    design: Design,
    members: list[MonotonicNetwork],
    rows: Rows,
    recipe: Recipe,
    *,
    folds: Indices | None = None,
    targets: NDArray[Any] | None = None,
    orders: Orders = "shared",
    until: int | None = None,
    validation: Rows | None = None,
    checkpoint: Path | None = None,
    progress: bool = False,
    stops: Callable[[History], bool] | None = None,
) -> tuple[History, StackLearner | FusedLearner]:
    """Train all members; with folds, member k leaves out fold k modulo their number.

    Parameters
    ----------
    rows : with a weight per row, (n_rows,)
    folds : (n_rows,), the fold of every row, or -1 for rows that all learn from. If the recipe has
        patience, members are validated on what they leave out
    targets : what members learn in place of the targets of the rows, by which they are judged
    orders : in which members visit the rows
    until : the epoch after which to stop
    validation : other rows to validate all members on, in any case
    checkpoint : a file to continue from, if it exists
    stops : asked after every epoch whether that was the last one
    """
    learner = make_learner(
        "auto", members, design.loss, recipe, orders, design.threads, design.fields
    )
    training, left_out = _share(rows, targets, len(members), folds)
    if validation is None and recipe.patience is not None:
        validation = left_out
    history = drive(
        learner,
        design,
        members,
        training,
        recipe,
        validation=validation,
        until=until,
        checkpoint=checkpoint,
        progress=progress,
        stops=stops,
    )
    return history, learner


def drive(
    learner: StackLearner | FusedLearner,
    design: Design,
    members: list[MonotonicNetwork],
    rows: AnyRows,
    recipe: Recipe,
    *,
    validation: Rows | None,
    until: int | None = None,
    checkpoint: Path | None,
    progress: bool | Callable[[float, History], object],
    stops: Callable[[History], bool] | None,
) -> History:
    """Let a learner of these members run, and give them what it has learned."""
    lipschitz = [member.describe_lipschitz() for member in members]
    history = fit(
        learner,
        rows,
        recipe,
        validation=validation,
        keep_best=recipe.patience is not None,
        checkpoint=checkpoint,
        checkpoint_seconds=CHECKPOINT_SECONDS,
        until=until,
        identity=f"{type(learner).__name__} {design.identity()} {lipschitz}",
        progress=progress,
        stops=stops,
    )
    learner.unstack(members)
    return history


def _share(
    rows: Rows, targets: NDArray[Any] | None, n_members: int, folds: Indices | None
) -> tuple[Rows, Rows | None]:
    """The rows that every member learns from, and those that some leave out."""
    assert rows.weight is not None
    taught = rows if targets is None else replace(rows, y=targets)
    if folds is None:
        return taught.spread(), None
    left_out = np.arange(n_members)[:, None] % (folds.max() + 1) == folds
    training = replace(taught, weight=rows.weight * ~left_out).repeated(rows.weight)
    return training, replace(rows, weight=rows.weight * left_out)[left_out.any(axis=0)]


def scan(
    design: Design,
    candidates: list[Floats],
    rows: Rows,
    recipe: Recipe,
    *,
    folds: Indices,
    seed: int,
    checkpoint: Path | None = None,
    progress: bool = False,
) -> Floats:
    """Loss on left-out rows for every candidate λ, all trained as one stack.

    It is the loss of the average of a few members, since an average is what will be used: alone,
    steep members look worse than they are.
    """
    n_folds = int(folds.max()) + 1
    members = [
        design.build(lipschitz, seed + k)
        for lipschitz in candidates
        for k in range(N_AVERAGED * n_folds)
    ]
    _, learner = learn(
        design, members, rows, recipe, folds=folds, checkpoint=checkpoint, progress=progress
    )
    held, fold = rows[folds >= 0], folds[folds >= 0]
    y = torch.as_tensor(held.y)
    weight = None if held.weight is None else torch.as_tensor(held.weight)
    scores = learner.predict(held.x).reshape(len(candidates), N_AVERAGED, n_folds, len(held), -1)
    each = design.loss(scores.mean(dim=1), y).double()
    in_fold = torch.as_tensor(np.arange(n_folds)[:, None] == fold)
    return mean((each * in_fold).sum(dim=1), weight).numpy()
