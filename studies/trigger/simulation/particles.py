"""Particles: what flies out of a collision, before any detector, as columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from isotone.typing import Bools, Floats, Integers

CHARGED = (11, 13, 211, 321, 2212)
NEUTRAL = (130, 2112)
#: those that interact with nuclei
HADRONS = (130, 211, 321, 2112, 2212)
#: hadrons that decay weakly
BEAUTY = (511, 521, 531, 541, 5122, 5132, 5232, 5332)
CHARM = (411, 421, 431, 4122, 4132, 4232, 4332)
STRANGE = (310, 3112, 3122, 3222, 3312, 3322, 3334)


class Source(IntEnum):
    """Where a track comes from."""

    PROMPT = 0
    STRANGE = 1
    MATERIAL = 2
    GHOST = 3
    CHARM = 4
    BEAUTY = 5


@dataclass(frozen=True, eq=False)
class Particles:
    """Charged and long-lived neutral particles, sorted by collision.

    Parameters
    ----------
    collision : (n,) number of the collision within its batch
    pdg : (n,)
    momentum : (n, 3)
    origin : (n, 3) where it was made
    source : (n,) of `Source`
    heavy : (n,) row of the heavy hadron it descends from, or -1
    """

    collision: Integers
    pdg: Integers
    momentum: Floats
    origin: Floats
    source: Integers
    heavy: Integers

    def __len__(self) -> int:
        return len(self.pdg)

    def __getitem__(self, rows: Bools | Integers) -> Particles:
        return Particles(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __add__(self, other: Particles) -> Particles:
        """Both, sorted by collision."""
        names = [field.name for field in fields(self)]
        both = Particles(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))
        return both[np.argsort(both.collision, kind="stable")]

    @property
    def p(self) -> Floats:
        return np.asarray(np.linalg.norm(self.momentum, axis=1))

    @property
    def slopes(self) -> Floats:
        """dx/dz and dy/dz, (n, 2)."""
        return self.momentum[:, :2] / self.momentum[:, 2:]


@dataclass(frozen=True, eq=False)
class Hadrons:
    """Heavy hadrons that decay weakly: p_T, pseudorapidity and proper time [ps]."""

    pdg: Integers
    pt: Floats
    eta: Floats
    proper_time: Floats


@dataclass(frozen=True, eq=False)
class Batch:
    """Collisions, or signal hadrons in place of collisions.

    Parameters
    ----------
    tracks : (n,) charged tracks that the primary vertex is made of
    """

    particles: Particles
    hadrons: Hadrons
    tracks: Integers

    def __len__(self) -> int:
        return len(self.tracks)


def pseudorapidity(vector: Floats) -> Floats:
    """eta = artanh(z / r) of the directions (n, 3), infinite along the beam."""
    transverse = np.hypot(vector[..., 0], vector[..., 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.arcsinh(vector[..., 2] / transverse))
