"""Fitting: from raw rows to one frozen network, the average of several members.

If λ is to be chosen, `search` chooses knots and epochs, too. Otherwise, and where that cannot be,
members that differ in their seeds learn from all rows, with λ as given, learned, or the best of a
ladder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from isotone.estimators.directions import check_lipschitz
from isotone.estimators.fitting import automatic
from isotone.estimators.fitting.members import Run, learn, scan
from isotone.estimators.fitting.mixture import Found, mix
from isotone.estimators.fitting.search import candidates, plan, scout, search, train
from isotone.estimators.fitting.start import Start
from isotone.estimators.fitting.stream import Stream
from isotone.estimators.fitting.trial import Task, Trial
from isotone.estimators.parameters import Parameters
from isotone.estimators.preparation.observations import hold_out
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.nn.network import MonotonicNetwork
from isotone.training.recipe import History, Recipe
from isotone.typing import Floats

_FINAL_RATE = 0.02


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned, not yet certified.

    Parameters
    ----------
    lipschitz : per column, in the units asked for
    start : of the next fit, if it is to be a warm one
    """

    network: FrozenNetwork
    history: History
    lipschitz: Floats
    start: Start | None


def fit_network(
    task: Task,
    parameters: Parameters,
    tiles: Mapping[str, int],
    run: Run,
    stream: Stream | None = None,
    start: Start | None = None,
) -> Fit:
    """Learn a task with the parameters of an estimator.

    Parameters
    ----------
    tiles : by name, of columns that are to have knots
    stream : the rows that members learn from, if those of the task are only a sample
    start : networks to continue with
    """
    if start is not None:
        return _fit_on(start, task, parameters, run)
    searched = replace(task, finds_indicators=stream is None and parameters.is_automatic)
    if not _is_searched(searched, parameters):
        return _fit_given(task, parameters, tiles, run, stream)
    task = searched
    recipe = _searched_recipe(task, parameters, run.seed)
    trials = candidates(task, parameters, tiles)
    if stream is not None:
        moving = [trial for trial in trials if trial.moves_lipschitz]
        trial = scout(moving, recipe, run, stream.workers)
        size = automatic.searched_batch_size(len(task.rows))
        whole = _recipe(parameters, size, True, run.seed)
        epochs = min(whole.epochs, automatic.n_epochs(len(stream)))
        return _fit_learned(trial, replace(whole, epochs=epochs), run, stream)
    return _mixed(search(trials, recipe, run), run.seed)


def _mixed(found: list[Found], seed: int) -> Fit:
    """The best mixture of what a search has found."""
    start = Start.after([(one.trial, one.members) for one in found], seed, is_searched=True)
    best = mix(found)
    _tell_knots(best.trial)
    return Fit(best.freeze(), best.history, best.lipschitz(), start)


def _fit_on(start: Start, task: Task, parameters: Parameters, run: Run) -> Fit:
    """Continue with networks of an earlier fit.

    There are no checkpoints: those of the earlier fit would be taken for its own.
    """
    run = replace(run, seed=start.seed, checkpoints=None)
    learned = start.resume(task, parameters)
    if start.is_searched:
        if len(task.rows) < automatic.FEWEST:
            raise ValueError(
                f"`X` has {len(task.rows)} distinct rows; `warm_start` needs at least "
                f"{automatic.FEWEST} here, some of which every member leaves out: give more"
            )
        recipe = _searched_recipe(task, parameters, run.seed)
        return _mixed(train(learned, recipe, run), run.seed)
    ((trial, members),) = learned
    history = _train(trial, members, _given_recipe(trial, run.seed), run)
    return _frozen(trial, members, history, trial.learned(members), run.seed)


def _is_searched(task: Task, parameters: Parameters) -> bool:
    """Whether λ is to be chosen, and members can leave rows out and learn it."""
    if not parameters.is_open or len(task.rows) < automatic.FEWEST:
        return False
    plain = Trial(task, parameters, {}, learns_lipschitz=False)
    return plain.is_fused and not plain.design.reaches


def _fit_given(
    task: Task,
    parameters: Parameters,
    tiles: Mapping[str, int],
    run: Run,
    stream: Stream | None = None,
) -> Fit:
    """With λ as they are given, learned, or chosen, one for all that have none."""
    is_learned = isinstance(parameters.lipschitz, str) and parameters.lipschitz == "learned"
    trial = Trial(task, parameters, task.place(tiles), is_learned)
    recipe = _given_recipe(trial, run.seed, stream)
    if is_learned:
        return _fit_learned(trial, recipe, run, stream)
    lipschitz = check_lipschitz(parameters.lipschitz, task.columns)
    scaled = lipschitz[trial.own] / trial.units
    if np.isnan(lipschitz).any():
        brief = recipe if stream is None else stream.scan_recipe(recipe)
        best = _choose(trial, brief, scaled, run)
        scaled = np.where(np.isnan(scaled), best, scaled)
        lipschitz = np.where(np.isnan(lipschitz), trial.steepest(scaled), lipschitz)
    members = trial.build(scaled, parameters.n_members, run.seed)
    history = _train(trial, members, recipe, run, stream)
    return _frozen(trial, members, history, lipschitz, run.seed)


