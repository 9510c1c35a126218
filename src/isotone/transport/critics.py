r"""Critics: Lipschitz networks that tell two clouds apart, several at once, by gradient ascent.

A critic g of constant 1 raises

.. math:: E_P[g] - E_Q[g] = \sum_i p_i\, g(x_i) - \sum_j q_j\, g(y_j),

whose largest value is the Wasserstein distance. By the envelope theorem its gradient with respect
to points and weights is, at the best critic, the gradient of the distance: for a point it is
:math:`p_i \nabla g(x_i)`, for a weight :math:`g(x_i)`, up to a constant. `Critics.value` is a
torch function of both, so that clouds can be moved, and shapes fitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from isotone.inputs.scaling import Scaling
from isotone.losses import KantorovichRubinstein
from isotone.nn.network import LipschitzNetwork, MetricOrder
from isotone.training.learners import StackLearner
from isotone.training.recipe import Recipe, Tensors
from isotone.transport.clouds import FARTHEST, Cloud
from isotone.typing import Floats

WIDTHS = (64, 64)
GROUP_SIZE = 16
_BETAS = (0.9, 0.99)


class Critics:
    """Networks of one architecture and constant 1, trained side by side on scaled points.

    Parameters
    ----------
    n_features : d
    n_members : how many critics, each with its own start
    metric : 1, 2 or infinity, of the ground space
    widths : of the hidden layers
    group_size : of the sorts; None sorts all units
    seed : decides the starts

    Examples
    --------
    >>> critics = Critics(2, metric=2, widths=(16, 16), seed=0)
    >>> P, Q = torch.zeros(3, 2), torch.zeros(5, 2) + torch.tensor([1.0, 0.0])
    >>> for _ in range(100):
    ...     values = critics.ascend(P, uniform(3), Q, uniform(5), rate=0.01)
    >>> bool(0.9 < values[0] <= 1.0001)
    True
    """

    def __init__(
        self,
        n_features: int,
        n_members: int = 1,
        *,
        metric: MetricOrder = 2,
        widths: Sequence[int] = WIDTHS,
        group_size: int | None = GROUP_SIZE,
        seed: int = 0,
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._networks = [
                LipschitzNetwork([n_features, *widths, 1], metric=metric, group_size=group_size)
                for _ in range(n_members)
            ]
        self._stack = StackLearner(self._networks, KantorovichRubinstein(), Recipe())
        self._parameters = self._stack.weight + self._stack.bias
        self._optimizer = torch.optim.Adam(self._parameters, betas=_BETAS)

    def __call__(self, x: Tensor) -> Tensor:
        """Scores (n_members, n) of points (n, d), or of points per member (n_members, n, d)."""
        return self._stack.score(x)[..., 0]

    def value(self, P: Tensor, p: Tensor, Q: Tensor, q: Tensor) -> Tensor:
        """E_P[g] − E_Q[g] of every member, differentiable in the points and the weights.

        Parameters
        ----------
        P, Q : (n, d), or (n_members, n, d)
        p, q : (n,) or (n_members, n), each summing to one
        """
        members = self._stack.n_members
        points = [cloud.expand(members, *cloud.shape[-2:]) for cloud in (P, Q)]
        score = self(torch.cat(points, dim=1))
        n = points[0].shape[1]
        return (score[:, :n] * p).sum(dim=-1) - (score[:, n:] * q).sum(dim=-1)

    def ascend(self, P: Tensor, p: Tensor, Q: Tensor, q: Tensor, *, rate: float) -> Tensor:
        """One step of all critics; their values before it, (n_members,)."""
        values = self.value(P.detach(), p.detach(), Q, q)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        gradients = torch.autograd.grad(-values.sum(), self._parameters)
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        self._optimizer.step()
        return values.detach()

    def networks(self) -> list[LipschitzNetwork]:
        """The critics as they are now."""
        self._stack.unstack(self._networks)
        return self._networks

    def weights(self) -> Tensors:
        """Copies of all weights."""
        return self._stack.weights()

    def load_weights(self, weights: Tensors) -> None:
        self._stack.load_weights(weights)


def uniform(n: int) -> Tensor:
    """Equal weights that sum to one."""
    return torch.full((n,), 1.0 / n)


def cosine(rate: float, step: int, n_steps: int, final: float = 0.01) -> float:
    """A learning rate that falls to `final` times its start along a cosine."""
    return rate * (final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * step / n_steps)))


def draws(cloud: Cloud, scaling: Scaling, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of one cloud: all of it, or `size` points, drawn as often as their weights say.

    One point is drawn from every `size`-th part of the mass, which scatters less than free draws
    and is as fair: a point comes up in proportion to its weight.
    """
    shares = cloud.shares()
    if len(cloud) <= size:
        whole = _scaled(scaling, cloud.points), _float32(shares)
        while True:
            yield whole
    edges, rng = np.cumsum(shares), np.random.default_rng(seed)
    equal = torch.full((size,), 1.0 / size)
    while True:
        mass = (np.arange(size) + rng.random(size)) / size * edges[-1]
        rows = np.minimum(np.searchsorted(edges, mass, side="right"), len(cloud) - 1)
        yield _scaled(scaling, cloud.points[rows]), equal


def _scaled(scaling: Scaling, points: Floats) -> Tensor:
    """Points for a critic, clamped like those of the frozen one."""
    return _float32(np.clip(scaling.transform(points), -FARTHEST, FARTHEST))


def _float32(values: ArrayLike) -> Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float32))


def seed_of(random_state: int | None) -> int:
    """A whole number to start from; None draws one."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            f"`random_state={random_state!r}` must be a whole number, or None to draw one"
        )
    if not 0 <= random_state < 2**63:
        raise ValueError(f"`random_state={random_state}` must be at least 0 and below 2**63")
    return int(random_state)
