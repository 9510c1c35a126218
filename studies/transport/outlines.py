"""Clouds around a circle, an ellipse or a triangle, with noise and outliers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from isotone.transport import Circles, Ellipses, Outlines, Triangles
from isotone.typing import Floats

BOX = ((-2.5, -2.5), (2.5, 2.5))
NOISE = 0.1
OUTLIERS = 0.1  # share of the points, evenly in the box
KINDS: dict[str, type[Outlines]] = {
    "circle": Circles,
    "ellipse": Ellipses,
    "triangle": Triangles,
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Points around one outline, and what they were drawn from.

    Parameters
    ----------
    truth : center and radius; center and half-axes; or three corners
    """

    kind: str
    points: Floats
    truth: Floats

    def error(self, theta: Floats) -> float:
        """The largest deviation of a center, a length or a corner."""
        if self.kind == "circle":
            found = np.array([*theta[:2], abs(theta[2])])
        elif self.kind == "ellipse":
            found = np.array([*theta[:2], *Ellipses.axes(theta)])
        else:
            corners, true = theta[:6].reshape(3, 2), self.truth.reshape(3, 2)
            gaps = [
                np.linalg.norm(corners[list(o)] - true, axis=1) for o in permutations(range(3))
            ]
            return float(min(gap.max() for gap in gaps))
        return float(np.abs(found - self.truth).max())


def draw_sample(kind: str, seed: int, n: int = 500) -> Sample:
    rng = np.random.default_rng(seed)
    if kind == "triangle":
        points, truth = _triangle(rng, n)
    else:
        points, truth = _ellipse(rng, n, round_one=kind == "circle")
    points = points + NOISE * rng.normal(size=points.shape)
    stray = int(OUTLIERS * n)
    points[:stray] = rng.uniform(*BOX, size=(stray, 2))
    return Sample(kind, points, truth)


def _ellipse(rng: np.random.Generator, n: int, *, round_one: bool) -> tuple[Floats, Floats]:
    center, turn = rng.uniform(-1, 1, 2), rng.uniform(0, np.pi)
    long = rng.uniform(1.0, 1.4)
    short = long if round_one else rng.uniform(0.5, 0.8)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    fine = np.linspace(0, 2 * np.pi, 10_000, endpoint=False)
    speed = np.hypot(long * np.sin(fine), short * np.cos(fine))
    angle = rng.choice(fine, n, p=speed / speed.sum())  # even along the outline
    flat = np.stack([long * np.cos(angle), short * np.sin(angle)], axis=1)
    lengths = [long] if round_one else [long, short]
    return center + flat @ rotation.T, np.array([*center, *lengths])


def _triangle(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Corners with no angle below about 40 degrees."""
    while True:
        corners = rng.uniform(-1.8, 1.8, size=(3, 2))
        edges = np.roll(corners, -1, axis=0) - corners
        lengths = np.linalg.norm(edges, axis=1)
        area = 0.5 * abs(edges[0, 0] * edges[1, 1] - edges[0, 1] * edges[1, 0])
        if lengths.min() > 1.2 and area > 0.3 * lengths.max() ** 2:
            break
    edge = rng.choice(3, n, p=lengths / lengths.sum())
    return corners[edge] + rng.random((n, 1)) * edges[edge], corners.ravel()
