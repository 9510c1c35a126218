"""Stacks of members, fused or in batched torch, against plain torch loops, on one core.

Question: how much faster does a stack of members train than one network after the other, with
`monotonicnetworks` (the authors' library) and with `isotone.MonotonicNetwork`? Ratios are to the
former.
Data: 100 000 events of four standard normal features, two overlapping classes.
Method: the paper's network 4-20-20-1 with a full sort, binary cross-entropy, Adam, rows in random
order; one core, contestants taking turns in one process; seconds per seed and epoch, best of the
rounds. The torch loops run a part of an epoch, in steps of the same batch size.
Needs: pip install --no-deps -c constraints.txt monotonicnetworks==1.5.1
Run time: about 40 seconds; ``--quick`` a few.
"""

import argparse
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import isotone
from bench.authors import authors_network
from bench.race import Task, pin, seconds
from isotone import Ensemble, Recipe
from isotone.losses import CrossEntropy

WIDTHS = (4, 20, 20, 1)
LIPSCHITZ = 1.0
BATCH_SIZES = (128, 256, 1024, 4096)
N_EVENTS = 100_000
N_MEMBERS = 32
N_EVENTS_TORCH = 16_384  # of an epoch that torch is timed on
RATE = 1e-3

Array = NDArray[Any]
Backend = Literal["fused", "torch"]


def draw(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, WIDTHS[0])).astype(np.float32)
    y = (np.tanh(x).sum(axis=1) + rng.normal(size=n) > 0).astype(np.float32)
    return x, y


def our_network() -> isotone.MonotonicNetwork:
    return isotone.MonotonicNetwork(
        list(WIDTHS), monotonic_cst=[1] * WIDTHS[0], lipschitz=LIPSCHITZ
    )


def torch_loop(network: nn.Module, x: Tensor, y: Tensor, batch_size: int) -> Task:
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    n_steps = max(1, N_EVENTS_TORCH // batch_size)

    def run() -> None:
        order = torch.randperm(len(x))
        for first in range(0, n_steps * batch_size, batch_size):
            rows = order[first : first + batch_size]
            optimizer.zero_grad()
            logits = network(x[rows])[:, 0]
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return run


def stack(n_members: int, x: Array, y: Array, batch_size: int, backend: Backend) -> Task:
    """An epoch of an ensemble, all that it does before and after included."""
    ensemble = Ensemble([our_network() for _ in range(n_members)])
    recipe = Recipe(epochs=1, batch_size=batch_size, learning_rate=RATE, schedule="constant")
    return lambda: ensemble.train(x, y, CrossEntropy(), recipe, backend=backend)


def compare(x: Array, y: Array, batch_size: int, n_rounds: int, n_members: int) -> list[float]:
    """Seconds per seed and epoch: the authors', our torch loop, batched torch, fused."""
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    few = x[:N_EVENTS_TORCH], y[:N_EVENTS_TORCH]
    part = max(1, N_EVENTS_TORCH // batch_size) * batch_size / N_EVENTS
    contestants = [
        (torch_loop(authors_network(WIDTHS, lipschitz=LIPSCHITZ), *tensors, batch_size), part),
        (torch_loop(our_network(), *tensors, batch_size), part),
        (stack(n_members, *few, batch_size, "torch"), N_EVENTS_TORCH / N_EVENTS * n_members),
        (stack(n_members, x, y, batch_size, "fused"), len(x) / N_EVENTS * n_members),
    ]
    rounds = [[seconds(task) / share for task, share in contestants] for _ in range(n_rounds)]
    return [min(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, few members")
    quick = parser.parse_args().quick
    pin()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    x, y = draw(N_EVENTS)
    isa = isotone.Engine.instruction_sets()[-1]
    table = Table(
        title=f"seconds per seed and epoch of 100k events, one core, {isa}, "
        f"torch {torch.__version__}"
    )
    loops = ["monotonicnetworks", "MonotonicNetwork"]
    for name in ["batch", *loops, "batched torch", "ratio", "fused", "ratio"]:
        table.add_column(name, justify="right")
    for batch_size in BATCH_SIZES:
        times = compare(x, y, batch_size, 1 if quick else 7, 2 if quick else N_MEMBERS)
        authors, ours, batched, fused = times
        table.add_row(
            str(batch_size),
            f"{authors:.3f}",
            f"{ours:.3f}",
            f"{batched:.4f}",
            f"{authors / batched:.1f}",
            f"{fused:.4f}",
            f"{authors / fused:.0f}",
        )
    Console(width=99).print(table)


if __name__ == "__main__":
    main()
