"""The training loop: `fit` drives a *learner*, which is one network or a whole stack of them.

It plans learning rates, validates, stops early, keeps the best weights of every member, and writes
checkpoints. A run that is killed at any moment and started again with the same checkpoint ends
with the same bits.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from isotone.checks import check_choice, check_positive
from isotone.training.checkpoint import load_checkpoint, save_checkpoint
from isotone.training.rows import Rows

Tensors = dict[str, Tensor]
Schedule = Literal["cosine", "exponential", "constant"]

_DROP = 0.3  # by which a rate drops


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Parameters
    ----------
    epochs : at most
    learning_rate : at the start; `schedule` takes it to `final_rate` times that at the end
    weight_decay : decoupled, as in AdamW
    lipschitz_rate : how fast the logarithms of λ are learned, in multiples of the learning rate;
        0 keeps them
    patience : epochs without a lower validation loss after which a member stops; None never stops
    tolerance : by how much lower it must be
    drops : if positive, members are judged together, by the mean of their losses; when their
        patience has run out they return to their best epoch and continue at a lower rate, so often
    seed : decides the order of the rows in every epoch
    """

    epochs: int = 50
    batch_size: int = 256
    learning_rate: float = 0.01
    schedule: Schedule = "cosine"
    final_rate: float = 0.1
    weight_decay: float = 0.0
    lipschitz_rate: float = 10.0
    patience: int | None = None
    tolerance: float = 0.0
    drops: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "learning_rate", "final_rate"):
            check_positive(name, getattr(self, name))
        if not 0 <= self.lipschitz_rate < math.inf:
            raise ValueError(
                f"`lipschitz_rate={self.lipschitz_rate!r}` must not be negative; choose 10, or 0 "
                "to keep λ as they are"
            )
        check_choice("schedule", self.schedule, get_args(Schedule))

    def rates(self, epoch: int, n_steps: int) -> list[float]:
        """Learning rates of the steps of one epoch."""
        total = self.epochs * n_steps
        return [self._rate((epoch * n_steps + step) / total) for step in range(n_steps)]

    def after(self, n_drops: int) -> Recipe:
        """What is left of it after a number of drops of the rate."""
        return replace(self, learning_rate=self.learning_rate * _DROP**n_drops)

    def rates_between(self, start: float, end: float, n_steps: int) -> list[float]:
        """Learning rates of steps in a part of the training, whose ends are given in epochs."""
        times = (start + (end - start) * step / n_steps for step in range(n_steps))
        return [self._rate(time / self.epochs) for time in times]

    def _rate(self, time: float) -> float:
        if self.schedule == "constant":
            return self.learning_rate
        if self.schedule == "exponential":
            return self.learning_rate * math.pow(self.final_rate, time)
        cosine = 0.5 * (1.0 + math.cos(math.pi * time))
        return self.learning_rate * (self.final_rate + (1.0 - self.final_rate) * cosine)


@dataclass
class History:
    """What happened in every epoch, for every member; `validation` is empty without such rows."""

    training: list[list[float]] = field(default_factory=list)
    validation: list[list[float]] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def n_epochs(self) -> int:
        return len(self.training)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class AnyRows(Protocol):
    """Rows in memory, or elsewhere; `identity` tells them from others."""

    def identity(self) -> bytes: ...


class Learner(Protocol):
    """Something that learns from rows: one network, or a stack of members at once."""

    n_members: int

    def learn(self, rows: Any, epoch: int, recipe: Recipe) -> Tensor:
        """One epoch; mean training loss of every member, (n_members,)."""

    def losses(self, rows: Rows) -> Tensor:
        """Loss of every member on all rows, (n_members,)."""

    def state(self) -> Tensors:
        """Everything that training changes; the tensors are copies."""

    def load_state(self, state: Tensors) -> None: ...

    def merge(self, best: Tensors, better: Tensor) -> Tensors:
        """`best` with the present weights of the members that are `better`."""

    def weights(self) -> Tensors:
        """Copies of the weights alone."""

    def load_weights(self, weights: Tensors) -> None: ...


