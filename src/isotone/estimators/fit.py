"""Fitting: from raw rows to one frozen network, the average of several members.

The steps of `fit_network`: scale, choose λ if that is asked for, train members that differ in
their seeds, freeze their average, put the units of the targets back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isotone.estimators import automatic
from isotone.estimators.columns import spread_directions
from isotone.estimators.directions import check_lipschitz
from isotone.estimators.members import Design, learn, scan
from isotone.estimators.missing import View
from isotone.estimators.observations import hold_out
from isotone.estimators.parameters import Parameters, Units
from isotone.estimators.units import TargetUnits, sort_outputs
from isotone.freezing.freeze import freeze_uncertified
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.inputs.scaling import Scaling
from isotone.losses import Loss, Quantile
from isotone.nn.initialization import Init
from isotone.nn.network import MonotonicNetwork
from isotone.training.recipe import History, Recipe
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices, Signs

_FINAL_RATE = 0.02


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Parameters
    ----------
    rows : complete features of raw rows, of positive weights
    inputs : where the features come from; they may not have copies yet
    directions, missing : (n_outputs, n_columns), of the columns and of their missing values
    units : those of the outputs
    knots : by name, of columns of numbers: those `wanted`, and those that need some for the
        directions of missing values
    classes : names of the classes, or None for values
    """

    rows: Rows
    inputs: Inputs
    directions: Signs
    missing: Signs
    loss: Loss
    units: TargetUnits
    knots: Mapping[str, Floats]
    wanted: frozenset[str] = frozenset()
    classes: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The features without the indicators."""
        return self.inputs.uncompleted

    @property
    def n_indicators(self) -> int:
        return len(self.inputs.encoded) - len(self.columns)


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned, not yet certified; `lipschitz` is per column, in the units asked for."""

    network: FrozenNetwork
    history: History
    lipschitz: Floats


def fit_network(
    task: Task, parameters: Parameters, seed: int, checkpoints: Path | None = None
) -> Fit:
    """Learn a task with the parameters of an estimator.

    Parameters
    ----------
    checkpoints : directory of files to resume from after a run was killed
    """
    files = [None if checkpoints is None else checkpoints / name for name in ("scan", "members")]
    scaling = automatic.fit_scaling(parameters.scaling, task.rows, task.columns)
    view = View.of(scaling, task.inputs, task.knots, task.wanted)
    if parameters.verbose:
        _tell_knots(replace(task.inputs, copies=view.copies))
    rows, design = _scaled(task, view), _design(task, view, parameters)
    recipe = _recipe(parameters, len(rows), seed)
    own = view.sources[: len(view.sources) - task.n_indicators]  # without indicators
    units = _units(task, view.scaling, parameters.lipschitz_units)[: len(own)]
    lipschitz = _lipschitz(parameters, task.columns)
    scaled = lipschitz[own] / units
    if np.isnan(lipschitz).any():
        best = _choose(task, design, rows, recipe, parameters, scaled, files[0])
        scaled = np.where(np.isnan(scaled), best, scaled)
        lipschitz = np.where(np.isnan(lipschitz), _steepest(scaled * units, own), lipschitz)
    every = _of_every_feature(task, scaled, parameters)
    members = [design.build(every, seed + 1 + k) for k in range(parameters.n_members)]
    fraction = parameters.validation_fraction
    folds = hold_out(task.rows, fraction, seed) if parameters.early_stopping else None
    progress = bool(parameters.verbose)
    history, _ = learn(
        design, members, rows, recipe, folds=folds, checkpoint=files[1], progress=progress
    )
    if design.learns_lipschitz:
        learned = np.mean([member.lipschitz for member in members], axis=0)[: len(own)]
        share = task.units.deviation * parameters.temperature
        lipschitz = _steepest(learned * units / share, own)
    return Fit(_freeze(task, members, view), history, lipschitz)


def _tell_knots(inputs: Inputs) -> None:
    """Say which columns the network sees through knots, whatever scaling was asked for."""
    names = [name for name, n in zip(inputs.encoded, inputs.counts, strict=True) if n > 1]
    if names:
        print(f"seen through knots, in place of a scaling: {', '.join(names)}")


def _lipschitz(parameters: Parameters, columns: tuple[str, ...]) -> Floats:
    """λ of every column, the largest where it is learned, NaN where it is to be chosen."""
    if _is_learned(parameters):
        return np.full(len(columns), parameters.lipschitz_max)
    return check_lipschitz(parameters.lipschitz, columns)


def _is_learned(parameters: Parameters) -> bool:
    return isinstance(parameters.lipschitz, str) and parameters.lipschitz == "learned"


