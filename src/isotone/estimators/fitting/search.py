"""Search: knots and epochs chosen on rows that members leave out, λ learned on the way.

Rows are divided into folds, and every member leaves one of them out.

1. Candidates divide columns into no, few or many pieces. Two members of each train for the first
   part of the epochs.
2. The candidate with the least loss on left-out rows is trained to the end, with a member per
   fold. When that loss stops falling, the members return to their best epoch and continue at a
   lower rate.

Their average is the model: every row was learned from, and no row decided about a member that had
seen it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from isotone.estimators.fitting import automatic
from isotone.estimators.fitting.members import Run, learn
from isotone.estimators.fitting.observations import folds
from isotone.estimators.fitting.trial import Task, Trial
from isotone.estimators.parameters import Parameters
from isotone.inputs.columns import Number
from isotone.nn.network import MonotonicNetwork
from isotone.training.recipe import History, Recipe
from isotone.typing import Indices

_PIECES = (0, 16, 64)
CHECKPOINTS = tuple(f"{name}-{k}" for name in ("scout", "search") for k in range(len(_PIECES)))
_N_SCOUTS = 2  # members of a candidate
_SHARE = 0.25  # of the epochs, for scouts
_MOST_COPIES = 8192  # of all columns together
_FEWEST_FOLDS = 4
_DROPS = 2  # of the rate
_SMALL = 5000  # rows up to which all candidates are trained to the end


def candidates(task: Task, parameters: Parameters, tiles: Mapping[str, int]) -> list[Trial]:
    """What may be the best: `tiles` if they are given, or several numbers of them."""
    numbers = [column.name for column in task.inputs.columns if isinstance(column, Number)]
    if not isinstance(parameters.knots, str) or not numbers:  # not "auto"
        return [Trial(task, parameters, tiles, True)]
    # of a column with few values the knots are its values, whatever their number may be
    pieces = [n for n in _PIECES if n * len(numbers) <= _MOST_COPIES]
    found = [Trial(task, parameters, dict.fromkeys(numbers, n) if n else {}, True) for n in pieces]
    return [trial for trial in found if trial.is_fused]


@dataclass(frozen=True, eq=False)
class Found:
    """A trial with trained members; `loss` is the mean of theirs on the rows they leave out."""

    trial: Trial
    members: list[MonotonicNetwork]
    history: History

    @property
    def loss(self) -> float:
        return float(np.mean(self.history.validation, axis=1).min())


def scout(trials: list[Trial], recipe: Recipe, run: Run) -> Trial:
    """The trial that is best in the first epochs."""
    if len(trials) == 1:
        return trials[0]
    parts, silent = _parts(trials[0], run.seed), replace(run, stops=None)
    until = max(automatic.FEWEST_EPOCHS, round(_SHARE * recipe.epochs))
    return _best(
        _train(trial, _N_SCOUTS, recipe, parts, silent, f"scout-{k}", until)
        for k, trial in enumerate(trials)
    ).trial


def search(trials: list[Trial], recipe: Recipe, run: Run) -> Found:
    """The best of some trials."""
    if len(trials[0].task.rows) > _SMALL:
        trials = [scout(trials, recipe, run)]
    parts, n = _parts(trials[0], run.seed), trials[0].parameters.n_members
    return _best(
        _train(trial, n, recipe, parts, run, f"search-{k}") for k, trial in enumerate(trials)
    )


def _parts(trial: Trial, seed: int) -> Indices:
    return folds(trial.task.rows, max(trial.parameters.n_members, _FEWEST_FOLDS), seed)


def _train(
    trial: Trial,
    n_members: int,
    recipe: Recipe,
    parts: Indices,
    run: Run,
    name: str,
    until: int | None = None,
) -> Found:
    members = trial.build(trial.most, n_members, run.seed)
    pieces = max(trial.tiles.values(), default=0)
    history, _ = learn(
        trial.design,
        members,
        trial.rows,
        recipe,
        folds=parts if trial.validation is None else None,
        validation=trial.validation,
        orders="own",
        until=until,
        checkpoint=run.file(name),
        progress=bool(trial.parameters.verbose),
        stops=run.stops,
    )
    found = Found(trial, members, history)
    if trial.parameters.verbose:
        seen = f"in {pieces} pieces" if pieces else "as they are"
        print(f"loss on rows not learned from, columns {seen}: {found.loss:.5g}")
    return found


def _best(runs: Iterable[Found]) -> Found:
    return min(runs, key=lambda found: found.loss)


def plan(recipe: Recipe, n_rows: int) -> Recipe:
    """The recipe of a search: epochs for a table of this size, and when to drop the rate."""
    epochs = min(recipe.epochs, automatic.n_epochs(n_rows))
    patience = max(automatic.FEWEST_EPOCHS - 1, epochs // 20)
    size = min(recipe.batch_size, n_rows)
    return replace(
        recipe, epochs=epochs, batch_size=size, patience=patience, tolerance=0.0, drops=_DROPS
    )
