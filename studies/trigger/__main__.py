"""The trigger study, all of it: figures, numbers, and what else was asked.

python -m studies.trigger --sample results/trigger/sample --out results/trigger
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from studies.trigger import detectors, scan, seeds, smoothness, speed, study, wrong
from studies.trigger.models import Effort
from studies.trigger.study import FREE, OURS, TREES
from studies.trigger.tables import Tables


@dataclass(frozen=True)
class Extent:
    """How long to train, how many seeds, and how much passes the worse detectors."""

    effort: Effort
    plan: seeds.Plan
    amount: detectors.Amount


FULL = Extent(Effort(), seeds.Plan(), detectors.Amount())
QUICK = Extent(study.QUICK, seeds.QUICK, detectors.FEW)


def run(sample: Path, out: Path, extent: Extent, threads: int = 1) -> dict[str, Any]:
    """Everything; the numbers are also in `out`/numbers.json, written as they come."""
    out.mkdir(parents=True, exist_ok=True)
    tables, effort = Tables.load(sample), extent.effort
    found = study.compare(tables, out, effort)
    two, four = found["2 inputs"], found["4 inputs"]
    results = study.numbers_of(found)
    results |= {"sample": tables.about, "effort": asdict(effort), "seed": 0}
    others = {name: four[name] for name in (FREE, TREES)}
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "smoothness": lambda: smoothness.run(two, four, tables, out),
        "speed": lambda: speed.run(
            [speed.never_stopped(tables, effort), four[TREES].model, four[OURS].model], tables, out
        ),
        "scan": lambda: scan.run(tables, out, effort, others, threads),
        "seeds": lambda: seeds.run(tables, out, extent.plan, threads),
        "wrong simulation": lambda: wrong.run(four, out / "detectors", out, extent.amount),
    }
    for name, part in parts.items():
        start = time.perf_counter()
        results[name] = part()
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
        study.save_numbers(results, out)
    return results


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="studies.trigger", description="Run the study.")
    parser.add_argument("--sample", type=Path, default=study.COMMITTED)
    parser.add_argument("--out", type=Path, default=Path("results/trigger"))
    parser.add_argument("--threads", type=int, default=1, help="of the fused training")
    parser.add_argument("--quick", action="store_true", help="short training, few seeds")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # more only wait for each other in networks this small
    run(options.sample, options.out, QUICK if options.quick else FULL, options.threads)
    print(f"figures and numbers: {options.out}")


if __name__ == "__main__":
    main()
