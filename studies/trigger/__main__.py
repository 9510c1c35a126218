"""The trigger study, all of it: figures, numbers, and what else was asked.

    python -m studies.trigger --sample results/trigger/sample --out results/trigger

`python -m studies.trigger.pages` then renews docs/trigger.md from what was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from studies.trigger.analysis import study
from studies.trigger.analysis.models import Effort, Trees
from studies.trigger.analysis.study import FREE, OURS, TREES
from studies.trigger.analysis.tables import Tables
from studies.trigger.questions import dependence, detectors, scan, seeds, smoothness, speed, wrong
from studies.trigger.simulation import checks


@dataclass(frozen=True)
class Extent:
    """How long to train, how many seeds, and how much passes the worse detectors.

    Parameters
    ----------
    others : seeds of all models beside the first, 0
    plan : many seeds of ours
    settings, more : shares of ghosts and material that are kept, and detectors with more of them
    """

    effort: Effort
    others: tuple[int, ...]
    plan: seeds.Plan
    settings: dependence.Settings
    more: tuple[str, ...]
    amount: detectors.Amount


FULL = Extent(
    *(Effort(), (1, 2), seeds.Plan()),
    *(dependence.SETTINGS, dependence.MORE, detectors.Amount()),
)
QUICK = Extent(
    *(study.QUICK, (), seeds.QUICK),
    *(dependence.SETTINGS[-1:], (), detectors.FEW),
)


def run(sample: Path, out: Path, extent: Extent, threads: int = 1) -> dict[str, Any]:
    """Everything; the numbers are also in `out`/numbers.json, written as they come."""
    out.mkdir(parents=True, exist_ok=True)
    tables, effort = Tables.load(sample), extent.effort
    found = study.compare(tables, out, effort)
    two, four = found["2 inputs"], found["4 inputs"]
    results = study.numbers_of(found)
    results |= {"sample": tables.about, "effort": asdict(effort), "seed": 0}
    results["rows"] = {name: len(getattr(tables, name)) for name in ("collisions", "signal")}
    results["brief"] = [{"seed": 0, **{name: study.brief(one) for name, one in found.items()}}]
    models = [verdict.model for one in (two, four) for verdict in one.values()]
    results["trees"] = [m.booster.num_trees() for m in models if isinstance(m, Trees)]
    others = {name: four[name] for name in (FREE, study.FREE_TREES, TREES)}
    parts: dict[str, Callable[[], Any]] = {
        "checks": lambda: [asdict(one) for one in checks.check(sample)],
        "brief": lambda: results["brief"] + study.repeat(tables, effort, extent.others),
        "smoothness": lambda: smoothness.run(two, four, tables, out, effort, extent.others),
        "speed": lambda: speed.run(
            [speed.never_stopped(tables, effort), four[TREES].model, four[OURS].model], tables, out
        ),
        "scan": lambda: scan.run(tables, out, effort, others, threads),
        "seeds": lambda: seeds.run(tables, out, extent.plan, threads),
        "wrong simulation": lambda: wrong.run(four, out / "detectors", out, extent.amount),
        "dependence": lambda: _dependence(tables, out / "detectors", extent),
    }
    for name, part in parts.items():
        start = time.perf_counter()
        results[name] = part()
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
        study.save_numbers(results, out)
    return results


def _dependence(tables: Tables, directory: Path, extent: Extent) -> list[dict[str, Any]]:
    """Fewer ghosts and less material, and then more of them."""
    found = dependence.run(tables, extent.effort, extent.settings)
    if not extent.more:
        return found
    seen = detectors.responses(directory, extent.amount)
    return found + dependence.run_more(tables, seen, extent.more, extent.amount, extent.effort)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="studies.trigger", description="Run the study.")
    parser.add_argument("--sample", type=Path, default=study.COMMITTED)
    parser.add_argument("--out", type=Path, default=Path("results/trigger"))
    parser.add_argument("--threads", type=int, default=1, help="of the fused training")
    parser.add_argument("--quick", action="store_true", help="short training, few seeds")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # more only wait for each other in networks this small
    extent = QUICK if options.quick else FULL
    numbers = run(options.sample, options.out, extent, options.threads)
    print(f"figures and numbers: {options.out}")
    complaints = study.complaints(numbers["brief"])
    for complaint in complaints:
        print(f"not as the paper says: {complaint}")
    if complaints and not options.quick:
        sys.exit(1)


if __name__ == "__main__":
    main()
