"""Unrolling: the layers of a network as frozen steps, normalized in float64, rounded inward.

Convolutions become dense matrices, means move into biases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isotone import limits
from isotone.freezing.margin import TRUNCATE
from isotone.frozen.steps import Dense, Sort, Step, residual_block
from isotone.nn.layers import (
    BoundedLayer,
    Center,
    Constraint,
    GroupSort,
    LipschitzConv,
    Residual,
    pointwise,
)
from isotone.nn.network import LipschitzNetwork
from isotone.nn.norms import NORMS
from isotone.rounding import multiply, root, totals, toward_zero
from isotone.typing import Floats


@dataclass
class _Unrolled:
    """Steps made so far, and how their units stand to those of the torch modules.

    `shape` is that of the torch units; `order[p]` is the flat torch position of unit p. After a
    convolution channels come last, so that the groups of a sort are neighbors.
    """

    steps: list[Step]
    shape: tuple[int, ...]
    order: np.ndarray[Any, np.dtype[np.intp]]

    def dense(self, weight: Floats, bias: Floats, shape: tuple[int, ...]) -> None:
        """Append a dense step given for units in torch's order."""
        after = _channels_last(shape)
        self.steps.append(Dense(weight[np.ix_(after, self.order)], bias[after]))
        self.shape, self.order = shape, after

    def reorder(self, order: np.ndarray[Any, np.dtype[np.intp]]) -> None:
        """Append a permutation if the units are not in the given order."""
        if len(order) != len(self.order):
            raise ValueError(f"{len(self.order)} units cannot be put into {len(order)} places")
        if not np.array_equal(order, self.order):
            eye = np.eye(len(order))
            self.steps.append(Dense(eye[np.ix_(order, self.order)], np.zeros(len(order))))
            self.order = order


def unroll(network: LipschitzNetwork) -> list[Step]:
    """g as frozen steps in float64, the rescaling of the features included."""
    n = network.n_features
    state = _Unrolled([], network.input_shape, np.arange(n))
    scale = network.lipschitz / network.constant
    for module in network.layers:
        _unroll(module, state)
    if not isinstance(state.steps[0], Dense):  # there is one: a network has weights
        state.steps.insert(0, Dense(np.eye(n), np.zeros(n)))
    first = state.steps[0]
    assert isinstance(first, Dense)
    state.steps[0] = Dense(first.weight * scale, first.bias)
    return state.steps


def _unroll(module: nn.Module, state: _Unrolled) -> None:
    activation = pointwise(module)
    if activation is not None:
        state.steps.append(activation)
    elif isinstance(module, LipschitzConv):
        _unroll_convolution(module, state)
    elif isinstance(module, BoundedLayer):
        weight = inward(_normalized(module), module.constraint)
        state.dense(weight, _array(module.bias, len(weight)), (len(weight),))
    elif isinstance(module, GroupSort):
        state.reorder(_channels_last(state.shape))
        state.steps.append(Sort(module.group_size or state.shape[0]))
    elif isinstance(module, Center):
        _unroll_center(module, state)
    elif isinstance(module, Residual):
        _unroll_residual(module, state)
    elif isinstance(module, nn.Flatten):
        state.shape = (math.prod(state.shape),)


def _unroll_convolution(layer: LipschitzConv, state: _Unrolled) -> None:
    """The dense matrix of a convolution: its response to every unit vector."""
    n_in = math.prod(state.shape)
    kernel = torch.as_tensor(_normalized(layer))
    probe = layer.convolve(torch.zeros(1, *state.shape, dtype=torch.float64), kernel, None)
    shape = tuple(probe.shape[1:])
    limits.MATRIX.check(n_in * probe.numel())
    basis = torch.eye(n_in, dtype=torch.float64).reshape(n_in, *state.shape)
    matrix = layer.convolve(basis, kernel, None).reshape(n_in, -1).T.contiguous().numpy()
    bias = np.repeat(_array(layer.bias, len(kernel)), math.prod(shape[1:]))
    state.dense(inward(matrix, layer.constraint), bias, shape)


def _unroll_center(module: Center, state: _Unrolled) -> None:
    """Subtract the mean in the bias of the step before, or in a step of its own."""
    mean = np.repeat(_array(module.mean, len(module.mean)), math.prod(state.shape[1:]))[
        state.order
    ]
    last = state.steps[-1] if state.steps else None
    if isinstance(last, Dense):
        state.steps[-1] = Dense(last.weight, last.bias - mean)
    else:
        state.steps.append(Dense(np.eye(len(mean)), -mean))


def _unroll_residual(module: Residual, state: _Unrolled) -> None:
    branch = _Unrolled([], state.shape, state.order)
    for inner in module.branch:
        _unroll(inner, branch)
    branch.reorder(state.order)
    mix = float(torch.sigmoid(module.mix.detach().double()))
    weight = float(toward_zero(np.array(mix), "float32"))
    keep = float(toward_zero(np.array(1.0 - weight), "float32"))
    state.steps.append(residual_block(keep, weight, branch.steps))


def _normalized(layer: BoundedLayer) -> Floats:
    """The weight in use, normalized in float64."""
    c = layer.constraint
    weight = NORMS[c.norm](layer.masked().detach().double().cpu(), c.bound, layer.sizes())
    return weight.numpy()


def inward(weight: Floats, constraint: Constraint) -> Floats:
    """Shrink every column (row in the ∞ chain) until its exact size is within the bound."""
    size = np.abs(weight)
    if constraint.chain == "one":
        sizes = totals(size.T)[None, :]
    elif constraint.dual == math.inf:
        sizes = size.max(axis=1, keepdims=True)
    elif constraint.dual == 2.0:
        sizes = root(totals(multiply(size, size)))[:, None]
    else:
        sizes = totals(size)[:, None]
    over = sizes > constraint.bound
    factor = np.where(over, constraint.bound / np.where(over, sizes, 1.0) * TRUNCATE, 1.0)
    return weight * factor


def _channels_last(shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Flat positions of units of `shape`, with the first axis, the channels, running fastest."""
    positions = np.arange(math.prod(shape)).reshape(shape)
    return np.moveaxis(positions, 0, -1).ravel()


def _array(values: Tensor | None, length: int) -> Floats:
    if values is None:
        return np.zeros(length)
    return values.detach().double().cpu().numpy()
