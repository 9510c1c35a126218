"""What a guarantee to the last bit costs: exact float32 against float32 without it, and float64.

Question: how fast is `freeze(..., precision="float32", exact=True)`, as a share of float32?
Data: float32 rows of normal numbers; networks with fresh weights.
Method: one core, contestants taking turns in one process; ratios of the best of the rounds.
Run time: about a minute; ``--quick`` seconds.
"""

import argparse
import math
from functools import partial

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bench.race import Task, pin, race
from isotone import Engine, FrozenNetwork, MonotonicNetwork, certify, freeze

SHAPES = (
    ([4, 20, 20, 1], None),
    ([4, 20, 20, 1], 2),
    ([4, 64, 64, 64, 1], 2),
)
BATCHES = (50_000, 1_000)


def contestants(layers: list[int], group_size: int | None) -> dict[str, FrozenNetwork]:
    torch.manual_seed(0)
    network = MonotonicNetwork(layers, monotonic_cst=[1] * layers[0], group_size=group_size)
    found = {
        "float32": freeze(network, precision="float32"),
        "float32, exact": freeze(network, precision="float32", exact=True),
        "float64": freeze(network),
    }
    assert all(certify(frozen).holds for frozen in found.values())
    return found


def measure(frozen: dict[str, FrozenNetwork], isa: str, n_rows: int, quick: bool) -> list[float]:
    """Rows per second of every contestant, best of the rounds."""
    X = np.random.default_rng(0).normal(size=(n_rows, 4)).astype(np.float32)
    tasks: list[Task] = [partial(Engine(one, isa=isa, threads=1), X) for one in frozen.values()]
    times = race(tasks, *((5, 0.002) if quick else (200, 0.002)))  # short turns, many rounds
    return [n_rows / min(each) for each in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    quick = parser.parse_args().quick
    core, console = pin(), Console(width=110)
    heads = ["float32, M rows/s", "exact / float32", "float64 / float32"]
    table = Table("network", "grid", "rows", "instructions", *heads, title=f"core {core}")
    for layers, group_size in SHAPES:
        frozen = contestants(layers, group_size)
        grid = frozen["float32, exact"].grid or math.nan
        shape = "-".join(map(str, layers)) + (", full sort" if group_size is None else ", pairs")
        for isa in reversed(Engine.instruction_sets()):
            for n_rows in BATCHES:
                plain, exact, double = measure(frozen, isa, n_rows, quick)
                ratios = [f"{rate / plain:.2f}" for rate in (exact, double)]
                about = [shape, f"2^{math.log2(grid):.0f}", f"{n_rows:,}", isa]
                table.add_row(*about, f"{plain / 1e6:.3g}", *ratios)
    console.print(table)


if __name__ == "__main__":
    main()
