r"""Polish: the final refinement of one shape, down the exact distance.

A critic is a network: smoother than the best one, and lagging a little behind its shape.
Between some hundred points a linear program finds the best plan π and potentials f instead, and
with them the gradient of the distance itself,

.. math:: dW_1 = \sum_{ij} \pi_{ij}\, d\|x_i - y_j\|_p + \sum_i f_i\, dp_i,

for points x with weights p and a cloud y. Every step begins with the potentials of the one before,
which tell it which pairs matter, and so needs few programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from isotone.transport.clouds import Cloud
from isotone.transport.critics import cosine
from isotone.transport.potentials import Program, couple
from isotone.typing import Floats, Metric

Function = Callable[[Tensor], tuple[Tensor, Tensor]]
Batches = Iterator[tuple[Tensor, Tensor]]

_ORDERS = {"1": 1.0, "2": 2.0, "inf": torch.inf}


class Polish:
    """One shape during refinement.

    Parameters
    ----------
    shape : parameters (1, k) to points (1, m, d) and weights (1, m)
    theta : (k,), parameters to begin with; steps of all of them are of one size
    batches : points (n, d) and weights (n,), a new batch for every step
    f : (m,), potentials of the points, such as the scores of a critic
    metric : of the ground space
    """

    def __init__(
        self, shape: Function, theta: Tensor, batches: Batches, f: Floats, metric: Metric
    ) -> None:
        self.shape, self.batches, self.f, self.metric = shape, batches, f, metric
        self.parameters = theta.detach().clone()[None].requires_grad_()
        self.optimizer = torch.optim.Adam([self.parameters], betas=(0.5, 0.9))

    def run(self, steps: int, rate: float) -> Floats:
        """The path (steps + 1, k); it ends at the mean of its last quarter."""
        way = [self.theta()]
        for step in range(steps):
            self.descend(cosine(rate, step, steps))
            way.append(self.theta())
        end = np.mean(way[-max(steps // 4, 1) :], axis=0)
        with torch.no_grad():
            self.parameters.copy_(torch.as_tensor(end)[None])
        return np.array([*way[:-1], end])

    def theta(self) -> Floats:
        result: Floats = self.parameters[0].detach().numpy().copy()
        return result

    def descend(self, rate: float) -> None:
        """One step of the parameters; none where the program fails."""
        points, weights = self.shape(self.parameters)
        y, q = next(self.batches)
        found = self._couple(points[0], weights[0], y, q)
        if found is None:
            return
        plan, order = found.plan, _ORDERS[self.metric]
        gaps = points[0][plan.source] - y[plan.target]
        length = torch.linalg.vector_norm(gaps, order, dim=1)
        value = torch.as_tensor(plan.mass) @ length.double()
        value = value + torch.as_tensor(found.f) @ weights[0].double()
        (self.parameters.grad,) = torch.autograd.grad(value, self.parameters)
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.step()

    @torch.no_grad()
    def distance(self) -> float:
        """Cost of the best plan between the shape and a batch."""
        points, weights = self.shape(self.parameters)
        found = self._couple(points[0], weights[0], *next(self.batches))
        return found.cost if found else math.nan

    def _couple(self, x: Tensor, p: Tensor, y: Tensor, q: Tensor) -> Program | None:
        P, Q = (
            Cloud(points.detach().double().numpy(), weights.detach().double().numpy())
            for points, weights in ((x, p), (y, q))
        )
        found = couple(P, Q, self.metric, self.f)
        self.f = found.f if found else self.f
        return found
