"""Layers: every one keeps its bound, and a convolution is the dense matrix that it stands for."""

from __future__ import annotations

import copy
import pickle
from itertools import product
from typing import Any

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
)
from isotone.nn.layers import BoundedLayer, Constraint, pointwise
from isotone.nn.norms import NORMS

CONVOLUTIONS = list(product((1, 2, 3), (0, 1, 2), (1, 2, 3)))  # stride, padding, dilation


def matrix_of(layer: Any, shape: tuple[int, ...]) -> torch.Tensor:
    """The dense matrix of a layer without bias, column by column."""
    n = int(torch.tensor(shape).prod())
    with torch.no_grad():
        return (
            layer.double()(torch.eye(n, dtype=torch.float64).reshape(n, *shape)).reshape(n, -1).T
        )


@pytest.mark.parametrize("norm", sorted(NORMS))
@pytest.mark.parametrize("chain", ["one", "inf"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), CONVOLUTIONS)
def test_convolutions_keep_the_bound_of_their_dense_matrix(
    stride: int, padding: int, dilation: int, chain: Any, norm: Any
) -> None:
    torch.manual_seed(stride + 10 * padding + 100 * dilation)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "bias": False}
    for layer, shape in (
        (LipschitzConv1d(2, 3, 3, **options), (2, 9)),
        (LipschitzConv2d(2, 3, (3, 2), **options), (2, 8, 7)),
    ):
        layer.constrain(Constraint(1.5, chain, 1.0, norm))
        nn.init.normal_(layer.weight, std=3.0)
        matrix = matrix_of(layer, shape).abs()
        size = matrix.sum(dim=0 if chain == "one" else 1).max()
        assert size <= 1.5 * (1 + 1e-12)


@pytest.mark.parametrize(("stride", "padding", "dilation"), CONVOLUTIONS)
def test_column_norm_of_a_convolution_is_tight(stride: int, padding: int, dilation: int) -> None:
    """Every tap class reaches the bound in some column of a large enough input."""
    options = {"stride": stride, "padding": padding, "dilation": dilation, "bias": False}
    torch.manual_seed(0)
    layer = LipschitzConv1d(2, 3, 3, **options)
    nn.init.normal_(layer.weight, std=3.0)
    sums = matrix_of(layer, (2, 40)).abs().sum(dim=0)
    reachable = sums[sums > 0]
    assert torch.allclose(reachable.max(), torch.ones((), dtype=torch.float64))
    interior = matrix_of(layer, (2, 40)).abs().sum(dim=0).reshape(2, 40)[:, 12:24]
    full = interior[interior > 0]
    assert torch.allclose(full, torch.ones_like(full))


@pytest.mark.parametrize(("dual", "order"), [(1.0, 1), (2.0, 2), (float("inf"), float("inf"))])
def test_rows_of_the_first_layer_are_bounded_in_the_dual_norm(dual: float, order: float) -> None:
    layers = (LipschitzLinear(6, 4, bias=False), LipschitzConv1d(2, 4, 3, bias=False))
    for layer, shape in zip(layers, [(6,), (2, 3)], strict=True):
        layer.constrain(Constraint(0.7, "inf", dual))
        nn.init.normal_(layer.weight, std=3.0)
        rows = torch.linalg.vector_norm(matrix_of(layer, shape), ord=order, dim=1)
        assert rows.max() == pytest.approx(0.7)


def test_projection_keeps_stored_weights_feasible_after_every_step() -> None:
    torch.manual_seed(0)
    network = LipschitzNetwork([3, 8, 8, 1], lipschitz=2.0, apply="project")
    clone = copy.deepcopy(network)
    for layer in network.modules():
        if isinstance(layer, BoundedLayer):  # before any step, too
            assert layer.weight.double().abs().sum(dim=0).max() <= 2.0 ** (1 / 3)
    for model in (network, clone, pickle.loads(pickle.dumps(network))):
        optimizer = torch.optim.SGD(model.parameters(), lr=10.0)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(16, 3)).square().sum().backward()
            optimizer.step()
            for name, value in model.state_dict().items():
                if name.endswith("weight"):
                    assert value.double().abs().sum(dim=0).max() <= 2.0 ** (1 / 3)


def test_a_projected_layer_uses_feasible_weights_even_without_an_optimizer() -> None:
    network = LipschitzNetwork([3, 8, 1], apply="project")
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(100)
    x, y = torch.randn(2, 500, 3)
    gap = (network(x) - network(y)).abs()[:, 0]
    assert torch.all(gap <= (x - y).abs().sum(dim=1) * (1 + 1e-5) + 1e-3)


