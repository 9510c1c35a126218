"""The detector: which particles become tracks, and how well they are measured.

A track is a straight line through the planes of a vertex detector, with a momentum. Positions and
slopes are smeared, and the track carries the variances that a fit would give it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from isotone.typing import Bools, Floats, Integers
from studies.trigger.simulation.parameters import PLANES, Parameters
from studies.trigger.simulation.particles import CHARGED, Particles, pseudorapidity


@dataclass(frozen=True, eq=False)
class Tracks:
    """Measured tracks, sorted by collision.

    Parameters
    ----------
    collision, particle, source, heavy : (n,); two tracks of one `particle` are clones
    z : (n,) of the first plane
    position, slope : (n, 2) measured x and y at z, dx/dz and dy/dz
    position_variance, slope_variance : (n,) of x, and the same of y, as the fit believes
    p : (n,) measured momentum
    """

    collision: Integers
    particle: Integers
    source: Integers
    heavy: Integers
    z: Floats
    position: Floats
    slope: Floats
    position_variance: Floats
    slope_variance: Floats
    p: Floats

    def __len__(self) -> int:
        return len(self.p)

    def __getitem__(self, rows: Bools | Integers) -> Tracks:
        return Tracks(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __add__(self, other: Tracks) -> Tracks:
        """Both, sorted by collision."""
        names = [field.name for field in fields(self)]
        both = Tracks(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))
        return both[np.argsort(both.collision, kind="stable")]

    @property
    def direction(self) -> Floats:
        """Unit vectors (n, 3)."""
        ahead = np.column_stack([self.slope, np.ones(len(self))])
        return np.asarray(ahead / np.linalg.norm(ahead, axis=1, keepdims=True))

    @property
    def momentum(self) -> Floats:
        return self.p[:, None] * self.direction

    @property
    def pt(self) -> Floats:
        return np.asarray(self.p * np.hypot(*self.direction.T[:2]))

    def at(self, z: Floats) -> Floats:
        """x and y at z, (n, 2)."""
        return self.position + self.slope * (z - self.z)[:, None]

    def variance(self, z: Floats) -> Floats:
        """Of x, and the same of y, at z: sigma_x^2 + (z - z_1)^2 sigma_t^2."""
        return self.position_variance + (z - self.z) ** 2 * self.slope_variance


@dataclass(frozen=True, eq=False)
class Segments:
    """How particles cross the planes: number, first plane and lever arm."""

    n: Integers
    z: Floats
    length: Floats


def crossings(origin: Floats, slope: Floats, parameters: Parameters) -> Bools:
    """Which planes, downstream of where they start, straight lines cross in the active ring."""
    dz = PLANES - origin[:, 2:]
    x = origin[:, :1] + slope[:, :1] * dz
    y = origin[:, 1:2] + slope[:, 1:] * dz
    r2 = x * x + y * y
    inner, outer = parameters.inner_radius**2, parameters.outer_radius**2
    return np.asarray((dz > 0) & (r2 > inner) & (r2 < outer))


def segments(crossed: Bools) -> Segments:
    first = PLANES[crossed.argmax(axis=1)]
    last = PLANES[len(PLANES) - 1 - crossed[:, ::-1].argmax(axis=1)]
    return Segments(crossed.sum(axis=1), first, last - first)


def variances(hits: Segments, p: Floats, parameters: Parameters) -> tuple[Floats, Floats]:
    r"""Variances of position and slope at the first of N planes.

    .. math::
        \sigma_x^2 = \sigma_h^2 \frac{2(2N-1)}{N(N+1)}, \quad
        \sigma_t^2 = \frac{\sigma_h^2}{L^2} \frac{12(N-1)}{N(N+1)} + (\kappa/p)^2
    """
    n, hit2 = hits.n.astype(float), parameters.hit_error**2
    position = hit2 * 2 * (2 * n - 1) / (n * (n + 1))
    slope = hit2 * 12 * (n - 1) / (n * (n + 1)) / hits.length**2
    return position, slope + (parameters.scattering / p) ** 2


def measure(
    particles: Particles,
    rows: Integers,
    hits: Segments,
    parameters: Parameters,
    rng: np.random.Generator,
) -> Tracks:
    """Smeared tracks of some rows of particles; 5 % have larger slope errors than they believe."""
    some, n = particles[rows], len(rows)
    p = some.p
    relative = np.hypot(parameters.momentum_floor, parameters.momentum_slope * p)
    measured = p * np.maximum(1.0 + relative * rng.normal(size=n), 0.1)
    position_variance, slope_variance = variances(hits, p, parameters)
    tail = np.where(rng.random(n) < parameters.tail_share, parameters.tail_factor, 1.0)
    errors = rng.normal(size=(2, n, 2))
    position = some.origin[:, :2] + some.slopes * (hits.z - some.origin[:, 2])[:, None]
    position = position + errors[0] * np.sqrt(position_variance)[:, None]
    slope = some.slopes + errors[1] * (tail * np.sqrt(slope_variance))[:, None]
    return Tracks(
        *(some.collision, rows, some.source, some.heavy, hits.z, position, slope),
        *(*variances(hits, measured, parameters), measured),
    )


def reconstruct(
    particles: Particles, parameters: Parameters, rng: np.random.Generator
) -> tuple[Tracks, Tracks]:
    """Long tracks, and the segments of all charged particles, of which ghosts are made.

    A long track crosses three planes and has 2 < eta < 5 and p > 3; 95 % of them are found.
    """
    rows = np.flatnonzero(np.isin(np.abs(particles.pdg), CHARGED))
    some = particles[rows]
    crossed = crossings(some.origin, some.slopes, parameters)
    enough = crossed.sum(axis=1) >= parameters.min_planes
    rows, crossed = rows[enough], crossed[enough]
    found = measure(particles, rows, segments(crossed), parameters, rng)
    true = particles[rows]
    eta = pseudorapidity(true.momentum)
    long = (eta > 2.0) & (eta < 5.0) & (true.p > parameters.min_momentum)
    long &= rng.random(len(rows)) < parameters.track_efficiency
    return found[long], found
