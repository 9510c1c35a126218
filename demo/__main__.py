"""Train a trigger, certify it, choose its threshold by rate, export it, and draw what it keeps.

    python -m demo    # or make demo, which sets everything up

Everything is made from the sample in studies/trigger/small and written to results/demo.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import torch
from rich.console import Console

import isotone
from demo import summary, table
from studies.figures import save
from studies.trigger.analysis import figures
from studies.trigger.analysis.efficiency import EDGES
from studies.trigger.analysis.models import (
    Effort,
    Lipschitz,
    Model,
    train_free,
    train_lipschitz,
    train_trees,
)
from studies.trigger.analysis.study import COMMITTED, FREE, OURS, QUICK, TREES, Verdict, judge
from studies.trigger.analysis.tables import FOUR, TWO, Tables
from studies.trigger.analysis.working_point import MAX_RATE, exposure

SAMPLE = Path(os.path.relpath(COMMITTED))

console = Console(highlight=False)


def run(out: Path, effort: Effort) -> summary.Facts:
    """All steps; what the summary says."""
    out.mkdir(parents=True, exist_ok=True)
    tables, model = Tables.load(SAMPLE), out / summary.MODEL
    ours = train(tables, effort, model)
    isotone_("certify", model)
    choose(tables, out)
    isotone_("export", model, "--to", "cpp", "--out", out / summary.CPP)
    isotone_("export", model, "--to", "onnx", "--out", out / summary.ONNX)
    isotone_(
        *("score", model, SAMPLE / "collisions.parquet", "--out", out / summary.SCORES),
        *("--keep", "event", "--keep", "collision"),
    )
    show(out)
    two, four = compare(tables, ours, effort)
    draw(two, four, tables, out)
    facts = summary.Facts.of(isotone.certify(ours.frozen), two, four, tables)
    (out / summary.SUMMARY).write_text(summary.page(facts), encoding="utf-8")
    return facts


def train(tables: Tables, effort: Effort, model: Path) -> Lipschitz:
    """The trigger network: the monotone Lipschitz network with four inputs."""
    X, y, _ = tables.training()
    console.rule(f"train 4-20-20-1, increasing in three features, on {len(X):,} candidates")
    console.print("inputs unscaled: λ = 2 per GeV, per unit of χ² and of each logarithm")
    ours = train_lipschitz(X, y, FOUR, effort, progress=True)
    ours.frozen.save(model)
    return ours


def choose(tables: Tables, out: Path) -> None:
    """The working point, on candidates that training has not seen."""
    table.write(tables, out / summary.CANDIDATES)
    stands_for = exposure(tables.about)
    isotone_(
        *("trigger", out / summary.MODEL, out / summary.CANDIDATES),
        *("--target", "is_signal", "--event", "event"),
        *("--n-events", stands_for.n_events, "--pileup", stands_for.pileup),
        *(
            "--input-rate",
            f"{stands_for.input_rate / 1e6:g}e6",
            "--max-rate",
            f"{MAX_RATE / 1e3:g}e3",
        ),
        *("--block", "collision", "--group", "flavor", "--against", "proper_time"),
        *("--edges", ",".join(f"{edge:g}" for edge in EDGES), "--split", "flavor"),
        *("--out", out / summary.WORKING_POINT),
    )


def show(out: Path) -> None:
    """The report: the model at its working point, in a browser."""
    found = json.loads((out / summary.WORKING_POINT).read_text())
    isotone_(
        *("report", out / summary.MODEL, out / summary.CANDIDATES, "--target", "is_signal"),
        *("--threshold", found["threshold"], "--title", "A heavy-flavor trigger"),
        *("--out", out / summary.REPORT),
    )


def compare(
    tables: Tables, ours: Lipschitz, effort: Effort
) -> tuple[dict[str, Verdict], dict[str, Verdict]]:
    """The three models of the paper's figures, with two and with four inputs."""
    console.rule("compare with an unconstrained network and monotone trees")
    X, y, group = tables.training()
    found = []
    for inputs in (TWO, FOUR):
        with console.status(f"training models with {len(inputs)} inputs"):
            models: dict[str, Model] = {
                FREE: train_free(X, y, inputs, effort),
                TREES: train_trees(X, y, group, inputs, effort),
                OURS: ours if inputs == FOUR else train_lipschitz(X, y, inputs, effort),
            }
        found.append({name: judge(model, tables) for name, model in models.items()})
        for name, verdict in found[-1].items():
            console.print(summary.line(f"{len(inputs)} inputs, {name}", verdict))
    return found[0], found[1]


def draw(two: dict[str, Verdict], four: dict[str, Verdict], tables: Tables, out: Path) -> None:
    """Figs. 4 and 5 of the paper."""
    X, y, _ = tables.training()
    models = {name: (verdict.model, verdict.point.threshold) for name, verdict in two.items()}
    save(figures.heat_maps(models, X, y), out / summary.FIG_4)
    curves = {name: (verdict.beauty, verdict.charm) for name, verdict in four.items()}
    save(figures.lifetimes(curves), out / summary.FIG_5)


def isotone_(*words: object) -> None:
    """Run an `isotone` command as a user would."""
    texts = [str(word) for word in words]
    console.rule()
    console.print(f"$ isotone {shlex.join(texts)}", style="bold", soft_wrap=True, markup=False)
    command = Path(sys.executable).with_name("isotone")
    subprocess.run([command, *texts], check=True, env=os.environ | {"COLUMNS": str(console.width)})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("results/demo"))
    parser.add_argument("--quick", action="store_true", help="short training")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # more only wait for each other in networks this small
    start = time.perf_counter()
    facts = run(options.out, QUICK if options.quick else Effort())
    console.rule("summary")
    lines = summary.ten_lines(facts, options.out, time.perf_counter() - start)
    console.print(lines, soft_wrap=True, markup=False)


if __name__ == "__main__":
    main()
