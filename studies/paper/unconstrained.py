"""Unconstrained networks: the same layers without bounds and without residual, in plain torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from isotone import GroupSort
from isotone.typing import Floats


class Stack:
    """Many networks of one architecture, one per seed, trained at once on all rows.

    Parameters
    ----------
    widths : such as [1, 32, 32, 1]
    seeds : how many; the weights are those that `nn.Linear` begins with
    activation : between the layers; a full sort by default
    """

    def __init__(
        self, widths: Sequence[int], seeds: int, activation: nn.Module | None = None
    ) -> None:
        members = [linear_layers(widths, seed) for seed in range(seeds)]
        layers = list(zip(*members, strict=True))
        self.weights = [torch.stack([m.weight.detach().T for m in layer]) for layer in layers]
        self.biases = [torch.stack([m.bias.detach()[None] for m in layer]) for layer in layers]
        self.activation = activation or GroupSort(group_size=None)

    def train(
        self, x: Floats, y: Floats, steps: int, *, rate: float = 0.01, absolute: bool = False
    ) -> None:
        """Squared or absolute error; Adam, the rate falls to a tenth as in `isotone.Recipe`."""
        rows, target = torch.as_tensor(x).float(), torch.as_tensor(y).float()[:, None]
        parameters = [p.requires_grad_() for p in (*self.weights, *self.biases)]
        optimizer = torch.optim.Adam(parameters, lr=rate, fused=True)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, rate / 10)
        for _ in range(steps):
            optimizer.zero_grad()
            error = self.score(rows) - target
            loss = error.abs() if absolute else error.square()
            loss.mean(dim=1).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()

    def score(self, x: Tensor) -> Tensor:
        """(n_members, n_rows, 1)"""
        h = x.expand(len(self.weights[0]), *x.shape)
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if k:
                h = self.activation(h.flatten(0, 1)).unflatten(0, h.shape[:2])
            h = torch.baddbmm(bias, h, weight)
        return h

    @torch.no_grad()
    def predict(self, x: Floats) -> Floats:
        """(n_members, n_rows)"""
        scores: Floats = self.score(torch.as_tensor(x).float())[..., 0].double().numpy()
        return scores


def linear_layers(widths: Sequence[int], seed: int) -> list[nn.Linear]:
    torch.manual_seed(seed)
    return [nn.Linear(n_in, n_out) for n_in, n_out in pairwise(widths)]