def _steepest(lipschitz: Floats, columns: Indices) -> Floats:
    """The largest λ among the copies of every column."""
    steepest: Floats = np.maximum.reduceat(lipschitz, np.unique(columns, return_index=True)[1])
    return steepest


def _freeze(task: Task, members: list[MonotonicNetwork], view: View) -> FrozenNetwork:
    """The average of the members in the units of the targets; quantiles do not cross."""
    task.units.add_center(members)
    inputs = replace(task.inputs, copies=view.copies)
    levels = np.atleast_1d(task.loss.level).tolist() if isinstance(task.loss, Quantile) else []
    frozen = freeze_uncertified(
        members,
        scaling=view.scaling,
        inputs=inputs,
        features=inputs.features,
        classes=task.classes,
        provenance={"quantiles": levels} if levels else None,
    )
    if len(levels) > 1:
        frozen = sort_outputs(frozen)
    return task.units.restore(frozen)


def _scaled(task: Task, view: View) -> Rows:
    """Scaled rows in float32."""
    y = task.units.standardize(task.rows.y)
    labels = y[:, 0] if task.loss.outputs == "logits" else y
    x = view.transform(task.rows.x)
    return Rows.of(x, labels, task.loss, sample_weight=task.rows.weight)


def _design(task: Task, view: View, parameters: Parameters) -> Design:
    directions = spread_directions(task.directions, task.missing, task.inputs)[:, view.sources]
    reaches = view.reaches(task.inputs, task.directions, task.missing)
    sizes, group_size = parameters.hidden_layer_sizes, parameters.group_size
    if group_size == "auto":
        group_size = automatic.group_size(sizes)
    is_learned = _is_learned(parameters)
    if is_learned and reaches:
        raise ValueError(
            "lipschitz='learned' cannot prove the directions of missing values whose columns have "
            "none; give these columns a direction, too, or use lipschitz='auto'"
        )
    # many copies are ±1 at once: orthogonal weights would begin with far too large outputs
    init: Init = "torch" if task.wanted else "orthogonal"
    fields = tuple(np.bincount(view.sources).tolist())
    return Design(sizes, directions, group_size, task.loss, reaches, fields, is_learned, init)


def _recipe(parameters: Parameters, n_rows: int, seed: int) -> Recipe:
    size = parameters.batch_size
    return Recipe(
        epochs=parameters.max_iter,
        batch_size=min(automatic.batch_size(n_rows) if size == "auto" else size, n_rows),
        learning_rate=parameters.learning_rate_init,
        final_rate=_FINAL_RATE,
        patience=parameters.n_iter_no_change if parameters.early_stopping else None,
        tolerance=parameters.tol,
        seed=seed,
    )


def _units(task: Task, scaling: Scaling, units: Units) -> Floats:
    """What a λ of 1 in scaled units is in the units asked for, per input of the network.

    A raw λ bounds the slope everywhere: along a logarithm the steepest place decides.
    """
    if units == "scaled":
        return np.ones(scaling.n_features)
    raw: Floats = scaling.steepest() * task.units.scale.max() * task.units.deviation
    return raw


def _of_every_feature(task: Task, lipschitz: Floats, parameters: Parameters) -> Floats:
    """λ of every input of the network, from those without indicators in scaled units.

    An indicator may change the score as much as the steepest column.
    """
    every = lipschitz * task.units.deviation * parameters.temperature
    return np.append(every, np.full(task.n_indicators, every.max()))


def _choose(
    task: Task,
    design: Design,
    rows: Rows,
    recipe: Recipe,
    parameters: Parameters,
    lipschitz: Floats,
    checkpoint: Path | None,
) -> float:
    """The λ, one for all inputs that have none yet, with the least loss on left-out rows."""
    if len(rows) < automatic.FEWEST:
        return automatic.FALLBACK
    ladder, to_choose = automatic.LADDER, np.isnan(lipschitz)
    losses = scan(
        design,
        [
            _of_every_feature(task, np.where(to_choose, step, lipschitz), parameters)
            for step in ladder
        ],
        rows,
        replace(recipe, epochs=max(1, recipe.epochs // 2)),
        folds=automatic.scan_folds(task.rows, parameters.validation_fraction, recipe.seed),
        seed=recipe.seed,
        checkpoint=checkpoint,
        progress=bool(parameters.verbose),
    )
    best = ladder[int(np.argmin(losses))]
    if parameters.verbose:
        print(f"lipschitz='auto' picked {best:g} of {', '.join(f'{step:g}' for step in ladder)}")
    return best
