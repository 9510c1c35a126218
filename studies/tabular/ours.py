"""Ours: committees of small certified networks.

All settings and members of one shape train together as one `isotone` stack; the members of the
setting that wins are frozen into one certified network, their average.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

import isotone
from isotone.elementary import Floats
from isotone.learners import FusedLearner, StackLearner, make_learner
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
_GROUP = 8
_RATE = 0.02


@dataclass(frozen=True)
class Isotone:
    """A committee of `members` networks; the two `shapes` and four λ are the settings."""

    name: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    members: int
    needs: str = "isotone"
    monotone: bool = True

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        """By the mean loss of the members on the validation rows, over all epochs."""
        return best([self._scan(problem, train, validation, shape) for shape in self.shapes])

    def _scan(
        self, problem: Problem, train: Table, validation: Table, shape: tuple[int, ...]
    ) -> Choice:
        view = View.of(problem, train)
        recipe = recipe_for(problem, len(train))
        networks = [
            net for slope in LADDER for net in build(view, problem, shape, slope, self.members)
        ]
        held_out = rows_of(view, problem, validation)
        run = epochs(networks, problem, rows_of(view, problem, train), recipe, recipe.epochs)
        losses = np.array([learner.losses(held_out).numpy() for learner in run])
        mean = losses.reshape(len(losses), len(LADDER), self.members).mean(axis=2)
        epoch, which = np.unravel_index(np.argmin(mean), mean.shape)
        setting = {"shape": list(shape), "lipschitz": LADDER[which]}
        choice = Choice(setting, int(epoch) + 1, float(mean.min()), np.empty(0))
        model = self.fit(problem, train, choice)
        return Choice(setting, choice.rounds, choice.loss, model.score(validation.X))

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        view, recipe = View.of(problem, rows), recipe_for(problem, len(rows))
        shape, slope = tuple(choice.setting["shape"]), choice.setting["lipschitz"]
        networks = build(view, problem, shape, slope, self.members)
        for learner in epochs(
            networks, problem, rows_of(view, problem, rows), recipe, choice.rounds
        ):
            last = learner
        last.unstack(networks)
        return freeze(view, problem, networks)


def freeze(view: View, problem: Problem, networks: Sequence[MonotonicNetwork]) -> Model:
    """The average of networks as one certified model."""
    frozen = isotone.freeze(networks, scaling=view.scaling)
    certificate = isotone.certify(frozen)
    assert certificate.holds
    slope = max(max(abs(s.scaled.low), abs(s.scaled.high)) for s in certificate.slopes)

    def score(X: Floats) -> Floats:
        raw = frozen.score(X[:, view.kept]).astype(np.float64)
        return sigmoid(raw) if problem.task == "classification" else view.restore(raw)

    n_parameters = sum(p.numel() for network in networks for p in network.parameters())
    return Model(score, n_parameters, slope)


def loss_of(problem: Problem) -> Loss:
    return CrossEntropy() if problem.task == "classification" else SquaredError()


def rows_of(view: View, problem: Problem, table: Table) -> Rows:
    return Rows.of(view.x(table.X), view.y(table.y), loss_of(problem))


def recipe_for(problem: Problem, n_rows: int) -> Recipe:
    return Recipe(
        epochs=n_epochs(problem),
        batch_size=batch_size(n_rows),
        learning_rate=_RATE,
        final_rate=0.05,
        seed=problem.seed,
    )


def build(
    view: View, problem: Problem, shape: tuple[int, ...], lipschitz: float, members: int
) -> list[MonotonicNetwork]:
    """New members; the state of torch's random numbers is left as it was."""
    networks = []
    with torch.random.fork_rng(devices=[]):
        for k in range(members):
            torch.manual_seed(1000 * problem.seed + k)
            networks.append(
                MonotonicNetwork(
                    [len(view.kept), *shape, 1],
                    monotonic_cst=view.directions.astype(np.float64),
                    lipschitz=lipschitz,
                    group_size=_GROUP,
                    outputs=loss_of(problem).outputs,
                )
            )
    return networks


def epochs(
    networks: Sequence[MonotonicNetwork], problem: Problem, rows: Rows, recipe: Recipe, n: int
) -> Iterator[StackLearner | FusedLearner]:
    """The learner after each of the first `n` epochs of a recipe."""
    learner = make_learner("auto", networks, loss_of(problem), recipe, "own", 1)
    for epoch in range(n):
        learner.learn(rows, epoch, recipe)
        yield learner


SMALL = Isotone("isotone, small", ((8,), (8, 8)), members=4)
WIDE = Isotone("isotone", ((32,), (32, 32)), members=4)
assert 2 * len(LADDER) == BUDGET
