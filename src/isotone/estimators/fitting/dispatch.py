"""Dispatch: members that learn from a stream by workers, on one machine or on several.

Members are independent: all of them visit the same rows in the same order, and a stack gives each
the bits that it would have alone. So a worker trains one member at a time and reads all rows for
it, and the model is the same, bit for bit, whatever the number of workers. Every member has a
checkpoint of its own, from which any worker resumes.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from isotone.estimators.fitting.members import Design, drive
from isotone.nn.network import MonotonicNetwork
from isotone.training.checkpoint import CheckpointError
from isotone.training.recipe import History, Recipe, describe, progress_bar
from isotone.training.rows import Rows
from isotone.training.streaming.chunks import ChunkLearner, Chunks
from isotone.workers import Workers, hearing, run

_SECONDS = 0.5  # between two reports on a member

News = tuple[int, float, float | None, float | None]  # member, epochs done, latest losses
Learned = tuple[dict[str, NDArray[Any]], History]


@dataclass(frozen=True, eq=False)
class Lesson:
    """What workers need to know.

    Parameters
    ----------
    members : pickled, since processes would share tensors through sockets
    checkpoint : its name is followed by the number of the member
    tell : called with news
    """

    design: Design
    members: tuple[bytes, ...]
    rows: Chunks
    recipe: Recipe
    validation: Rows | None
    checkpoint: Path | None
    tell: Callable[[News], object]


def learn_apart(
    workers: Workers,
    design: Design,
    members: list[MonotonicNetwork],
    rows: Chunks,
    recipe: Recipe,
    *,
    validation: Rows | None,
    checkpoint: Path | None,
    progress: bool,
) -> History:
    """Train every member on all rows by workers, which must see the files under the same paths."""
    if checkpoint is not None and checkpoint.exists():
        raise CheckpointError(checkpoint, "was written by a run without workers")
    rows = replace(rows, dataset=rows.dataset.absolute())
    pickled = tuple(map(pickle.dumps, members))
    found: dict[int, History] = {}
    with progress_bar(progress) as bar:
        board = _Board(len(members), bar, bar.add_task("training", total=recipe.epochs, loss=""))
        with hearing(workers, board.hear) as tell:
            lesson = Lesson(design, pickled, rows, recipe, validation, checkpoint, tell)
            with run(workers, learn_member, lesson, range(len(members))) as results:
                for k, result in results:
                    state, found[k] = _checked(k, result)
                    arrays = {name: torch.as_tensor(array) for name, array in state.items()}
                    members[k].load_state_dict(arrays)
                    board.hear(_news(k, recipe.epochs, found[k]))  # it may have ended early
    return joined([found[k] for k in range(len(members))])


def own_checkpoint(checkpoint: Path, member: int) -> Path:
    """The checkpoint of one member."""
    return checkpoint.with_name(f"{checkpoint.name}-{member}")


def refuse_apart(checkpoint: Path | None, n_members: int) -> None:
    """Raise `CheckpointError` if members were trained by workers, and are no longer."""
    for k in range(0 if checkpoint is None else n_members):
        assert checkpoint is not None
        if own_checkpoint(checkpoint, k).exists():
            raise CheckpointError(own_checkpoint(checkpoint, k), "was written by workers")


def learn_member(lesson: Lesson, k: int) -> Learned | Exception:
    """The state and the history of a member after training; the error, if it cannot be trained.

    That is not raised, because Dask would try again and every worker would print a traceback.
    """
    try:
        return _learn(lesson, k)
    except (ValueError, OSError) as error:
        return error


def _learn(lesson: Lesson, k: int) -> Learned:
    member: MonotonicNetwork = pickle.loads(lesson.members[k])
    design, recipe = lesson.design, lesson.recipe
    learner = ChunkLearner([member], design.loss, recipe, fields=design.fields)
    told = 0.0

    def tell(epochs: float, history: History) -> None:
        nonlocal told
        if time.monotonic() - told >= _SECONDS or epochs == recipe.epochs:
            lesson.tell(_news(k, epochs, history))
            told = time.monotonic()

    history = drive(
        learner,
        design,
        [member],
        lesson.rows,
        recipe,
        validation=lesson.validation,
        checkpoint=None if lesson.checkpoint is None else own_checkpoint(lesson.checkpoint, k),
        progress=tell,
        stops=None,
    )
    return {name: value.numpy() for name, value in member.state_dict().items()}, history


def _news(k: int, epochs: float, history: History) -> News:
    training, validation = (
        losses[-1][0] if losses else None for losses in (history.training, history.validation)
    )
    return k, epochs, training, validation


def _checked(k: int, result: Learned | Exception) -> Learned:
    if isinstance(result, CheckpointError):
        raise result
    if isinstance(result, OSError):
        raise ValueError(
            f"a worker cannot train member {k} ({result}); workers must see the files and the "
            "directory of results under the same paths as this process: put them on a disk that "
            "all share"
        ) from result
    if isinstance(result, Exception):
        raise ValueError(f"a worker cannot train member {k}: {result}") from result
    return result


class _Board:
    """What is known of members that learn elsewhere, and the bar that shows it."""

    def __init__(self, n_members: int, bar: Any, task: Any) -> None:
        self.n_members, self.bar, self.task = n_members, bar, task
        self.news: dict[int, News] = {}

    def hear(self, news: News) -> None:
        self.news[news[0]] = news
        _, done, *losses = zip(*self.news.values(), strict=True)
        training, validation = ([x for x in kind if x is not None] for kind in losses)
        latest = History([training] if training else [], [validation] if validation else [])
        self.bar.update(self.task, completed=sum(done) / self.n_members, loss=describe(latest))


def joined(histories: Sequence[History]) -> History:
    """One history of all members; of those that ended earlier the last losses are repeated."""
    n_epochs = max(history.n_epochs for history in histories)

    def side_by_side(several: list[list[list[float]]]) -> list[list[float]]:
        if not all(several):
            return []
        epochs = range(n_epochs)
        return [[losses[min(e, len(losses) - 1)][0] for losses in several] for e in epochs]

    return History(
        side_by_side([history.training for history in histories]),
        side_by_side([history.validation for history in histories]),
        [history.best_epoch[0] for history in histories],
        max(history.seconds for history in histories),
    )
