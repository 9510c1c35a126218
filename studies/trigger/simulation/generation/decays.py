"""Decays: hadrons of the library, forced into one channel, again and again.

Using a hadron many times with a new azimuth, charge, lifetime and decay is as good as new hadrons
for features of the decay; training and validation are divided by the library's hadron.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.typing import Floats, Integers
from studies.trigger.simulation.generation.channels import Channel
from studies.trigger.simulation.generation.generators import pythia, seed_of
from studies.trigger.simulation.generation.hadrons import Library
from studies.trigger.simulation.parameters import LIGHT
from studies.trigger.simulation.particles import (
    BEAUTY,
    CHARGED,
    CHARM,
    Batch,
    Hadrons,
    Particles,
    Source,
    pseudorapidity,
)

_TOGETHER = 50  # hadrons in one event of the generator


def decayer(channel: Channel, stretch: float, seed: int) -> Any:
    """A generator of one decay, in which the head of it lives `stretch` times longer.

    What it decays to lives as in nature, so that a decay at a given proper time is the same.
    """
    lines = ["ProcessLevel:all = off", "ParticleDecays:mixB = off", *channel.settings()]
    for pdg in _heavy(channel):
        factor = stretch if pdg == channel.head else 1.0
        lines.append(f"{pdg}:tau0 = {factor * lifetime(pdg)!r}")
    return pythia(lines, seed)


def lifetime(pdg: int) -> float:
    """c tau in mm of the Particle Data Group: Pythia's of the Ξc⁰ is stale."""
    from particle import Particle

    return float(Particle.from_pdgid(pdg).ctau or 0.0)


def decay(
    channel: Channel,
    library: Library,
    n: int,
    stretch: float,
    rng: np.random.Generator,
) -> tuple[Batch, Integers]:
    """Let `n` hadrons of the library decay; the batch, and the row of each hadron used."""
    rows = rng.choice(library.of(channel.species), n)
    generator = decayer(channel, stretch, seed_of(rng))
    mass = generator.particleData.m0(channel.head)
    momentum = _momenta(library.pt[rows], library.eta[rows], rng)
    energy = np.sqrt((momentum**2).sum(axis=1) + mass**2)
    pdg = channel.head * rng.choice([-1, 1], n)
    found: list[tuple[float, ...]] = []
    times: list[float] = []
    for start in range(0, n, _TOGETHER):
        some = slice(start, start + _TOGETHER)
        given = zip(
            pdg[some].tolist(), momentum[some].tolist(), energy[some].tolist(), strict=True
        )
        event = _decay_event(generator, list(given), mass)
        _read(event, start, len(pdg[some]), found, times)
    tracks = rng.choice(library.tracks, n)
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    hadrons = Hadrons(pdg, pt, pseudorapidity(momentum), np.array(times) / LIGHT)
    return Batch(_particles(found, channel), hadrons, tracks), rows


def _heavy(channel: Channel) -> list[int]:
    """The heavy hadrons of a channel."""
    words = " ".join(channel.decays).replace("[22]", "").replace("=", "").split()
    return sorted({abs(int(word)) for word in words} & {*BEAUTY, *CHARM})


def _momenta(pt: Floats, eta: Floats, rng: np.random.Generator) -> Floats:
    phi = rng.uniform(0.0, 2.0 * np.pi, len(pt))
    return np.stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)], axis=1)


def _decay_event(generator: Any, given: list[tuple[int, list[float], float]], mass: float) -> Any:
    """Let some hadrons decay; Pythia draws how long they live."""
    for _ in range(10):
        generator.event.reset()
        for pdg, (px, py, pz), energy in given:
            generator.event.append(pdg, 1, 0, 0, px, py, pz, energy, mass)
        if generator.next():
            return generator.event
    raise RuntimeError(f"Pythia fails to let {given[0][0]} decay; check the channel")


def _read(
    event: Any, first: int, n: int, found: list[tuple[float, ...]], times: list[float]
) -> None:
    """Add the charged products of an event whose rows 1 to n are the hadrons, and their times."""
    origin = list(range(n + 1))
    for row, particle in enumerate(event):
        if row == 0:
            continue
        if row <= n:
            times.append(particle.tau())
            continue
        origin.append(origin[particle.mother1()])
        pdg = particle.id()
        if abs(pdg) in CHARGED and particle.isFinal():
            found.append(
                (
                    *(first + origin[row] - 1, pdg, particle.px(), particle.py(), particle.pz()),
                    *(particle.xProd(), particle.yProd(), particle.zProd()),
                )
            )


def _particles(found: list[tuple[float, ...]], channel: Channel) -> Particles:
    """Particles of decays; each hadron is a collision of its own."""
    values = np.array(found).reshape(-1, 8)
    hadron = values[:, 0].astype(np.int64)
    order = np.argsort(hadron, kind="stable")
    values, hadron = values[order], hadron[order]
    source = np.full(len(values), Source.BEAUTY if channel.is_beauty else Source.CHARM)
    kept = values[:, 4] > 0.0
    particles = Particles(
        *(hadron, values[:, 1].astype(np.int64), values[:, 2:5], values[:, 5:8]),
        *(source.astype(np.int64), hadron),
    )
    return particles[kept]
