"""Throughput of scoring against the number of members and of knots, on one core.

Question: does an average of S networks take S times as long as one, no more? And does the time of
a row depend on how many knots its columns have?
Data: float64 rows of normal numbers; the paper's network 4-20-20-1 with a full sort and fresh
weights, alone, as an average, and on copies of every column with knots at equal distances.
Method: one pinned core, contestants taking turns in one process; best of the rounds. A share of
100 % is the speed of the first row, divided by the number of members.
Run time: about a minute; ``--quick`` seconds.
"""

import argparse
from functools import partial

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import isotone
from bench.race import pin, race
from isotone import Engine, FrozenNetwork, Knots, MonotonicNetwork
from isotone.typing import Floats, Precision

WIDTHS = [20, 20, 1]
N_COLUMNS = 4
MEMBERS = (1, 2, 4, 8)
KNOTS = (0, 16, 64, 256)
BATCHES = (200_000, 1_000, 1)


def draw_network(n_features: int, seed: int) -> MonotonicNetwork:
    torch.manual_seed(seed)
    return MonotonicNetwork([n_features, *WIDTHS], monotonic_cst=[1] * n_features)


def average(n_members: int, precision: Precision) -> FrozenNetwork:
    networks = [draw_network(N_COLUMNS, seed) for seed in range(n_members)]
    return isotone.freeze(networks, precision=precision)


def knotted(n_knots: int, precision: Precision) -> FrozenNetwork:
    """The network on copies of its columns, each with as many knots; 0 for the columns."""
    if n_knots == 0:
        return average(1, precision)
    knots = Knots.at([np.linspace(-3.0, 3.0, n_knots).tolist()] * N_COLUMNS)
    return isotone.freeze(draw_network(knots.n_copies, 0), knots=knots, precision=precision)


def rates(networks: list[FrozenNetwork], X: Floats, quick: bool) -> list[float]:
    """Rows per second of every network."""
    n_rounds, budget = (3, 0.02) if quick else (15, 0.1)
    times = race([partial(Engine(network), X) for network in networks], n_rounds, budget)
    return [len(X) / min(each) for each in times]


def tabulate(title: str, names: list[str], parts: list[int], found: list[list[float]]) -> Table:
    table = Table(title, *(f"{n:,} row{'s' * (n > 1)}" for n in BATCHES), "share")
    for k, name in enumerate(names):
        speeds = [f"{1e-6 * each[k]:.3g}" for each in found]
        share = found[0][k] * parts[k] / found[0][0]
        table.add_row(name, *speeds, f"{share:.0%}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    console = Console(width=99)
    console.print(f"core {pin()}, M rows/s, {Engine.instruction_sets()[-1]}")
    rows = [np.random.default_rng(0).normal(size=(n, N_COLUMNS)) for n in BATCHES]
    precisions: tuple[Precision, ...] = ("float64", "float32")
    for precision in precisions:
        averages = [average(n, precision) for n in MEMBERS]
        found = [rates(averages, X, quick) for X in rows]
        names = [f"{n} member{'s' * (n > 1)}" for n in MEMBERS]
        console.print(tabulate(precision, names, list(MEMBERS), found))
        copies = [knotted(n, precision) for n in KNOTS]
        found = [rates(copies, X, quick) for X in rows]
        names = [f"{n} knots per column" for n in KNOTS]
        console.print(tabulate(precision, names, [1] * len(KNOTS), found))


if __name__ == "__main__":
    main()
