"""Cost of training against the number of knots, on one core.

Question: what does an epoch cost if a network sees copies of its columns?
Data: 16 000 rows of 8 normal columns; networks with 32-32 units in groups of 8, learned λ, batches
of 128 and of 512, on copies of every column with knots at equal shares of its values.
Method: one pinned core, contestants taking turns in one process; best of the rounds. Copies are
looked up, or multiplied as any other features.
Run time: about a minute; ``--quick`` seconds.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from bench.race import Task, pin, race
from isotone import Knots, MonotonicNetwork, Recipe
from isotone.losses import SquaredError
from isotone.training import FusedLearner, Rows

N_ROWS, N_COLUMNS = 16_000, 8
KNOTS = (1, 8, 16, 32, 64, 128, 256)
BATCHES = (128, 512)
KINDS = ("looked up", "multiplied")


def epoch(n_tiles: int, batch: int, looked_up: bool) -> Task:
    """One epoch, on copies of every column."""
    X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
    knots = Knots.fit(X, n_tiles)
    loss, recipe = SquaredError(), Recipe(batch_size=batch)
    rows = Rows.of(knots.transform(X), X[:, 0], loss)
    network = MonotonicNetwork(
        [knots.n_copies, 32, 32, 1],
        monotonic_cst=np.zeros(knots.n_copies),
        lipschitz="learned",
        group_size=8,
        init="torch",
    )
    fields = np.bincount(knots.columns).tolist() if looked_up else ()
    learner = FusedLearner([network], loss, recipe, fields=fields)
    return partial(learner.learn, rows, 0, recipe)


def measure(batch: int, quick: bool) -> list[list[float]]:
    """Milliseconds per epoch, of every number of knots and kind."""
    tasks = [epoch(n, batch, kind == "looked up") for n in KNOTS for kind in KINDS]
    times = race(tasks, *((2, 0.02) if quick else (9, 0.1)))
    best = [1e3 * min(each) for each in times]
    return [best[i : i + len(KINDS)] for i in range(0, len(best), len(KINDS))]


def draw(found: dict[int, list[list[float]]], path: Path) -> None:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    for color, (batch, times) in zip(("C0", "C1"), found.items(), strict=True):
        for kind, style in zip(range(len(KINDS)), ("-o", "--s"), strict=True):
            label = f"{KINDS[kind]}, batches of {batch}"
            ax.plot(KNOTS, [row[kind] for row in times], style, color=color, label=label)
    ax.set(xscale="log", yscale="log", xlabel="knots per column", ylabel="ms per epoch")
    ax.set_xticks(KNOTS, [f"{n}" for n in KNOTS])
    ax.minorticks_off()
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--figure", type=Path, help="PNG file to draw")
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=99)
    console.print(f"core {pin()}, ms per epoch of {N_ROWS:,} rows, {N_COLUMNS} columns")
    found = {batch: measure(batch, options.quick) for batch in BATCHES}
    table = Table("knots", *(f"{kind}, {batch}" for batch in BATCHES for kind in KINDS))
    for k, n in enumerate(KNOTS):
        table.add_row(f"{n}", *(f"{ms:.3g}" for batch in BATCHES for ms in found[batch][k]))
    console.print(table)
    if options.figure:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
