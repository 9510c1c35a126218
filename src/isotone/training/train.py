"""Training: Algorithm 1 of the paper with a modern loop around it.

`train(network, x, y, loss)` is the short way; `isotone.training.recipe` is what goes round
underneath, and `isotone.training.ensemble` trains many networks at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from isotone.losses import Loss, batch_mean, mean
from isotone.nn.network import LipschitzNetwork, MonotonicNetwork
from isotone.training.learners import (
    Backend,
    FusedLearner,
    is_fused,
    load_optimizer_state,
    optimizer_state,
    why_not_fused,
    why_not_stackable,
)
from isotone.training.recipe import History, Recipe, Tensors, fit
from isotone.training.rows import Rows, check_rows, order_of_rows
from isotone.typing import Precision

_WORTH_THREADS = 2**26  # multiplications in a batch


def batches(rows: Rows, epoch: int, recipe: Recipe) -> Iterator[tuple[Rows, float]]:
    """The rows of one epoch in their order, batch by batch, with the learning rate of each."""
    shuffled = rows[order_of_rows(len(rows), recipe.seed, epoch)]
    starts = range(0, len(rows), recipe.batch_size)
    for start, rate in zip(starts, recipe.rates(epoch, len(starts)), strict=True):
        yield shuffled[start : start + recipe.batch_size], rate


class NetworkLearner:
    """One network, any layers, any loss."""

    n_members = 1

    def __init__(self, network: LipschitzNetwork, loss: Loss, recipe: Recipe) -> None:
        self.network, self.loss = network, loss
        self.optimizer = torch.optim.AdamW(
            network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )

    def learn(self, rows: Rows, epoch: int, recipe: Recipe) -> Tensor:
        self.network.train()
        total = torch.zeros((), dtype=torch.float64)
        with few_threads(self.network, recipe.batch_size):
            for batch, rate in batches(rows, epoch, recipe):
                loss = batch_mean(self.loss(self.network(batch.x), batch.target), batch.weight)
                self._step(loss, rate)
                total += loss.detach().double() * len(batch)
        return total[None] / rows.mass()

    def _step(self, loss: Tensor, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    @torch.no_grad()
    def losses(self, rows: Rows) -> Tensor:
        self.network.eval()
        parts = [rows[start : start + 65536] for start in range(0, len(rows), 65536)]
        each = torch.cat([self.loss(self.network(part.x), part.target) for part in parts])
        return mean(each.double(), rows.weight)[None]

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
    like: dict[str, Any] = {"metric": network.metric, "dtype": dtype_of(network)}
    rows = Rows.of(x, y, loss, sample_weight=sample_weight, **like)
    held_out = None if validation is None else Rows.of(*validation, loss, **like)
    check_rows(network, loss, rows, held_out)
    learner = _make_learner(network, loss, recipe, backend)
    try:
        return fit(
            learner,
            rows.spread(),
            recipe,
            validation=held_out,
            checkpoint=checkpoint,
            identity=f"{type(learner).__name__} {network} {loss}",
            progress=progress,
        )
    finally:  # what was learned before an interruption is kept
        if isinstance(learner, FusedLearner):
            learner.unstack([network])


def _make_learner(
    network: LipschitzNetwork, loss: Loss, recipe: Recipe, backend: Backend
) -> NetworkLearner | FusedLearner:
    if not is_fused(backend, _why_not_fused(network, loss)):
        return NetworkLearner(network, loss, recipe)
    precision: Precision = "float64" if dtype_of(network) == torch.float64 else "float32"
    return FusedLearner([network], loss, recipe, precision=precision)


def _why_not_fused(network: LipschitzNetwork, loss: Loss) -> str | None:
    """What the fused trainer lacks for this network, or None."""
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


def dtype_of(network: LipschitzNetwork) -> torch.dtype:
    """The precision of the weights."""
    return next(network.parameters()).dtype
