"""Checks: the numbers that a sample must show, whatever the model will be.

    python -m studies.trigger.simulation.checks DIRECTORY

The demands are about shapes; they hold for any seed of a large enough sample.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from isotone.typing import Floats
from studies.trigger.simulation.candidates import BACKGROUND, BEAUTY, CHARM, KINDS, kinds
from studies.trigger.simulation.detector.tracks import reconstruct
from studies.trigger.simulation.generation.channels import channels
from studies.trigger.simulation.parameters import Parameters
from studies.trigger.simulation.particles import Particles
from studies.trigger.simulation.storage import provenance, read


@dataclass(frozen=True)
class Check:
    """A number, or several, and whether they are as demanded."""

    name: str
    demand: str
    values: tuple[float, ...]
    passed: bool

    def __str__(self) -> str:
        numbers = " / ".join(f"{value:.4g}" for value in self.values)
        return f"{'ok  ' if self.passed else 'FAIL'} {self.name} [{self.demand}]: {numbers}"


def resolution(pt: float) -> float:
    """Width of the impact parameter in x of prompt tracks, in mm, without the primary vertex."""
    n, parameters, rng = 4000, Parameters(), np.random.default_rng(0)
    eta, phi = rng.uniform(2.0, 5.0, n), rng.uniform(0.0, 2 * np.pi, n)
    momentum = pt * np.stack([np.cos(phi), np.sin(phi), np.sinh(eta)], axis=1)
    origin = np.zeros((n, 3))
    origin[:, 2] = rng.normal(size=n) * parameters.spot_z
    none = np.full(n, -1)
    pions = Particles(np.arange(n), np.full(n, 211), momentum, origin, np.zeros(n, int), none)
    tracks, _ = reconstruct(pions, parameters, rng)
    x = tracks.at(origin[tracks.particle, 2])[:, 0]
    low, high = np.quantile(x, [0.1587, 0.8413])
    return float(high - low) / 2


def check(directory: Path) -> list[Check]:
    """All checks of a sample."""
    collisions, signal = read(directory / "collisions.parquet"), read(directory / "signal.parquet")
    size = provenance(directory / "collisions.parquet")["size"]
    background = collisions.filter(pc.equal(collisions["label"], BACKGROUND))
    beauty = signal.filter(pc.equal(signal["label"], BEAUTY))
    charm = signal.filter(pc.equal(signal["label"], CHARM))
    return [
        *_resolution(),
        *_lifetimes(directory),
        _vertex(charm),
        _mixture(collisions),
        *_displacement(background, beauty, charm),
        *_momentum(collisions, background, beauty),
        *_yield(collisions, size["collisions"], size["passes"]),
        *_efficiencies(directory),
    ]


def _resolution() -> list[Check]:
    widths = [1e3 * resolution(pt) for pt in (0.3, 0.6, 1.0, 2.0, 3.0)]
    falls = all(a > b for a, b in pairwise(widths))
    name = "prompt IP resolution at 0.3, 0.6, 1, 2, 3 GeV, in µm"
    return [Check(name, "falls; 20 to 24 at 1 GeV", tuple(widths), falls and 20 < widths[2] < 24)]


def _lifetimes(directory: Path) -> list[Check]:
    """Mean proper time before the truth cut over the lifetime, and its error."""
    from studies.trigger.simulation.generation.decays import lifetime
    from studies.trigger.simulation.parameters import LIGHT

    hadrons = read(directory / "signal-hadrons.parquet")
    heads = {channel.code: channel.head for channel in channels()}
    head = np.array([heads[code] for code in hadrons["channel"].to_pylist()])
    times = hadrons["proper_time"].to_numpy()
    checks = []
    for pdg, name in ((511, "B⁰"), (421, "D⁰")):
        some = times[head == pdg] * LIGHT / lifetime(pdg)
        mean, error = float(some.mean()), float(some.std() / np.sqrt(len(some)))
        good = abs(mean - 1) < max(0.02, 3 * error)
        checks.append(Check(f"mean {name} proper time", "lifetime ± 2 %", (mean, error), good))
    return checks


def _vertex(charm: Any) -> Check:
    median = float(np.median(charm["vertex_chi2"]))
    return Check("median vertex χ² of charm", "0.45 to 0.6", (median,), 0.45 < median < 0.6)


def _mixture(collisions: Any) -> Check:
    shares = np.bincount(kinds(collisions), minlength=6) / len(collisions)
    name = f"share of {', '.join(KINDS)}"
    return Check(name, "each > 2 %", tuple(shares.tolist()), bool((shares > 0.02).all()))


def _shares(tables: list[Any], column: str, above: float) -> Floats:
    return np.array([np.mean(table[column].to_numpy() > above) for table in tables])


def _displacement(background: Any, beauty: Any, charm: Any) -> list[Check]:
    checks = []
    for above in (9.0, 10.0):
        shares = _shares([background, beauty, charm], "ln_min_ip_chi2", above)
        good = bool(shares[0] > shares[1] >= shares[2])
        name = f"share with ln min χ²_IP > {above:.0f}"
        demand = "background > beauty > charm"
        checks.append(Check(name, demand, tuple(shares.tolist()), good))
    return checks


def share_and_error(table: Any, column: str, above: float) -> tuple[float, float]:
    """Share of candidates above a value, and the error that drawing collisions anew would give.

    Candidates of one collision, or of one library hadron in its many decays, are no independent
    ones: a single hadron of large p_T makes a dozen candidates.
    """
    _, group = np.unique(table["collision"].to_numpy(), return_inverse=True)
    n = np.bincount(group)
    k = np.bincount(group, table[column].to_numpy() > above)
    share = k.sum() / n.sum()
    return float(share), float(np.sqrt(((k - share * n) ** 2).sum()) / n.sum())


def _hard(background: Any, beauty: Any) -> Check:
    """Ghosts make the longer tail. Above 20 GeV it is about level with beauty's, beyond it wins.

    The second demand is refused only where the sample can tell: by more than two errors.
    """
    found = [
        share_and_error(table, "sum_pt", above)
        for above in (20.0, 30.0)
        for table in (background, beauty)
    ]
    (b20, _), (s20, _), (b30, b_error), (s30, s_error) = found
    good = b30 * s20 > b20 * s30 and s30 - b30 < 2 * np.hypot(b_error, s_error)
    name = "share with Σp_T > 20 and > 30, each with its error, background and beauty"
    demand = "background falls more slowly, and is more above 30"
    return Check(name, demand, tuple(value for both in found for value in both), bool(good))


def _momentum(collisions: Any, background: Any, beauty: Any) -> list[Check]:
    kind, pt = kinds(collisions), collisions["sum_pt"].to_numpy()
    displaced = collisions["ln_min_ip_chi2"].to_numpy()
    far = float(np.median(displaced[kind == 1])), float(np.median(beauty["ln_min_ip_chi2"]))
    soft = float(np.median(pt[kind == 1])), float(np.median(beauty["sum_pt"]))
    tail = float(np.quantile(pt[kind == 2], 0.99)), float(np.quantile(beauty["sum_pt"], 0.99))
    return [
        _hard(background, beauty),
        Check("median ln min χ²_IP of material, beauty", "far out", far, far[0] > far[1] + 1),
        Check("median Σp_T of material, beauty", "soft", soft, soft[0] < soft[1]),
        Check("99 % of Σp_T of ghosts, beauty", "beyond beauty's", tail, tail[0] > tail[1]),
    ]


def _yield(collisions: Any, n: int, passes: int) -> list[Check]:
    share = len(np.unique(collisions["event"])) / (n * passes)
    candidates = len(collisions) / (n * passes)
    values = (share, candidates)
    return [Check("collisions with a candidate", "5 to 20 %", values, 0.05 < share < 0.2)]


def _efficiencies(directory: Path) -> list[Check]:
    """Of the preselection with respect to the truth cut: smallest and largest over channels."""
    hadrons = read(directory / "signal-hadrons.parquet")
    code = hadrons["channel"].to_numpy()
    passed = hadrons["n_candidates"].to_numpy() > 0
    truth = hadrons["proper_time"].to_numpy() > Parameters().min_proper_time
    checks = []
    for flavor, low, high in ((1, 0.5, 0.85), (2, 0.05, 0.7)):
        codes = [c for c in np.unique(code) if c // 10_000_000 == flavor]
        values = sorted(float(passed[truth & (code == c)].mean()) for c in codes)
        name = f"preselection efficiencies of {('beauty', 'charm')[flavor - 1]}"
        ends = (values[0], values[1], values[-1])
        checks.append(Check(name, f"{low} to {high}", ends, low < ends[0] and ends[-1] < high))
    return checks


def main() -> None:
    checks = check(Path(sys.argv[1]))
    print(*checks, sep="\n")
    sys.exit(not all(check.passed for check in checks))


if __name__ == "__main__":
    main()
