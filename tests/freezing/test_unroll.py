"""Unrolling: layer by layer the function of the torch modules, with sizes within their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from isotone import (
    Abs,
    Center,
    GroupSort,
    LipschitzConv1d,
    LipschitzConv2d,
    LipschitzLinear,
    LipschitzNetwork,
    Residual,
    limits,
)
from isotone.freezing.unroll import _channels_last, _Unrolled, inward, unroll
from isotone.frozen.reference import Units
from isotone.frozen.steps import Dense, Members
from isotone.nn.layers import Constraint

NETWORKS: dict[str, tuple[tuple[int, ...], Callable[[], list[nn.Module]]]] = {
    "begins with a sort": ((4,), lambda: [GroupSort(group_size=2), LipschitzLinear(4, 2)]),
    "begins with a center": ((3,), lambda: [Center(3), Abs(), LipschitzLinear(3, 2)]),
    "begins with an activation": ((3,), lambda: [nn.LeakyReLU(0.3), LipschitzLinear(3, 2)]),
    "centers after a step": (
        (3,),
        lambda: [
            *(LipschitzLinear(3, 4), Center(4), Abs(), Center(4)),
            *(LipschitzLinear(4, 2), Center(2), Abs(), LipschitzLinear(2, 2)),
        ],
    ),
    "no biases": (
        (3,),
        lambda: [LipschitzLinear(3, 4, bias=False), Abs(), LipschitzLinear(4, 2, bias=False)],
    ),
    "an image": (
        (2, 6, 5),
        lambda: [
            LipschitzConv2d(2, 4, 3, stride=2, padding=1),
            Center(4),
            GroupSort(group_size=2),
            Center(4),
            LipschitzConv2d(4, 3, (2, 3), padding=1, bias=False),
            GroupSort(group_size=None),
            nn.Flatten(),
            Center(36),
            GroupSort(group_size=4),
            LipschitzLinear(36, 2),
        ],
    ),
    "a signal, sorted before": (
        (3, 7),
        lambda: [
            GroupSort(group_size=3),
            LipschitzConv1d(3, 4, 3, dilation=2),
            nn.Flatten(),
            LipschitzLinear(12, 2),
        ],
    ),
}


def drawn(layers: list[nn.Module], **options: Any) -> LipschitzNetwork:
    torch.manual_seed(0)
    network = LipschitzNetwork(layers, **options).double().eval()
    with torch.no_grad():
        for tensor in network.parameters():
            tensor.normal_()
        for module in network.modules():
            if isinstance(module, Center):
                module.mean.normal_()
    return network


def largest_difference(network: LipschitzNetwork) -> float:
    x = np.random.default_rng(0).normal(size=(network.n_features, 50))
    found = Units().run(tuple(unroll(network)), x).T
    with torch.no_grad():
        expected = network(torch.as_tensor(x.T)).numpy()
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("chain", ["one", "inf"])
def test_steps_compute_what_the_layers_do(name: str, chain: Any) -> None:
    shape, layers = NETWORKS[name]
    lipschitz = np.linspace(0.5, 2.0, math.prod(shape)).tolist()
    network = drawn(layers(), input_shape=shape, lipschitz=lipschitz, chain=chain)
    assert largest_difference(network) < 1e-13
    assert isinstance(unroll(network)[0], Dense)


@pytest.mark.parametrize("seed", range(5))
def test_residual_blocks_compute_it_to_within_float32(seed: int) -> None:
    """Their two weights are numbers of float32 with sum at most 1, not rounded up."""
    inner = [LipschitzConv1d(4, 4, 3, padding=1), GroupSort(group_size=2), Center(4)]
    layers = [
        *(LipschitzConv1d(2, 4, 3), Residual(*inner), GroupSort(group_size=4), nn.Flatten()),
        *(Residual(LipschitzLinear(20, 20), Abs()), LipschitzLinear(20, 2)),
    ]
    network = drawn(layers, input_shape=(2, 7))
    for module in network.modules():
        if isinstance(module, Residual):
            nn.init.constant_(module.mix, float(np.random.default_rng(seed).normal()))
    assert largest_difference(network) < 1e-6
    blocks = [step for step in unroll(network) if isinstance(step, Members)]
    mixes = [torch.sigmoid(m.mix).item() for m in network.modules() if isinstance(m, Residual)]
    assert len(blocks) == 2
    for block, mix in zip(blocks, mixes, strict=True):
        keep, weight = block.weights
        assert [float(np.float32(number)) for number in (keep, weight)] == [keep, weight]
        assert mix * (1 - 2.0**-23) <= weight <= mix
        assert 1 - 2.0**-24 <= keep + weight <= 1


def test_units_of_images_have_their_channels_last() -> None:
    assert _channels_last((3,)).tolist() == [0, 1, 2]
    assert _channels_last((2, 3)).tolist() == [0, 3, 1, 4, 2, 5]
    assert _channels_last((2, 1, 2)).tolist() == [0, 2, 1, 3]


def test_units_are_put_in_order_by_a_step_of_their_own_if_need_be() -> None:
    state = _Unrolled([], (3,), np.arange(3))
    state.reorder(np.arange(3))
    assert state.steps == []
    state.reorder(np.array([2, 0, 1]))
    (step,) = state.steps
    assert Units().run((step,), np.array([[5.0], [6.0], [7.0]])).ravel().tolist() == [7, 5, 6]
    with pytest.raises(ValueError, match="3 units cannot be put into 4 places"):
        state.reorder(np.arange(4))


def test_a_matrix_of_a_convolution_is_made_at_the_limit_and_not_beyond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layers = [LipschitzConv1d(1, 2, 3), nn.Flatten(), LipschitzLinear(16, 1)]
    network = drawn(layers, input_shape=(1, 10))
    monkeypatch.setattr(limits, "MATRIX", replace(limits.MATRIX, largest=160))
    unroll(network)
    monkeypatch.setattr(limits, "MATRIX", replace(limits.MATRIX, largest=159))
    made: list[object] = []
    monkeypatch.setattr(torch, "eye", lambda *_, **__: made.append(1))
    with pytest.raises(ValueError, match="160 weights are in one step; the limit is 159"):
        unroll(network)
    assert not made


def sizes_of(weight: Any, constraint: Constraint) -> list[Fraction]:
    """Of columns or rows, exactly; squared for rows whose 2-norm counts."""
    chains = weight.T if constraint.chain == "one" else weight
    numbers = [[abs(Fraction(x)) for x in row] for row in chains.tolist()]
    if constraint.chain == "one" or constraint.dual == 1.0:
        return [sum(row, Fraction(0)) for row in numbers]
    if constraint.dual == 2.0:
        return [sum((x * x for x in row), Fraction(0)) for row in numbers]
    return [max(row) for row in numbers]


@pytest.mark.parametrize(
    "constraint",
    [
        *(Constraint(bound, "one") for bound in (0.7, 1.0)),
        *(Constraint(0.7, "inf", dual) for dual in (1.0, 2.0, math.inf)),
    ],
)
def test_what_is_too_large_is_shrunk_to_its_bound_and_nothing_else(constraint: Constraint) -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(6, 5)) * 10.0 ** rng.uniform(-4, 4, (6, 5))
    weight[:, 0], weight[0] = 0.01, 0.0
    weight[1] = [-constraint.bound / 8, *[0.0] * 4]
    found = inward(weight, constraint)
    power = 2 if constraint.chain == "inf" and constraint.dual == 2.0 else 1
    bound = Fraction(constraint.bound) ** power
    before, after = sizes_of(weight, constraint), sizes_of(found, constraint)
    shrunk = [size > bound for size in before]
    assert True in shrunk
    assert False in shrunk
    for k, (size, is_shrunk) in enumerate(zip(after, shrunk, strict=True)):
        own = (slice(None), k) if constraint.chain == "one" else (k, slice(None))
        assert size <= bound
        if is_shrunk:
            assert size >= bound * (1 - Fraction(2.0**-47))
            moved = weight[own] != 0
            ratio = found[own][moved] / weight[own][moved]
            assert np.ptp(ratio) < 1e-12
        else:
            assert np.array_equal(found[own], weight[own])


def test_what_is_as_large_as_its_bound_stays() -> None:
    for weight, constraint in (
        ([[0.25, -0.5], [-0.75, 0.5]], Constraint(1.0, "one")),
        ([[0.25, -0.75], [1.0, 0.0]], Constraint(1.0, "inf", 1.0)),
        ([[3.0, -4.0], [5.0, 0.0]], Constraint(5.0 + 2.0**-48, "inf", 2.0)),
        ([[1.0, -1.0], [0.25, -1.0]], Constraint(1.0, "inf", math.inf)),
    ):
        assert inward(np.array(weight), constraint).tolist() == weight
