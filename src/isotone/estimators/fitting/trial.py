"""Trial: a task as members of one design see it, from scaled rows to the frozen average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.estimators.columns import spread_directions
from isotone.estimators.fitting import automatic
from isotone.estimators.fitting.members import Design
from isotone.estimators.parameters import Parameters, Units
from isotone.estimators.preparation.indicators import is_run, runs_of
from isotone.estimators.preparation.knots import knots_of
from isotone.estimators.preparation.missing import reaches
from isotone.estimators.preparation.oblique import Oblique, independent
from isotone.estimators.preparation.units import TargetUnits, sort_outputs
from isotone.estimators.preparation.view import View
from isotone.freezing.freeze import freeze_uncertified
from isotone.frozen.joint import JointDirection
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.inputs.scaling import Scaling
from isotone.losses import Loss, Quantile
from isotone.nn.interactions import Groups
from isotone.nn.network import MonotonicNetwork
from isotone.training.learners import is_fused_loss
from isotone.training.rows import Rows
from isotone.training.stack import why_too_large
from isotone.typing import Floats, Indices, Signs

_TRUTH = 0.5  # share of the targets in what is learned from a teacher


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned.

    Parameters
    ----------
    rows : complete features of raw rows, of positive weights
    inputs : where the features come from; they may not have copies yet
    directions, missing : (n_outputs, n_columns), of the columns and of their missing values
    units : those of the outputs
    kinds : of the scaling, as asked for
    groups : of columns that may interact, by position
    knots : by name, of columns that need some for the directions of missing values
    classes : names of the classes, or None for values
    validation : rows to validate members on, in place of some of the others
    said : what a teacher says of the targets of the rows
    joint_cst : rates of columns; the output never falls when they move together
    finds_indicators : whether to look for them, which needs all rows
    """

    rows: Rows
    inputs: Inputs
    directions: Signs
    missing: Signs
    loss: Loss
    units: TargetUnits
    kinds: Any
    knots: Mapping[str, Floats]
    groups: Groups
    classes: tuple[str, ...] | None = None
    validation: Rows | None = None
    said: Floats | None = None
    joint_cst: tuple[JointDirection, ...] = ()
    finds_indicators: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The features without the indicators."""
        return self.inputs.uncompleted

    @cached_property
    def scaling(self) -> Scaling:
        """Of the features, before some of them are divided into copies."""
        bits = [k for run in self.indicators for k in run]
        return automatic.fit_scaling(self.kinds, self.rows, self.columns, self.joined, bits)

    @cached_property
    def indicators(self) -> tuple[range, ...]:
        """Runs of features that are learned as one column of categories."""
        if not self.finds_indicators:
            return ()
        runs = runs_of(self.inputs, self.rows.x, self.joined)
        if self.validation is None:
            return runs
        return tuple(run for run in runs if is_run(self.validation.x, run))

    @property
    def joined(self) -> list[str]:
        """Columns with joint directions; they enter networks on a straight line."""
        return sorted({name for direction in self.joint_cst for name in direction})

    @cached_property
    def coordinates(self) -> Oblique | None:
        """What networks see in place of columns with joint directions."""
        if not self.joint_cst:
            return None
        places = [self.inputs.encoded.index(name) for name in self.joined]
        if self.scaling.log[places].any():
            raise ValueError(
                f"`joint_cst` names {', '.join(self.joined)}, and `scaling` takes one as a "
                "logarithm; columns with joint directions must have no logarithm: scale them "
                "another way, or leave `scaling` out"
            )
        factor = self.scaling.factor[places]
        wanted = [
            factor * [direction.get(name, 0.0) for name in self.joined]
            for direction in self.joint_cst
        ]
        own = [self.inputs.names.index(name) for name in self.joined]
        single = np.diag(self.directions[0, own].astype(np.float64))
        wanted += [unit for unit in single if unit.any()]
        rows = self.scaling.transform(self.rows.x)[:, places]
        return Oblique.of(independent(wanted, self.joint_cst), rows, places)

    def of(self, rows: Rows, said: Floats | None = None, validation: Rows | None = None) -> Task:
        """The same of other rows: networks see them as they saw those of this task."""
        other = replace(self, rows=rows, validation=validation, said=said)
        tables = [rows.x] if validation is None else [rows.x, validation.x]
        runs = tuple(run for run in self.indicators if all(is_run(x, run) for x in tables))
        seen = {"scaling": self.scaling, "coordinates": self.coordinates, "indicators": runs}
        other.__dict__.update(seen)  # where cached properties are kept
        return other

    def without_rows(self) -> Task:
        return self.of(self.rows[:0])

    @property
    def n_indicators(self) -> int:
        return len(self.inputs.encoded) - len(self.columns)

    def place(self, tiles: Mapping[str, int]) -> dict[str, Floats]:
        """Knots of columns of numbers that are to be divided into a given number of pieces."""
        curved = {name: count for name, count in tiles.items() if name not in self.joined}
        return knots_of(self.inputs, self.rows.x, self.rows.weights(), curved)


@dataclass(frozen=True, eq=False)
class Scaled:
    """How rows of features and targets become those that networks see, in float32."""

    view: View
    loss: Loss
    units: TargetUnits
    is_looked_up: bool

    def __call__(self, raw: Rows) -> Rows:
        y, weight = self.units.standardize(raw.y), raw.weight
        labels = y[:, 0] if self.loss.outputs == "logits" else y
        if not self.is_looked_up:
            x = self.view.transform(raw.x)
            return Rows.of(x, labels, self.loss, sample_weight=weight)
        looked = self.view.look(raw.x)
        rows = Rows.of(looked.values, labels, self.loss, sample_weight=weight)
        return replace(rows, x=looked)


@dataclass(frozen=True, eq=False)
class Trial:
    """A task, and what networks see of it.

    Parameters
    ----------
    knots : by name, of columns of numbers that are divided into pieces
    learns_lipschitz : whether every λ is a parameter of the networks
    moves_lipschitz : whether such a parameter starts small and moves, or stays 1
    """

    task: Task
    parameters: Parameters
    knots: Mapping[str, Floats]
    learns_lipschitz: bool
    moves_lipschitz: bool = True

    def quiet(self) -> Trial:
        """The same for a worker: it says nothing, and trains in one thread."""
        return replace(self, parameters=replace(self.parameters, verbose=False, n_jobs=1))

    @cached_property
    def view(self) -> View:
        task, known = self.task, dict(self.task.knots) | dict(self.knots)
        runs, coordinates = task.indicators, task.coordinates
        return View.of(task.scaling, task.inputs, known, self.knots, runs, coordinates)

    @cached_property
    def rows(self) -> Rows:
        return self.scaled(self.task.rows)

    @cached_property
    def validation(self) -> Rows | None:
        return None if self.task.validation is None else self.scaled(self.task.validation)

    @cached_property
    def taught(self) -> NDArray[Any] | None:
        """What members learn in place of the targets of the rows, if there is a teacher."""
        y, said = self.task.rows.y, self.task.said
        if said is None:
            return None
        target = self.task.units.standardize(_TRUTH * y + (1.0 - _TRUTH) * said)
        return target.reshape(self.rows.y.shape).astype(np.float32)

    @cached_property
    def scaled(self) -> Scaled:
        """Gives scaled rows, looked up where the fused trainer takes them."""
        is_looked_up = self.is_fused and max(self.view.fields).n_features > 1
        return Scaled(self.view, self.task.loss, self.task.units, is_looked_up)

    @property
    def directions(self) -> Signs:
        """Of every output along every input of the network, as columns have them."""
        task = self.task
        every = spread_directions(task.directions, task.missing, task.inputs)
        return every[:, self.view.sources]

    @property
    def group_size(self) -> int | None:
        size, widths = self.parameters.group_size, self.parameters.hidden_layer_sizes
        return automatic.group_size(widths, len(self.task.groups)) if size == "auto" else size

    @property
    def hidden_layer_sizes(self) -> tuple[int, ...]:
        """As asked for, or a little wider, so that every group of columns has its units."""
        asked = self.parameters.hidden_layer_sizes
        return tuple(automatic.widths(asked, self.group_size, len(self.task.groups)))

    @property
    def groups(self) -> Groups:
        """The inputs of the network that are of every group of columns."""
        owners = np.array(self.task.inputs.owners)[self.view.sources]
        members = (np.flatnonzero(np.isin(owners, group)) for group in self.task.groups)
        return tuple(tuple(group.tolist()) for group in members)

    @cached_property
    def design(self) -> Design:
        task, parameters, view = self.task, self.parameters, self.view
        directions = self.directions.copy()
        if task.coordinates is not None:
            directions[:, view.replaced] = task.coordinates.signs
        needed = reaches(view, task.inputs, task.directions, task.missing)
        if self.learns_lipschitz and needed:
            raise ValueError(
                "lipschitz='learned' cannot prove the directions of missing values whose columns "
                "have none; give these columns a direction, too, or use lipschitz='auto'"
            )
        return Design(
            self.hidden_layer_sizes,
            directions,
            self.group_size,
            task.loss,
            needed,
            self.groups,
            view.fields,
            self.learns_lipschitz,
            # many copies are ±1 at once: orthogonal weights would begin with far too large
            # outputs, and so would λ of plain columns
            init="torch" if self.knots else "orthogonal",
            start=automatic.start(bool(self.knots)) if self.moves_lipschitz else 1.0,
            threads=parameters.threads(),
        )

    @cached_property
    def is_fused(self) -> bool:
        """Whether the fused trainer can train members."""
        sizes = [len(self.view.sources), *self.hidden_layer_sizes]
        n_outputs = len(self.task.directions)
        return is_fused_loss(self.task.loss) and why_too_large([*sizes, n_outputs]) is None

    @property
    def own(self) -> Indices:
        """The feature of every input without indicators."""
        return self.view.sources[: len(self.view.sources) - self.task.n_indicators]

    @cached_property
    def units(self) -> Floats:
        """What a λ of 1 in scaled units is in the units asked for, per input of the network.

        A raw λ bounds the slope everywhere: along a logarithm the steepest place decides.
        """
        n_own, units = len(self.own), self.task.units
        wanted: Units = self.parameters.lipschitz_units
        if wanted == "scaled":
            return np.ones(n_own)
        raw: Floats = self.view.scaling.steepest() * units.scale.max() * units.deviation
        return raw[:n_own]

    @property
    def most(self) -> Floats:
        """The largest λ that may be learned, per input without indicators, in scaled units.

        One that is to be chosen is only reported in the units asked for.
        """
        most = np.full(len(self.own), self.parameters.lipschitz_max)
        return most if self.parameters.is_open else most / self.units

    def build(self, lipschitz: Floats, n_members: int, seed: int) -> list[MonotonicNetwork]:
        """New members for λ of inputs without indicators, in scaled units."""
        every = self.of_every_input(lipschitz)
        return [self.design.build(every, seed + 1 + k) for k in range(n_members)]

    def of_every_input(self, lipschitz: Floats) -> Floats:
        """λ of every input of the network, from those without indicators in scaled units.

        An indicator may change the score as much as the steepest column.
        """
        every = lipschitz * self.task.units.deviation * self.parameters.temperature
        if self.view.coordinates is not None:
            own = self.view.replaced
            every[own] = self.view.coordinates.limits(every[own])
        return np.append(every, np.full(self.task.n_indicators, every.max()))

    def steepest(self, lipschitz: Floats) -> Floats:
        """The largest λ among the copies of every column, in the units asked for."""
        starts = np.unique(self.own, return_index=True)[1]
        steepest: Floats = np.maximum.reduceat(lipschitz * self.units, starts)
        return steepest

    def learned(self, members: list[MonotonicNetwork], shares: Floats | None = None) -> Floats:
        """The λ of every column that members have learned, on average."""
        each = [member.lipschitz[: len(self.own)] for member in members]
        mean = np.average(each, axis=0, weights=shares)
        if self.view.coordinates is not None:
            own = self.view.replaced
            mean[own] = self.view.coordinates.of_columns(mean[own])
        return self.steepest(mean / (self.task.units.deviation * self.parameters.temperature))

    def freeze(
        self, members: list[MonotonicNetwork], shares: Floats | None = None
    ) -> FrozenNetwork:
        """The average of the members in the units of the targets; quantiles do not cross."""
        task = self.task
        task.units.add_center(members)
        inputs = replace(task.inputs, copies=self.view.copies)
        levels = np.atleast_1d(task.loss.level).tolist() if isinstance(task.loss, Quantile) else []
        frozen = freeze_uncertified(
            members,
            scaling=self.view.scaling,
            inputs=inputs,
            features=inputs.features,
            classes=task.classes,
            shares=None if shares is None else shares.tolist(),
            provenance={"quantiles": levels} if levels else None,
        )
        if self.view.coordinates is not None:
            own = self.view.replaced
            restore = self.view.coordinates.restore
            frozen = restore(frozen, own, self.directions, task.joint_cst)
        if len(levels) > 1:
            frozen = sort_outputs(frozen)
        return task.units.restore(frozen)
