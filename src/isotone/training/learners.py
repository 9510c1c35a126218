"""Learners that train a stack of networks at once: batched torch, and fused C++.

Both train the same functions by the same steps; `FusedLearner` is many times faster,
`StackLearner` takes any loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from isotone.checks import check_choice
from isotone.losses import (
    AbsoluteError,
    CrossEntropy,
    Hinge,
    Loss,
    Quantile,
    SquaredError,
    batch_mean,
    mean,
)
from isotone.nn.group_sort import group_sort
from isotone.nn.layers import BoundedLayer, GroupSort, LipschitzLinear
from isotone.nn.network import LipschitzNetwork, log_limits
from isotone.training.fields import Field, Looked, compress
from isotone.training.fused import FusedTrainer
from isotone.training.optimizer import (
    load_optimizer_state,
    make_optimizer,
    optimizer_state,
    take_step,
)
from isotone.training.orders import Orders, orders_of_rows
from isotone.training.recipe import Recipe, Tensors
from isotone.training.rows import Rows
from isotone.training.stack import FusedLoss, why_too_large
from isotone.typing import Floats, Precision

Backend = Literal["auto", "fused", "torch"]

_ROWS_AT_ONCE = 2**20  # members times rows in one piece


def make_learner(
    backend: Backend,
    networks: Sequence[LipschitzNetwork],
    loss: Loss,
    recipe: Recipe,
    orders: Orders,
    threads: int,
    fields: Sequence[int | Field] = (),
) -> StackLearner | FusedLearner:
    """The learner of a backend; "auto" is the fused one where it is available.

    Parameters
    ----------
    fields : how many features, one after the other, are of one column, see `FusedTrainer`
    """
    if is_fused(backend, why_not_fused(networks[0], loss)):
        return FusedLearner(networks, loss, recipe, orders, threads, fields=fields)
    return StackLearner(networks, loss, recipe, orders)


def is_fused(backend: Backend, reason: str | None) -> bool:
    """Whether a backend is the fused one, given the reason, if any, why that cannot be."""
    check_choice("backend", backend, get_args(Backend))
    if backend == "fused" and reason is not None:
        raise ValueError(f"the fused backend cannot train this: {reason}; use backend='torch'")
    return backend != "torch" and reason is None


def why_not_fused(network: LipschitzNetwork, loss: Loss) -> str | None:
    """What the fused backend lacks for this, or None."""
    if network.metric != "1":
        return f"it does not support metric {network.metric}"
    if not is_fused_loss(loss):
        return f"it does not support {type(loss).__name__}"
    widths = [len(layer.weight) for layer in bounded_layers(network)]
    return why_too_large([network.n_features, *widths])


def is_fused_loss(loss: Loss) -> bool:
    """Whether the fused backend knows a loss."""
    return type(loss) in _FUSED


def why_not_stackable(network: LipschitzNetwork) -> str | None:
    """What keeps a network from being a member of a stack, or None."""
    layers = list(network.layers)
    kinds: list[type[nn.Module]] = [LipschitzLinear, GroupSort]
    if (
        any(type(layer) is not kinds[i % 2] for i, layer in enumerate(layers))
        or not len(layers) % 2
    ):
        return "has other layers than LipschitzLinear and GroupSort in turns"
    if len({sort.group_size for sort in layers[1::2]}) > 1:
        return "sorts in groups of different sizes"
    if any(layer.bias is None for layer in bounded_layers(network)):
        return "has a layer without bias"
    constraints = [layer.constraint for layer in bounded_layers(network)]
    if any((c.norm, c.apply) != ("columns", "direct") for c in constraints):
        return "has another norm"
    return None


class StackLearner:
    """S dense networks as one batched program."""

    def __init__(
        self,
        networks: Sequence[LipschitzNetwork],
        loss: Loss,
        recipe: Recipe,
        orders: Orders = "shared",
    ) -> None:
        self.n_members = len(networks)
        self.loss, self.orders = loss, orders
        first = networks[0]
        self.chain = first.chain
        layers = [bounded_layers(network) for network in networks]
        depth = len(layers[0])
        self.weight = [_stack([m[k].masked() for m in layers]) for k in range(depth)]
        self.bias = [_stack([_bias(m[k]) for m in layers]) for k in range(depth)]
        self.bounds = [_column([m[k].constraint.bound for m in layers]) for k in range(depth)]
        self.duals = [layer.constraint.dual for layer in layers[0]]
        self.masks = masks_of(first)
        self.group_size = sort_size(first)
        self._scale = torch.stack([n.feature_scale.detach().float() for n in networks])[:, None]
        residual = np.stack([residual_of(network) for network in networks])
        self._residual = torch.as_tensor(residual, dtype=torch.float32).transpose(1, 2)
        logarithms = [n.log_lipschitz for n in networks if n.log_lipschitz is not None]
        self.log_lipschitz = _stack([x[None] for x in logarithms]) if logarithms else None
        largest = np.stack([network.lipschitz_max for network in networks])[:, None]
        self._lowest, self._highest = log_limits(largest, self._scale)
        self.optimizer = make_optimizer(self.weight + self.bias, self.log_lipschitz, recipe)

    def score(self, x: Tensor) -> Tensor:
        """Scores (S, n, n_outputs) of rows (n, n_features), or of rows per member (S, n, ...)."""
        rows, scale = x.expand(self.n_members, *x.shape[-2:]), self._scale
        if self.log_lipschitz is not None:
            scale = self.log_lipschitz.clamp(max=self._highest).exp()
        h = rows * scale
        for k, bias in enumerate(self.bias):
            if k:
                h = group_sort(h, self.group_size or h.shape[-1])
            h = torch.baddbmm(bias[:, None], h, self._normalized(k).transpose(1, 2))
        scaled = rows if self.log_lipschitz is None else rows * scale
        return torch.baddbmm(h, scaled, self._residual)

    def learn(self, rows: Rows, epoch: int, recipe: Recipe) -> Tensor:
        total = torch.zeros(self.n_members, dtype=torch.float64)
        visited = torch.zeros(self.n_members, dtype=torch.float64)
        order = orders_of_rows(len(rows), self.n_members, self.orders, epoch, recipe.seed)
        starts = range(0, len(rows), recipe.batch_size)
        for start, rate in zip(starts, recipe.rates(epoch, len(starts)), strict=True):
            batch = rows[order[..., start : start + recipe.batch_size]]
            x, y, weight = tensors(batch)
            losses = batch_mean(self.loss(self.score(x), y), weight)
            take_step(self.optimizer, losses.sum(), rate)
            self._limit_lipschitz()
            total += losses.detach().double() * x.shape[-2]
            visited += torch.as_tensor(batch.mass())
        return total / visited

    @torch.no_grad()
    def _limit_lipschitz(self) -> None:
        if self.log_lipschitz is not None:
            self.log_lipschitz.clamp_(self._lowest, self._highest)

    @torch.no_grad()
    def losses(self, rows: Rows) -> Tensor:
        x, y, weight = tensors(rows)
        return mean(self.loss(self.predict(x), y).double(), weight)

    @torch.no_grad()
    def predict(self, x: Any) -> Tensor:
        """Outputs of every member, (n_members, n_rows, n_outputs)."""
        pieces = torch.split(torch.as_tensor(x), max(1, _ROWS_AT_ONCE // self.n_members))
        return torch.cat([self.score(piece) for piece in pieces], dim=1)

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
            for layer, weight, bias in zip(
                bounded_layers(network), self.weight, self.bias, strict=True
            ):
                layer.weight.copy_(weight[s])
                if layer.bias is not None:
                    layer.bias.copy_(bias[s])
            if network.log_lipschitz is not None and self.log_lipschitz is not None:
                network.log_lipschitz.copy_(self.log_lipschitz[s, 0])

    def _named(self) -> list[tuple[str, Tensor]]:
        named = [(f"{k}.weight", tensor) for k, tensor in enumerate(self.weight)]
        named += [(f"{k}.bias", tensor) for k, tensor in enumerate(self.bias)]
        return named + [("log_lipschitz", x) for x in [self.log_lipschitz] if x is not None]

    def _normalized(self, k: int) -> Tensor:
        """Eq. 8 for all members at once."""
        weight, mask = self.weight[k], self.masks[k]
        weight = weight if mask is None else weight * mask
        if self.chain == "one":
            sizes = weight.abs().sum(dim=1, keepdim=True)
        else:
            sizes = torch.linalg.vector_norm(weight, ord=self.duals[k], dim=2, keepdim=True)
        return weight / (sizes / self.bounds[k]).clamp(min=1.0)


def tensors(
    rows: Rows, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Features in a precision, targets, and weights as torch sees them; copies if need be."""
    weight = None if rows.weight is None else torch.as_tensor(rows.weight)
    return torch.as_tensor(rows.x).to(dtype), torch.as_tensor(rows.y), weight


