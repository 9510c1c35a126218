"""The optimizer of learners in torch: AdamW at a rate per step, its state as named tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from isotone.training.recipe import Recipe, Tensors


def make_optimizer(
    weights: Sequence[Tensor], log_lipschitz: Tensor | None, recipe: Recipe
) -> torch.optim.Optimizer:
    """AdamW for weights, and faster and without decay for logarithms of λ."""
    groups: list[dict[str, Any]] = [
        {"params": weights, "weight_decay": recipe.weight_decay, "speed": 1.0}
    ]
    if log_lipschitz is not None:
        groups.append(
            {"params": [log_lipschitz], "weight_decay": 0.0, "speed": recipe.lipschitz_rate}
        )
    return torch.optim.AdamW(groups, lr=recipe.learning_rate)


def take_step(optimizer: torch.optim.Optimizer, loss: Tensor, rate: float) -> None:
    """One step of an optimizer at a learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["speed"]
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def optimizer_state(optimizer: torch.optim.Optimizer) -> Tensors:
    """What an optimizer remembers, as named tensors; copies."""
    return {
        f"optimizer.{i}.{key}": value.clone()
        for i, entries in optimizer.state_dict()["state"].items()
        for key, value in entries.items()
    }


def load_optimizer_state(optimizer: torch.optim.Optimizer, state: Tensors) -> Tensors:
    """Put back what `optimizer_state` gave; returns the other tensors."""
    entries: dict[int, Tensors] = {}
    for name in [name for name in state if name.startswith("optimizer.")]:
        _, index, key = name.split(".")
        entries.setdefault(int(index), {})[key] = state[name].clone()
    optimizer.load_state_dict(optimizer.state_dict() | {"state": entries})
    return {name: value for name, value in state.items() if not name.startswith("optimizer.")}
