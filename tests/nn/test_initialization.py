"""Initializations: on the bound where that helps, inside where it would kill the gradient."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import torch
from torch import nn

from isotone import GroupSort, LipschitzConv1d, LipschitzLinear, LipschitzNetwork
from isotone.nn.initialization import Init
from isotone.nn.layers import BoundedLayer

INITS = get_args(Init)


def bounded(network: LipschitzNetwork) -> list[BoundedLayer]:
    return [m for m in network.modules() if isinstance(m, BoundedLayer)]


@pytest.mark.parametrize("chain", ["one", "inf"])
@pytest.mark.parametrize("norm", ["columns", "matrix", "rescaled-matrix"])
@pytest.mark.parametrize("init", [init for init in INITS if init != "torch"])
def test_vectors_begin_on_their_bound(init: Any, norm: Any, chain: Any) -> None:
    network = LipschitzNetwork([4, 12, 12, 3], lipschitz=5.0, init=init, norm=norm, chain=chain)
    for layer in bounded(network):
        sizes = layer.sizes()(layer.normalized())
        assert torch.allclose(sizes, torch.full_like(sizes, layer.constraint.bound))


@pytest.mark.parametrize("init", INITS)
def test_every_weight_has_a_gradient_at_first(init: Any) -> None:
    torch.manual_seed(0)
    network = LipschitzNetwork([1, 12, 1], init=init)
    x = torch.linspace(-1, 1, 100)[:, None]
    (network(x) * torch.sin(5 * x)).sum().backward()
    last = bounded(network)[-1]
    assert last.weight.grad is not None
    assert torch.all(last.weight.grad != 0)


@pytest.mark.parametrize("init", [init for init in INITS if init != "torch"])
def test_networks_do_not_begin_linear(init: Any) -> None:
    """Units change places within the range of the features, so the slope is not constant."""
    x = torch.linspace(-1, 1, 200)[:, None]
    for seed in range(10):
        torch.manual_seed(seed)
        y = LipschitzNetwork([1, 20, 20, 1], group_size=2, init=init)(x)[:, 0]
        slopes = y.diff() / x[:, 0].diff()
        assert slopes.max() - slopes.min() > 1e-3


def test_many_independent_features_do_not_make_a_network_that_begins_linear() -> None:
    """Smaller biases leave less to a linear function than those of the default."""

    def curved(init: Any) -> float:
        """Share of the variance that is not linear, smallest of ten networks."""
        shares = []
        for seed in range(10):
            torch.manual_seed(seed)
            x = torch.randn(1000, 64)
            y = LipschitzNetwork([64, 32, 32, 1], group_size=8, init=init)(x).detach()
            A = torch.cat([x, torch.ones(1000, 1)], dim=1)
            rest = y - A @ torch.linalg.lstsq(A, y).solution
            shares.append(float(rest.var() / y.var()))
        return min(shares)

    assert curved("independent") > 1.5 * curved("orthogonal")


def test_near_permutations_keep_gradients_through_the_depth() -> None:
    def slope(init: Any) -> float:
        torch.manual_seed(0)
        network = LipschitzNetwork([4, *[20] * 11, 1], init=init)
        x = torch.randn(200, 4, requires_grad=True)
        network(x).sum().backward()
        assert x.grad is not None
        return float(x.grad.abs().mean())

    assert slope("permutation") > 1000 * slope("torch")


@pytest.mark.parametrize("init", INITS)
def test_convolutions_and_layers_without_bias_are_initialized_too(init: Any) -> None:
    layers: list[nn.Module] = [
        LipschitzConv1d(2, 4, 3, bias=False),
        GroupSort(group_size=2),
        nn.Flatten(),
        LipschitzLinear(16, 1, bias=False),
    ]
    network = LipschitzNetwork(layers, input_shape=(2, 6), init=init)
    assert torch.isfinite(network(torch.randn(3, 12))).all()
