"""Shapes: parameters to weighted points, in torch, so that a critic can pull on the parameters.

A shape is any function θ ↦ (points, weights). It takes a stack of parameters (n_starts, k), all in
the units of the cloud, and gives points (n_starts, m, d) with weights (n_starts, m) that sum to
one. `Circles`, `Ellipses` and `Triangles` are outlines in the plane, one or several at once, of
even density along each; with `background` a learned share of the mass lies evenly in the box of
the cloud, where it absorbs outliers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from isotone.checks import check_choice
from isotone.transport.clouds import Cloud
from isotone.typing import Floats

N_STRETCHES = 12
_GRID = 8  # points of the background along each axis


@dataclass(frozen=True)
class Outlines(ABC):
    """One or several closed curves of one kind.

    Parameters are, for every outline, those of its kind; then, for a free density, the logarithms
    of the densities of its parts; then those of the shares of all outlines and of the background,
    unless there is only one share.

    Parameters
    ----------
    n : how many outlines
    n_points : on each, a multiple of 12; a blurred outline fills an area and needs hundreds
    background : None, or the box (low, high) of the plane in which a part of the mass is even
    blur : the noise of the cloud, if it is known: points scatter by this much around the outline;
        otherwise corners and tight bends come out too small
    density : "even" along the outline, or "free": each twelfth of it has a share of its own. A
        cloud of n points is never even: parts of its outline hold some √n points too many, and a
        shape of even density moves to make up for that
    """

    n: int = 1
    n_points: int = 384
    background: tuple[tuple[float, float], tuple[float, float]] | None = None
    blur: float = 0.0
    density: Literal["even", "free"] = "even"
    n_each: ClassVar[int]  # parameters of one outline

    def __post_init__(self) -> None:
        if self.n < 1 or self.n_points < 1 or self.n_points % N_STRETCHES:
            raise ValueError(
                f"`n={self.n}` must be at least 1 and `n_points={self.n_points}` a multiple of "
                f"{N_STRETCHES}, such as 48"
            )
        check_choice("density", self.density, ("even", "free"))
        if not 0 <= self.blur < math.inf:
            raise ValueError(f"`blur={self.blur}` must be finite and at least 0; choose 0 or 0.1")

    @abstractmethod
    def outline(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Points (..., n_points, 2) and how much of the length each stands for (..., n_points)."""

    @abstractmethod
    def guess(self, center: Floats, size: float) -> Floats:
        """Parameters of an outline at a place and of a size."""

    @property
    def n_shares(self) -> int:
        parts = self.n + (self.background is not None)
        return parts if parts > 1 else 0

    @property
    def n_logs(self) -> int:
        return self.n * N_STRETCHES if self.density == "free" else 0

    def __call__(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        s = len(theta)
        each = theta[:, : self.n * self.n_each].reshape(s, self.n, self.n_each)
        points, lengths = self.outline(each)
        points = points + self.blur * _normals(points.shape[-2]).to(points)
        if self.n_logs:
            first = self.n * self.n_each
            logs = theta[:, first : first + self.n_logs].reshape(s, self.n, -1)
            lengths = lengths * logs.repeat_interleave(lengths.shape[-1] // N_STRETCHES, -1).exp()
        weights = lengths / lengths.sum(dim=-1, keepdim=True)
        if not self.n_shares:
            return points.reshape(s, -1, 2), weights.reshape(s, -1)
        shares = theta[:, -self.n_shares :].softmax(dim=-1)
        flat = (weights * shares[:, : self.n, None]).reshape(s, -1)
        if self.background is None:
            return points.reshape(s, -1, 2), flat
        even = _grid(*self.background).to(points).expand(s, -1, 2)
        rest = (shares[:, -1:] / even.shape[1]).expand(s, even.shape[1])
        return torch.cat([points.reshape(s, -1, 2), even], dim=1), torch.cat([flat, rest], dim=1)

    def units(self, spread: float) -> Floats:
        """The size of a sensible step of every parameter: a length, or 1 for shares."""
        lengths = np.full(self.n * self.n_each, spread)
        return np.concatenate([lengths, np.ones(self.n_logs + self.n_shares)])

    def start(self, cloud: Cloud, n_starts: int, rng: np.random.Generator) -> Floats:
        """Outlines around points of the cloud, of random sizes, (n_starts, k)."""
        shares = cloud.shares()
        center = shares @ cloud.points
        spread = math.sqrt(float((shares @ np.square(cloud.points - center)).sum()))
        thetas = []
        for _ in range(n_starts):
            places = cloud.points[rng.choice(len(cloud), self.n, p=shares)]
            if self.n == 1:
                places = center + 0.3 * (places - center)
            sizes = spread * rng.uniform(0.4, 1.0, self.n) / math.sqrt(self.n)
            each = [self.guess(place, size) for place, size in zip(places, sizes, strict=True)]
            log_shares = np.zeros(self.n_shares)
            if self.background is not None:
                log_shares[-1] = math.log(0.1)
            thetas.append(np.concatenate([*each, np.zeros(self.n_logs), log_shares]))
        return np.array(thetas)


@dataclass(frozen=True)
class Circles(Outlines):
    """Each has a center and a radius: (x, y, r)."""

    n_each: ClassVar[int] = 3

    def outline(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        around = _directions(self.n_points).to(theta)
        points = theta[..., None, :2] + theta[..., None, 2:].abs() * around
        return points, torch.ones_like(points[..., 0])

    def guess(self, center: Floats, size: float) -> Floats:
        return np.array([*center, size])


@dataclass(frozen=True)
class Ellipses(Outlines):
    """Each is center + A (cos t, sin t): (x, y, a₁₁, a₁₂, a₂₁, a₂₂); see `axes`."""

    n_each: ClassVar[int] = 6

    def outline(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        around = _directions(self.n_points).to(theta)
        turned = torch.stack([-around[:, 1], around[:, 0]], dim=1)
        matrix = theta[..., 2:].reshape(*theta.shape[:-1], 2, 2)
        points = theta[..., None, :2] + around @ matrix.transpose(-1, -2)
        return points, (turned @ matrix.transpose(-1, -2)).norm(dim=-1)  # length per unit of t

    def guess(self, center: Floats, size: float) -> Floats:
        return np.array([*center, size, 0.0, 0.0, size])

    @staticmethod
    def axes(theta: Floats) -> Floats:
        """Half-axes of one ellipse, the longer one first."""
        found: Floats = np.linalg.svd(np.reshape(theta[2:6], (2, 2)), compute_uv=False)
        return found


@dataclass(frozen=True)
class Triangles(Outlines):
    """Each has three corners: (x₁, y₁, x₂, y₂, x₃, y₃); the first edge first."""

    n_each: ClassVar[int] = 6

    def outline(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        corners = theta.reshape(*theta.shape[:-1], 3, 1, 2)
        edges = corners.roll(-1, dims=-3) - corners
        n = self.n_points // 3
        along = ((torch.arange(n) + 0.5) / n)[:, None].to(theta)
        points = corners + along * edges
        lengths = edges.norm(dim=-1).expand(*points.shape[:-1])
        shape = theta.shape[:-1]
        return points.reshape(*shape, 3 * n, 2), lengths.reshape(*shape, 3 * n)

    def guess(self, center: Floats, size: float) -> Floats:
        angles = 2 * np.pi * np.arange(3) / 3 + 0.5
        corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return (center + 1.4 * size * corners).ravel()


def _directions(n: int) -> Tensor:
    angles = 2 * torch.pi * (torch.arange(n) + 0.5) / n
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def _normals(n: int) -> Tensor:
    """Fixed standard normal offsets, as even as can be in any row of neighbors, (n, 2).

    Multiples of two irrational numbers fill the square evenly; quantiles make them normal.
    """
    steps = torch.tensor([0.7548776662466927, 0.5698402909980532], dtype=torch.float64)
    filled = (0.5 + torch.outer(torch.arange(1, n + 1).double(), steps)) % 1.0
    offsets: Tensor = torch.special.ndtri(filled)
    return offsets.float()


def _grid(low: tuple[float, float], high: tuple[float, float]) -> Tensor:
    """The centers of equal cells of a box, (cells, 2)."""
    share = (torch.arange(_GRID) + 0.5) / _GRID
    axes = [a + (b - a) * share for a, b in zip(low, high, strict=True)]
    return torch.cartesian_prod(*axes)
