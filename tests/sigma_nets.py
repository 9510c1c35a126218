"""Networks that LHCb's evaluators can compute, and files as others write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isotone import FrozenNetwork, MonotonicNetwork, Scaling, freeze
from isotone.typing import Floats
from networks import saturate

SHAPES = {"two-track": [4, 20, 20, 1], "electron": [6, 12, 12, 12, 12, 1], "one": [3, 8, 1]}
SHAPES["muon"] = [5, 10, 10, 10, 10, 10, 1]


def draw_pairs(
    seed: int = 0,
    layers: tuple[int, ...] = (4, 20, 20, 1),
    lipschitz: Any = 2.0,
    scaling: Any = "identity",
    steep: bool = False,
    **options: Any,
) -> tuple[FrozenNetwork, Floats]:
    """A frozen network with pairs, and rows in float32 like those that it would be trained on."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    signs = rng.integers(-1, 2, layers[0])
    signs[0] = 1
    network = MonotonicNetwork(
        list(layers), monotonic_cst=signs.tolist(), lipschitz=lipschitz, group_size=2
    )
    if steep:
        saturate(network)
    X = rng.gamma(2.0, 2.0, (3000, layers[0])).astype(np.float32).astype(np.float64)
    return freeze(network, scaling=Scaling.fit(X, scaling), **options), X


def foreign(
    layout: str = "allen",
    sizes: tuple[int, ...] = (4, 20, 20, 1),
    seed: int = 0,
    per_layer: float | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """The content of a file that others wrote: λ = 2, columns normalized to `per_layer` each.

    By default a little less than the share of λ that every layer may have.
    """
    rng, n = np.random.default_rng(seed), len(sizes) - 1
    bound = 0.999 * 2.0 ** (1 / n) if per_layer is None else per_layer
    data: dict[str, Any] = {"sigmanet.sigma": [2.0], "nominal_cut": 0.9569}
    for k in range(n):
        weight = rng.normal(size=(sizes[k + 1], sizes[k]))
        weight *= bound / np.abs(weight).sum(axis=0)
        name = f"sigmanet.nn.{k:02d}.parametrizations.weight.original"
        name = name if layout == "hlt2" else f"sigmanet.nn.{k}.weight"
        data[name] = weight.tolist()
        place = f"{k:02d}" if layout == "hlt2" else str(k)
        data[f"sigmanet.nn.{place}.bias"] = rng.normal(size=sizes[k + 1]).tolist()
    if layout == "hlt2":
        data["variables_constraints"] = [[-3.0, 5.0 + i] for i in range(sizes[0])]
        data["constraints"] = [1] * sizes[0]
    elif sizes[0] != 4:
        data |= {"n_features": sizes[0], "constraints": [1] * sizes[0]}
    return data | changes


def dump(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data))
    return path
