"""Models: ours, the same without constraints, and gradient-boosted trees with and without them.

All take the raw features: logarithms are taken already, and nothing else is scaled, so λ is per
unit of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

import isotone
from isotone.losses import CrossEntropy, balanced_weights
from isotone.typing import Floats, Integers
from studies.trigger.analysis.tables import DIRECTIONS
from studies.trigger.simulation.candidates import FEATURES

_CHUNK = 65536
_UNBOUNDED = 1e12


class Model(Protocol):
    """A trained classifier of candidates."""

    @property
    def inputs(self) -> tuple[int, ...]:
        """Which of the four features it takes."""

    def score(self, X: Floats) -> Floats:
        """Scores of the rows of all four features; larger is more signal-like."""


@dataclass(frozen=True)
class Effort:
    """How long to train."""

    epochs: int = 50
    batch_size: int = 128
    trees: int = 1000


@dataclass(frozen=True, eq=False)
class Lipschitz:
    """The monotone Lipschitz network, frozen: its scores are monotone to the last bit."""

    inputs: tuple[int, ...]
    frozen: isotone.FrozenNetwork

    def score(self, X: Floats) -> Floats:
        chosen = X[:, self.inputs]
        return np.asarray(self.frozen.score(chosen), dtype=float).reshape(-1)


def train_lipschitz(
    X: Floats,
    y: Integers,
    inputs: tuple[int, ...],
    effort: Effort,
    *,
    seed: int = 0,
    progress: bool = False,
) -> Lipschitz:
    """Two hidden layers of 20, all units sorted, λ = 2, increasing in all but the vertex χ²."""
    return train_many(X, y, inputs, effort, [(seed, 2.0)], progress=progress)[0]


def train_many(
    X: Floats,
    y: Integers,
    inputs: tuple[int, ...],
    effort: Effort,
    members: Sequence[tuple[int, float]],
    threads: int = 1,
    progress: bool = False,
) -> list[Lipschitz]:
    """The network for each (seed, λ), all in one program.

    The first seed orders the rows of one member; with several, each has an order of its own.
    """
    networks = [_network(inputs, *member) for member in members]
    recipe = _recipe(effort, members[0][0], 9e-2)
    _train(networks, X[:, inputs], y, recipe, threads, progress)
    features = [FEATURES[i] for i in inputs]
    return [Lipschitz(inputs, isotone.freeze(each, features=features)) for each in networks]


def _recipe(effort: Effort, seed: int, rate: float) -> isotone.Recipe:
    """Adam, with a learning rate that falls exponentially to 1e-3."""
    return isotone.Recipe(
        epochs=effort.epochs,
        batch_size=effort.batch_size,
        learning_rate=rate,
        schedule="exponential",
        final_rate=1e-3 / rate,
        seed=seed,
    )


def _train(
    networks: Sequence[isotone.LipschitzNetwork],
    x: Floats,
    y: Integers,
    recipe: isotone.Recipe,
    threads: int = 1,
    progress: bool = False,
) -> None:
    isotone.Ensemble(networks).train(
        x,
        y,
        CrossEntropy(),
        recipe,
        sample_weight=balanced_weights(y),
        orders="shared" if len(networks) == 1 else "own",
        threads=threads,
        progress=progress,
    )


def _network(inputs: tuple[int, ...], seed: int, lipschitz: float) -> isotone.MonotonicNetwork:
    torch.manual_seed(seed)
    return isotone.MonotonicNetwork(
        [len(inputs), 20, 20, 1],
        monotonic_cst=[DIRECTIONS[i] for i in inputs],
        lipschitz=lipschitz,
        outputs="logits",
    )


@dataclass(frozen=True, eq=False)
class Free:
    """The same architecture without bounds that act and without the linear term."""

    inputs: tuple[int, ...]
    network: nn.Module

    @torch.no_grad()
    def score(self, X: Floats) -> Floats:
        rows = torch.as_tensor(X[:, self.inputs], dtype=torch.float32)
        scores = [self.network(some)[:, 0] for some in torch.split(rows, _CHUNK)]
        return np.asarray(torch.cat(scores).double().numpy())


def train_free(
    X: Floats, y: Integers, inputs: tuple[int, ...], effort: Effort, *, seed: int = 0
) -> Free:
    """Adam; the rate falls exponentially from 1e-2 to 1e-3.

    A bound that no weight ever comes near changes nothing, and lets the fast trainer do it.
    """
    torch.manual_seed(seed)
    network = isotone.LipschitzNetwork(
        [len(inputs), 20, 20, 1], lipschitz=_UNBOUNDED, init="torch", outputs="logits"
    )
    _train([network], X[:, inputs], y, _recipe(effort, seed, 1e-2))
    return Free(inputs, network)


@dataclass(frozen=True, eq=False)
class Trees:
    """Gradient-boosted trees of LightGBM."""

    inputs: tuple[int, ...]
    booster: Any

    def score(self, X: Floats) -> Floats:
        return np.asarray(self.booster.predict(X[:, self.inputs], raw_score=True))


def train_trees(
    X: Floats,
    y: Integers,
    group: Integers,
    inputs: tuple[int, ...],
    effort: Effort,
    *,
    monotone: bool = True,
    stop_early: bool = True,
    seed: int = 0,
) -> Trees:
    """Up to 1000 trees of 25 leaves, rate 0.05; a tenth of the training collisions stops them."""
    import lightgbm

    settings: dict[str, Any] = {
        "objective": "binary",
        "num_leaves": 25,
        "learning_rate": 0.05,
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
    if monotone:
        settings["monotone_constraints"] = [DIRECTIONS[i] for i in inputs]
        settings["monotone_constraints_method"] = "intermediate"
    weights = balanced_weights(y)
    stop = group // 4 % 10 == 0
    rows = X[:, inputs]
    learn = lightgbm.Dataset(rows[~stop], y[~stop], weight=weights[~stop])
    judge = lightgbm.Dataset(rows[stop], y[stop], weight=weights[stop], reference=learn)
    early: list[Any] = [lightgbm.early_stopping(15, verbose=False)] if stop_early else []
    booster = lightgbm.train(settings, learn, effort.trees, valid_sets=[judge], callbacks=early)
    return Trees(inputs, booster)
