"""Detectors: the same collisions and decays in the detector of the simulation and in worse ones.

One set of collisions passes all detectors, with the same random numbers where it can be, so that
what differs between them is the detector. Models are trained elsewhere, on other collisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isotone.typing import Integers
from studies.trigger.analysis.tables import Candidates
from studies.trigger.simulation.generation.channels import channels
from studies.trigger.simulation.generation.collisions import collide, collider
from studies.trigger.simulation.generation.decays import decay
from studies.trigger.simulation.generation.generators import cascade, seed_of
from studies.trigger.simulation.generation.hadrons import (
    Library,
    make_hadrons,
    make_multiplicities,
)
from studies.trigger.simulation.parameters import Parameters
from studies.trigger.simulation.storage import load_library, provenance, read, write
from studies.trigger.simulation.tasks import finish, respond

NOMINAL = "as simulated"
_SEED = 2  # of other collisions than those of the sample
#: factors of parameters; the covariance knows of the worse resolution, as after a calibration
DETECTORS: Mapping[str, Mapping[str, float]] = {
    NOMINAL: {},
    "IP resolution +20 %": {
        "hit_error": 1.2,
        "scattering": 1.2,
        "vertex_xy": 1.2,
        "vertex_z": 1.2,
    },
    "ghosts × 3": {"ghosts": 3.0},
    "material +50 %": {"foil": 1.5, "module": 1.5},
}
_TOGETHER = 500


@dataclass(frozen=True)
class Amount:
    """How much passes the detectors; `hadrons` hard collisions make the library of each flavor."""

    collisions: int = 40_000
    passes: int = 3
    decays: int = 500
    hadrons: int = 15_000
    n_channels: int | None = None
    process: str = "inelastic"


FEW = Amount(300, 1, 30, 250, n_channels=2, process="nonDiffractive")


@dataclass(frozen=True, eq=False)
class Response:
    """Candidates in one detector; the channels of all hadrons of the truth cut, seen or not."""

    collisions: Candidates
    signal: Candidates
    hadrons: Integers


def changed(factors: Mapping[str, float]) -> Parameters:
    """The parameters, some of them multiplied."""
    default = Parameters()
    return replace(default, **{name: getattr(default, name) * f for name, f in factors.items()})


def responses(directory: Path, amount: Amount) -> dict[str, Response]:
    """What every detector sees; made once and kept in `directory`, if nothing else is asked."""
    last = directory / "hadrons.parquet"
    if not (last.exists() and provenance(last) == _about(amount)):
        _make(directory, amount)
    hadrons = read(directory / "hadrons.parquet")["channel"].to_numpy()
    return {
        name: Response(
            Candidates.of(read(directory / f"collisions-{i}.parquet")),
            Candidates.of(read(directory / f"signal-{i}.parquet")),
            hadrons,
        )
        for i, name in enumerate(DETECTORS)
    }


def _about(amount: Amount) -> dict[str, Any]:
    """All that the tables depend on."""
    detectors = {name: asdict(changed(factors)) for name, factors in DETECTORS.items()}
    return {**asdict(amount), "seed": _SEED, "detectors": detectors}


def _make(directory: Path, amount: Amount) -> None:
    """All tables, the one that says that they are complete at the end."""
    rng = np.random.default_rng([_SEED, amount.collisions])
    collisions = _columns(_collisions(amount, rng))
    library = _library(amount, rng)
    signal = list(_signal(amount, library, rng))
    for i, table in enumerate(collisions):
        write(directory / f"collisions-{i}.parquet", table)
    for i, table in enumerate(_columns(tables for tables, _ in signal)):
        write(directory / f"signal-{i}.parquet", table)
    hadrons = pa.concat_tables([some for _, some in signal])
    write(directory / "hadrons.parquet", hadrons, _about(amount))


def _columns(rows: Iterator[list[pa.Table]]) -> list[pa.Table]:
    """One table for each detector, from lists of one part for each."""
    parts = zip(*rows, strict=True)
    return [pa.concat_tables(list(some)).combine_chunks() for some in parts]


def _collisions(amount: Amount, rng: np.random.Generator) -> Iterator[list[pa.Table]]:
    generator = collider(Parameters(), amount.process, seed_of(rng))
    nuclei = cascade(seed_of(rng))
    for start in range(0, amount.collisions, _TOGETHER):
        batch = collide(generator, min(_TOGETHER, amount.collisions - start))
        for number in range(amount.passes):
            tables = _respond(batch, rng, nuclei)
            yield [_numbered(table, start, number, amount.passes) for table in tables]


def _respond(batch: Any, rng: np.random.Generator, nuclei: Any) -> list[pa.Table]:
    """One pass in each detector, all from the same seed."""
    seed = seed_of(rng)
    return [
        respond(batch, changed(factors), np.random.default_rng(seed), nuclei)
        for factors in DETECTORS.values()
    ]


def _numbered(table: pa.Table, start: int, number: int, passes: int) -> pa.Table:
    collision = start + table["collision"].to_numpy()
    event = collision * passes + number
    return finish(table, event, collision, np.full(len(table), number), -1)


def _library(amount: Amount, rng: np.random.Generator) -> Library:
    parameters, n = Parameters(), amount.hadrons
    return load_library(
        make_hadrons(parameters, "b", n, seed_of(rng)),
        make_hadrons(parameters, "c", 4 * n, seed_of(rng)),
        make_multiplicities(parameters, min(n, 3000), seed_of(rng)),
    )


def _signal(
    amount: Amount, library: Library, rng: np.random.Generator
) -> Iterator[tuple[list[pa.Table], pa.Table]]:
    """Candidates in each detector, and the hadrons of the truth cut, channel by channel."""
    least = Parameters().min_proper_time
    for i, channel in enumerate(channels(amount.n_channels)):
        batch, _ = decay(channel, library, amount.decays, 1.0, rng)
        first, tables = i * amount.decays, []
        for table in _respond(batch, rng, None):
            table = table.filter(pa.array(table["proper_time"].to_numpy() > least))
            event = first + table["collision"].to_numpy()
            tables.append(finish(table, event, event, np.zeros(len(event), int), channel.code))
        kept = np.flatnonzero(batch.hadrons.proper_time > least)
        yield (
            tables,
            pa.table({"event": first + kept, "channel": np.full(len(kept), channel.code)}),
        )
