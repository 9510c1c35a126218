"""Tables: a sample in memory, divided into rows to learn from and rows to judge by.

The division is by collision, and for signal by hadron of the library: whatever happened to it in
other passes or decays stays on the same side.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isotone.typing import Bools, Floats, Integers
from studies.trigger.simulation.candidates import BACKGROUND, FEATURES, kinds
from studies.trigger.simulation.storage import provenance, read

#: directions of the four features: more displaced or faster never looks less interesting
DIRECTIONS = (1, 1, 0, 1)
#: indices of the two inputs that the paper draws: displacement and momentum
TWO = (3, 1)
FOUR = (0, 1, 2, 3)


def is_validation(collision: Integers) -> Bools:
    return np.asarray(collision % 4 == 0)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates with what is needed to judge them: (n, 4) features and columns beside them."""

    X: Floats
    event: Integers
    collision: Integers
    channel: Integers
    label: Integers
    proper_time: Floats
    kind: Integers

    @classmethod
    def of(cls, table: pa.Table) -> Candidates:
        X = np.stack([table[name].to_numpy() for name in FEATURES], axis=1).astype(float)
        names = "event", "collision", "channel", "label", "proper_time"
        columns = [table[name].to_numpy() for name in names]
        return cls(*(X, *columns, kinds(table)))

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Bools | Integers) -> Candidates:
        return Candidates(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def validation(self) -> Candidates:
        return self[is_validation(self.collision)]

    @property
    def training(self) -> Candidates:
        return self[~is_validation(self.collision)]


@dataclass(frozen=True, eq=False)
class Hadrons:
    """Signal hadrons, seen or not: the denominators of efficiencies."""

    event: Integers
    collision: Integers
    channel: Integers
    proper_time: Floats
    n_candidates: Integers

    @classmethod
    def of(cls, table: pa.Table) -> Hadrons:
        names = "event", "collision", "channel", "proper_time", "n_candidates"
        return cls(*(table[name].to_numpy() for name in names))

    def __getitem__(self, rows: Bools | Integers) -> Hadrons:
        names = "event", "collision", "channel", "proper_time", "n_candidates"
        return Hadrons(*(getattr(self, name)[rows] for name in names))

    @property
    def validation(self) -> Hadrons:
        return self[is_validation(self.collision)]


@dataclass(frozen=True, eq=False)
class Tables:
    """A sample; `about` says how it was made."""

    collisions: Candidates
    signal: Candidates
    longlived: Candidates
    signal_hadrons: Hadrons
    longlived_hadrons: Hadrons
    about: dict[str, Any]

    @classmethod
    def load(cls, directory: Path) -> Tables:
        path = {
            name: directory / f"{name}.parquet"
            for name in (
                "collisions",
                "signal",
                "longlived",
                "signal-hadrons",
                "longlived-hadrons",
            )
        }
        return cls(
            collisions=Candidates.of(read(path["collisions"])),
            signal=Candidates.of(read(path["signal"])),
            longlived=Candidates.of(read(path["longlived"])),
            signal_hadrons=Hadrons.of(read(path["signal-hadrons"])),
            longlived_hadrons=Hadrons.of(read(path["longlived-hadrons"])),
            about=provenance(path["collisions"]),
        )

    def training(self, seed: int = 0) -> tuple[Floats, Integers, Integers]:
        """Features, labels 0 and 1, and collisions of the rows to learn from.

        Background and, in total at most as many, candidates of signal: the same number in every
        channel, or all of a channel that has fewer. True heavy flavor of collisions is left out.
        """
        collisions = self.collisions.training
        background = collisions[collisions.label == BACKGROUND]
        signal = self._even(self.signal.training, len(background), seed)
        X = np.concatenate([background.X, signal.X])
        y = np.repeat([0, 1], [len(background), len(signal)])
        # numbers of library hadrons and of collisions are unrelated, and must not be the same
        group = np.concatenate([background.collision, -1 - signal.collision])
        return X, y, group

    @staticmethod
    def _even(signal: Candidates, n: int, seed: int) -> Candidates:
        codes = np.unique(signal.channel)
        rng = np.random.default_rng(seed)
        rows = [rng.permutation(np.flatnonzero(signal.channel == code)) for code in codes]
        return signal[np.sort(np.concatenate([some[: n // len(codes)] for some in rows]))]
