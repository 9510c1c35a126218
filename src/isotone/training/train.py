"""Training: Algorithm 1 of the paper with a modern loop around it.

`train(network, x, y, loss)` is the shortcut; `isotone.training.recipe` is the loop underneath, and
`isotone.training.ensemble` trains many networks at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from isotone.losses import Loss, batch_mean, check_targets, mean
from isotone.nn.network import LipschitzNetwork, MonotonicNetwork
from isotone.training.learners import (
    Backend,
    FusedLearner,
    StackLearner,
    is_fused,
    tensors,
    why_not_fused,
    why_not_stackable,
)
from isotone.training.optimizer import (
    load_optimizer_state,
    make_optimizer,
    optimizer_state,
    take_step,
)
from isotone.training.orders import order_of_rows
from isotone.training.recipe import History, Recipe, Tensors, fit
from isotone.training.rows import Rows
from isotone.typing import Precision

_WORTH_THREADS = 2**26  # multiplications in a batch


class NetworkLearner:
    """One network, any layers, any loss."""

    n_members = 1

    def __init__(self, network: LipschitzNetwork, loss: Loss, recipe: Recipe) -> None:
        self.network, self.loss = network, loss
        weights = [p for p in network.parameters() if p is not network.log_lipschitz]
        self.optimizer = make_optimizer(weights, network.log_lipschitz, recipe)

    def learn(self, rows: Rows, epoch: int, recipe: Recipe) -> Tensor:
        self.network.train()
        shuffled = rows[order_of_rows(len(rows), recipe.seed, epoch)]
        starts = range(0, len(rows), recipe.batch_size)
        total = torch.zeros((), dtype=torch.float64)
        with few_threads(self.network, recipe.batch_size):
            for start, rate in zip(starts, recipe.rates(epoch, len(starts)), strict=True):
                x, y, weight = self._tensors(shuffled[start : start + recipe.batch_size])
                loss = batch_mean(self.loss(self.network(x), y), weight)
                take_step(self.optimizer, loss, rate)
                self.network.limit_lipschitz()
                total += loss.detach().double() * len(x)
        return total[None] / float(rows.mass())

    @torch.no_grad()
    def losses(self, rows: Rows) -> Tensor:
        self.network.eval()
        x, y, weight = self._tensors(rows)
        score = torch.cat([self.network(part) for part in torch.split(x, 65536)])
        return mean(self.loss(score, y).double(), weight)[None]

    def _tensors(self, rows: Rows) -> tuple[Tensor, Tensor, Tensor | None]:
        return tensors(rows, self.network.dtype)

    def state(self) -> Tensors:
        return optimizer_state(self.optimizer) | self.weights()

    def load_state(self, state: Tensors) -> None:
        self.load_weights(load_optimizer_state(self.optimizer, state))

    def weights(self) -> Tensors:
        return {name: value.clone() for name, value in self.network.state_dict().items()}

    def load_weights(self, weights: Tensors) -> None:
        self.network.load_state_dict(weights)

    def merge(self, best: Tensors, better: Tensor) -> Tensors:
        return self.weights() if bool(better[0]) else best

    def unstack(self, networks: Sequence[LipschitzNetwork]) -> None:
        """Nothing to do: the network itself has learned."""


@contextmanager
def few_threads(network: LipschitzNetwork, batch_size: int) -> Iterator[None]:
    """One thread of torch where a batch is little work: several would wait for each other."""
    before = torch.get_num_threads()
    n_parameters = sum(p.numel() for p in network.parameters())
    if batch_size * n_parameters < _WORTH_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    network: LipschitzNetwork,
    x: ArrayLike,
    y: ArrayLike,
    loss: Loss,
    recipe: Recipe | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    backend: Backend = "auto",
    checkpoint: str | Path | None = None,
    progress: bool = False,
) -> History:
    """Train one network on scaled rows, in the precision of its weights.

    Parameters
    ----------
    x : (n_rows, n_features), scaled
    y : labels 0, 1, ... or values
    validation : x and y of rows that are not trained on; the best weights on them are kept
    backend : "fused" is C++, many times as fast, for dense networks, most losses and the 1-metric;
        "torch" takes any; "auto" is "fused" where possible

    Examples
    --------
    >>> import numpy as np
    >>> from isotone import MonotonicNetwork
    >>> from isotone.losses import SquaredError
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> network = MonotonicNetwork([1, 8, 1], monotonic_cst=[1])
    >>> history = train(network, x, x[:, 0] ** 3, SquaredError(), Recipe(epochs=20, batch_size=50))
    >>> history.training[-1] < history.training[0]
    True
    """
    recipe = recipe or Recipe()
    rows = rows_for(network, x, y, loss, sample_weight)
    held_out = None if validation is None else rows_for(network, *validation, loss)
    learner = _make_learner(network, loss, recipe, backend)
    identity = f"{type(learner).__name__} {network} {network.describe_lipschitz()} {loss}"
    return learn([network], learner, rows, recipe, held_out, checkpoint, identity, progress)


def learn(
    networks: Sequence[LipschitzNetwork],
    learner: NetworkLearner | StackLearner | FusedLearner,
    rows: Rows,
    recipe: Recipe,
    validation: Rows | None,
    checkpoint: str | Path | None,
    identity: str,
    progress: bool,
) -> History:
    """Let a learner of these networks learn; what it learned before an interruption is kept."""
    try:
        return fit(
            learner,
            rows.spread(),
            recipe,
            validation=validation,
            checkpoint=checkpoint,
            identity=identity,
            progress=progress,
        )
    finally:
        learner.unstack(networks)


def rows_for(
    network: LipschitzNetwork,
    x: ArrayLike,
    y: ArrayLike,
    loss: Loss,
    sample_weight: ArrayLike | None = None,
) -> Rows:
    """Rows that fit a network and a loss, in the metric and the precision of the network."""
    dtype = np.float64 if network.dtype == torch.float64 else np.float32
    rows = Rows.of(x, y, loss, sample_weight=sample_weight, metric=network.metric, dtype=dtype)
    if rows.x.shape[1] != network.n_features:
        raise ValueError(
            f"`x` has {rows.x.shape[1]} columns; the network takes {network.n_features} features"
        )
    check_targets(loss, rows.y, network.n_outputs)
    return rows


def _make_learner(
    network: LipschitzNetwork, loss: Loss, recipe: Recipe, backend: Backend
) -> NetworkLearner | FusedLearner:
    if not is_fused(backend, why_torch(network, loss)):
        return NetworkLearner(network, loss, recipe)
    precision: Precision = "float64" if network.dtype == torch.float64 else "float32"
    return FusedLearner([network], loss, recipe, precision=precision)


def why_torch(network: LipschitzNetwork, loss: Loss) -> str | None:
    """What the fused trainer lacks for a network and a loss, so that torch trains it, or None."""
    if type(network) not in (LipschitzNetwork, MonotonicNetwork):
        return f"{type(network).__name__} may compute something else"
    if reason := why_not_stackable(network):
        return f"the network {reason}"
    if any(m._forward_hooks or m._forward_pre_hooks for m in network.modules()):
        return "hooks of the network would not be called"
    parameters = list(network.parameters())
    if any(not p.requires_grad or p.device.type != "cpu" for p in parameters):
        return "some weights are constant or not on the CPU"
    if {p.dtype for p in parameters} not in ({torch.float32}, {torch.float64}):
        return "the weights are neither all float32 nor all float64"
    return why_not_fused(network, loss)
