"""Tasks: the shards of a sample, each of which depends on the plan and its own number only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from isotone.typing import Integers
from studies.trigger.simulation.candidates import build
from studies.trigger.simulation.detector.ghosts import make_ghosts
from studies.trigger.simulation.detector.material import interact
from studies.trigger.simulation.detector.tracks import reconstruct
from studies.trigger.simulation.detector.vertices import primary
from studies.trigger.simulation.generation.channels import channels
from studies.trigger.simulation.generation.collisions import collide, collider
from studies.trigger.simulation.generation.decays import decay
from studies.trigger.simulation.generation.generators import cascade, seed_of
from studies.trigger.simulation.generation.hadrons import (
    Library,
    make_hadrons,
    make_multiplicities,
)
from studies.trigger.simulation.parameters import Parameters, Plan
from studies.trigger.simulation.particles import Batch

#: samples of signal, and how much longer than in nature their hadrons live
STRETCH = {"signal": 1.0, "longlived": 4.0}
_TOGETHER = 500  # collisions in memory at a time
_PART = 20_000  # decays in a shard
_KINDS = ("beauty", "charm", "tracks", "collisions", "signal", "longlived")


@dataclass(frozen=True)
class Task:
    """One shard: its kind, its number, and the rows from `start` to `stop`.

    Parameters
    ----------
    kind : part of the library ("beauty", "charm", "tracks"), "collisions", or a sample of signal
    channel : index of the channel, for signal
    """

    kind: str
    number: int
    start: int
    stop: int
    channel: int = 0

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the tables it makes."""
        return (self.kind, f"{self.kind}-hadrons") if self.kind in STRETCH else (self.kind,)

    def file(self, output: str) -> str:
        return f"{output}-{self.number:05d}.parquet"

    def rng(self, plan: Plan) -> np.random.Generator:
        return np.random.default_rng([plan.seed, _KINDS.index(self.kind), self.number])

    def cost(self, passes: int) -> float:
        """About how many seconds it takes."""
        rates = {
            "beauty": 2000,
            "charm": 3000,
            "tracks": 400,
            "collisions": 1 / (1 / 370 + passes / 6000),
        }
        start = 7.0 if self.kind == "collisions" else 0.3
        return start + (self.stop - self.start) / rates.get(self.kind, 6000)


def library_tasks(plan: Plan) -> list[Task]:
    n = plan.size.library
    return [
        Task("beauty", 0, 0, n),
        Task("charm", 0, 0, 4 * n),
        Task("tracks", 0, 0, min(n, 3000)),
    ]


def collision_tasks(plan: Plan) -> list[Task]:
    n, step = plan.size.collisions, plan.size.shard
    starts = range(0, n, step)
    return [Task("collisions", i, s, min(s + step, n)) for i, s in enumerate(starts)]


def signal_tasks(plan: Plan) -> list[Task]:
    """Both samples, channel by channel."""
    n, tasks = plan.size.decays, []
    for kind in STRETCH:
        number = 0
        for channel in range(len(channels(plan.size.channels))):
            for start in range(0, n, _PART):
                stop = min(start + _PART, n)
                tasks.append(Task(kind, number, start, stop, channel))
                number += 1
    return tasks


def run(plan: Plan, task: Task, library: Library | None = None) -> dict[str, pa.Table]:
    """Do a task; its tables by name."""
    rng, n = task.rng(plan), task.stop - task.start
    if task.kind in ("beauty", "charm"):
        return {task.kind: make_hadrons(plan.parameters, task.kind[0], n, seed_of(rng))}
    if task.kind == "tracks":
        return {task.kind: make_multiplicities(plan.parameters, n, seed_of(rng))}
    if task.kind == "collisions":
        return {task.kind: pa.concat_tables(run_collisions(plan, task, rng)).combine_chunks()}
    if library is None:
        raise ValueError(f"{task} needs the hadron library; make that first and give it")
    return run_signal(plan, task, library, rng)


def run_collisions(plan: Plan, task: Task, rng: np.random.Generator) -> Iterator[pa.Table]:
    """Candidates of some collisions, each passed several times through the detector."""
    passes = plan.size.passes
    generator = collider(plan.parameters, plan.size.process, seed_of(rng))
    nuclei = cascade(seed_of(rng))
    for start in range(task.start, task.stop, _TOGETHER):
        batch = collide(generator, min(_TOGETHER, task.stop - start))
        for number in range(passes):
            table = respond(batch, plan.parameters, rng, nuclei)
            collision = start + table["collision"].to_numpy()
            event = collision * passes + number
            yield finish(table, event, collision, np.full(len(table), number), -1)


def run_signal(
    plan: Plan, task: Task, library: Library, rng: np.random.Generator
) -> dict[str, pa.Table]:
    """Candidates of the decays of one channel, after the truth cut, and all their hadrons."""
    channel, n = channels(plan.size.channels)[task.channel], task.stop - task.start
    batch, rows = decay(channel, library, n, STRETCH[task.kind], rng)
    table = respond(batch, plan.parameters, rng, None)
    first = task.channel * plan.size.decays + task.start
    local = table["collision"].to_numpy()
    counts = np.bincount(local, minlength=n)
    truth = pc.greater(table["proper_time"], plan.parameters.min_proper_time)
    done = finish(table, first + local, rows[local], np.zeros(len(local), np.int64), channel.code)
    hadrons = pa.table(
        {
            "event": first + np.arange(n),
            "collision": rows,
            "channel": np.full(n, channel.code, np.int32),
            "hadron_pt": batch.hadrons.pt.astype(np.float32),
            "eta": batch.hadrons.eta.astype(np.float32),
            "proper_time": batch.hadrons.proper_time.astype(np.float32),
            "n_candidates": counts.astype(np.int16),
        }
    )
    return {task.kind: done.filter(truth), f"{task.kind}-hadrons": hadrons}


def respond(
    batch: Batch, parameters: Parameters, rng: np.random.Generator, nuclei: Any
) -> pa.Table:
    """One pass through the detector; without `nuclei`, signal, no material and no ghosts."""
    spot = [parameters.spot_xy, parameters.spot_xy, parameters.spot_z]
    position = rng.normal(size=(len(batch), 3)) * spot
    particles = batch.particles
    particles = replace(particles, origin=particles.origin + position[particles.collision])
    if nuclei is not None:
        particles = interact(particles, nuclei, parameters, rng)
    tracks, found = reconstruct(particles, parameters, rng)
    if nuclei is not None:
        tracks = tracks + make_ghosts(tracks, found, len(batch), parameters, rng)
    vertex = primary(position, batch.tracks, parameters, rng)
    return build(tracks, vertex, batch.hadrons, parameters)


def finish(
    table: pa.Table, event: Integers, collision: Integers, number: Integers, channel: int
) -> pa.Table:
    """Names of event, collision and pass, and small types."""
    small = {"source_1": np.int8, "source_2": np.int8, "label": np.int8}
    columns = {
        name: table[name].to_numpy().astype(small.get(name, np.float32))
        for name in table.column_names
        if name not in ("collision", "eta")
    }
    numbers = {
        "event": event.astype(np.int64),
        "collision": collision.astype(np.int64),
        "pass": number.astype(np.int16),
        "channel": np.full(len(event), channel, np.int32),
    }
    return pa.table({**columns, **numbers})
