"""Toys: the data of the paper's examples, drawn from a seed.

The paper leaves numbers open: how many points, where they lie, how strong the noise is, the
frequency of the flower, how the moons are drawn. They are chosen here, once, and stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.datasets import make_moons

from isotone.typing import Floats

OUTLIER = 20  # index of the point with unit noise


@dataclass(frozen=True)
class Toy:
    """Rows to learn from, with the λ to use and whether the function is to increase."""

    x: Floats
    y: Floats
    lipschitz: float = 1.0
    monotone: bool = False


def absolute() -> Toy:
    """|x| on [-1, 1] (Sec. 2.2)."""
    x = np.linspace(-1.0, 1.0, 201)[:, None]
    return Toy(x, np.abs(x[:, 0]))


def outlier(seed: int = 0) -> Toy:
    """sin x + ε with σ = 0.01, and σ = 1 at one of 60 points, Eq. 10."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 2.0 * math.pi, 60)
    sigma = np.full(len(x), 0.01)
    sigma[OUTLIER] = 1.0
    return Toy(x[:, None], np.sin(x) + sigma * rng.normal(size=len(x)))


def logarithm(seed: int = 0, gap: tuple[float, float] = (6.0, 6.0)) -> Toy:
    """log x + ε at 30 points of [1, 6] outside of a gap; the variance of ε is 0.01 x, Eq. 11."""
    rng = np.random.default_rng(seed)
    low, high = gap
    n_low = 30 if high >= 6.0 else 15
    x = np.concatenate([np.linspace(1.0, low, n_low), np.linspace(high, 6.0, 30 - n_low)])
    return Toy(x[:, None], np.log(x) + 0.1 * np.sqrt(x) * rng.normal(size=30), 1.0, True)


def flower(n: int = 200) -> Toy:
    """Three closed curves labeled 0, 0.5 and 1; the middle one has r = 1.5, α = 0.18, Eq. 12."""
    angle = np.linspace(0.0, 2.0 * math.pi, n, endpoint=False)
    radius = 1.5 + 0.18 * np.cos(12 * angle)
    curve = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x = np.concatenate([scale * curve for scale in (2 / 3, 1.0, 4 / 3)])
    return Toy(x, np.repeat([0.0, 0.5, 1.0], n), 2.0)


def moons(seed: int, n: int = 1000) -> Toy:
    """Two moons, separable but close; labels 0 and 1."""
    x, labels = make_moons(n, noise=0.05, random_state=seed)
    return Toy(np.asarray(x), labels.astype(np.float64))


def steep(toy: Toy) -> Toy:
    """The same shape, four times as high: λ grows, too."""
    return replace(toy, y=4.0 * toy.y, lipschitz=4.0 * toy.lipschitz)


TOYS: dict[str, Callable[[], Toy]] = {
    "|x|": absolute,
    "outlier": outlier,
    "logarithm": logarithm,
    "flower": flower,
}