@runtime_checkable
class Pausing(Protocol):
    """A learner of long epochs: it calls `pause` with the fraction of the epoch that is done.

    What it has then learned, and where it stands, is in its state.
    """

    pause: Callable[[float], object]


@dataclass
class _Progress:
    """Where a run stands: what a checkpoint holds beside the learner."""

    epoch: int
    history: History
    best: Tensors
    best_loss: Tensor
    best_epoch: Tensor
    n_drops: int = 0
    last_drop: int = 0
    turn: Tensors = field(default_factory=dict)  # the state to return to when the rate drops

    @classmethod
    def start(cls, learner: Learner) -> _Progress:
        n = learner.n_members
        infinite = torch.full((n,), math.inf, dtype=torch.float64)
        return cls(0, History(), learner.weights(), infinite, torch.zeros(n, dtype=torch.long))


def fit(
    learner: Learner,
    rows: AnyRows,
    recipe: Recipe,
    *,
    validation: Rows | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 30.0,
    write_checkpoint: bool = True,
    until: int | None = None,
    identity: str = "",
    progress: bool | Callable[[float, History], object] = False,
    keep_best: bool = True,
    stops: Callable[[History], bool] | None = None,
) -> History:
    """Train a learner; it ends with the best weights by validation loss, if there are such rows.

    Parameters
    ----------
    checkpoint : a file to resume from, if it exists, and to write after an epoch, or a part of a
        long one, whenever `checkpoint_seconds` have passed, if this process is to
        `write_checkpoint`
    until : the epoch after which to stop, although the rates are planned for all
    identity : anything else that must be the same when a run resumes
    progress : show a bar with the loss; or call this with the epochs, whole or not, that are done
        and the history so far
    keep_best : False to keep the last weights in any case
    stops : asked after every epoch whether that was the last one
    """
    last = recipe.epochs if until is None else min(until, recipe.epochs)
    start = time.perf_counter()
    if checkpoint is not None and not Path(checkpoint).parent.is_dir():
        raise FileNotFoundError(
            f"there is no directory {str(Path(checkpoint).parent)!r}; create it"
        )
    key = ""
    if checkpoint is not None:
        key = _fingerprint(rows, validation, recipe, learner, identity)
    run = _Progress.start(learner)
    if checkpoint is not None and Path(checkpoint).exists():
        run = _load(Path(checkpoint), learner, key)
    before, saved = run.history.seconds, start
    watch = progress if callable(progress) else lambda epochs, history: None
    with progress_bar(progress is True) as bar:
        task = bar.add_task("training", total=last, completed=run.epoch, loss="")

        def pause(fraction: float) -> None:
            nonlocal saved
            run.history.seconds = before + time.perf_counter() - start
            bar.update(task, completed=run.epoch + fraction, loss=describe(run.history))
            watch(run.epoch + fraction, run.history)
            due = time.perf_counter() - saved >= checkpoint_seconds
            if checkpoint is not None and write_checkpoint and due:
                _save(Path(checkpoint), learner, run, key)
                saved = time.perf_counter()

        if isinstance(learner, Pausing):
            learner.pause = pause
        while run.epoch < last and not _all_stopped(run, recipe, validation):
            _one_epoch(learner, rows, validation, recipe, run)
            pause(0.0)
            if stops is not None and stops(run.history):
                break
    if validation is not None and keep_best:
        learner.load_weights(run.best)
    run.history.best_epoch = run.best_epoch.tolist()
    return run.history


