"""Ours: committees of small certified networks.

All settings and members of one shape train together as one `isotone` stack. The winner is the
setting whose average of a few members has the lowest loss on the validation rows; then members of
that setting are trained on all rows and frozen into one certified network, their average.

Regression is trained longer than classification and its free features may be steeper than those
with a direction: decided on validation rows, see `docs/tabular.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

import isotone
from isotone.elementary import Floats, Reals
from isotone.learners import FusedLearner, make_learner
from isotone.losses import CrossEntropy, Loss, SquaredError
from isotone.network import MonotonicNetwork
from isotone.rows import Rows
from isotone.training import Recipe
from studies.tabular.contest import (
    BUDGET,
    Choice,
    Model,
    Problem,
    Table,
    View,
    batch_size,
    best,
    n_epochs,
    sigmoid,
)

LADDER = (0.25, 0.5, 1.0, 2.0)  # λ, in standard deviations of the target or in logits
STEEPER = (1.0, 4.0)  # λ of free features, in units of that of features with a direction
_SCOUTS = 4  # members per setting while settings are compared
_GROUP = 8
_RATE = 0.02
_EPOCHS = 120  # for classification, at most

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """What is chosen on validation rows."""

    shape: Shape
    lipschitz: float
    steeper: float = 1.0


@dataclass(frozen=True)
class Isotone:
    """A committee of `members` networks with one or two layers of `width` units."""

    name: str
    width: int
    members: int
    needs: str = "isotone"
    monotone: bool = True

    def settings(self, problem: Problem) -> list[Setting]:
        """Eight: four λ, and for classes two depths, for values two λ of the free features."""
        one, two = (self.width,), (self.width, self.width)
        if problem.task == "classification":
            return [Setting(shape, slope) for shape in (one, two) for slope in LADDER]
        return [Setting(two, slope, steeper) for steeper in STEEPER for slope in LADDER]

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        """By the loss of a small committee on the validation rows, over all epochs."""
        settings = self.settings(problem)
        shapes = dict.fromkeys(setting.shape for setting in settings)
        groups = [[s for s in settings if s.shape == shape] for shape in shapes]
        return best([_scan(problem, train, validation, group) for group in groups])

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        view, recipe = View.of(problem, rows), recipe_for(problem, len(rows))
        networks = build(view, problem, Setting(**choice.setting), self.members)
        known = rows_of(view, problem, rows)
        for learner in epochs(networks, problem, known, recipe, choice.rounds):
            last = learner
        last.unstack(networks)
        return freeze(view, problem, networks)


def _scan(problem: Problem, train: Table, validation: Table, settings: list[Setting]) -> Choice:
    """The best of settings that share a shape, and its best epoch."""
    view = View.of(problem, train)
    recipe = recipe_for(problem, len(train))
    networks = [net for setting in settings for net in build(view, problem, setting, _SCOUTS)]
    x = view.x(validation.X).astype(np.float32)
    found = Choice({}, 0, np.inf, np.empty(0))
    run = epochs(networks, problem, rows_of(view, problem, train), recipe, recipe.epochs)
    for epoch, learner in enumerate(run, start=1):
        raw = learner.trainer.predict(x)[..., 0].reshape(len(settings), _SCOUTS, -1)
        scores = [output(problem, view, committee) for committee in raw.mean(axis=1)]
        losses = [problem.loss(validation.y, score) for score in scores]
        k = int(np.argmin(losses))
        if losses[k] < found.loss:
            found = Choice(vars(settings[k]), epoch, losses[k], scores[k])
    return found


def single_losses(
    problem: Problem, train: Table, validation: Table, settings: list[Setting], members: int
) -> Floats:
    """Mean validation loss of networks alone, (n_epochs, n_settings)."""
    view = View.of(problem, train)
    recipe = recipe_for(problem, len(train))
    known, held_out = (rows_of(view, problem, table) for table in (train, validation))
    columns = []
    for setting in settings:
        networks = build(view, problem, setting, members)
        run = epochs(networks, problem, known, recipe, recipe.epochs)
        columns.append([float(learner.losses(held_out).mean()) for learner in run])
    return np.array(columns).T


def output(problem: Problem, view: View, raw: Reals) -> Floats:
    """Probabilities, or values in their units, from what networks give."""
    z = raw.astype(np.float64)
    return sigmoid(z) if problem.task == "classification" else view.restore(z)


def freeze(view: View, problem: Problem, networks: Sequence[MonotonicNetwork]) -> Model:
    """The average of networks as one certified model."""
    frozen = isotone.freeze(networks, scaling=view.scaling)
    certificate = isotone.certify(frozen)
    assert certificate.holds
    slope = max(max(abs(s.scaled.low), abs(s.scaled.high)) for s in certificate.slopes)

    def score(X: Floats) -> Floats:
        return output(problem, view, frozen.score(X[:, view.kept]))

    n_parameters = sum(p.numel() for network in networks for p in network.parameters())
    return Model(score, n_parameters, slope)


def loss_of(problem: Problem) -> Loss:
    return CrossEntropy() if problem.task == "classification" else SquaredError()


def rows_of(view: View, problem: Problem, table: Table) -> Rows:
    return Rows.of(view.x(table.X), view.y(table.y), loss_of(problem))


def recipe_for(problem: Problem, n_rows: int) -> Recipe:
    most, batch = n_epochs(problem), batch_size(n_rows)
    classes = problem.task == "classification"
    return Recipe(
        epochs=min(most, _EPOCHS) if classes else most,
        batch_size=batch if classes else max(32, batch // 2),
        learning_rate=_RATE,
        final_rate=0.05,
        seed=problem.seed,
    )


def build(view: View, problem: Problem, setting: Setting, members: int) -> list[MonotonicNetwork]:
    """New members; the state of torch's random numbers is left as it was."""
    networks = []
    free = np.where(view.directions == 0, setting.steeper, 1.0)
    with torch.random.fork_rng(devices=[]):
        for k in range(members):
            torch.manual_seed(1000 * problem.seed + k)
            networks.append(
                MonotonicNetwork(
                    [len(view.kept), *setting.shape, 1],
                    monotonic_cst=view.directions.astype(np.float64),
                    lipschitz=setting.lipschitz * free,
                    group_size=_GROUP,
                    outputs=loss_of(problem).outputs,
                )
            )
    return networks


def epochs(
    networks: Sequence[MonotonicNetwork], problem: Problem, rows: Rows, recipe: Recipe, n: int
) -> Iterator[FusedLearner]:
    """The learner after each of the first `n` epochs of a recipe."""
    learner = make_learner("fused", networks, loss_of(problem), recipe, "own", 1)
    assert isinstance(learner, FusedLearner)
    for epoch in range(n):
        learner.learn(rows, epoch, recipe)
        yield learner


SMALL = Isotone("isotone, small", 8, members=4)
WIDE = Isotone("isotone", 32, members=16)
assert 2 * len(LADDER) == BUDGET
