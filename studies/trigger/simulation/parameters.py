"""Parameters: every number of the detector model, and how large a sample is.

Lengths are in mm, momenta in GeV, times in ps. `ghosts` and `module` were chosen with the result
in view; `docs/trigger.md` says how, and what depends on them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from isotone.typing import Floats

#: z of the vertex-detector planes (LHCb-TDR-013)
PLANES: Floats = np.array(
    [
        *(-277, -252, -227, -202, -132, -62, -37, -12, 13, 38, 63, 88, 113),
        *(138, 163, 188, 213, 238, 263, 325, 402, 497, 616, 661, 706, 751),
    ],
    dtype=float,
)
#: mm that light flies in a ps
LIGHT = 0.299792458


@dataclass(frozen=True)
class Parameters:
    """The model, with its defaults."""

    # collisions
    energy: float = 13600.0  # of both protons together
    pileup: float = 5.24  # inelastic collisions in a crossing
    crossing_rate: float = 30e6  # Hz
    spot_xy: float = 0.040  # width of the luminous region
    spot_z: float = 55.0
    lifetime_limit: float = 1000.0  # particles with a smaller c tau decay
    # vertex detector
    inner_radius: float = 5.1
    outer_radius: float = 42.0
    min_planes: int = 3
    hit_error: float = 0.0125
    scattering: float = 0.0146 / 5.1  # kappa: slope error times momentum
    tail_share: float = 0.05
    tail_factor: float = 3.0
    track_efficiency: float = 0.95
    min_momentum: float = 3.0
    momentum_floor: float = 0.005  # relative error: this and, added in squares,
    momentum_slope: float = 4e-5  # this times p
    # primary vertex, for 25 tracks
    vertex_xy: float = 0.013
    vertex_z: float = 0.071
    # material
    foil_radius: float = 4.3
    foil_spread: float = 0.8  # half width of its corrugation
    foil: float = 0.75  # thickness of aluminum
    foil_length: float = 500.0  # interaction length
    module: float = 0.6  # thickness of silicon
    module_length: float = 590.0
    # ghosts
    ghosts: float = 0.015  # for every long track
    ghost_momentum: float = 200.0  # at most
    false_share: float = 0.3
    false_kick: float = 0.005  # mean change of slope
    # pairs, as in the public HLT1 sources
    min_ip: float = 0.060
    min_ip_chi2: float = 4.0
    min_track_pt: float = 0.2
    min_sum_pt: float = 0.4
    max_doca: float = 0.2
    min_z: float = -341.0
    # preselection
    min_pt: float = 1.0
    max_vertex_chi2: float = 20.0
    min_corrected_mass: float = 1.0
    # truth cut on signal hadrons
    min_hadron_pt: float = 2.0
    min_proper_time: float = 0.2

    def __post_init__(self) -> None:
        bad = [n for n, value in asdict(self).items() if not np.isfinite(value)]
        if bad:
            raise ValueError(f"parameters {bad} are not finite; give numbers")

    def changed(self, settings: list[str]) -> Parameters:
        """These parameters with some set anew, each as `name=number`."""
        kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(self)}
        values: dict[str, Any] = {}
        for setting in settings:
            name, _, text = setting.partition("=")
            if name not in kinds:
                raise ValueError(f"no parameter {name!r}; choose from {', '.join(kinds)}")
            try:
                values[name] = kinds[name](text)
            except ValueError:
                raise ValueError(f"{setting!r} is no setting; write it as {name}=number") from None
        return replace(self, **values)


@dataclass(frozen=True)
class Size:
    """How much is made of everything.

    Parameters
    ----------
    collisions : proton collisions, each passed `passes` times through the detector
    decays : forced decays in every channel, for each of the two signal samples
    library : hard collisions for beauty; charm, of which fewer pass, takes four times as many
    channels : how many channels of each flavor; None for all
    process : of Pythia; `inelastic` takes 7 s to start, `nonDiffractive` half a second
    """

    collisions: int
    passes: int
    decays: int
    library: int
    shard: int = 15_000
    channels: int | None = None
    process: str = "inelastic"


SIZES = {
    "tiny": Size(300, 2, 60, 250, shard=150, channels=2, process="nonDiffractive"),
    "small": Size(60_000, 4, 600, 40_000),
    "full": Size(300_000, 6, 7_000, 60_000),
}


@dataclass(frozen=True)
class Plan:
    """All that a sample depends on: parameters, size and seed."""

    parameters: Parameters
    size: Size
    seed: int = 1

    def key(self) -> str:
        """A name for the sample that depends on everything it depends on."""
        text = json.dumps([asdict(self), generator_version()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def provenance(self) -> dict[str, Any]:
        """What is written into every file."""
        return {**asdict(self), "generator": f"pythia8mc {generator_version()}"}


def generator_version() -> str:
    """The version of Pythia that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pythia8mc")
    except PackageNotFoundError as error:
        raise ImportError(
            "making a sample needs Pythia 8; run: pip install '.[trigger]'"
        ) from error
