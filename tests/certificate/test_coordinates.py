"""A feature that moves by its distance changes W by at most the room, and nearly so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from isotone import Scaling
from isotone.certificate.coordinates import Coordinates
from isotone.frozen.lookup import Copies
from isotone.inputs.knots import Knots

Make = Callable[[float | None], Coordinates]
KNOTS = [[-1.0, 0.0, 0.5, 2.0], [0.0, 10.0, 11.0]]


def of_knots(grid: float | None) -> Coordinates:
    scaling = Knots.at(KNOTS).scaling
    copies = Copies.of((0, 0, 0, 1, 1), scaling, 8.0, grid, "float64")
    return Coordinates(copies, np.array([0.3, 1.7, 0.9, 2.0, 0.1]))


def of_logarithms(grid: float | None) -> Coordinates:
    scaling = Scaling.fit(np.random.default_rng(0).lognormal(size=(99, 2)), "log")
    copies = Copies.of((0, 1), scaling, 1024.0, grid, "float64")
    return Coordinates(copies, np.array([1.0, 0.2]))


@pytest.mark.parametrize("of", [of_knots, of_logarithms])
def test_coordinates_begin_at_zero(of: Make) -> None:
    coordinates = of(None)
    assert np.all(coordinates.starts[coordinates.copies.firsts] == 0.0)
    lowest, highest = (coordinates.transform(np.full((1, 2), end))[0] for end in (-1e9, 1e300))
    assert lowest.min() >= 0.0
    np.testing.assert_allclose(highest, np.minimum(highest, coordinates.totals))


@pytest.mark.parametrize("grid", [None, 2.0**-20])
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("of", [of_knots, of_logarithms])
def test_a_distance_uses_the_room_and_no_more(of: Make, side: int, grid: float | None) -> None:
    """Down along a logarithm W falls ever faster: a bit too far is much too far."""
    coordinates = of(grid)
    rng = np.random.default_rng(0)
    x = rng.uniform(0.2, 9.0, (400, 2))
    room = rng.uniform(0.01, 1.5, 400)
    far = coordinates.distance(x, room, side)
    finite = np.isfinite(far)
    there = np.where(finite, x + side * far, side * 1e300)
    change = side * (coordinates.transform(there) - coordinates.transform(x))
    assert np.all(change <= room[:, None])
    assert finite.any(axis=0).all()
    assert np.all((change >= 0.99 * room[:, None] - 1e-4) | ~finite)
