"""The theorems, for a thousand random networks of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from isotone import FrozenNetwork, LipschitzLinear, LipschitzNetwork, certify, freeze
from networks import draw_network

N_NETWORKS = 1000
N_GROUPS = 20


def sampled_slopes(frozen: FrozenNetwork, rng: np.random.Generator, feature: int) -> Any:
    """Rises of the score over random steps of one feature: (steps, rises of every output)."""
    grid = 2.0**-20 if frozen.grid is None else frozen.grid
    x = rng.normal(size=(40, frozen.n_features)) * 10.0 ** rng.uniform(-2, 2)
    x = np.rint(x / grid) * grid
    step = grid * 2.0 ** rng.integers(0, 30, 40)
    higher = x.copy()
    higher[:, feature] += step
    inside = np.abs(higher).max(axis=1) <= frozen.clip
    rise = frozen.score(higher) - frozen.score(x)
    return step[inside], rise.reshape(40, -1)[inside]


@pytest.mark.parametrize("group", range(N_GROUPS))
def test_certified_slopes_hold_for_random_networks(group: int) -> None:
    for seed in range(group, N_NETWORKS, N_GROUPS):
        drawn = draw_network(seed)
        frozen = freeze(drawn.network)
        certificate = certify(frozen)
        assert certificate.holds, drawn.options
        rng = np.random.default_rng(seed)
        for slope in certificate.slopes:
            step, rise = sampled_slopes(frozen, rng, frozen.features.index(slope.feature))
            error = 2 * certificate.rounding_errors[slope.output]
            assert np.all(rise[:, slope.output] >= slope.scaled.low * step - error), drawn.options
            assert np.all(rise[:, slope.output] <= slope.scaled.high * step + error), drawn.options


def test_the_bounds_are_reached_by_some_network() -> None:
    """Not only valid: a network of positive weights on the bound has slope λ everywhere."""
    network = LipschitzNetwork([3, 8, 8, 1], lipschitz=2.0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.abs_().mul_(1e3)
    frozen = freeze(network)
    x = np.zeros((3, 3))
    rise = frozen.score(x + np.eye(3)) - frozen.score(x)
    assert np.allclose(rise, 2.0, rtol=1e-6)
    assert np.allclose([s.scaled.high for s in certify(frozen).slopes], 2.0)


def fit_absolute_value(network: LipschitzNetwork) -> float:
    """Train on |x| over [-1, 1]; largest error of the frozen network on a fine grid."""
    x = torch.linspace(-1, 1, 201)[:, None]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4000)
    for _ in range(4000):
        optimizer.zero_grad()
        loss = (network(x) - x.abs()).square().mean()
        loss.backward()
        optimizer.step()
        schedule.step()
    fine = np.linspace(-1, 1, 1001)
    return float(np.abs(freeze(network).score(fine[:, None]) - np.abs(fine)).max())


def test_group_sort_fits_the_absolute_value_and_relu_cannot() -> None:
    """Sec. 2.2: under the norm constraint λ = 1 ReLU cannot fit |x|."""
    torch.manual_seed(0)
    relu: list[nn.Module] = []
    for n_in, n_out in ((1, 16), (16, 16)):
        relu += [LipschitzLinear(n_in, n_out), nn.ReLU()]
    with_sort = fit_absolute_value(LipschitzNetwork([1, 16, 16, 1], group_size=2))
    with_relu = fit_absolute_value(LipschitzNetwork([*relu, LipschitzLinear(16, 1)]))
    assert with_sort < 1e-3
    assert with_relu > 0.1
