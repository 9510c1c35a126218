"""How far two networks are apart: no row is further, and some row is nearly as far."""

from __future__ import annotations

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling
from isotone.certificate.distance import distances
from isotone.frozen.steps import Dense, Pointwise, Steps


def network(
    grid: float | None, weight: float = 0.75, bias: float = 0.0, residual: float = 1.0
) -> FrozenNetwork:
    """f(x) = weight · max(x + bias, 0) + residual · x."""
    steps: Steps = (
        Dense(np.ones((1, 1)), np.array([bias])),
        Pointwise("relu"),
        Dense(np.array([[weight]]), np.zeros(1)),
    )
    return FrozenNetwork(
        ("x",),
        Scaling.identity(1),
        steps,
        np.array([[residual]]),
        np.ones(1),
        np.array([[1]], np.int8),
        grid=grid,
        clip=4.0,
    )


def furthest(a: FrozenNetwork, b: FrozenNetwork) -> float:
    rows = np.linspace(-5.0, 5.0, 40_961)[:, None]
    return float(np.abs(a.score(rows) - b.score(rows)).max())


@pytest.mark.parametrize(
    ("grid", "other"), [(2.0**-2, 2.0**-5), (2.0**-5, 2.0**-2), (None, 2.0**-3)]
)
def test_what_both_grids_round_is_part_of_the_distance(
    grid: float | None, other: float | None
) -> None:
    a, b = network(grid), network(other)
    (bound,) = distances(a, a.steps, b)
    assert 0.8 * bound <= furthest(a, b) <= bound


@pytest.mark.parametrize("change", [{"weight": 0.5}, {"bias": 0.25}, {"residual": 1.5}])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_every_number_that_was_rounded_is_part_of_the_distance(
    change: dict[str, float], sign: float
) -> None:
    plain = {"weight": 0.75, "bias": 0.0, "residual": 1.0}
    change = {name: plain[name] + sign * (value - plain[name]) for name, value in change.items()}
    a, b = network(None), network(2.0**-12, **(plain | change))
    (bound,) = distances(a, a.steps, b)
    assert 0.9 * bound <= furthest(a, b) <= bound
