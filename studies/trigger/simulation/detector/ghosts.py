"""Ghosts: segments of real particles with a momentum that is made up.

A straight line is the simplest way through a detector and means a large momentum, so ghosts have
a tail in p_T; and as their covariance believes the made-up momentum, segments of slow particles
seem far from the collision.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isotone.typing import Integers
from studies.trigger.simulation.detector.tracks import Tracks
from studies.trigger.simulation.parameters import Parameters
from studies.trigger.simulation.particles import Source, pseudorapidity


def make_ghosts(
    long: Tracks, found: Tracks, n: int, parameters: Parameters, rng: np.random.Generator
) -> Tracks:
    """Ghosts of `n` collisions: Poisson in the number of long tracks, from all segments found.

    Parameters
    ----------
    found : segments of all charged particles, measured with their true momenta
    """
    rows = _draw(long.collision, found.collision, n, parameters.ghosts, rng)
    some = found[rows]
    smallest, largest = 1 / parameters.ghost_momentum, 1 / parameters.min_momentum
    p = 1 / rng.uniform(smallest, largest, len(rows))
    # the part of the slope variance that comes from scattering, now for the made-up momentum
    hits = some.slope_variance - (parameters.scattering / some.p) ** 2
    variance = np.maximum(hits, 0.0) + (parameters.scattering / p) ** 2
    false = rng.random(len(rows)) < parameters.false_share
    kick = false * rng.exponential(parameters.false_kick, len(rows))
    angle = rng.uniform(0.0, 2.0 * np.pi, len(rows))
    slope = some.slope + kick[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    ghosts = replace(
        some,
        slope=slope,
        slope_variance=variance,
        p=p,
        source=np.full(len(rows), int(Source.GHOST)),
        heavy=np.full(len(rows), -1),
    )
    eta = pseudorapidity(ghosts.direction)
    return ghosts[(eta > 2.0) & (eta < 5.0)]


def _draw(
    long: Integers, found: Integers, n: int, rate: float, rng: np.random.Generator
) -> Integers:
    """Rows of `found`, which is sorted, for a Poisson number of ghosts in every collision."""
    available = np.bincount(found, minlength=n)
    first = np.cumsum(available) - available
    counts = rng.poisson(rate * np.bincount(long, minlength=n)) * (available > 0)
    collision = np.repeat(np.arange(n), counts)
    chosen = (rng.random(len(collision)) * available[collision]).astype(np.int64)
    return np.asarray(first[collision] + chosen)
