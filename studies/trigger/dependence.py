"""Dependence: what becomes of the conclusions with fewer ghosts and less material.

Question: do they hang on the two parameters that were chosen with the result in view?
Data: any sample; candidates with a ghost, or with a track from material, are thinned at random.
Claim: ours never falls at long lifetimes; the free network does unless both sources are gone.
Run time: a minute on a full sample.

    python -m studies.trigger.dependence

More ghosts or material than a sample has need a new one: `--set ghosts=0.03` when making it.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from studies.trigger.candidates import KINDS
from studies.trigger.models import Effort, train_free, train_lipschitz
from studies.trigger.study import COMMITTED, QUICK, judge, late_to_plateau
from studies.trigger.tables import TWO, Tables

#: shares of candidates with ghosts and from material that are kept
SETTINGS = ((1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.5, 0.5), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0))


def thin(tables: Tables, ghosts: float, material: float, seed: int = 0) -> Tables:
    """The sample with some of the candidates of collisions taken away."""
    shares = np.ones(len(KINDS))
    shares[KINDS.index("ghost")], shares[KINDS.index("material")] = ghosts, material
    draws = np.random.default_rng(seed).random(len(tables.collisions))
    kept = draws < shares[tables.collisions.kind]
    return replace(tables, collisions=tables.collisions[kept])


def compare(tables: Tables, effort: Effort, seed: int) -> tuple[float, float, float, float]:
    """Late efficiency of beauty over its plateau, free and ours, and what ours costs.

    The last two are median changes of efficiency over beauty and over charm channels.
    """
    X, y, _ = tables.training(seed)
    free = judge(train_free(X, y, TWO, effort, seed=seed), tables)
    ours = judge(train_lipschitz(X, y, TWO, effort, seed=seed), tables)
    change = ours.channels.value - free.channels.value
    beauty = ours.channels.at < 20_000_000
    late = late_to_plateau(free.beauty), late_to_plateau(ours.beauty)
    return *late, float(np.median(change[beauty])), float(np.median(change[~beauty]))


def run(sample: Path, effort: Effort, seed: int = 0) -> str:
    """A table in Markdown, printed as it grows."""
    tables = Tables.load(sample)
    ghosts, module = (tables.about["parameters"][name] for name in ("ghosts", "module"))
    head = "| ghosts, module | free, late / plateau | ours | Δ beauty, charm |"
    lines = [head, "| --- | --- | --- | --- |"]
    print(*lines, sep="\n", flush=True)
    for some, less in SETTINGS:
        free, ours, beauty, charm = compare(thin(tables, some, less), effort, seed)
        setting = f"{ghosts * some:.4g}, {module * less:.2g} mm"
        lines.append(f"| {setting} | {free:.2f} | {ours:.2f} | {beauty:+.3f}, {charm:+.3f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="studies.trigger.dependence")
    parser.add_argument("--sample", type=Path, default=COMMITTED)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="short training")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run(options.sample, QUICK if options.quick else Effort(), options.seed)


if __name__ == "__main__":
    main()
