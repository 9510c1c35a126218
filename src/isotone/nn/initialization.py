"""How the weights of a network are initialized.

The paper says that common schemes are not optimal for weight-normed networks, and
`studies/paper/ablation_initialization.py` agrees. Three things go wrong with PyTorch's default:

- its columns are below the bound, so every layer loses slope and a deep network begins flat;
- its biases ignore that units of a normed network are small: where biases differ by more than the
  units, no two units ever change places, and the network begins, and often stays, linear;
- a vector of a single entry, such as each column of a last layer with one output, has no gradient
  at its bound, where only its sign counts: it must begin inside.

All choices but "torch" cure the three; they differ in how columns point, and "independent" in the
size of biases.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from isotone.checks import check_choice
from isotone.nn.layers import BoundedLayer

Init = Literal["orthogonal", "independent", "permutation", "bound", "torch"]

_NOISE = 0.5  # share of the bound that random entries have beside the permutation
_TINY = 1e-30


@torch.no_grad()
def initialize(layers: nn.Module, init: Init) -> None:
    """Set the weights and biases of all bounded layers.

    - "orthogonal": orthogonal columns (or rows), scaled onto their bound. The default.
    - "independent": the same with smaller biases, for many features; see `_set_bias`.
    - "permutation": every column has one large entry, so that the layer nearly permutes its units
      and gradients keep their norm through the depth; the rest of the bound is random.
    - "bound": random columns, scaled onto their bound.
    - "torch": PyTorch's default for weights and biases.
    """
    check_choice("init", init, get_args(Init))
    unit = 1.0  # scaled features are of order one
    for layer in layers.modules():
        if isinstance(layer, BoundedLayer):
            layer.reset_parameters()
            if init != "torch":
                layer.weight.copy_(_onto_bound(layer, _directions(layer, init)))
                unit = _set_bias(layer, unit, init == "independent")


def _directions(layer: BoundedLayer, init: Init) -> Tensor:
    """Where vectors point; units that read the same inputs are a layer of their own."""
    if layer.mask is None:
        return _block_directions(layer, layer.weight, init)
    weight = torch.zeros_like(layer.weight)
    patterns, owners = torch.unique(layer.mask, dim=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        block = torch.nonzero(owners == k), torch.nonzero(pattern).flatten()
        weight[block] = _block_directions(layer, layer.weight[block], init)
    return weight


def _block_directions(layer: BoundedLayer, weight: Tensor, init: Init) -> Tensor:
    if init in ("orthogonal", "independent"):
        return nn.init.orthogonal_(torch.empty_like(weight))
    if init == "permutation":
        permutation = _normalize(layer, _signed_permutation(weight))
        return (1.0 - _NOISE) * permutation + _NOISE * _normalize(layer, weight)
    return weight


def _onto_bound(layer: BoundedLayer, weight: Tensor) -> Tensor:
    """Every constrained vector at its bound, or anywhere inside if it has a single entry."""
    # the rescaled norm multiplies by the bound later
    bound = 1.0 if layer.constraint.norm == "rescaled-matrix" else layer.constraint.bound
    vectors = layer.sizes()(weight)
    if vectors.numel() == weight.numel():
        return torch.empty_like(weight).uniform_(-bound, bound)
    scaled = bound * _normalize(layer, weight)
    if layer.mask is None:
        return scaled
    vector = 0 if layer.constraint.chain == "one" else 1
    alone = layer.mask & (layer.mask.sum(dim=vector, keepdim=True) == 1)
    return torch.where(alone, torch.empty_like(weight).uniform_(-bound, bound), scaled)


def _normalize(layer: BoundedLayer, weight: Tensor) -> Tensor:
    return weight / layer.sizes()(weight).clamp(min=_TINY)


def _signed_permutation(weight: Tensor) -> Tensor:
    """Entries ±1 such that every row and every column has one, or more on the longer side."""
    n_out, n_in = weight.flatten(1).shape
    longer = torch.arange(max(n_out, n_in))
    matrix = weight.new_zeros(n_out, n_in)
    signs = torch.randint(2, (len(longer),)).to(weight) * 2 - 1
    matrix[torch.randperm(n_out)[longer % n_out], torch.randperm(n_in)[longer % n_in]] = signs
    return matrix.reshape(weight.shape)


def _set_bias(layer: BoundedLayer, unit: float, independent: bool) -> float:
    r"""Biases of the size of what they are added to; returns the size of the units after it.

    A unit :math:`\sum_i w_i x_i` of n inputs of size u is at most :math:`u \|w\|_1`; if they are
    independent its standard deviation is :math:`u \|w\|_2`, about √n times less. With the first
    as the size of biases, a network of many features begins nearly linear.
    """
    size = layer.normalized().flatten(1).abs()
    reach = unit * (torch.linalg.vector_norm(size, dim=1) if independent else size.sum(dim=1))
    if layer.bias is not None:
        most = math.sqrt(3.0) * reach if independent else reach  # √3: that is the deviation
        layer.bias.copy_(torch.empty_like(layer.bias).uniform_(-1, 1) * most)
    return float(reach.mean())
