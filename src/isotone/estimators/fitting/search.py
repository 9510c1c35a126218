"""Search: knots and epochs chosen on rows that members leave out, λ learned on the way.

Rows are divided into folds, and every member leaves one of them out: an eighth of many rows, a
quarter of few, less if there are more members.

1. Candidates divide columns into no, few or many pieces. Two members of each train for the first
   part of the epochs.
2. The candidate with the least loss on left-out rows is trained to the end, with all members; of
   few rows all candidates are. When that loss stops falling, the members return to their best
   epoch and continue at a lower rate.
3. Candidates are mixed with the weights that have the least loss on left-out rows.

The average is the model. No row decided about a member that had seen it, but for warm starts with
very few rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from isotone.estimators.fitting import automatic
from isotone.estimators.fitting.members import Run, learn
from isotone.estimators.fitting.mixture import MOST_COPIES, Found
from isotone.estimators.fitting.trial import Task, Trial
from isotone.estimators.parameters import Parameters
from isotone.estimators.preparation.observations import folds, lasting_folds
from isotone.inputs.columns import Number
from isotone.nn.network import MonotonicNetwork
from isotone.training.recipe import Recipe
from isotone.typing import Indices
from isotone.workers import ALONE, Workers
from isotone.workers import run as hand_out

_PIECES = (16, 64)
CHECKPOINTS = tuple(f"{name}-{k}" for name in ("scout", "search") for k in range(len(_PIECES) + 2))
_N_SCOUTS = 2  # members of a candidate
_SHARE = 0.125  # of the epochs, for scouts
_FARTHEST = 2.0**24  # deviations between the mean of a target and zero: rounding then needs slopes
_FEWEST_FOLDS, _OF_MANY = 4, 8  # of few rows all must be left out by someone
_DROPS = 2  # of the rate
_SMALL = 5000  # rows up to which all candidates are trained to the end


def candidates(task: Task, parameters: Parameters, tiles: Mapping[str, int]) -> list[Trial]:
    """What may be the best: `tiles` if they are given, or several numbers of them.

    Of few rows also a network whose λ stay 1, as it errs differently from the others.
    """
    if not isinstance(parameters.knots, str):  # not "auto"
        return [Trial(task, parameters, task.place(tiles), True)]
    known = {task.columns[k] for run in task.indicators for k in run}
    columns = (column for column in task.inputs.columns if isinstance(column, Number))
    numbers = [column.name for column in columns if column.name not in known]
    # of a column with few values the knots are its values, whatever their number may be
    most = MOST_COPIES if np.abs(task.units.center).max() < _FARTHEST else 0
    pieces = [0, *(n for n in _PIECES if 0 < n * len(numbers) <= most)]
    places = [task.place(dict.fromkeys(numbers, n)) if n else {} for n in pieces]
    found = [Trial(task, parameters, knots, True) for knots in places]
    if len(task.rows) <= _SMALL:
        found.append(replace(found[0], moves_lipschitz=False))
    return [trial for trial in found if trial.is_fused]


def scout(trials: list[Trial], recipe: Recipe, run: Run, workers: Workers = ALONE) -> Trial:
    """The trial that is best in the first epochs."""
    if len(trials) == 1:
        return trials[0]
    parts, silent = _parts(trials[0], run.seed), replace(run, stops=None)
    until = max(automatic.FEWEST_EPOCHS, round(_SHARE * recipe.epochs))
    sent = trials if workers == ALONE else [trial.quiet() for trial in trials]
    shared = sent, recipe, parts, silent, until
    losses: dict[int, float] = {}
    with hand_out(workers, _scout_loss, shared, range(len(trials))) as results:
        for k, loss in results:
            if isinstance(loss, Exception):
                raise loss
            losses[k] = loss
            if workers != ALONE:
                _tell(trials[k], loss)
    return trials[min(sorted(losses), key=losses.__getitem__)]


def _scout_loss(
    shared: tuple[list[Trial], Recipe, Indices, Run, int], k: int
) -> float | Exception:
    """The loss of the scouts of a trial on rows that they leave out; or why there is none.

    That is not raised, because Dask would try again and every worker would print a traceback.
    """
    trials, recipe, parts, run, until = shared
    members = _new(trials[k], _N_SCOUTS, run)
    try:
        return _train(trials[k], members, recipe, parts, run, f"scout-{k}", until).loss
    except (ValueError, OSError) as error:
        return error


def search(trials: list[Trial], recipe: Recipe, run: Run) -> list[Found]:
    """The best of some trials, trained to the end; all of them if there are few rows."""
    if len(trials[0].task.rows) > _SMALL:
        trials = [scout(trials, recipe, run)]
    n = trials[0].parameters.n_members
    return train([(trial, _new(trial, n, run)) for trial in trials], recipe, run)


def train(
    trials: Sequence[tuple[Trial, list[MonotonicNetwork]]], recipe: Recipe, run: Run
) -> list[Found]:
    """Train members of trials to the end."""
    parts = _parts(trials[0][0], run.seed)
    return [
        _train(trial, members, recipe, parts, run, f"search-{k}")
        for k, (trial, members) in enumerate(trials)
    ]


def _new(trial: Trial, n_members: int, run: Run) -> list[MonotonicNetwork]:
    return trial.build(trial.most, n_members, run.seed)


def _parts(trial: Trial, seed: int) -> Indices:
    rows, parameters = trial.task.rows, trial.parameters
    n_folds = _FEWEST_FOLDS if len(rows) <= _SMALL else _OF_MANY
    divide = lasting_folds if parameters.warm_start else folds
    return divide(rows, max(parameters.n_members, n_folds), seed)


def _train(
    trial: Trial,
    members: list[MonotonicNetwork],
    recipe: Recipe,
    parts: Indices,
    run: Run,
    name: str,
    until: int | None = None,
) -> Found:
    recipe = recipe if trial.moves_lipschitz else _at_rest(recipe, trial.parameters)
    history, learner = learn(
        trial.design,
        members,
        trial.rows,
        recipe,
        folds=parts if trial.validation is None else None,
        validation=trial.validation,
        targets=trial.taught,
        orders="own",
        until=until,
        checkpoint=run.file(name),
        progress=bool(trial.parameters.verbose),
        stops=run.stops,
    )
    found = Found(trial, members, history, learner, parts)
    _tell(trial, found.loss)
    return found


def _tell(trial: Trial, loss: float) -> None:
    if trial.parameters.verbose:
        pieces = max(map(len, trial.knots.values()), default=1) - 1
        seen = f"in {pieces} pieces" if pieces else "as they are"
        kept = "" if trial.moves_lipschitz else ", λ = 1"
        print(f"loss on rows not learned from, columns {seen}{kept}: {loss:.5g}")


def _at_rest(recipe: Recipe, parameters: Parameters) -> Recipe:
    """The recipe of members whose λ do not move: weights may then be learned faster."""
    is_open = parameters.learning_rate_init == "auto"
    rate = automatic.learning_rate(False) if is_open else recipe.learning_rate
    return replace(recipe, learning_rate=rate, lipschitz_rate=0.0)


def plan(recipe: Recipe, n_rows: int) -> Recipe:
    """The recipe of a search: epochs for a table of this size, and when to drop the rate."""
    epochs = min(recipe.epochs, automatic.n_epochs(n_rows))
    patience = max(automatic.FEWEST_EPOCHS - 1, epochs // 20)
    size = min(recipe.batch_size, n_rows)
    return replace(
        recipe, epochs=epochs, batch_size=size, patience=patience, tolerance=0.0, drops=_DROPS
    )
