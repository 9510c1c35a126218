"""The hadron library: kinematics of beauty and charm hadrons, from hard collisions.

Multiparton interactions are off and both hemispheres are folded onto one, which is exact by
symmetry, so thousands come in a second. No gluon splitting: the p_T is softer than in inelastic
collisions, and accepted as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from isotone.typing import Floats, Integers
from studies.trigger.simulation.generation.collisions import Record, collide, collider
from studies.trigger.simulation.generation.generators import pythia
from studies.trigger.simulation.parameters import Parameters
from studies.trigger.simulation.particles import BEAUTY, CHARM, pseudorapidity

_BATCH = 2000


@dataclass(frozen=True, eq=False)
class Library:
    """Hadrons by p_T and pseudorapidity, and track counts of collisions.

    Parameters
    ----------
    pdg, pt, eta : (n,) without sign
    tracks : of primary vertices with more than 20 tracks
    """

    pdg: Integers
    pt: Floats
    eta: Floats
    tracks: Integers

    def of(self, species: int) -> Integers:
        """The rows of one species."""
        rows = np.flatnonzero(self.pdg == species)
        if not len(rows):
            raise ValueError(f"the library has no hadron {species}; make it larger")
        return rows


def make_hadrons(parameters: Parameters, quark: str, n: int, seed: int) -> pa.Table:
    """Weakly decaying hadrons of `n` hard collisions, with p_T above the truth cut, 2 < eta < 5.

    Parameters
    ----------
    quark : "b" or "c"
    """
    family = BEAUTY if quark == "b" else CHARM
    lines = [f"Beams:eCM = {parameters.energy}", f"HardQCD:hard{quark}{quark}bar = on"]
    lines += ["PartonLevel:MPI = off", *(f"{pdg}:mayDecay = off" for pdg in family)]
    generator = pythia(lines, seed)
    tables = []
    for start in range(0, n, _BATCH):
        record = Record.of(generator.nextBatch(min(_BATCH, n - start)))
        kept = (record.status > 0) & np.isin(np.abs(record.pdg), family)
        momentum = record.momentum[kept]
        pt, eta = np.hypot(*momentum.T[:2]), np.abs(pseudorapidity(momentum))
        good = (pt > parameters.min_hadron_pt) & (eta > 2.0) & (eta < 5.0)
        columns = np.abs(record.pdg[kept])[good], pt[good], eta[good]
        tables.append(pa.table(dict(zip(("pdg", "pt", "eta"), columns, strict=True))))
    return pa.concat_tables(tables).combine_chunks()


def make_multiplicities(parameters: Parameters, n: int, seed: int) -> pa.Table:
    """Charged tracks at the primary vertices of `n` collisions, where they are more than 20."""
    tracks = collide(collider(parameters, "nonDiffractive", seed), n).tracks
    return pa.table({"tracks": tracks[tracks > 20]})
