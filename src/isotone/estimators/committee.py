"""Committee: members of one architecture that learn together, each from rows of its own.

A member leaves out one fold of the rows, on which its loss is validated, or none. That is all it
takes for cross-validated scans of λ, early stopping, and averages of members.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotone.losses import TINY, Loss, batch_mean
from isotone.nn.network import MonotonicNetwork
from isotone.training.learners import FusedLearner, StackLearner, why_not_fused
from isotone.training.recipe import History, Recipe, fit
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices, Signs

N_AVERAGED = 2  # members per fold and candidate of a scan
CHECKPOINT_SECONDS = 5.0  # between two of them

_SEEDING = Lock()  # torch has one state of random numbers for all threads


@dataclass(frozen=True, eq=False)
class Design:
    """What all members have in common.

    Parameters
    ----------
    widths : of the hidden layers
    directions : (n_outputs, n_features), -1, 0 or +1
    """

    widths: tuple[int, ...]
    directions: Signs
    group_size: int | None
    loss: Loss

    def identity(self) -> str:
        """What tells members of this design from others."""
        return f"{self.widths} {self.directions.tolist()} {self.group_size} {self.loss}"

    def build(self, lipschitz: Floats, seed: int) -> MonotonicNetwork:
        """A new member; the state of torch's random numbers is left as it was."""
        n_outputs, n_features = self.directions.shape
        with _SEEDING, torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return MonotonicNetwork(
                [n_features, *self.widths, n_outputs],
                monotonic_cst=self.directions.astype(np.float64),
                lipschitz=lipschitz,
                group_size=self.group_size,
                outputs=self.loss.outputs,
            )


class FoldRows(Rows):
    """Rows with a weight for every member, (n_rows, n_members)."""

    def __getitem__(self, index: Any) -> FoldRows:
        assert self.weight is not None
        return FoldRows(self.x[index], self.target[index], self.weight[index])

    def mass(self) -> Tensor:
        assert self.weight is not None
        return self.weight.double().sum(dim=0)


class FusedFoldLearner(FusedLearner):
    """A stack in C++ that learns from `FoldRows`; rows that a member leaves out cost nothing."""

    def predict(self, x: Tensor) -> Tensor:
        """Outputs of every member, (n_members, n_rows, n_outputs)."""
        return torch.as_tensor(self.trainer.predict(x.numpy(), threads=self.threads))

    def _arrays(self, rows: Rows) -> tuple[Any, Any, Any]:
        x, target, weight = super()._arrays(rows)
        return x, target, weight.T


class FoldLearner(StackLearner):
    """A stack in torch that learns from `FoldRows`, with any loss."""

    @torch.no_grad()
    def predict(self, x: Tensor) -> Tensor:
        """Outputs of every member, (n_members, n_rows, n_outputs)."""
        pieces = torch.split(x, max(1, 2**20 // self.n_members))
        return torch.cat([self.score(piece) for piece in pieces], dim=1)

    def losses(self, rows: Rows) -> Tensor:
        assert rows.weight is not None
        losses = self.loss(self.predict(rows.x), rows.target).double()
        return (losses * rows.weight.T).sum(dim=1) / rows.mass().clamp(min=TINY)

    def _batch_mean(self, batch: Rows) -> Tensor:
        assert batch.weight is not None
        return batch_mean(self.loss(self.score(batch.x), batch.target), batch.weight.T)


Learner = FoldLearner | FusedFoldLearner


def learn(
    design: Design,
    members: list[MonotonicNetwork],
    rows: Rows,
    recipe: Recipe,
    *,
    folds: Indices | None = None,
    checkpoint: Path | None = None,
    progress: bool = False,
) -> tuple[History, Learner]:
    """Train all members; with folds, member k leaves out fold k modulo their number.

    Parameters
    ----------
    rows : with a weight per row, (n_rows,)
    folds : (n_rows,), the fold of every row, or -1 for rows that all learn from. If the recipe has
        patience, members are validated on what they leave out
    checkpoint : a file to continue from, if it exists
    """
    learner = _make_learner(design, members, recipe)
    training, validation = _share(rows, len(members), folds)
    slopes = [member.lipschitz.tolist() for member in members]
    history = fit(
        learner,
        training,
        recipe,
        validation=None if recipe.patience is None else validation,
        checkpoint=checkpoint,
        checkpoint_seconds=CHECKPOINT_SECONDS,
        identity=f"{type(learner).__name__} {design.identity()} {slopes}",
        progress=progress,
    )
    learner.unstack(members)
    return history, learner


def _share(rows: Rows, n_members: int, folds: Indices | None) -> tuple[Rows, Rows | None]:
    """The rows that every member learns from, and those that some leave out."""
    assert rows.weight is not None
    each = rows.weight[:, None].expand(-1, n_members)
    if folds is None:
        return FoldRows(rows.x, rows.target, each).repeated(rows.weight), None
    held_out = torch.as_tensor(folds[:, None] == np.arange(n_members) % (folds.max() + 1))
    validation = FoldRows(rows.x, rows.target, each * held_out)[held_out.any(dim=1)]
    training = FoldRows(rows.x, rows.target, each * ~held_out)
    return training.repeated(rows.weight), validation


def _make_learner(design: Design, members: list[MonotonicNetwork], recipe: Recipe) -> Learner:
    """The fused learner where it can be had; it gives the same bits with any number of threads."""
    if why_not_fused(members[0], design.loss) is not None:
        return FoldLearner(members, design.loss, recipe)
    threads = torch.get_num_threads()
    return FusedFoldLearner(members, design.loss, recipe, threads=threads)


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
    left_out = torch.as_tensor(folds >= 0)
    held = rows[left_out]
    scores = learner.predict(held.x).reshape(len(candidates), N_AVERAGED, n_folds, len(held), -1)
    each = design.loss(scores.mean(dim=1), held.target).double()
    in_fold = torch.as_tensor(np.arange(n_folds)[:, None] == folds[folds >= 0])
    assert held.weight is not None
    losses: Floats = ((each * in_fold).sum(dim=1) @ held.weight.double()).numpy()
    return losses / float(held.weight.double().sum())