def _frozen(
    trial: Trial, members: list[MonotonicNetwork], history: History, lipschitz: Floats, seed: int
) -> Fit:
    start = Start.after([(trial, members)], seed, is_searched=False)
    return Fit(trial.freeze(members), history, lipschitz, start)


def _fit_learned(trial: Trial, recipe: Recipe, run: Run, stream: Stream | None) -> Fit:
    """With λ that members learn from all rows."""
    members = trial.build(trial.most, trial.parameters.n_members, run.seed)
    history = _train(trial, members, recipe, run, stream)
    return _frozen(trial, members, history, trial.learned(members), run.seed)


def _train(
    trial: Trial,
    members: list[MonotonicNetwork],
    recipe: Recipe,
    run: Run,
    stream: Stream | None = None,
) -> History:
    """Let the members learn, from rows in memory or from a stream."""
    task, parameters = trial.task, trial.parameters
    progress = bool(parameters.verbose)
    _tell_knots(trial)
    if stream is None:
        is_left_out = parameters.early_stopping and trial.validation is None
        fraction = parameters.validation_fraction
        return learn(
            trial.design,
            members,
            trial.rows,
            recipe,
            folds=hold_out(task.rows, fraction, run.seed) if is_left_out else None,
            targets=trial.taught,
            validation=trial.validation,
            checkpoint=run.file("members"),
            progress=progress,
            stops=run.stops,
        )[0]
    if parameters.verbose:
        print(stream.describe())
    validation = trial.validation
    if validation is None and parameters.early_stopping:
        validation = trial.scaled(stream.held_out(task.inputs))
    return stream.learn(
        trial.design,
        members,
        task.inputs,
        trial.scaled,
        recipe,
        validation=validation,
        run=run,
        progress=progress,
    )


def _tell_knots(trial: Trial) -> None:
    """Say which columns the network sees through knots, whatever scaling was asked for."""
    inputs: Inputs = replace(trial.task.inputs, copies=trial.view.copies)
    names = [name for name, n in zip(inputs.encoded, inputs.counts, strict=True) if n > 1]
    if names and trial.parameters.verbose:
        print(f"seen through knots, in place of a scaling: {', '.join(names)}")


def _given_recipe(trial: Trial, seed: int, stream: Stream | None = None) -> Recipe:
    n_rows = len(trial.task.rows if stream is None else stream)
    size = automatic.batch_size(n_rows)
    recipe = _recipe(trial.parameters, size, trial.learns_lipschitz, seed)
    return replace(recipe, batch_size=min(recipe.batch_size, n_rows))


def _searched_recipe(task: Task, parameters: Parameters, seed: int) -> Recipe:
    n_rows = len(task.rows)
    size = automatic.searched_batch_size(n_rows)
    return plan(_recipe(parameters, size, True, seed), n_rows)


def _recipe(parameters: Parameters, batch_size: int, is_learned: bool, seed: int) -> Recipe:
    size, rate = parameters.batch_size, parameters.learning_rate_init
    return Recipe(
        epochs=parameters.max_iter,
        batch_size=batch_size if size == "auto" else size,
        learning_rate=automatic.learning_rate(is_learned) if rate == "auto" else rate,
        final_rate=_FINAL_RATE,
        patience=parameters.n_iter_no_change if parameters.early_stopping else None,
        tolerance=parameters.tol,
        seed=seed,
    )


def _choose(trial: Trial, recipe: Recipe, lipschitz: Floats, run: Run) -> float:
    """The λ, one for all inputs that have none yet, with the least loss on left-out rows."""
    if len(trial.task.rows) < automatic.FEWEST:
        return automatic.FALLBACK
    return _tell_best(_climb(trial, recipe, lipschitz, run), trial.parameters)


def _tell_best(losses: Floats, parameters: Parameters) -> float:
    """The λ of the ladder that has the least loss."""
    ladder = automatic.LADDER
    best = ladder[int(np.argmin(losses))]
    if parameters.verbose:
        print(f"lipschitz='auto' picked {best:g} of {', '.join(f'{step:g}' for step in ladder)}")
    return best


def _climb(trial: Trial, recipe: Recipe, lipschitz: Floats, run: Run) -> Floats:
    """The loss on left-out rows for every λ of the ladder."""
    rows, parameters, to_choose = trial.task.rows, trial.parameters, np.isnan(lipschitz)
    steps = [np.where(to_choose, step, lipschitz) for step in automatic.LADDER]
    return scan(
        trial.design,
        [trial.of_every_input(step) for step in steps],
        trial.rows,
        replace(recipe, epochs=max(1, recipe.epochs // 2)),
        folds=automatic.scan_folds(rows, parameters.validation_fraction, run.seed),
        seed=run.seed,
        checkpoint=run.file("scan"),
        progress=bool(parameters.verbose),
    )
