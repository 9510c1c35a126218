"""Dependence: what becomes of the conclusions with fewer or more ghosts, less or more material.

Question: do they hang on the two parameters that were chosen with the result in view?
Data: any sample; candidates with a ghost, or with a track from material, are thinned at random.
    For more of them, the collisions that passed worse detectors (`detectors`).
Claim: ours never falls at long lifetimes; the free network does unless both sources are gone.
Run time: a minute on a full sample.

    python -m studies.trigger.questions.dependence

Any other setting needs a new sample: `--set ghosts=0.03` when making it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studies.trigger.analysis.models import Effort, train_free, train_lipschitz
from studies.trigger.analysis.study import (
    COMMITTED,
    FREE,
    OURS,
    QUICK,
    judge,
    late_to_plateau,
    medians,
)
from studies.trigger.analysis.tables import TWO, Tables
from studies.trigger.questions.detectors import DETECTORS, NOMINAL, Amount, Response, changed
from studies.trigger.simulation.candidates import KINDS

#: shares of candidates with ghosts and from material that are kept
Settings = Sequence[tuple[float, float]]
SETTINGS: Settings = (
    (1.0, 1.0),
    (0.5, 1.0),
    (1.0, 0.5),
    (0.5, 0.5),
    (0.0, 1.0),
    (1.0, 0.0),
    (0.0, 0.0),
)

#: detectors with more of them, and the reference
MORE = (NOMINAL, "ghosts × 3", "material +50 %")


def thin(tables: Tables, ghosts: float, material: float) -> Tables:
    """The sample with some of the candidates of collisions taken away."""
    shares = np.ones(len(KINDS))
    shares[KINDS.index("ghost")], shares[KINDS.index("material")] = ghosts, material
    draws = np.random.default_rng(0).random(len(tables.collisions))
    kept = draws < shares[tables.collisions.kind]
    return replace(tables, collisions=tables.collisions[kept])


def compare(tables: Tables, effort: Effort, seed: int) -> dict[str, Any]:
    """Beauty at 3 to 4 and 8 to 11 ps, late over plateau, and what ours costs against free."""
    X, y, _ = tables.training(seed)
    free = judge(train_free(X, y, TWO, effort, seed=seed), tables)
    ours = judge(train_lipschitz(X, y, TWO, effort, seed=seed), tables)
    both = {FREE: free, OURS: ours}
    return {
        "middle": {name: one.beauty.value[[4, 7]].tolist() for name, one in both.items()},
        "late_to_plateau": {name: late_to_plateau(one.beauty) for name, one in both.items()},
        "change": medians(ours, free),
    }


def run(
    tables: Tables, effort: Effort, settings: Settings = SETTINGS, seed: int = 0
) -> list[dict[str, Any]]:
    """What every setting gives, printed as it comes."""
    ghosts, module = (tables.about["parameters"][name] for name in ("ghosts", "module"))
    found = []
    for some, less in settings:
        one = compare(thin(tables, some, less), effort, seed)
        found.append({"ghosts": ghosts * some, "module": module * less, **one})
        print(row(found[-1]), flush=True)
    return found


def run_more(
    tables: Tables,
    seen: Mapping[str, Response],
    names: Sequence[str],
    amount: Amount,
    effort: Effort,
) -> list[dict[str, Any]]:
    """The same with the collisions of other detectors in place of those of the sample."""
    found = []
    for name in names:
        parameters = changed(DETECTORS[name])
        about = {"parameters": asdict(parameters), "size": asdict(amount)}
        others = replace(tables, collisions=seen[name].collisions, about=about)
        setting = {"ghosts": parameters.ghosts, "module": parameters.module}
        found.append({**setting, "of": amount.collisions, **compare(others, effort, 0)})
        print(row(found[-1]), flush=True)
    return found


def row(found: dict[str, Any]) -> str:
    """A row of a table in Markdown."""
    middle = [f"{a:.2f} → {b:.2f}" for a, b in found["middle"].values()]
    late = [f"{value:.2f}" for value in found["late_to_plateau"].values()]
    change = ", ".join(f"{value:+.3f}" for value in found["change"])
    setting = f"{found['ghosts']:.4g}, {found['module']:.2g} mm"
    if "of" in found:
        setting += f", {found['of']:,} collisions"
    return f"| {' | '.join([setting, *middle, *late, change])} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="studies.trigger.questions.dependence")
    parser.add_argument("--sample", type=Path, default=COMMITTED)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="short training")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tables = Tables.load(options.sample)
    run(tables, QUICK if options.quick else Effort(), seed=options.seed)


if __name__ == "__main__":
    main()
