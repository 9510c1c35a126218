"""Small: networks of ours with layers of 8 units, for the reference protocol.

Published figures were made with networks of some hundred parameters. These have as few: they see
the columns that all networks see, or two or three knots of each (see `isotone.Knots`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from isotone import Knots, MonotonicNetwork, Recipe
from isotone.losses import CrossEntropy, Loss, SquaredError
from isotone.nn import Init
from isotone.training import FusedLearner, Rows, make_learner
from isotone.typing import Floats, Reals
from studies.tabular.contest import Problem, Table, View, batch_size, n_epochs, sigmoid

_SHAPES = (8,), (8, 8)
_LADDER = (0.25, 0.5, 1.0, 2.0)  # λ, in standard deviations of the target or in logits
_STEEPER = (1.0, 4.0)  # λ of free features, in units of that of features with a direction
_GROUP = 8
_COPIES = 256  # of the columns with more than two values, together, at most


@dataclass(frozen=True)
class Setting:
    """What is chosen by cross-validation; `n_tiles` is None without knots."""

    shape: tuple[int, ...]
    lipschitz: float
    steeper: float = 1.0
    n_tiles: int | None = None

    @property
    def init(self) -> Init:
        return "orthogonal" if self.n_tiles is None else "independent"


def settings(problem: Problem) -> list[Setting]:
    """Eight with columns as they are, eight with two or three copies of each."""
    if problem.task == "classification":
        plain = [Setting(shape, slope) for shape, slope in product(_SHAPES, _LADDER)]
    else:
        plain = [Setting(_SHAPES[1], slope, more) for more, slope in product(_STEEPER, _LADDER)]
    coded = product((2, 3), _SHAPES, _LADDER[:2])
    return plain + [Setting(shape, slope, n_tiles=n) for n, shape, slope in coded]


@dataclass(frozen=True, eq=False)
class Coded(View):
    """Copies of columns, each for one interval of their values."""

    def x(self, X: Floats) -> Floats:
        return np.clip(super().x(X), -1.0, 1.0)


def view_of(problem: Problem, rows: Table, setting: Setting) -> View:
    view = View.of(problem, rows)
    if setting.n_tiles is None:
        return view
    X = rows.X[:, view.kept]
    n_long = sum(len(np.unique(column)) > 2 for column in X.T)
    knots = Knots.fit(X, min(setting.n_tiles, max(1, _COPIES // max(1, n_long))))
    kept = view.kept[knots.columns]
    return Coded(kept, knots.scaling, problem.directions[kept], view.center, view.spread)


def recipe_for(problem: Problem, n_rows: int) -> Recipe:
    """Regression has more epochs and smaller batches."""
    values, batch = problem.task == "regression", batch_size(n_rows)
    return Recipe(
        epochs=min(300 if values else 120, n_epochs(problem)),
        batch_size=max(32, batch // 2) if values else batch,
        learning_rate=0.02,
        final_rate=0.05,
        seed=problem.seed,
    )


def build(view: View, problem: Problem, setting: Setting, n: int) -> list[MonotonicNetwork]:
    """New networks; the state of torch's random numbers is left as it was."""
    networks = []
    free = np.where(view.directions == 0, setting.steeper, 1.0)
    with torch.random.fork_rng(devices=[]):
        for k in range(n):
            torch.manual_seed(1000 * problem.seed + k)
            networks.append(
                MonotonicNetwork(
                    [len(view.kept), *setting.shape, 1],
                    monotonic_cst=view.directions.astype(np.float64),
                    lipschitz=setting.lipschitz * free,
                    group_size=_GROUP,
                    init=setting.init,
                    outputs=loss_of(problem).outputs,
                )
            )
    return networks


def epochs(
    networks: Sequence[MonotonicNetwork], problem: Problem, rows: Rows, recipe: Recipe
) -> Iterator[FusedLearner]:
    """The learner after each epoch."""
    learner = make_learner("fused", networks, loss_of(problem), recipe, "own", 1)
    assert isinstance(learner, FusedLearner)
    for epoch in range(recipe.epochs):
        learner.learn(rows, epoch, recipe)
        yield learner


def rows_of(view: View, problem: Problem, table: Table) -> Rows:
    return Rows.of(view.x(table.X), view.y(table.y), loss_of(problem))


def loss_of(problem: Problem) -> Loss:
    return CrossEntropy() if problem.task == "classification" else SquaredError()


def output(problem: Problem, view: View, raw: Reals) -> Floats:
    """Probabilities, or values in their units, from what networks give."""
    z = raw.astype(np.float64)
    return sigmoid(z) if problem.task == "classification" else view.restore(z)