def _one_epoch(
    learner: Learner, rows: AnyRows, validation: Rows | None, recipe: Recipe, run: _Progress
) -> None:
    loss = learner.learn(rows, run.epoch, recipe.after(run.n_drops))
    if not bool(torch.isfinite(loss).all()):
        member = int((~torch.isfinite(loss)).nonzero()[0, 0])
        raise ValueError(
            f"the training loss of member {member} is {float(loss[member])} in epoch {run.epoch}; "
            "it must stay finite: lower the learning rate, or look for extreme rows"
        )
    run.history.training.append(loss.tolist())
    if validation is not None:
        _validate(learner, validation, recipe, run)
    run.epoch += 1
    if run.turn and run.n_drops < recipe.drops and bool(_stopped(run, recipe).all()):
        learner.load_state(run.turn)
        run.n_drops, run.last_drop = run.n_drops + 1, run.epoch


def _validate(learner: Learner, validation: Rows, recipe: Recipe, run: _Progress) -> None:
    loss = learner.losses(validation)
    lost = loss[~torch.isfinite(loss)]
    if len(lost):
        raise ValueError(
            f"the validation loss is {float(lost[0])} in epoch {run.epoch}; "
            "it must stay finite: look for extreme rows or targets among those to validate on"
        )
    run.history.validation.append(loss.tolist())
    if recipe.drops:
        loss = loss.mean().expand_as(loss)
    better = (loss < run.best_loss - recipe.tolerance) & ~_stopped(run, recipe)
    if recipe.drops and bool(better.all()):
        run.turn = learner.state()
    run.best = learner.merge(run.best, better)
    run.best_loss = torch.where(better, loss, run.best_loss)
    run.best_epoch = torch.where(better, run.epoch, run.best_epoch)


def _stopped(run: _Progress, recipe: Recipe) -> Tensor:
    """Members whose patience has run out: what comes later cannot become their best."""
    if recipe.patience is None:
        return torch.zeros_like(run.best_epoch, dtype=torch.bool)
    return run.epoch - 1 - run.best_epoch.clamp(min=run.last_drop - 1) >= recipe.patience


def _all_stopped(run: _Progress, recipe: Recipe, validation: Rows | None) -> bool:
    return validation is not None and bool(_stopped(run, recipe).all())


def _fingerprint(
    rows: AnyRows, validation: Rows | None, recipe: Recipe, learner: Learner, identity: str
) -> str:
    """What must be the same for a checkpoint to be continued."""
    digest = hashlib.sha256(f"{recipe} {learner.n_members} {identity}".encode())
    for part in (rows, validation):
        digest.update(b"" if part is None else part.identity())
    return digest.hexdigest()


def _save(path: Path, learner: Learner, run: _Progress, key: str) -> None:
    content = {
        "epoch": run.epoch,
        "history": json.dumps(run.history.to_dict()),
        "learner": learner.state(),
        "best": run.best,
        "best_loss": run.best_loss,
        "best_epoch": run.best_epoch,
        "drops": torch.tensor([run.n_drops, run.last_drop]),
        "turn": run.turn,
    }
    save_checkpoint(path, key, content)


def _load(path: Path, learner: Learner, key: str) -> _Progress:
    content = load_checkpoint(path, key)
    learner.load_state(content["learner"])
    history = History(**json.loads(content["history"]))
    best = [content[name] for name in ("best", "best_loss", "best_epoch")]
    n_drops, last_drop = content["drops"].tolist()
    drops = {"n_drops": n_drops, "last_drop": last_drop, "turn": content["turn"]}
    return _Progress(content["epoch"], history, *best, **drops)


def progress_bar(shown: bool) -> Progress:
    """A bar with the loss, a field of its task, and the time left."""
    columns = BarColumn(), TextColumn("{task.fields[loss]}"), TimeRemainingColumn()
    return Progress(TextColumn("training"), *columns, disable=not shown)


def describe(history: History) -> str:
    """The latest losses, means over the members."""
    parts = [f"loss {np.mean(losses):.4f}" for losses in history.training[-1:]]
    parts += [f"validation {np.mean(losses):.4f}" for losses in history.validation[-1:]]
    return ", ".join(parts)
