"""Ensemble: many members of one architecture, trained in one program.

The weights of S networks are stacked along a leading axis, and one batched program trains them
all: seeds, bootstraps, or a scan of λ. Afterwards the networks are ordinary ones again: freeze
one, or freeze their average, which is monotone too.

>>> import numpy as np, torch
>>> from isotone import MonotonicNetwork
>>> from isotone.losses import SquaredError
>>> from isotone.training import Recipe
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

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from isotone.layers import BoundedLayer, GroupSort, LipschitzLinear
from isotone.losses import Loss, mean
from isotone.network import LipschitzNetwork
from isotone.rows import Rows, order_of_rows
from isotone.sorting import group_sort
from isotone.training import (
    History,
    Recipe,
    Tensors,
    fit,
    load_optimizer_state,
    optimizer_state,
)

_VALIDATION_ROWS = 2**20  # members times rows in one piece


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
        own_order: bool = False,
        checkpoint: str | Path | None = None,
        progress: bool = False,
    ) -> History:
        """Train all members on scaled rows; as `isotone.training.train` does for one.

        Parameters
        ----------
        own_order : every member sees the rows in an order of its own
        """
        recipe = recipe or Recipe()
        rows = Rows.of(x, y, loss, sample_weight=sample_weight)
        held_out = None if validation is None else Rows.of(*validation, loss)
        learner = StackLearner(self.networks, loss, recipe, own_order)
        self.history = fit(
            learner,
            rows,
            recipe,
            validation=held_out,
            checkpoint=checkpoint,
            identity=f"{self.networks[0]} {[n.lipschitz.tolist() for n in self.networks]} {loss}",
            progress=progress,
        )
        learner.unstack(self.networks)
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


class StackLearner:
    """S dense networks as one batched program."""

    def __init__(
        self,
        networks: Sequence[LipschitzNetwork],
        loss: Loss,
        recipe: Recipe,
        own_order: bool = False,
    ) -> None:
        self.n_members = len(networks)
        self.loss, self.own_order = loss, own_order
        first = networks[0]
        self.chain = first.chain
        layers = [_bounded(network) for network in networks]
        depth = len(layers[0])
        self.weight = [_stack([m[k].weight for m in layers]) for k in range(depth)]
        self.bias = [_stack([_bias(m[k]) for m in layers]) for k in range(depth)]
        self.bounds = [_column([m[k].constraint.bound for m in layers]) for k in range(depth)]
        self.duals = [layer.constraint.dual for layer in layers[0]]
        self.group_size = _group_size(first)
        self.scale = torch.stack([n.feature_scale.float() for n in networks])[:, None]
        residual = np.stack([network.residual() for network in networks])
        self.residual = torch.as_tensor(residual, dtype=torch.float32).transpose(1, 2)
        self.optimizer = torch.optim.AdamW(
            self.weight + self.bias, lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )

    def score(self, x: Tensor) -> Tensor:
        """Scores (S, n, n_outputs) of rows (n, n_features), or of rows per member (S, n, ...)."""
        rows = x.expand(self.n_members, *x.shape[-2:])
        h = rows * self.scale
        for k, bias in enumerate(self.bias):
            if k:
                h = group_sort(h, self.group_size or h.shape[-1])
            h = torch.baddbmm(bias[:, None], h, self._normalized(k).transpose(1, 2))
        return torch.baddbmm(h, rows, self.residual)

    def learn(self, rows: Rows, epoch: int, recipe: Recipe) -> Tensor:
        total = torch.zeros(self.n_members, dtype=torch.float64)
        order = self._order(len(rows), epoch, recipe)
        starts = range(0, len(rows), recipe.batch_size)
        for start, rate in zip(starts, recipe.rates(epoch, len(starts)), strict=True):
            batch = rows[order[..., start : start + recipe.batch_size]]
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            losses = self._mean(self.loss(self.score(batch.x), batch.target), batch.weight)
            self.optimizer.zero_grad()
            losses.sum().backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            total += losses.detach().double() * batch.x.shape[-2] / len(rows)
        return total

    @torch.no_grad()
    def losses(self, rows: Rows) -> Tensor:
        size = max(1, _VALIDATION_ROWS // self.n_members)
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        each = [self.loss(self.score(part.x), part.target).double() for part in parts]
        return mean(torch.cat(each, dim=1), rows.weight)

    def state(self) -> Tensors:
        return optimizer_state(self.optimizer) | self.weights()

    def load_state(self, state: Tensors) -> None:
        self.load_weights(load_optimizer_state(self.optimizer, state))

    def weights(self) -> Tensors:
        return {name: parameter.detach().clone() for name, parameter in self._named()}

    @torch.no_grad()
    def load_weights(self, weights: Tensors) -> None:
        for name, parameter in self._named():
            parameter.copy_(weights[name])

    def merge(self, best: Tensors, better: Tensor) -> Tensors:
        now = self.weights()
        return {
            name: torch.where(better.reshape(-1, *[1] * (value.ndim - 1)), now[name], value)
            for name, value in best.items()
        }

    @torch.no_grad()
    def unstack(self, networks: Sequence[LipschitzNetwork]) -> None:
        """Write the weights of every member into its network."""
        for s, network in enumerate(networks):
            for layer, weight, bias in zip(_bounded(network), self.weight, self.bias, strict=True):
                layer.weight.copy_(weight[s])
                if layer.bias is not None:
                    layer.bias.copy_(bias[s])

    def _named(self) -> list[tuple[str, Tensor]]:
        pairs = enumerate(zip(self.weight, self.bias, strict=True))
        return [
            (f"{k}.{n}", t)
            for k, pair in pairs
            for n, t in zip(("weight", "bias"), pair, strict=True)
        ]

    def _normalized(self, k: int) -> Tensor:
        """Eq. 8 for all members at once."""
        weight = self.weight[k]
        if self.chain == "one":
            sizes = weight.abs().sum(dim=1, keepdim=True)
        else:
            sizes = torch.linalg.vector_norm(weight, ord=self.duals[k], dim=2, keepdim=True)
        return weight / (sizes / self.bounds[k]).clamp(min=1.0)

    def _order(self, n: int, epoch: int, recipe: Recipe) -> Tensor:
        if not self.own_order:
            return order_of_rows(n, recipe.seed, epoch)
        seeds = [recipe.seed + (s << 32) for s in range(self.n_members)]
        return torch.stack([order_of_rows(n, seed, epoch) for seed in seeds])

    def _mean(self, losses: Tensor, weight: Tensor | None) -> Tensor:
        if weight is None or weight.ndim == 1:
            return mean(losses, weight)
        return (losses * weight).sum(dim=1) / weight.sum(dim=1)


def _bounded(network: LipschitzNetwork) -> list[BoundedLayer]:
    return [layer for layer in network.layers if isinstance(layer, BoundedLayer)]


def _bias(layer: BoundedLayer) -> Tensor:
    return layer.weight.new_zeros(len(layer.weight)) if layer.bias is None else layer.bias


def _stack(tensors: list[Tensor]) -> Tensor:
    return torch.stack([t.detach().float() for t in tensors]).requires_grad_()


def _column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)[:, None, None]


def _group_size(network: LipschitzNetwork) -> int | None:
    sorts = [layer for layer in network.layers if isinstance(layer, GroupSort)]
    return sorts[0].group_size if sorts else None


def _check_alike(networks: list[LipschitzNetwork]) -> None:
    if not networks:
        raise ValueError("an ensemble needs at least one network")
    for i, network in enumerate(networks):
        reason = _why_not_stackable(network)
        if reason is None and _architecture(network) != _architecture(networks[0]):
            reason = "differs from the first in its layers, directions, outputs, chain or metric"
        if reason is not None:
            raise ValueError(
                f"network {i} {reason}; an ensemble holds dense networks of one architecture, "
                "with norm='columns' and apply='direct': train others one by one"
            )


def _why_not_stackable(network: LipschitzNetwork) -> str | None:
    layers = list(network.layers)
    kinds: list[type[nn.Module]] = [LipschitzLinear, GroupSort]
    if (
        any(type(layer) is not kinds[i % 2] for i, layer in enumerate(layers))
        or not len(layers) % 2
    ):
        return "has other layers than LipschitzLinear and GroupSort in turns"
    if len({sort.group_size for sort in layers[1::2]}) > 1:
        return "sorts in groups of different sizes"
    constraints = [layer.constraint for layer in _bounded(network)]
    if any((c.norm, c.apply) != ("columns", "direct") for c in constraints):
        return "has another norm"
    return None


def _architecture(network: LipschitzNetwork) -> tuple[object, ...]:
    shapes = tuple(tuple(layer.weight.shape) for layer in _bounded(network))
    choices = network.chain, network.metric, network.outputs, _group_size(network)
    return shapes, choices, network.directions().tobytes()
