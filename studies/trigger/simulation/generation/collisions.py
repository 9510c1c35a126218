"""Collisions: inelastic proton collisions of Pythia 8, with the heavy ancestors of all tracks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.typing import Bools, Floats, Integers
from studies.trigger.simulation.generation.generators import pythia
from studies.trigger.simulation.parameters import LIGHT, Parameters
from studies.trigger.simulation.particles import (
    BEAUTY,
    CHARGED,
    CHARM,
    NEUTRAL,
    STRANGE,
    Batch,
    Hadrons,
    Particles,
    Source,
    pseudorapidity,
)


def collider(parameters: Parameters, process: str, seed: int) -> Any:
    """A generator of collisions in which all with c tau below a meter decays."""
    return pythia(
        [
            f"Beams:eCM = {parameters.energy}",
            f"SoftQCD:{process} = on",
            "ParticleDecays:limitTau0 = on",
            f"ParticleDecays:tau0Max = {parameters.lifetime_limit}",
        ],
        seed,
    )


def collide(generator: Any, n: int) -> Batch:
    """The next `n` collisions."""
    record = Record.of(generator.nextBatch(n))
    while len(record.counts) < n:  # a collision that failed is left out by the generator
        record = record + Record.of(generator.nextBatch(n - len(record.counts)))
    return batch_of(record)


@dataclass(frozen=True, eq=False)
class Record:
    """The particles of some events, one after the other; mothers are rows of the same record."""

    counts: Integers
    pdg: Integers
    status: Integers
    mother: Integers
    momentum: Floats
    origin: Floats
    tau: Floats

    @classmethod
    def of(cls, events: Any) -> Record:
        import awkward as ak

        particles = events.prt
        counts = ak.num(particles.id).to_numpy().astype(np.int64)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        flat = ak.flatten(particles)

        def column(values: Any) -> Any:
            return ak.to_numpy(ak.fill_none(values, 0.0))

        return cls(
            counts,
            column(flat.id).astype(np.int64),
            column(flat.status).astype(np.int64),
            column(flat.mother1).astype(np.int64) + first,
            np.stack([column(flat.p[name]) for name in ("px", "py", "pz")], axis=1),
            np.stack([column(flat.vProd[name]) for name in ("px", "py", "pz")], axis=1),
            column(flat.tau),
        )

    def __add__(self, other: Record) -> Record:
        def both(name: str) -> Any:
            return np.concatenate([getattr(self, name), getattr(other, name)])

        mother = np.concatenate([self.mother, other.mother + len(self.pdg)])
        names = "momentum", "origin", "tau"
        return Record(both("counts"), both("pdg"), both("status"), mother, *map(both, names))


def batch_of(record: Record) -> Batch:
    """What the detector model needs of a record."""
    collision = np.repeat(np.arange(len(record.counts)), record.counts)
    kind, p = np.abs(record.pdg), np.linalg.norm(record.momentum, axis=1)
    final = record.status > 0
    charged = final & np.isin(kind, CHARGED)
    rows = np.flatnonzero(final & (charged | np.isin(kind, NEUTRAL)) & (p > 0.3))
    eta = pseudorapidity(record.momentum[rows])
    vertex = charged[rows] & (np.abs(eta) > 1.8) & (np.abs(eta) < 5.0)
    tracks = np.bincount(collision[rows][vertex], minlength=len(record.counts))
    rows = rows[(eta > 1.8) & (eta < 5.2) & (p[rows] > 1.0)]
    strange, charm, beauty = ancestors(record, rows)
    heavy = np.where(beauty >= 0, beauty, charm)
    source = np.select(
        [beauty >= 0, charm >= 0, strange >= 0],
        [Source.BEAUTY, Source.CHARM, Source.STRANGE],
        Source.PROMPT,
    )
    unique, index = np.unique(heavy, return_inverse=True)
    offset = int(len(unique) > 0 and unique[0] < 0)  # the row of "none", if any
    particles = Particles(
        *(collision[rows], record.pdg[rows], record.momentum[rows], record.origin[rows]),
        *(source.astype(np.int64), index.reshape(-1) - offset),
    )
    return Batch(particles, hadrons_of(record, unique[offset:]), tracks)


def ancestors(record: Record, rows: Integers) -> tuple[Integers, Integers, Integers]:
    """The first strange, charm and beauty hadron above each row that decays weakly, or -1.

    Only products of decays (status 91 to 99) have a decayed mother, so the walk ends early.
    """
    found = [np.full(len(rows), -1) for _ in range(3)]
    current = rows.copy()
    active: Bools = np.ones(len(rows), dtype=bool)
    while active.any():
        status = np.abs(record.status[current])
        active = active & (status >= 91) & (status <= 99)
        current = np.where(active, record.mother[current], current)
        kind = np.abs(record.pdg[current])
        for first, family in zip(found, (STRANGE, CHARM, BEAUTY), strict=True):
            new = active & np.isin(kind, family) & (first < 0)
            first[new] = current[new]
    return found[0], found[1], found[2]


def hadrons_of(record: Record, rows: Integers) -> Hadrons:
    """Heavy hadrons at some rows; Pythia gives c tau in mm."""
    momentum = record.momentum[rows]
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    return Hadrons(record.pdg[rows], pt, pseudorapidity(momentum), record.tau[rows] / LIGHT)
