"""Ours: committees of small certified networks.

All settings and members of one shape train together as one `isotone` stack. The winner is the
setting whose average of a few members has the lowest loss on the validation rows; then members of
that setting are trained on all rows and frozen into one certified network, their average.

"isotone, small" sees the columns that all networks see. "isotone" has two committees: one sees
these columns, but never further out than the training rows, the other sees their knots, see
`isotone.Knots`. It hands back one of the two or their average, whichever is best on the
validation rows. How long and how steep was decided on rows outside the test, see
`docs/tabular.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

import numpy as np
import torch

import isotone
from isotone import Knots, MonotonicNetwork, Recipe
from isotone.losses import CrossEntropy, Loss, SquaredError
from isotone.nn import Init
from isotone.training import FusedLearner, Rows, make_learner
from isotone.typing import Floats, Reals
from studies.tabular.contest import (
    BUDGET,
    Choice,
    Model,
    Problem,
    Table,
    View,
    batch_size,
    n_epochs,
    sigmoid,
)

LADDER = (0.25, 0.5, 1.0, 2.0)  # λ, in standard deviations of the target or in logits
STEEPER = (1.0, 4.0)  # λ of free features, in units of that of features with a direction
_SCOUTS = 4  # members per setting while settings are compared
_GROUP = 8
_COPIES = 256  # of the columns with more than two values, together, at most

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """What is chosen on validation rows; `n_tiles` is None without knots.

    `truth` is the share of the true targets in what is learned; the rest is what a teacher says.
    """

    shape: Shape
    lipschitz: float
    steeper: float = 1.0
    n_tiles: int | None = None
    truth: float = 1.0


@dataclass(frozen=True, eq=False)
class Within(View):
    """Columns clamped to the range of the rows they are scaled by: increasing, 1-Lipschitz."""

    low: Floats = field(default_factory=lambda: np.empty(0))
    high: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, problem: Problem, rows: Table) -> Within:
        view = View.of(problem, rows)
        X = rows.X[:, view.kept]
        return cls(**vars(view), low=X.min(axis=0), high=X.max(axis=0))

    def raw(self, X: Floats) -> Floats:
        return np.clip(X[:, self.kept], self.low, self.high)

    def x(self, X: Floats) -> Floats:
        return self.scaling.transform(self.raw(X))


@dataclass(frozen=True, eq=False)
class Coded(View):
    """Copies of columns, each for one interval of their values."""

    @classmethod
    def through(cls, problem: Problem, rows: Table, n_tiles: int) -> Coded:
        view = View.of(problem, rows)
        X = rows.X[:, view.kept]
        n_long = sum(len(np.unique(column)) > 2 for column in X.T)
        knots = Knots.fit(X, min(n_tiles, max(1, _COPIES // max(1, n_long))))
        kept = view.kept[knots.columns]
        return cls(kept, knots.scaling, problem.directions[kept], view.center, view.spread)

    def x(self, X: Floats) -> Floats:
        return np.clip(super().x(X), -1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Scout:
    """A setting, its best epoch, the loss there, and what was said of the validation rows."""

    setting: Setting
    epochs: int
    loss: float
    score: Floats


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

    def view(self, problem: Problem, rows: Table, setting: Setting) -> View:
        if setting.n_tiles is None:
            return View.of(problem, rows)
        return Coded.through(problem, rows, setting.n_tiles)

    def recipe(self, problem: Problem, n_rows: int, setting: Setting) -> Recipe:
        return recipe_for(problem, n_rows, 300 if problem.task == "regression" else 120)

    def init(self) -> Init:
        return "orthogonal"

    def rows(self, problem: Problem, view: View, table: Table, setting: Setting) -> Rows:
        """What networks learn from."""
        return rows_of(view, problem, table)

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        """By the loss of a small committee on the validation rows, over all epochs."""
        scouts = self.scan(problem, train, validation)
        return _choice(problem, validation, [min(scouts, key=lambda scout: scout.loss)], (1.0,))

    def scan(self, problem: Problem, train: Table, validation: Table) -> list[Scout]:
        """Every setting at its best epoch; those of one shape and code train together."""
        groups = groupby(self.settings(problem), key=lambda s: (s.shape, s.n_tiles))
        return [
            scout
            for _, group in groups
            for scout in self._scan(problem, train, validation, list(group))
        ]

    def _scan(
        self, problem: Problem, train: Table, validation: Table, settings: list[Setting]
    ) -> list[Scout]:
        view = self.view(problem, train, settings[0])
        recipe = self.recipe(problem, len(train), settings[0])
        networks = [
            network
            for setting in settings
            for network in build(view, problem, setting, _SCOUTS, self.init())
        ]
        x = view.x(validation.X).astype(np.float32)
        found = [Scout(setting, 0, np.inf, np.empty(0)) for setting in settings]
        rows = self.rows(problem, view, train, settings[0])
        run = epochs(networks, problem, rows, recipe, recipe.epochs)
        for epoch, learner in enumerate(run, start=1):
            raw = learner.trainer.predict(x)[..., 0].reshape(len(settings), _SCOUTS, -1)
            for k, committee in enumerate(raw.mean(axis=1)):
                score = output(problem, view, committee)
                loss = problem.loss(validation.y, score)
                if loss < found[k].loss:
                    found[k] = Scout(settings[k], epoch, loss, score)
        return found

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        """The committee that was chosen, or the average of two that share the members."""
        parts = choice.setting["parts"]
        shares = [part["share"] for part in parts]
        models = [
            self._fit(problem, rows, Setting(**part["setting"]), part["epochs"], n)
            for part, n in zip(
                parts, (round(self.members * share) for share in shares), strict=True
            )
        ]
        return models[0] if len(models) == 1 else _average(models, shares)

    def _fit(self, problem: Problem, rows: Table, setting: Setting, n: int, members: int) -> Model:
        view, recipe = self.view(problem, rows, setting), self.recipe(problem, len(rows), setting)
        networks = build(view, problem, setting, members, self.init())
        known = self.rows(problem, view, rows, setting)
        for learner in epochs(networks, problem, known, recipe, n):
            last = learner
        last.unstack(networks)
        return freeze(view, problem, networks)


@dataclass(frozen=True)
class Both(Isotone):
    """A committee that sees columns, one that sees knots, or the average of the two."""

    shares: Sequence[tuple[float, float]] = ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5))

    def settings(self, problem: Problem) -> list[Setting]:
        """Eight: four without knots and four with knots."""
        two = (self.width, self.width)
        if problem.task == "classification":
            plain = [Setting(two, slope) for slope in LADDER]
            return plain + [Setting(two, slope, 1.0, n) for n in (4, 16) for slope in (0.25, 0.5)]
        steep = [(0.25, 4.0), (0.5, 4.0), (1.0, 4.0), (0.5, 1.0)]
        coded = [(0.25, 4.0, 4), (0.125, 1.0, 8), (0.125, 1.0, 32), (0.25, 1.0, 32)]
        return [Setting(two, *s) for s in steep] + [Setting(two, *s) for s in coded]

    def view(self, problem: Problem, rows: Table, setting: Setting) -> View:
        if setting.n_tiles is None:
            return Within.of(problem, rows)
        return super().view(problem, rows, setting)

    def recipe(self, problem: Problem, n_rows: int, setting: Setting) -> Recipe:
        if problem.task == "regression":
            return recipe_for(problem, n_rows, 150 if setting.n_tiles is None else 80)
        return recipe_for(problem, n_rows, 40 if setting.n_tiles is None else 60, rate=0.005)

    def init(self) -> Init:
        return "independent"

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        """The best without knots, the best with knots, or their average."""
        scouts = self.scan(problem, train, validation)
        pair = [
            min((s for s in scouts if (s.setting.n_tiles is None) == kind), key=lambda s: s.loss)
            for kind in (True, False)
        ]
        choices = [_choice(problem, validation, pair, shares) for shares in self.shares]
        return min(choices, key=lambda choice: choice.loss)


def _choice(
    problem: Problem, validation: Table, scouts: list[Scout], shares: Sequence[float]
) -> Choice:
    """The average of scouts, each with its share."""
    score: Floats = np.average([scout.score for scout in scouts], axis=0, weights=shares)
    chosen = [(scout, share) for scout, share in zip(scouts, shares, strict=True) if share > 0]
    parts = [
        {"setting": asdict(scout.setting), "epochs": scout.epochs, "share": share}
        for scout, share in chosen
    ]
    rounds = max(scout.epochs for scout, _ in chosen)
    return Choice({"parts": parts}, rounds, problem.loss(validation.y, score), score)


def _average(models: list[Model], shares: Sequence[float]) -> Model:
    """The average of certified models, as monotone as they are and no steeper than the steepest.

    Also for classes: the logit of an average of probabilities is no steeper than the logits, since
    p (1 - p) is concave.
    """

    def score(X: Floats) -> Floats:
        scores = [model.score(X) for model in models]
        average: Floats = np.average(scores, axis=0, weights=shares)
        return average

    slope = max(model.slope for model in models if model.slope is not None)
    return Model(score, sum(model.n_parameters for model in models), slope)


def output(problem: Problem, view: View, raw: Reals) -> Floats:
    """Probabilities, or values in their units, from what networks give."""
    z = raw.astype(np.float64)
    return sigmoid(z) if problem.task == "classification" else view.restore(z)


def freeze(view: View, problem: Problem, networks: Sequence[MonotonicNetwork]) -> Model:
    """The average of networks as one certified model."""
    clip = 1.0 if isinstance(view, Coded) else 1024.0
    frozen = isotone.freeze(networks, scaling=view.scaling, clip=clip)
    certificate = isotone.certify(frozen)
    assert certificate.holds
    slope = max(max(abs(s.scaled.low), abs(s.scaled.high)) for s in certificate.slopes)

    def score(X: Floats) -> Floats:
        raw = view.raw(X) if isinstance(view, Within) else X[:, view.kept]
        return output(problem, view, frozen.score(raw))

    n_parameters = sum(p.numel() for network in networks for p in network.parameters())
    return Model(score, n_parameters, slope)


def loss_of(problem: Problem) -> Loss:
    return CrossEntropy() if problem.task == "classification" else SquaredError()


def rows_of(view: View, problem: Problem, table: Table) -> Rows:
    return Rows.of(view.x(table.X), view.y(table.y), loss_of(problem))


def recipe_for(problem: Problem, n_rows: int, n: int, rate: float = 0.02) -> Recipe:
    """With at most `n` epochs; regression has smaller batches."""
    batch = batch_size(n_rows)
    return Recipe(
        epochs=min(n, n_epochs(problem)),
        batch_size=max(32, batch // 2) if problem.task == "regression" else batch,
        learning_rate=rate,
        final_rate=0.05,
        seed=problem.seed,
    )


def build(
    view: View, problem: Problem, setting: Setting, members: int, init: Init = "orthogonal"
) -> list[MonotonicNetwork]:
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
                    init=init,
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
WIDE = Both("isotone", 32, members=16)
assert 2 * len(LADDER) == BUDGET
