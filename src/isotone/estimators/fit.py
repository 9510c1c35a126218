"""Fitting: from examples in raw units to one certified network, by way of a committee.

The steps of `fit_network`: scale, choose λ if that is asked for, train members that differ in
their seeds, freeze their average, put the units of the targets back, certify.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isotone.certificate.certify import Certificate
from isotone.estimators import columns
from isotone.estimators.committee import Design, learn, scan
from isotone.estimators.examples import Examples
from isotone.estimators.targets import Targets, recertify, sort_outputs
from isotone.freezing.freeze import freeze
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.scaling import Scaling
from isotone.losses import Loss, Quantile
from isotone.training.recipe import History, Recipe
from isotone.training.rows import Rows
from isotone.typing import Floats, Signs

LADDER = [2.0**k for k in range(-4, 5)]  # the λ that "auto" tries, in scaled units
_N_FOLDS = 3
_CROSS_VALIDATE = 2048  # rows up to which λ is chosen on folds, beyond which on one part
_BATCHES = 8  # per epoch, unless they would become too small or too large
_SMALLEST_BATCH, _LARGEST_BATCH = 32, 512
_LARGEST_GROUP = 8
_FINAL_RATE = 0.02
_FEWEST = 12  # rows from which on λ can be chosen
_FALLBACK = 1.0


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Parameters
    ----------
    features : names of the columns of the examples; the last `n_indicators` flag missing values
    directions : (n_outputs, n_features - n_indicators)
    targets : units of the outputs
    classes : names of the classes, or None for values
    """

    examples: Examples
    features: tuple[str, ...]
    n_indicators: int
    directions: Signs
    loss: Loss
    targets: Targets
    classes: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The features without the indicators."""
        return self.features[: len(self.features) - self.n_indicators]


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned; `lipschitz` is per column, in the units that were asked for."""

    network: FrozenNetwork
    certificate: Certificate
    history: History
    lipschitz: Floats


def fit_network(
    task: Task, settings: dict[str, Any], seed: int, checkpoints: Path | None = None
) -> Fit:
    """Learn a task with the parameters of an estimator.

    Parameters
    ----------
    checkpoints : directory of files to continue from, after a run that was killed
    """
    files = [None if checkpoints is None else checkpoints / name for name in ("scan", "members")]
    scaling = columns.fit_scaling(settings["scaling"], task.examples, task.columns)
    rows, design = _rows(task, scaling), _design(task, settings)
    recipe = _recipe(settings, len(rows), seed)
    units = _units(task, scaling, settings["lipschitz_units"])
    lipschitz = columns.slopes(settings["lipschitz"], task.columns)
    if np.isnan(lipschitz).any():
        best = _choose(task, design, rows, recipe, settings, lipschitz / units, files[0])
        lipschitz = np.where(np.isnan(lipschitz), best * units, lipschitz)
    slopes = _all_slopes(task, lipschitz / units, settings)
    members = [design.build(slopes, seed + 1 + k) for k in range(settings["n_members"])]
    fraction = settings["validation_fraction"]
    folds = task.examples.hold_out(fraction, seed) if settings["early_stopping"] else None
    history, _ = learn(
        design,
        members,
        rows,
        recipe,
        folds=folds,
        checkpoint=files[1],
        progress=_shown(settings),
    )
    task.targets.add_center(members)
    frozen = freeze(members, scaling=scaling, features=task.features, classes=task.classes)
    if isinstance(task.loss, Quantile) and np.size(task.loss.level) > 1:
        frozen = sort_outputs(frozen)
    network, certificate = recertify(task.targets.restore(frozen))
    return Fit(network, certificate, history, lipschitz)


def _rows(task: Task, scaling: Scaling) -> Rows:
    """Scaled rows in float32."""
    x = scaling.transform(task.examples.X)
    y = task.targets.standardize(task.examples.y)
    labels = y[:, 0] if task.loss.outputs == "logits" else y
    return Rows.of(x, labels, task.loss, sample_weight=task.examples.weight)


def _design(task: Task, settings: dict[str, Any]) -> Design:
    sizes = settings["hidden_layer_sizes"]
    widths = (sizes,) if np.ndim(sizes) == 0 else tuple(sizes)
    free = np.zeros((len(task.directions), task.n_indicators), np.int8)
    directions = np.hstack([task.directions, free])
    size = settings["group_size"]
    group_size = _group_size(widths) if size == "auto" else size
    return Design(widths, directions, group_size, task.loss)


def _group_size(widths: tuple[int, ...]) -> int | None:
    """The largest that divides all widths, or None, a full sort, if there is none."""
    common = math.gcd(*widths)
    sizes = [size for size in range(2, _LARGEST_GROUP + 1) if common % size == 0]
    return sizes[-1] if sizes and common else None


def _recipe(settings: dict[str, Any], n_rows: int, seed: int) -> Recipe:
    size = settings["batch_size"]
    if size == "auto":
        size = int(np.clip(n_rows // _BATCHES, _SMALLEST_BATCH, _LARGEST_BATCH))
    return Recipe(
        epochs=settings["max_iter"],
        batch_size=min(size, n_rows),
        learning_rate=settings["learning_rate_init"],
        final_rate=_FINAL_RATE,
        patience=settings["n_iter_no_change"] if settings["early_stopping"] else None,
        tolerance=settings["tol"],
        seed=seed,
    )


def _units(task: Task, scaling: Scaling, units: str) -> Floats:
    """What a λ of 1 in scaled units is in the units asked for, per column.

    A raw λ bounds the slope everywhere: along a logarithm the steepest place decides.
    """
    n = len(task.columns)
    if units == "scaled":
        return np.ones(n)
    raw: Floats = scaling.steepest()[:n] * task.targets.scale.max() * task.targets.deviation
    return raw


def _all_slopes(task: Task, lipschitz: Floats, settings: dict[str, Any]) -> Floats:
    """λ of every feature of the network, from those of the columns in scaled units.

    An indicator may change the score as much as the steepest column.
    """
    slopes = lipschitz * task.targets.deviation * settings.get("temperature", 1.0)
    return np.append(slopes, np.full(task.n_indicators, slopes.max()))


def _choose(
    task: Task,
    design: Design,
    rows: Rows,
    recipe: Recipe,
    settings: dict[str, Any],
    lipschitz: Floats,
    checkpoint: Path | None,
) -> float:
    """The λ, one for all columns that have none yet, with the least loss on left-out rows."""
    if len(rows) < _FEWEST:
        return _FALLBACK
    to_choose = np.isnan(lipschitz)
    candidates = [
        _all_slopes(task, np.where(to_choose, step, lipschitz), settings) for step in LADDER
    ]
    seed = recipe.seed
    folds = (
        task.examples.folds(_N_FOLDS, seed)
        if len(rows) <= _CROSS_VALIDATE
        else task.examples.hold_out(settings["validation_fraction"], seed)
    )
    short = replace(recipe, epochs=max(1, recipe.epochs // 2))
    losses = scan(
        design,
        candidates,
        rows,
        short,
        folds=folds,
        seed=seed,
        checkpoint=checkpoint,
        progress=_shown(settings),
    )
    best = LADDER[int(np.argmin(losses))]
    if settings["verbose"]:
        print(f"lipschitz='auto' picked {best:g} of {', '.join(f'{step:g}' for step in LADDER)}")
    return best


def _shown(settings: dict[str, Any]) -> bool:
    return bool(settings["verbose"])
