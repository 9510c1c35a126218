"""Ensemble: many members of one architecture, trained in one program.

The weights of S networks are stacked along a leading axis, and one batched program trains them
all: seeds, bootstraps, or a scan of λ. Afterwards the networks are ordinary ones again: freeze
one, or freeze their average, which is monotone too.

>>> import numpy as np, torch
>>> from isotone import MonotonicNetwork, Recipe
>>> from isotone.losses import SquaredError
>>> def member(seed):
...     torch.manual_seed(seed)
...     return MonotonicNetwork([1, 8, 1], monotonic_cst=[1])
>>> ensemble = Ensemble([member(seed) for seed in range(4)])
>>> x = np.linspace(-1, 1, 100)[:, None]
>>> _ = ensemble.train(x, x[:, 0] ** 3, SquaredError(), Recipe(epochs=5, batch_size=50))
>>> ensemble.summary().n_members
4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from isotone.checks import check_choice
from isotone.losses import Loss
from isotone.nn.network import LipschitzNetwork
from isotone.training.learners import (
    Backend,
    bounded_layers,
    make_learner,
    masks_of,
    sort_size,
    why_not_stackable,
)
from isotone.training.orders import Orders
from isotone.training.recipe import History, Recipe
from isotone.training.train import learn, rows_for


@dataclass(frozen=True)
class Summary:
    """Final losses of the members: on validation rows if there were any, or else in training."""

    n_members: int
    mean: float
    spread: float
    best: int
    best_loss: float


class Ensemble:
    """Networks of one architecture, trained together.

    Parameters
    ----------
    networks : dense ones with GroupSort, normed by columns in every forward pass; their λ and
        their weights may differ
    """

    def __init__(self, networks: Sequence[LipschitzNetwork]) -> None:
        self.networks = list(networks)
        _check_alike(self.networks)
        self.history: History | None = None

    def __len__(self) -> int:
        return len(self.networks)

    def train(
        self,
        x: ArrayLike,
        y: ArrayLike,
        loss: Loss,
        recipe: Recipe | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        orders: Orders = "shared",
        backend: Backend = "auto",
        threads: int = 1,
        checkpoint: str | Path | None = None,
        progress: bool = False,
    ) -> History:
        """Train all members on scaled rows; as `isotone.training.train.train` does for one.

        Parameters
        ----------
        orders : "shared", all members get the rows in one order; "own", each in its own order;
            "bootstrap", each member has its own draw of the rows, with replacement
        backend : "fused" is C++, the fastest, for most losses and the 1-metric; "torch" takes
            any; "auto" is "fused" where possible
        threads : of the fused backend; members are spread over them
        """
        recipe, first = recipe or Recipe(), self.networks[0]
        check_choice("orders", orders, get_args(Orders))
        rows = rows_for(first, x, y, loss, sample_weight)
        held_out = None if validation is None else rows_for(first, *validation, loss)
        learner = make_learner(backend, self.networks, loss, recipe, orders, threads)
        lipschitz = [network.describe_lipschitz() for network in self.networks]
        masks = b"".join(_masks(first)).hex()
        identity = f"{type(learner)} {orders} {first} {lipschitz} {loss}{masks}"
        self.history = learn(
            self.networks, learner, rows, recipe, held_out, checkpoint, identity, progress
        )
        return self.history

    def summary(self) -> Summary:
        """Mean, spread and best of the members' losses."""
        if self.history is None:
            raise ValueError("the ensemble has no losses yet; call `train` first")
        losses = self.losses()
        best = int(np.argmin(losses))
        return Summary(
            len(self), float(losses.mean()), float(losses.std()), best, float(losses[best])
        )

    def losses(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Loss of every member at the weights that it has now."""
        assert self.history is not None
        if not self.history.validation:
            return np.array(self.history.training[-1])
        by_epoch = np.array(self.history.validation)
        return by_epoch[self.history.best_epoch, np.arange(len(self))]


def _check_alike(networks: list[LipschitzNetwork]) -> None:
    if not networks:
        raise ValueError("an ensemble needs at least one network")
    for i, network in enumerate(networks):
        reason = why_not_stackable(network)
        if reason is None and _architecture(network) != _architecture(networks[0]):
            reason = (
                "differs from the first in its layers, masks, directions, outputs, chain or metric"
            )
        if reason is not None:
            raise ValueError(
                f"network {i} {reason}; an ensemble holds dense networks of one architecture, "
                "with norm='columns' and apply='direct': train others one by one"
            )


def _architecture(network: LipschitzNetwork) -> tuple[object, ...]:
    shapes = tuple(tuple(layer.weight.shape) for layer in bounded_layers(network))
    is_learned = network.log_lipschitz is not None
    choices = network.chain, network.metric, network.outputs, sort_size(network), is_learned
    return shapes, choices, network.directions().tobytes(), _masks(network)


def _masks(network: LipschitzNetwork) -> tuple[bytes, ...]:
    """What tells the masks of networks of one shape apart."""
    return tuple(b"" if m is None else m.numpy().tobytes() for m in masks_of(network))
