"""Which initialization trains best?

Question: how far do the paper's toys get in a fixed number of steps, by initialization and depth?
Data: |x| (Sec. 2.2), the outlier (Fig. 1), the monotone logarithm (Fig. 2), the flower (Fig. 3).
Claim: columns on the bound with matching biases beat PyTorch's default, more so in deep networks.
Run time: about six minutes on two cores; `--seeds 1 --steps 50` takes seconds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import get_args

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from isotone import LipschitzNetwork, MonotonicNetwork
from isotone.initialization import Init

DEPTHS = (3, 6, 12)
GROUP_SIZES = {"full sort": None, "pairs": 2}
INITS: tuple[Init, ...] = get_args(Init)
Toy = tuple[Tensor, Tensor, float, bool]  # inputs, targets, λ, monotone or not


def absolute(generator: torch.Generator) -> Toy:
    x = torch.linspace(-1, 1, 201)[:, None]
    return x, x.abs(), 1.0, False


def outlier(generator: torch.Generator) -> Toy:
    """sin x with noise 0.01, and 1 at one point; judged against the data, as training does."""
    x = torch.linspace(0, 2 * math.pi, 60)[:, None]
    noise = 0.01 * torch.randn(x.shape, generator=generator)
    noise[20] *= 100
    return x - math.pi, torch.sin(x) + noise, 1.0, False


def logarithm(generator: torch.Generator) -> Toy:
    x = torch.linspace(1, 5, 60)[:, None]
    return x - 3, x.log() + 0.02 * x * torch.randn(x.shape, generator=generator), 1.0, True


def flower(generator: torch.Generator) -> Toy:
    """Three closed curves around each other, labeled 0, 0.5 and 1."""
    angle = torch.linspace(0, 2 * math.pi, 201)[:-1]
    radius = 1.5 + 0.18 * torch.cos(8 * angle)
    curve = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    x = torch.cat([scale * curve for scale in (0.7, 1.0, 1.3)])
    return x, torch.tensor([0.0, 0.5, 1.0]).repeat_interleave(200)[:, None], 4.0, False


TOYS: dict[str, Callable[[torch.Generator], Toy]] = {
    "abs(x)": absolute,
    "outlier": outlier,
    "logarithm": logarithm,
    "flower": flower,
}


def train(
    toy: str, depth: int, group_size: int | None, init: Init, seed: int, steps: int
) -> float:
    """Root mean square of the residuals after training."""
    torch.set_num_threads(1)
    x, y, lipschitz, monotone = TOYS[toy](torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    widths = [x.shape[1], *[20] * (depth - 1), 1]
    network: LipschitzNetwork
    if monotone:
        network = MonotonicNetwork(
            widths, monotonic_cst=[1], lipschitz=lipschitz, group_size=group_size, init=init
        )
    else:
        network = LipschitzNetwork(widths, lipschitz=lipschitz, group_size=group_size, init=init)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = (network(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return math.sqrt(loss.item())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    cells = list(product(GROUP_SIZES, TOYS, DEPTHS))
    jobs = [
        (*cell, init, seed) for cell in cells for init in INITS for seed in range(options.seeds)
    ]
    with ProcessPoolExecutor(2) as pool:
        futures = {
            job: pool.submit(train, job[1], job[2], GROUP_SIZES[job[0]], *job[3:], options.steps)
            for job in jobs
        }
        results = {job: future.result() for job, future in track(futures.items(), "training")}
    report(cells, results, options.seeds)


def report(
    cells: list[tuple[str, str, int]],
    results: dict[tuple[str, str, int, Init, int], float],
    n_seeds: int,
) -> None:
    """A Markdown table: median over seeds (worst seed), and the geometric mean of the medians."""
    console = Console(width=120, soft_wrap=True)
    console.print("| sort | toy | depth | " + " | ".join(INITS) + " |")
    console.print("| --- | --- | --- | " + " | ".join("---" for _ in INITS) + " |")
    medians = []
    for cell in cells:
        values = np.array([[results[*cell, init, s] for s in range(n_seeds)] for init in INITS])
        medians.append(np.median(values, axis=1))
        texts = [
            f"{m:.4f} ({w:.3f})" for m, w in zip(medians[-1], values.max(axis=1), strict=True)
        ]
        console.print(f"| {cell[0]} | {cell[1]} | {cell[2]} | " + " | ".join(texts) + " |")
    mean = np.exp(np.log(medians).mean(axis=0))
    console.print("| all | geometric mean | | " + " | ".join(f"{m:.4f}" for m in mean) + " |")


if __name__ == "__main__":
    main()
