"""Material: hadrons that meet a nucleus in the foil or in a module, and what flies on.

The secondaries come from Pythia's hadron-nucleus cascade on silicon.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.typing import Floats, Integers
from studies.trigger.simulation.detector.tracks import crossings
from studies.trigger.simulation.parameters import PLANES, Parameters
from studies.trigger.simulation.particles import (
    CHARGED,
    HADRONS,
    Particles,
    Source,
    pseudorapidity,
)

_SILICON = (14, 28)


def interact(
    particles: Particles, cascade: Any, parameters: Parameters, rng: np.random.Generator
) -> Particles:
    """Particles after the material: some are lost, and secondaries start where they were."""
    rows, points = interactions(particles, parameters, rng)
    survivors = np.ones(len(particles), dtype=bool)
    survivors[rows] = False
    return particles[survivors] + secondaries(particles[rows], points, cascade)


def interactions(
    particles: Particles, parameters: Parameters, rng: np.random.Generator
) -> tuple[Integers, Floats]:
    """The rows of hadrons (p > 3) that meet a nucleus, and where, (n, 3).

    A path of thickness d and interaction length λ has depth d/λ; the depth at which a hadron
    interacts is exponential.
    """
    fast = (particles.momentum**2).sum(axis=1) > parameters.min_momentum**2
    rows = np.flatnonzero(fast & np.isin(np.abs(particles.pdg), HADRONS))
    some = particles[rows]
    foil_z = foil_crossings(some, parameters, rng)
    depth = np.column_stack(
        [
            np.isfinite(foil_z) * (parameters.foil / parameters.foil_length),
            crossings(some.origin, some.slopes, parameters)
            * (parameters.module / parameters.module_length),
        ]
    ).cumsum(axis=1)
    reach = rng.exponential(size=len(rows))
    hit = np.flatnonzero(reach < depth[:, -1])
    layer = (depth[hit] > reach[hit, None]).argmax(axis=1)
    z = np.where(layer == 0, foil_z[hit], PLANES[layer - 1])
    origin = some.origin[hit]
    xy = origin[:, :2] + some.slopes[hit] * (z - origin[:, 2])[:, None]
    return rows[hit], np.column_stack([xy, z])


def foil_crossings(
    particles: Particles, parameters: Parameters, rng: np.random.Generator
) -> Floats:
    """z where particles cross the foil, a corrugated pipe inside the modules, or infinity."""
    spread = parameters.foil_spread
    radius = parameters.foil_radius + rng.uniform(-spread, spread, len(particles))
    xy, slope = particles.origin[:, :2], particles.slopes
    a, b = (slope**2).sum(axis=1), (xy * slope).sum(axis=1)
    c = (xy**2).sum(axis=1) - radius**2
    z = particles.origin[:, 2] + (-b + np.sqrt(np.maximum(b * b - a * c, 0.0))) / a
    inside = (c < 0) & (z > PLANES[0]) & (z < PLANES[-1])
    return np.where(inside, z, np.inf)


def secondaries(hadrons: Particles, points: Floats, cascade: Any) -> Particles:
    """Charged particles with p > 1 and 1.8 < eta < 5.2 that the nuclei send on."""
    from pythia8mc import Vec4

    found: list[tuple[float, ...]] = []
    masses = cascade.particleData()
    nowhere = Vec4(0.0, 0.0, 0.0, 0.0)
    given = zip(hadrons.pdg.tolist(), hadrons.momentum.tolist(), strict=True)
    for row, (pdg, (px, py, pz)) in enumerate(given):
        mass = masses.m0(pdg)
        energy = (px * px + py * py + pz * pz + mass * mass) ** 0.5
        if cascade.sigmaSetuphN(pdg, Vec4(px, py, pz, energy), mass):
            for q in cascade.nextColl(*_SILICON, nowhere):
                if q.pz() > 0.9 and abs(q.id()) in CHARGED and q.isFinal():
                    found.append((row, q.id(), q.px(), q.py(), q.pz()))
    values = np.array(found).reshape(-1, 5)
    start, momentum = values[:, 0].astype(np.int64), values[:, 2:]
    eta = pseudorapidity(momentum)
    kept = (np.linalg.norm(momentum, axis=1) > 1.0) & (eta > 1.8) & (eta < 5.2)
    return Particles(
        *(hadrons.collision[start], values[:, 1].astype(np.int64), momentum, points[start]),
        *(np.full(len(start), int(Source.MATERIAL)), np.full(len(start), -1)),
    )[kept]