def test_direct_and_project_differ_in_their_gradients_only() -> None:
    torch.manual_seed(0)
    direct = LipschitzNetwork([3, 8, 1])
    project = LipschitzNetwork([3, 8, 1], apply="project")
    project.load_state_dict(
        {k: 5 * v for k, v in direct.state_dict().items() if "weight" in k}
        | {k: v for k, v in direct.state_dict().items() if "bias" in k}
    )
    direct.load_state_dict(project.state_dict())
    x = torch.randn(10, 3)
    assert torch.allclose(direct(x), project(x), atol=1e-5)
    for network in (direct, project):
        network(x).sum().backward()
    first, second = (n.layers[0].weight.grad for n in (direct, project))
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("group_size", [1, 2, 4, 8, None])
def test_group_sort_twice_is_group_sort_once(group_size: int | None) -> None:
    layer = GroupSort(group_size=group_size)
    x = torch.randn(20, 8)
    assert torch.equal(layer(layer(x)), layer(x))
    assert torch.equal(layer(x).sort().values, x.sort().values)


def test_group_sort_sorts_channels_of_images() -> None:
    x = torch.randn(2, 4, 3, 5)
    expected = x.reshape(2, 2, 2, 3, 5).sort(dim=2).values.reshape(x.shape)
    assert torch.equal(GroupSort(group_size=2)(x), expected)


def test_group_size_is_never_a_bare_number() -> None:
    with pytest.raises(TypeError, match="positional"):
        GroupSort(2)
    with pytest.raises(ValueError, match="`group_size=0` must be a whole number"):
        GroupSort(group_size=0)


def test_center_subtracts_a_running_mean_and_has_slope_one() -> None:
    layer = Center(3, momentum=1.0)
    x = torch.randn(100, 3) + 5
    layer(x)
    layer.eval()
    assert torch.allclose(layer(x).mean(dim=0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(layer(x + 1) - layer(x), torch.ones(100, 3), atol=1e-5)
    image = Center(2, momentum=1.0)
    image(torch.randn(10, 2, 4, 4) + 3)
    assert image.mean.shape == (2,)


def test_center_can_be_used_twice_in_one_graph() -> None:
    layer = Center(3)
    x = torch.randn(10, 3, requires_grad=True)
    (layer(x) * layer(x)).sum().backward()
    assert x.grad is not None


def test_residual_keeps_the_bound_for_every_mix() -> None:
    torch.manual_seed(0)
    block = Residual(LipschitzLinear(6, 6), GroupSort(group_size=2), LipschitzLinear(6, 6))
    for layer in block.modules():
        if isinstance(layer, BoundedLayer):
            nn.init.normal_(layer.weight, std=3.0)
    x, y = torch.randn(2, 500, 6)
    for mix in (-5.0, 0.0, 5.0):
        nn.init.constant_(block.mix, mix)
        gap = (block(x) - block(y)).abs().sum(dim=1)
        assert torch.all(gap <= (x - y).abs().sum(dim=1) * (1 + 1e-5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LipschitzLinear(0, 3), "`n_in=0` must be a whole number"),
        (lambda: LipschitzLinear(3, 2.5), "`n_out=2.5` must be a whole number"),
        (lambda: LipschitzConv1d(1, 1, 0), "`kernel_size=0`"),
        (lambda: LipschitzConv2d(1, 1, (3, 3, 3)), "or 2 of them"),
        (lambda: LipschitzConv1d(1, 1, 3, stride=0), "`stride=0`"),
        (lambda: Center(3, momentum=0.0), r"must lie in \(0, 1\]"),
        (lambda: Residual(), "needs at least one layer"),
    ],
)
def test_bad_arguments_are_explained(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_known_activations_have_their_constant() -> None:
    known = [
        nn.ReLU(),
        nn.LeakyReLU(0.2),
        Abs(),
        nn.Hardtanh(),
        nn.Tanh(),
        nn.Sigmoid(),
        nn.Softplus(),
    ]
    x = torch.linspace(-5, 5, 2001, dtype=torch.float64)
    for module in known:
        step = pointwise(module)
        assert step is not None
        slope = module(x).diff().abs() / x.diff()
        assert float(slope.max()) == pytest.approx(step.constant, rel=1e-2)
    assert pointwise(nn.GELU()) is None
    assert pointwise(nn.Hardtanh(-2, 2)) is None
    assert pointwise(nn.ReLU6()) is None
