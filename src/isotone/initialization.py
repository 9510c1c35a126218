"""How the weights of a network begin.

The paper says that common schemes are not optimal for weight-normed networks. PyTorch's default
leaves columns far below the bound, so every layer loses slope and a deep network begins flat.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from isotone.layers import BoundedLayer

Init = Literal["torch", "bound", "permutation"]

_NOISE = 0.2  # share of the bound that random entries have beside the permutation


@torch.no_grad()
def initialize(layers: nn.Module, init: Init) -> None:
    """Set the weights of all bounded layers.

    - "torch": PyTorch's default, uniform within 1/√n.
    - "bound": the same, then every column (or row) is scaled onto its bound exactly.
    - "permutation": every column has one large entry, so that the layer nearly permutes its units
      and gradients keep their norm through the depth; the rest of the bound is random.
    """
    if init not in ("torch", "bound", "permutation"):
        raise ValueError(f"`init={init!r}` is unknown; choose 'torch', 'bound' or 'permutation'")
    for layer in layers.modules():
        if isinstance(layer, BoundedLayer):
            layer.reset_parameters()
            if init == "permutation":
                layer.weight.copy_(_near_permutation(layer))
            if init != "torch":
                layer.weight.copy_(_onto_bound(layer, layer.weight))


def _onto_bound(layer: BoundedLayer, weight: Tensor) -> Tensor:
    """Every constrained vector at its bound; the rescaled norm multiplies by the bound later."""
    bound = 1.0 if layer.constraint.norm == "rescaled-matrix" else layer.constraint.bound
    return weight * (bound / layer.sizes()(weight).clamp(min=1e-30))


def _near_permutation(layer: BoundedLayer) -> Tensor:
    """One entry of ±1 per column (row in the ∞ chain), and noise of a given share."""
    sizes = layer.sizes()
    weight = layer.weight
    noise = weight / sizes(weight).clamp(min=1e-30)
    matrix = torch.zeros_like(weight).flatten(1)
    n_out, n_in = matrix.shape
    longer = torch.arange(max(n_out, n_in))
    matrix[torch.randperm(n_out)[longer % n_out], torch.randperm(n_in)[longer % n_in]] = 1.0
    main = matrix.reshape(weight.shape) / sizes(matrix.reshape(weight.shape)).clamp(min=1e-30)
    return (1.0 - _NOISE) * main + _NOISE * noise
