"""Cost of training against the number of knots and of categories, on one core.

Question: what does an epoch cost if a network sees copies, or categories, of its columns?
Data: 16 000 rows of 8 normal columns; networks with 32-32 units in groups of 8, learned λ, batches
of 128 and of 512, on copies of every column with knots at equal shares of its values, or on
indicators of as many categories.
Method: one pinned core, contestants taking turns in one process; best of the rounds. Features are
looked up, or multiplied as any others.
Run time: two minutes; ``--quick`` seconds.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.race import Task, pin, race
from isotone import Knots, MonotonicNetwork, Recipe
from isotone.losses import SquaredError
from isotone.training import Field, FusedLearner, Rows
from studies.figures import save

N_ROWS, N_COLUMNS = 16_000, 8
NUMBERS = (1, 8, 16, 32, 64, 128, 256)
BATCHES = (128, 512)
KINDS = ("looked up", "multiplied")
WHAT = ("knots", "categories")


def features(n: int, is_category: bool) -> tuple[NDArray[Any], list[Field]]:
    """Copies of every column between so many knots, or indicators of so many categories."""
    X = np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS))
    knots = Knots.fit(X, n)
    counts = np.bincount(knots.columns).tolist()
    if not is_category:
        return knots.transform(X), [Field(count) for count in counts]
    ranks = X.argsort(axis=0).argsort(axis=0) * n // N_ROWS
    indicators = [np.eye(n)[column] for column in ranks.T]
    return np.hstack(indicators), [Field(n, is_category=True)] * N_COLUMNS


def epoch(n: int, batch: int, looked_up: bool, is_category: bool) -> Task:
    """One epoch, on so many features of every column."""
    x, fields = features(n, is_category)
    loss, recipe = SquaredError(), Recipe(batch_size=batch)
    rows = Rows.of(x, x[:, 0], loss)
    network = MonotonicNetwork(
        [x.shape[1], 32, 32, 1],
        monotonic_cst=np.zeros(x.shape[1]),
        lipschitz="learned",
        group_size=8,
        init="torch",
    )
    learner = FusedLearner([network], loss, recipe, fields=fields if looked_up else ())
    return partial(learner.learn, rows, 0, recipe)


def measure(batch: int, is_category: bool, quick: bool) -> list[list[float]]:
    """Milliseconds per epoch, of every number of knots or categories and kind."""
    tasks = [epoch(n, batch, kind == "looked up", is_category) for n in NUMBERS for kind in KINDS]
    times = race(tasks, *((2, 0.02) if quick else (9, 0.1)))
    best = [1e3 * min(each) for each in times]
    return [best[i : i + len(KINDS)] for i in range(0, len(best), len(KINDS))]


def draw(found: dict[str, dict[int, list[list[float]]]], stem: Path) -> None:
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    for ax, (what, by_batch) in zip(
        figure.subplots(1, 2, sharey=True), found.items(), strict=True
    ):
        for color, (batch, times) in zip(("C0", "C1"), by_batch.items(), strict=True):
            for kind, style in zip(range(len(KINDS)), ("-o", "--s"), strict=True):
                label = f"{KINDS[kind]}, batches of {batch}"
                ax.plot(NUMBERS, [row[kind] for row in times], style, color=color, label=label)
        ax.set(xscale="log", yscale="log", xlabel=f"{what} per column")
        ax.set_xticks(NUMBERS, [f"{n}" for n in NUMBERS])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    figure.axes[0].set_ylabel("ms per epoch")
    figure.axes[0].legend(frameon=False)
    save(figure, stem)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--figure", type=Path, help="draw FIGURE.svg and .pdf")
    options = parser.parse_args()
    torch.set_num_threads(1)
    console = Console(width=99)
    console.print(f"core {pin()}, ms per epoch of {N_ROWS:,} rows, {N_COLUMNS} columns")
    found = {
        what: {b: measure(b, what == "categories", options.quick) for b in BATCHES}
        for what in WHAT
    }
    for what, by_batch in found.items():
        table = Table(what, *(f"{kind}, {batch}" for batch in BATCHES for kind in KINDS))
        for k, n in enumerate(NUMBERS):
            row = (f"{ms:.3g}" for batch in BATCHES for ms in by_batch[batch][k])
            table.add_row(f"{n}", *row)
        console.print(table)
    if options.figure:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
