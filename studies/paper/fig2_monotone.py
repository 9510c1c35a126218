"""Fig. 2: what happens where there are no data?

Question: how do unconstrained and monotone Lipschitz networks (λ = 1) extra- and interpolate?
Data: log x + ε at 30 points of [1, 6], variance of ε 0.01 x (Eq. 11); four draws, see `draws`.
Claim: unconstrained fits follow the noise and are unpredictable; monotone ones always increase.
Run time: about 15 seconds; --quick 3 seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from isotone.typing import Floats
from studies.figures import BLACK, BLUE, ORANGE, PURPLE, draw, plot_seeds
from studies.paper.fits import certified_slopes, fit, full_batch, network, predict
from studies.paper.toys import Toy, logarithm
from studies.paper.unconstrained import Stack
from studies.study import Outcome, main

WIDTHS = [1, 32, 32, 32, 1]
GRID = np.linspace(1.0, 6.0, 1001)[:, None]
GAPS = {"extrapolation": (4.0, 6.0), "interpolation": (2.5, 4.5)}


@dataclass(frozen=True)
class Panel:
    """The fits to one draw: curves (n_seeds, n_grid) of both kinds, and certified slopes."""

    task: str
    toy: Toy
    monotone: Floats
    free: Floats
    slopes: tuple[float, float]


def run(quick: bool) -> Outcome:
    n_seeds, steps = (3, 20) if quick else (10, 2000)
    panels = [train(task, toy, n_seeds, steps) for task, gap in GAPS.items() for toy in draws(gap)]
    figure, axes = draw(2, 2, size=(3.6, 2.6), sharex=True, sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        show(axis, panel)
    axes[0].legend(loc="upper left")
    for axis in axes[2:]:
        axis.set_xlabel("x")
    for axis in axes[::2]:
        axis.set_ylabel("y")
    numbers = {
        "curves": float(sum(len(panel.free) for panel in panels)),
        "unconstrained_not_monotone": float(sum(falling(panel.free) for panel in panels)),
        "monotone_not_monotone": float(sum(falling(panel.monotone) for panel in panels)),
        "least_slope": min(panel.slopes[0] for panel in panels),
        "largest_slope": max(panel.slopes[1] for panel in panels),
    }
    for task in GAPS:
        numbers |= in_gap(task, [panel for panel in panels if panel.task == task])
    return Outcome(numbers, figure)


def draws(gap: tuple[float, float]) -> list[Toy]:
    """The first two draws whose last three points before the gap rise, and fall, in turn."""
    toys = [logarithm(seed, gap) for seed in range(100)]
    last = [np.diff(toy.y[toy.x[:, 0] <= gap[0]][-3:]) for toy in toys]
    rising = next(toy for toy, steps in zip(toys, last, strict=True) if np.all(steps > 0))
    falling = next(toy for toy, steps in zip(toys, last, strict=True) if np.all(steps < 0))
    return [rising, falling]


def train(task: str, toy: Toy, n_seeds: int, steps: int) -> Panel:
    members = [network(WIDTHS, toy, seed) for seed in range(n_seeds)]
    fit(members, toy, full_batch(toy, steps))
    free = Stack(WIDTHS, n_seeds)
    free.train(toy.x, toy.y, steps)
    return Panel(task, toy, predict(members, GRID), free.predict(GRID), certified_slopes(members))


def falling(curves: Floats) -> int:
    """How many curves fall by more than the rounding of float32 somewhere on the grid."""
    return int(np.any(np.diff(curves, axis=1) < -1e-5, axis=1).sum())


def in_gap(task: str, panels: list[Panel]) -> dict[str, float]:
    """Error against log x, and spread over seeds, where there are no data; mean of the draws."""
    low, high = GAPS[task]
    inside = (GRID[:, 0] > low) & (GRID[:, 0] < high)
    truth = np.log(GRID[inside, 0])
    numbers = {}
    for kind in ("unconstrained", "monotone"):
        curves = [(p.free if kind == "unconstrained" else p.monotone)[:, inside] for p in panels]
        errors = [np.sqrt(np.square(c - truth).mean(axis=1)).mean() for c in curves]
        numbers[f"{kind}_error_{task}"] = float(np.mean(errors))
        numbers[f"{kind}_spread_{task}"] = float(np.mean([c.std(axis=0).mean() for c in curves]))
    return numbers


def show(axis: Axes, panel: Panel) -> None:
    x = GRID[:, 0]
    axis.axvspan(*GAPS[panel.task], color="#DDDDDD", linewidth=0)
    plot_seeds(axis, x, panel.free, ORANGE, "unconstrained")
    plot_seeds(axis, x, panel.monotone, BLUE, "monotone, λ = 1")
    axis.plot(x, np.log(x), color=BLACK, linestyle=":", label="log x")
    axis.plot(panel.toy.x[:, 0], panel.toy.y, "o", color=PURPLE, markersize=3.5, label="data")
    axis.set(title=panel.task, ylim=(-0.6, 3.2))


if __name__ == "__main__":
    main(__file__, run)