class FusedLearner:
    """S dense networks in the C++ trainer."""

    def __init__(
        self,
        networks: Sequence[LipschitzNetwork],
        loss: Loss,
        recipe: Recipe,
        orders: Orders = "shared",
        threads: int = 1,
        precision: Precision = "float32",
        fields: Sequence[int | Field] = (),
    ) -> None:
        self.n_members, self.loss, self.threads = len(networks), loss, threads
        self.orders = orders
        self._looked_up: list[tuple[Any, Looked]] = []
        first, layers = networks[0], [bounded_layers(network) for network in networks]
        kind, parameter = _FUSED[type(loss)]
        self.trainer = FusedTrainer(
            [first.n_features, *(len(layer.weight) for layer in layers[0])],
            sort_size(first),
            n_members=len(networks),
            chain=first.chain,
            bounds=[[layer.constraint.bound for layer in member] for member in layers],
            feature_scale=torch.stack([n.feature_scale.detach() for n in networks]).numpy(),
            residual=np.stack([residual_of(network) for network in networks]),
            lipschitz_max=None
            if first.log_lipschitz is None
            else np.stack([network.lipschitz_max for network in networks]),
            fields=fields,
            masks=[None if mask is None else mask.numpy() for mask in masks_of(first)],
            lipschitz_rate=recipe.lipschitz_rate,
            loss=kind,
            loss_parameter=np.atleast_2d(getattr(loss, parameter) if parameter else 1.0),
            weight_decay=recipe.weight_decay,
            precision=precision,
        )
        for k, (weight, bias) in enumerate(self._layers()):
            for s, member in enumerate(layers):
                weight[s] = member[k].masked().detach().numpy()
                bias[s] = _bias(member[k]).detach().numpy()

    def learn(self, rows: Rows, epoch: int, recipe: Recipe) -> Tensor:
        n_steps = -(-len(rows) // recipe.batch_size)
        losses = self.trainer.train_epoch(
            *self._arrays(rows),
            order=orders_of_rows(len(rows), self.n_members, self.orders, epoch, recipe.seed),
            batch_size=recipe.batch_size,
            learning_rates=recipe.rates(epoch, n_steps),
            threads=self.threads,
        )
        return torch.as_tensor(losses)

    def losses(self, rows: Rows) -> Tensor:
        return torch.as_tensor(self.trainer.loss(*self._arrays(rows), threads=self.threads))

    def predict(self, x: Any) -> Tensor:
        """Outputs of every member, (n_members, n_rows, n_outputs)."""
        return torch.as_tensor(self.trainer.predict(x, threads=self.threads))

    def state(self) -> Tensors:
        return {name: torch.as_tensor(array) for name, array in self.trainer.state().items()}

    def load_state(self, state: Tensors) -> None:
        self.trainer.load_state({name: tensor.numpy() for name, tensor in state.items()})

    def weights(self) -> Tensors:
        return {"parameters": self.state()["parameters"]}

    def load_weights(self, weights: Tensors) -> None:
        self.load_state(self.state() | weights)

    def merge(self, best: Tensors, better: Tensor) -> Tensors:
        now = self.weights()["parameters"]
        return {"parameters": torch.where(better[:, None], now, best["parameters"])}

    @torch.no_grad()
    def unstack(self, networks: Sequence[LipschitzNetwork]) -> None:
        """Write the weights of every member into its network."""
        for s, network in enumerate(networks):
            for layer, (weight, bias) in zip(bounded_layers(network), self._layers(), strict=True):
                layer.weight.copy_(torch.as_tensor(weight[s]))
                if layer.bias is not None:
                    layer.bias.copy_(torch.as_tensor(bias[s]))
            if network.log_lipschitz is not None and self.trainer.log_lipschitz is not None:
                network.log_lipschitz.copy_(torch.as_tensor(self.trainer.log_lipschitz[s]))

    def _layers(self) -> list[tuple[Any, Any]]:
        return list(zip(self.trainer.weights, self.trainer.biases, strict=True))

    def _arrays(self, rows: Rows) -> tuple[Any, Any, Any]:
        y = rows.y
        if isinstance(self.loss, Hinge):
            y = (y + 1) / 2  # from ±1 to 0 and 1
        if isinstance(self.loss, Quantile):  # several levels may be those of one target
            y = np.broadcast_to(y, (len(y), self.trainer.layers[-1]))
        return self._looked(rows.x), y, rows.weight

    def _looked(self, x: Any) -> Any:
        """What moves in rows of copies; every epoch asks for the same ones."""
        if not self.trainer.fields or isinstance(x, Looked):
            return x
        known = [looked for rows, looked in self._looked_up if rows is x]
        if not known:
            known = [compress(x, self.trainer.fields)]
            self._looked_up = [*self._looked_up[-1:], (x, known[0])]
        return known[0]


# what the fused trainer calls a loss, and which of its fields is the parameter
_FUSED: dict[type, tuple[FusedLoss, str | None]] = {
    CrossEntropy: ("cross_entropy", "temperature"),
    Hinge: ("hinge", "margin"),
    SquaredError: ("squared_error", None),
    AbsoluteError: ("absolute_error", None),
    Quantile: ("quantile", "level"),
}


def residual_of(network: LipschitzNetwork) -> Floats:
    """Coefficients of the linear term; where λ is learned, per unit of it."""
    is_learned = network.log_lipschitz is not None
    return network.residual_per_lipschitz() if is_learned else network.residual()


def bounded_layers(network: LipschitzNetwork) -> list[BoundedLayer]:
    return [layer for layer in network.layers if isinstance(layer, BoundedLayer)]


def masks_of(network: LipschitzNetwork) -> list[Tensor | None]:
    """Of every layer, on the CPU."""
    masks = [layer.mask for layer in bounded_layers(network)]
    return [None if mask is None else mask.cpu() for mask in masks]


def _bias(layer: BoundedLayer) -> Tensor:
    return layer.weight.new_zeros(len(layer.weight)) if layer.bias is None else layer.bias


def _stack(tensors: list[Tensor]) -> Tensor:
    return torch.stack([t.detach().float() for t in tensors]).requires_grad_()


def _column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)[:, None, None]


def sort_size(network: LipschitzNetwork) -> int | None:
    sorts = [layer for layer in network.layers if isinstance(layer, GroupSort)]
    return sorts[0].group_size if sorts else None
