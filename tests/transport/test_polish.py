"""Polish: its gradient is that of the distance, and it goes down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import ot
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from isotone.transport.couplings import NAMES
from isotone.transport.polish import Polish
from isotone.transport.shapes import Triangles

RNG = np.random.default_rng(0)
Y, Q = RNG.normal(size=(23, 2)), RNG.random(23)
Q = Q / Q.sum()
LINE = torch.as_tensor(RNG.normal(size=(7, 2)))


def batches(points: Any, weights: Any) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield torch.as_tensor(points), torch.as_tensor(weights)


def seven(theta: Tensor) -> tuple[Tensor, Tensor]:
    """Points that are stretched and shifted, with weights of their own."""
    points = LINE * theta[:, None, :2] + theta[:, None, 2:4]
    return points, theta[:, 4:].softmax(dim=1)


def distance(theta: Any, metric: Any) -> float:
    points, weights = seven(torch.as_tensor(theta)[None])
    cost = cdist(points[0].numpy(), Y, NAMES[metric])
    return float(ot.emd2(weights[0].numpy(), Q, cost))


@pytest.mark.parametrize("metric", ["1", "2", "inf"])
def test_the_gradient_is_that_of_the_distance(metric: Any) -> None:
    theta, h = np.random.default_rng(1).normal(size=11), 1e-6
    polish = Polish(seven, torch.as_tensor(theta), batches(Y, Q), np.zeros(7), metric)
    assert polish.distance() == pytest.approx(distance(theta, metric), rel=1e-3)
    polish.descend(1e-9)
    assert polish.parameters.grad is not None
    slopes = [
        (distance(theta + h * one, metric) - distance(theta - h * one, metric)) / (2 * h)
        for one in np.eye(11)
    ]
    assert polish.parameters.grad[0].numpy() == pytest.approx(slopes, abs=1e-4)


def test_a_triangle_slides_into_its_place() -> None:
    """Its own points are the cloud: the distance falls to nearly nothing."""
    shape, truth = Triangles(n_points=48), torch.tensor([0.0, 0.0, 2.0, 0.0, 0.5, 1.5])
    points, weights = shape(truth[None].double())
    start = truth.double() + 0.2 * torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 0.5])
    polish = Polish(shape, start, batches(points[0], weights[0]), np.zeros(48), "2")
    before = polish.distance()
    way = polish.run(60, 0.03)
    assert way.shape == (61, 6)
    assert way[0] == pytest.approx(start.numpy())
    assert way[-1] == pytest.approx(truth.numpy(), abs=0.02)
    assert polish.distance() < 0.1 * before
    assert np.array_equal(polish.theta(), way[-1])


def test_every_step_may_see_other_points() -> None:
    """A point among batches of one point each ends in their middle, like a median."""
    places = np.random.default_rng(2).normal(size=(200, 1, 2)) + 3.0
    one: Any = ((torch.as_tensor(place), torch.ones(1)) for place in places)
    polish = Polish(lambda t: (t[:, None], torch.ones(1, 1)), torch.ones(2), one, np.ones(1), "2")
    assert polish.run(150, 0.2)[-1] == pytest.approx([3.0, 3.0], abs=0.5)


def test_a_plan_that_cannot_be_found_moves_nothing() -> None:
    """Weights that are negative have none."""
    weights = torch.tensor([[2.0, -1.0]])
    points = torch.zeros(1, 2, 2)
    polish = Polish(
        lambda t: (points + t[:, None], weights), torch.ones(2), batches(Y, Q), np.zeros(2), "2"
    )
    assert polish.run(2, 0.1) == pytest.approx(np.ones((3, 2)))
    assert np.isnan(polish.distance())
