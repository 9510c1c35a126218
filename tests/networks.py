"""Random networks of every kind, for tests that state theorems about all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from isotone import FrozenNetwork, LipschitzNetwork, Log, MonotonicNetwork, Scaling, freeze
from isotone.frozen.steps import Blend, Dense, Members, Pointwise, Sort

GROUP_SIZES = (None, 1, 2, 3, 4, 5, 8, 16)


@dataclass(frozen=True)
class Drawn:
    """A random network and how it was drawn, for the message of a failing test."""

    network: LipschitzNetwork
    options: dict[str, Any]


def draw_network(seed: int, max_width: int = 256, max_depth: int = 8) -> Drawn:
    """All norms, chains, group sizes, depths, widths, outputs, λᵢ, directions, weight scales."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    n_features, n_outputs = int(rng.integers(1, 9)), int(rng.choice([1, 1, 2, 3]))
    group_size = GROUP_SIZES[rng.integers(len(GROUP_SIZES))]
    step = group_size or 1
    top = int(2 ** rng.uniform(0, np.log2(max_width)))
    hidden = [
        step * int(rng.integers(1, max(top // step, 1) + 1))
        for _ in range(rng.integers(0, max_depth))
    ]
    per_feature = (10.0 ** rng.uniform(-2, 2, n_features)).tolist()
    options: dict[str, Any] = {
        "layers": [n_features, *hidden, n_outputs],
        "group_size": group_size,
        "norm": rng.choice(["columns", "matrix", "rescaled-matrix"]).item(),
        "apply": rng.choice(["direct", "project"]).item(),
        "chain": rng.choice(["one", "inf"]).item(),
        "init": rng.choice(["torch", "bound", "permutation", "orthogonal"]).item(),
        "lipschitz": per_feature if rng.random() < 0.5 else per_feature[0],
    }
    if rng.random() < 0.2:
        options["metric"], options["chain"] = rng.choice([2, np.inf]).item(), "inf"
        network: LipschitzNetwork = LipschitzNetwork(**options)
    else:
        options["monotonic_cst"] = rng.integers(-1, 2, (n_outputs, n_features)).tolist()
        network = MonotonicNetwork(**options)
    _spread_weights(network, rng)
    return Drawn(network, options)


@torch.no_grad()
def _spread_weights(network: LipschitzNetwork, rng: np.random.Generator) -> None:
    """Leave, enlarge or shrink the weights, up to where float32 ends; some columns become zero."""
    factor = float(rng.choice([1.0, 10.0 ** rng.uniform(-30, 30)]))
    for name, parameter in network.named_parameters():
        if name.endswith("weight"):
            parameter.mul_(factor)
            if rng.random() < 0.2:
                parameter[:, 0] = 0.0


@torch.no_grad()
def saturate(network: LipschitzNetwork) -> None:
    """Put every column or row on its bound, so that the network is as steep as it may be."""
    for name, parameter in network.named_parameters():
        if name.endswith("weight"):
            parameter.mul_(1e3)


def small(
    monotonic_cst: tuple[int, ...] = (1, 0, -1),
    lipschitz: float = 1.0,
    seed: int = 0,
    **options: Any,
) -> FrozenNetwork:
    """A frozen network with one output, as steep as it may be."""
    torch.manual_seed(seed)
    layers = [len(monotonic_cst), 8, 8, 1]
    network = MonotonicNetwork(layers, monotonic_cst=monotonic_cst, lipschitz=lipschitz)
    saturate(network)
    return freeze(network, **options)


def by_hand(slope: float, direction: int = 1, **options: Any) -> FrozenNetwork:
    """f(x) = slope · x + direction · x through a sort of two equal units, with λ = 1."""
    steps = (
        Dense(np.array([[0.5], [0.5]]), np.zeros(2)),
        Sort(2),
        Dense(np.array([[slope, slope]]), np.zeros(1)),
    )
    return FrozenNetwork(
        features=("x",),
        scaling=Scaling.identity(1),
        steps=steps,
        residual=np.array([[float(direction)]]),
        lipschitz=np.ones(1),
        monotonic_cst=np.array([[direction]], dtype=np.int8),
        **options,
    )


def every_step(
    n_outputs: int = 1, activation: str = "tanh", seed: int = 0, **options: Any
) -> FrozenNetwork:
    """All kinds of steps, and a feature with a logarithm, an offset and a floor."""
    rng = np.random.default_rng(seed)
    dtype = options.get("precision", "float64")

    def dense(n_out: int, n_in: int) -> Dense:
        weight = rng.normal(size=(n_out, n_in)) / n_in
        return Dense(weight.astype(dtype), rng.normal(size=n_out).astype(dtype))

    third = float(np.dtype(dtype).type(1.0 / 3.0))
    inner = Members((0.75, third), ((dense(8, 8), Sort(8)), (Sort(4),)))
    branch = (dense(8, 8), Pointwise(activation, 0.25), inner, Sort(8))
    before = (dense(8, 3), Sort(2), Blend(0.5, 0.25, branch), Sort(4))
    members = (
        (dense(n_outputs, 8),),
        (Sort(8), dense(5, 8), Pointwise(activation, 0.25), dense(n_outputs, 5)),
        (Blend(0.5, -0.5, (Sort(2), dense(8, 8))), dense(n_outputs, 8)),
    )
    steps = (*before, Members((third, -0.25, 0.5), members))
    X = rng.exponential(size=(50, 3)) * [1.0, 100.0, 1e-3]
    return FrozenNetwork(
        features=("pt", "chi2", "a b"),
        scaling=Scaling.fit(X, ["standard", Log(offset=0.5, floor=1e-3), "robust"]),
        steps=steps,
        residual=rng.integers(-4, 5, (n_outputs, 3)) / 4.0,
        lipschitz=np.ones(3),
        monotonic_cst=np.zeros((n_outputs, 3), np.int8),
        **options,
    )
