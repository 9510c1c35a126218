"""GroupSort of the compiled engine against torch.sort, forward and backward, on one core.

Question: how much faster is `isotone.GroupSort` than the same through `torch.sort`?
Data: standard normal float32, a small batch that stays in the cache and a large one.
Method: one core, contestants taking turns in one process; nanoseconds per group, best and median.
Note: from 32 MB on (262144 groups of 32) the system hands out fresh pages at every call, which
takes longer than the sort.
Run time: about a minute; ``--quick`` a few seconds.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from bench.race import Task, pin, race
from isotone import Engine, GroupSort

SIZES = (2, 4, 5, 10, 16, 20, 32)
N_GROUPS = (4096, 262144)

Sort = Callable[[Tensor], Tensor]


def torch_sort(x: Tensor, group_size: int) -> Tensor:
    return x.view(-1, group_size).sort(dim=-1, stable=True).values.view_as(x)


def forward(sort: Sort, x: Tensor) -> Task:
    return lambda: sort(x)


def forward_backward(sort: Sort, x: Tensor) -> Task:
    leaf, weight = x.clone().requires_grad_(), torch.ones_like(x)
    return lambda: torch.autograd.grad(sort(leaf), leaf, weight)


def compare(
    kind: Callable[[Sort, Tensor], Task], n_groups: int, size: int, n_rounds: int
) -> list[str]:
    x = torch.randn(n_groups, size)
    sorts: list[Sort] = [GroupSort(group_size=size).forward, partial(torch_sort, group_size=size)]
    times = race([kind(sort, x) for sort in sorts], n_rounds, 0.02)
    (best, median), (torch_best, torch_median) = (
        (1e9 / n_groups * pick for pick in (min(t), statistics.median(t))) for t in times
    )
    numbers = [f"{t:.1f}" for t in (best, median, torch_best, torch_median)]
    return [*numbers, f"{torch_best / best:.1f}", f"{torch_median / median:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, small batch only")
    quick = parser.parse_args().quick
    pin()
    torch.set_num_threads(1)

    isa = Engine.instruction_sets()[-1]
    table = Table(title=f"ns per group, float32, one core, {isa}, torch {torch.__version__}")
    for name in (
        "task",
        "groups",
        "size",
        "isotone",
        "median",
        "torch",
        "median",
        "ratio",
        "median",
    ):
        table.add_column(name, justify="right")
    for n_groups in N_GROUPS[:1] if quick else N_GROUPS:
        for kind in (forward, forward_backward):
            for size in SIZES:
                row = compare(kind, n_groups, size, n_rounds=3 if quick else 15)
                table.add_row(kind.__name__.replace("_", "+"), str(n_groups), str(size), *row)
            table.add_section()
    Console(width=99).print(table)


if __name__ == "__main__":
    main()
