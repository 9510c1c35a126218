"""The tail: how many candidates of beauty have Σp_T > 20 GeV, for more hadrons than a library has.

Question: is the share that a sample shows a fluke of the few library hadrons of large p_T?
Data: a full sample, and other libraries, whose hadrons are not decayed: what a hadron of a given
    p_T gives is taken from the sample.
Claim: no; the shares of libraries scatter within their errors.
Run time: half a minute for each library.

    python -m studies.trigger.questions.tail --sample results/trigger/sample
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotone.typing import Floats
from studies.trigger.simulation.generation.hadrons import make_hadrons
from studies.trigger.simulation.parameters import SIZES, Parameters
from studies.trigger.simulation.storage import read

EDGES = np.array([2, 3, 4, 5, 7, 10, 14, *range(18, 32, 2), 32, 36, 42, 50, 400], dtype=float)
ABOVE = 20.0
SEEDS = (7000, 7001, 7002)
_FEW = 8  # decays, of which a bin needs as many


@dataclass(frozen=True, eq=False)
class Acceptance:
    """Candidates of a decay, all and those of large Σp_T, in bins of the hadron's p_T."""

    all: Floats
    hard: Floats

    @classmethod
    def of(cls, hadron_pt: Floats, candidate_pt: Floats, sum_pt: Floats) -> Acceptance:
        """From the p_T of decayed hadrons, and p_T of the hadron and Σp_T of every candidate."""
        n = np.histogram(hadron_pt, EDGES)[0]
        counts = [
            np.histogram(pt, EDGES)[0] for pt in (candidate_pt, candidate_pt[sum_pt > ABOVE])
        ]
        per_decay = [count / np.maximum(n, 1) for count in counts]
        for i in np.flatnonzero(n < _FEW):
            for values in per_decay:
                values[i] = values[i - 1]
        return cls(*per_decay)

    def share(self, pt: Floats) -> tuple[float, float]:
        """Share of candidates above 20 GeV for hadrons of a library, and its error."""
        index = np.clip(np.searchsorted(EDGES, pt, side="right") - 1, 0, len(EDGES) - 2)
        n, k = self.all[index], self.hard[index]
        share = k.sum() / n.sum()
        return float(share), float(np.sqrt(((k - share * n) ** 2).sum()) / n.sum())


def measured(sample: Path) -> Acceptance:
    """The acceptance that a sample shows for beauty."""
    hadrons, signal = (read(sample / f"{name}.parquet") for name in ("signal-hadrons", "signal"))
    beauty = hadrons["channel"].to_numpy() < 20_000_000
    seen = signal["channel"].to_numpy() < 20_000_000
    return Acceptance.of(
        hadrons["hadron_pt"].to_numpy()[beauty],
        *(signal[name].to_numpy()[seen] for name in ("hadron_pt", "sum_pt")),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="studies.trigger.questions.tail")
    parser.add_argument("--sample", type=Path, required=True)
    acceptance, libraries = measured(parser.parse_args().sample), []
    for seed in SEEDS:
        table = make_hadrons(Parameters(), "b", SIZES["full"].library, seed)
        libraries.append(table["pt"].to_numpy())
        show(f"seed {seed}", acceptance, libraries[-1])
    show("together", acceptance, np.concatenate(libraries))


def show(name: str, acceptance: Acceptance, pt: Floats) -> None:
    share, error = acceptance.share(pt)
    print(f"{name}: {len(pt)} hadrons, {100 * share:.4f} ± {100 * error:.4f} %", flush=True)


if __name__ == "__main__":
    main()
