"""Candidates: two-track decay vertices with the paper's four features, after the preselection."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from isotone.typing import Bools, Floats, Integers
from studies.trigger.simulation.detector.tracks import Tracks
from studies.trigger.simulation.detector.vertices import Primary, closest_approach, fit, impact
from studies.trigger.simulation.parameters import Parameters
from studies.trigger.simulation.particles import Hadrons, Source, pseudorapidity

#: in the order of the network's inputs
FEATURES = ("ln_fd_chi2", "sum_pt", "vertex_chi2", "ln_min_ip_chi2")
_PION = 0.13957
#: labels
BACKGROUND, CHARM, BEAUTY, MIXED = 0, 1, 2, -1


#: what a candidate of collisions is
KINDS = ("prompt", "material", "ghost", "strange", "one heavy track", "true heavy")


def build(tracks: Tracks, vertex: Primary, hadrons: Hadrons, parameters: Parameters) -> pa.Table:
    """All candidates of a batch that pass the preselection.

    Parameters
    ----------
    vertex : one for every collision of the batch
    """
    ip, ip_chi2 = impact(tracks, vertex[tracks.collision])
    good = (ip > parameters.min_ip) & (ip_chi2 > parameters.min_ip_chi2)
    good &= tracks.pt > parameters.min_track_pt
    tracks, ip_chi2 = tracks[good], ip_chi2[good]
    one, two = pairs(tracks, parameters)
    table = describe(tracks, one, two, ip_chi2, vertex, hadrons)
    return preselect(table, parameters)


def pairs(tracks: Tracks, parameters: Parameters) -> tuple[Integers, Integers]:
    """Rows of tracks of one collision that come close; clones are no pair."""
    ones, twos = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    step, rows = 1, np.arange(len(tracks) - 1)
    while len(rows):
        rows = rows[rows + step < len(tracks)]
        rows = rows[tracks.collision[rows] == tracks.collision[rows + step]]
        ones.append(rows)
        twos.append(rows + step)
        step += 1
    one, two = np.concatenate(ones), np.concatenate(twos)
    kept = tracks.particle[one] != tracks.particle[two]
    kept &= tracks.pt[one] + tracks.pt[two] > parameters.min_sum_pt
    one, two = one[kept], two[kept]
    close = closest_approach(tracks[one], tracks[two])[0] < parameters.max_doca
    return one[close], two[close]


def describe(
    tracks: Tracks,
    one: Integers,
    two: Integers,
    ip_chi2: Floats,
    vertex: Primary,
    hadrons: Hadrons,
) -> pa.Table:
    """One row per pair: features, truth and what the preselection needs."""
    first, second = tracks[one], tracks[two]
    point, chi2, covariance = fit(first, second, closest_approach(first, second)[1])
    at = vertex[first.collision]
    flight = point - at.position
    weighted = np.linalg.solve(covariance + at.covariance, flight[:, :, None])[..., 0]
    momentum = first.momentum + second.momentum
    label, hadron = labels(first, second)
    return pa.table(
        {
            "ln_fd_chi2": np.log(np.maximum((flight * weighted).sum(axis=1), 1e-10)),
            "sum_pt": np.minimum(first.pt + second.pt, 100.0),
            "vertex_chi2": chi2,
            "ln_min_ip_chi2": np.log(np.maximum(np.minimum(ip_chi2[one], ip_chi2[two]), 1e-10)),
            "collision": first.collision,
            "source_1": first.source,
            "source_2": second.source,
            "label": label,
            "hadron_pt": _of(hadrons.pt, hadron),
            "proper_time": _of(hadrons.proper_time, hadron),
            "z": point[:, 2],
            "flight": np.linalg.norm(flight, axis=1),
            "eta": pseudorapidity(flight),
            "pt": np.hypot(*momentum.T[:2]),
            "corrected_mass": corrected_mass(first.momentum, second.momentum, flight),
        }
    )


def labels(first: Tracks, second: Tracks) -> tuple[Integers, Integers]:
    """Label, and the row of the common heavy hadron or -1.

    Background if a track has no heavy ancestor, `MIXED` if the two have different ones.
    """
    both = (first.heavy >= 0) & (second.heavy >= 0)
    same = both & (first.heavy == second.heavy)
    flavor = np.where(first.source == Source.BEAUTY, BEAUTY, CHARM)
    label = np.select([same, both], [flavor, MIXED], BACKGROUND)
    return label.astype(np.int64), np.where(same, first.heavy, -1)


def kinds(table: pa.Table) -> Integers:
    """The index in `KINDS` of every candidate of collisions."""
    one, two = table["source_1"].to_numpy(), table["source_2"].to_numpy()

    def has(*sources: Source) -> Bools:
        return np.isin(one, sources) | np.isin(two, sources)

    conditions = [
        table["label"].to_numpy() > 0,
        has(Source.GHOST),
        has(Source.MATERIAL),
        has(Source.CHARM, Source.BEAUTY),
        has(Source.STRANGE),
    ]
    return np.asarray(np.select(conditions, [5, 2, 1, 4, 3], 0))


def corrected_mass(one: Floats, two: Floats, flight: Floats) -> Floats:
    r""":math:`\sqrt{m^2 + p_\perp^2} + p_\perp`, of two pions, across the flight direction."""
    total = one + two
    energy = sum(np.sqrt((p**2).sum(axis=1) + _PION**2) for p in (one, two))
    mass2 = np.maximum(energy**2 - (total**2).sum(axis=1), 0.0)
    unit = flight / np.maximum(np.linalg.norm(flight, axis=1, keepdims=True), 1e-12)
    across = np.linalg.norm(np.cross(total, unit), axis=1)
    return np.asarray(np.sqrt(mass2 + across**2) + across)


def preselect(table: pa.Table, parameters: Parameters) -> pa.Table:
    """The cuts of the public HLT1 sources on the vertex."""
    column = {name: table[name].to_numpy() for name in table.column_names}
    good = (column["pt"] > parameters.min_pt) & (column["z"] > parameters.min_z)
    good &= column["vertex_chi2"] < parameters.max_vertex_chi2
    good &= column["corrected_mass"] > parameters.min_corrected_mass
    good &= (column["eta"] > 2.0) & (column["eta"] < 5.0)
    return table.filter(pa.array(good))


def _of(values: Floats, rows: Integers) -> Floats:
    """values[rows], and nan where the row is -1."""
    return np.append(values, np.nan)[rows]
