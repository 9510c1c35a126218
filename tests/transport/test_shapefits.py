"""Shapes: points where they belong; fits that find them; flows that arrive."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from isotone.inputs.scaling import Scaling
from isotone.transport.clouds import Cloud
from isotone.transport.critics import Critics, draws
from isotone.transport.fits import Turns, fit_shape, flow
from isotone.transport.shapes import Circles, Ellipses, Outlines, Triangles

BOX = ((-1.0, -1.0), (1.0, 1.0))
KINDS: list[type[Outlines]] = [Circles, Ellipses, Triangles]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("background", [None, BOX])
@pytest.mark.parametrize("density", ["even", "free"])
def test_shapes_give_points_and_weights_that_sum_to_one(
    kind: type[Outlines], n: int, background: Any, density: Any
) -> None:
    shape = kind(n, background=background, density=density, blur=0.1)
    cloud = Cloud.of(np.random.default_rng(0).normal(size=(20, 2)))
    theta = shape.start(cloud, 4, np.random.default_rng(0))
    assert theta.shape == (4, len(shape.units(2.0)))
    points, weights = shape(torch.as_tensor(theta))
    m = n * shape.n_points + (64 if background else 0)
    assert points.shape == (4, m, 2)
    assert torch.allclose(weights.sum(dim=1), torch.ones(4, dtype=weights.dtype))
    assert bool((weights > 0).all())


def test_points_lie_on_their_outlines() -> None:
    circle, _ = Circles()(torch.tensor([[1.0, 2.0, -3.0]]))
    assert torch.allclose((circle[0] - torch.tensor([1.0, 2.0])).norm(dim=1), torch.tensor(3.0))
    ellipse, weights = Ellipses(n_points=1200)(torch.tensor([[0.0, 0.0, 2.0, 0.0, 0.0, 1.0]]))
    assert torch.allclose((ellipse[0] / torch.tensor([2.0, 1.0])).norm(dim=1), torch.tensor(1.0))
    gaps = (ellipse[0].roll(-1, 0) - ellipse[0]).norm(dim=1)
    assert torch.allclose(weights[0], gaps / gaps.sum(), rtol=0.02)  # even along the outline
    assert Ellipses.axes(np.array([0, 0, 0.0, -1.0, 2.0, 0.0])) == pytest.approx([2.0, 1.0])
    corners = torch.tensor([[0.0, 0.0, 4.0, 0.0, 0.0, 3.0]])
    triangle, weights = Triangles(n_points=12)(corners)
    assert triangle[0, 0].tolist() == [0.5, 0.0]
    sides = weights.reshape(3, 4).sum(dim=1) * 12
    assert sides.tolist() == pytest.approx([4.0, 5.0, 3.0])


def ring(center: Any, radius: float, n: int) -> Any:
    t = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.asarray(center) + radius * np.stack([np.cos(t), np.sin(t)], axis=1)


def test_a_circle_is_found_in_any_unit() -> None:
    turns = Turns(steps=100, critic_steps=3)
    for unit in (1.0, 2.0**30):
        cloud = unit * ring([3.0, -1.0], 2.0, 60)
        fit = fit_shape(Circles(), cloud, n_starts=2, turns=turns, random_state=0)
        assert fit.theta / unit == pytest.approx([3.0, -1.0, 2.0], abs=0.15)
        # 60 points, 2π 2 / 60 apart: mass of the shape has a quarter of that to go, on average
        assert fit.distance / unit == pytest.approx(2.0 * np.pi / 60 / 2, rel=0.02)
        assert fit.film.shape[1:] == (3,)
        assert np.array_equal(fit.film[-1], fit.theta)


def test_a_polish_ends_nearer_than_it_began() -> None:
    rng = np.random.default_rng(0)
    cloud = ring([1.0, 0.0], 1.0, 200) + 0.1 * rng.normal(size=(200, 2))
    shape, turns = Circles(n_points=192, blur=0.1), Turns(steps=30, critic_steps=2, warm_up=20)
    fits = [
        fit_shape(shape, cloud, n_starts=2, turns=replace(turns, polish=n), random_state=0)
        for n in (0, 30)
    ]
    rough, fine = (np.abs(fit.theta - [1.0, 0.0, 1.0]).max() for fit in fits)
    assert fine < 0.5 * rough
    assert fine < 0.05
    assert fits[0].distance == fits[0].distances.min()
    assert np.array_equal(fits[0].thetas, fits[1].thetas)  # all starts, before the polish
    assert np.array_equal(fits[1].film[-1], fits[1].theta)


def test_offsets_are_normal_in_every_row_of_neighbors() -> None:
    sharp = Circles(n_points=384)(torch.tensor([[0.0, 0.0, 5.0]]))[0][0]
    blurred = Circles(n_points=384, blur=0.5)(torch.tensor([[0.0, 0.0, 5.0]]))[0][0]
    offsets = ((blurred - sharp) / 0.5).reshape(8, 48, 2)
    assert float(offsets.mean(dim=1).square().mean()) < 0.5 / 48  # free draws: 1 / 48
    assert torch.allclose(offsets.std(dim=1), torch.tensor(1.0), atol=0.15)
    assert abs(float((offsets[..., 0] * offsets[..., 1]).mean())) < 0.05


def test_a_shape_of_ones_own_and_weights() -> None:
    """One point, pulled by a heavy point and a light one, ends at the heavy one: the median."""

    def point(theta: Tensor) -> tuple[Tensor, Tensor]:
        return theta[:, None], torch.ones(len(theta), 1)

    cloud = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    turns = Turns(steps=150, critic_steps=3)
    fit = fit_shape(
        point, cloud, [3.0, 1.0], start=[3.0, 1.0, 1.0], units=[2.0] * 3, turns=turns,
        random_state=0,
    )  # fmt: skip
    assert np.linalg.norm(fit.theta) < 0.3
    again = fit_shape(
        point, cloud, [3.0, 1.0], start=[3.0, 1.0, 1.0], units=[2.0] * 3, turns=turns,
        random_state=0,
    )  # fmt: skip
    assert np.array_equal(fit.theta, again.theta)


def test_a_flow_carries_one_cloud_onto_another() -> None:
    P, Q = ring([0.0, 0.0], 0.5, 40), ring([3.0, 0.0], 1.0, 40)
    film = flow(P, Q, steps=40, frames=3, critic_steps=5, random_state=0)
    assert film.shape == (3, 40, 2)
    assert film[0] == pytest.approx(P, abs=1e-6)
    assert np.linalg.norm(film[-1].mean(axis=0) - [3.0, 0.0]) < 0.3


def test_draws_follow_the_weights() -> None:
    cloud = Cloud.of(np.arange(100.0)[:, None], np.r_[np.ones(50), np.full(50, 3.0)])
    batches = draws(cloud, Scaling.identity(1), 40, seed=0)
    drawn = torch.cat([next(batches)[0] for _ in range(50)])
    assert float((drawn >= 50).float().mean()) == pytest.approx(0.75, abs=0.01)
    assert len(torch.unique(drawn)) == 100


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        (Circles(), {"Q": np.zeros((3, 3))}, "outlines lie in the plane but `Q` has 3 columns"),
        (lambda t: (t[:, None], t), {}, "`start` is missing; a shape of your own needs it"),
        (lambda t: (t, t), {"start": [0.0, 0.0]}, r"the shape gave points \(1, 2\) and weights"),
        (
            lambda t: (t[:, None], torch.full((len(t), 1), 2.0)),
            {"start": [0.0, 0.0]},
            "weights that do not sum to one",
        ),
        (
            lambda t: (t[:, None].repeat(1, 2, 1), torch.tensor([[2.0, -1.0]]).repeat(len(t), 1)),
            {"start": [0.0, 0.0]},
            "or negative weights",
        ),
        (
            lambda t: (torch.zeros(2, 1, 2), torch.ones(2, 1)),
            {"start": [[0.0, 0.0], [1.0, 1.0]]},
            r"for 1 starts they must be \(1, m, 2\)",
        ),
        (Circles(), {"start": [0.0, 0.0]}, "give finite parameters"),
        (Circles(), {"n_starts": 0}, "`n_starts=0` must be a whole number"),
    ],
)
def test_fits_that_cannot_be_made_are_refused(shape: Any, options: Any, message: str) -> None:
    arguments = {"Q": ring([0.0, 0.0], 1.0, 5)} | options
    with pytest.raises(ValueError, match=message):
        fit_shape(shape, **arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Circles(n=0), "`n=0` must be at least 1"),
        (lambda: Circles(n_points=50), "`n_points=50` a multiple of 12"),
        (lambda: Triangles(density="odd"), "`density='odd'` is unknown; choose from"),  # type: ignore[arg-type]
        (lambda: Ellipses(blur=-1.0), "`blur=-1.0` must be finite and at least 0"),
        (lambda: Turns(steps=0), "`steps=0` must be a whole number of at least 1"),
        (lambda: Turns(steps=1.5), "`steps=1.5` must be a whole number"),  # type: ignore[arg-type]
        (lambda: Turns(polish=-1), "`polish=-1` must be a whole number of at least 0"),
        (lambda: Turns(polish=0.5), "`polish=0.5` must be a whole"),  # type: ignore[arg-type]
        (lambda: flow([[0.0]], [[1.0]], steps=0), "`steps=0` must be a whole number"),
        (lambda: flow([[0.0]], [[1.0]], frames=0), "`frames=0` must be a whole number"),
        (lambda: flow([[0.0]], [[1.0]], critic_steps=0), "`critic_steps=0` must be a whole"),
        (lambda: Turns(critic_rate=0.0), "`critic_rate=0.0` must be positive"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_members_learn_from_their_own_points() -> None:
    """Each critic of a stack sees its own shape."""
    critics = Critics(1, 2, widths=(8,), group_size=None, seed=0)
    P = torch.tensor([[[0.0]], [[2.0]]])
    Q, one = torch.tensor([[1.0]]), torch.ones(1)
    for _ in range(200):
        values = critics.ascend(P, one, Q, one, rate=0.02)
    assert values.tolist() == pytest.approx([1.0, 1.0], abs=0.1)
    assert critics(torch.tensor([[5.0]]))[0, 0] < critics(torch.tensor([[0.0]]))[0, 0]
