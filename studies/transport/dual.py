"""Wasserstein distances by a critic, beside the exact ones.

Question: how close do a critic, potentials refined from it and a plan come to the distance?
Data: pairs of clouds, 200 to 2000 points in 2 to 10 dimensions; POT's `emd2` is the truth.
Claim: within 2 % for 1000 points in the plane, in less than a minute; never above the truth.
Run time: three minutes of one core.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

from matplotlib.axes import Axes

import isotone
from isotone.transport import Schedule
from studies.figures import BLACK, CYCLE, draw
from studies.study import Outcome, main
from studies.transport.pairs import KINDS, draw_pair, exact_distance


@dataclass(frozen=True)
class Trial:
    """One pair: where it comes from, and what was found."""

    kind: str
    n: int
    d: int
    exact: float
    critic: float
    lower: float
    upper: float
    seconds: float

    @property
    def below(self) -> float:
        """By which share of the distance the lower bound falls short."""
        return 1.0 - self.lower / self.exact

    @property
    def critic_below(self) -> float:
        """The same of what the critic alone certifies."""
        return 1.0 - self.critic / self.exact


def run(quick: bool) -> Outcome:
    steps = 20 if quick else 3000
    sizes, dimensions = ((50, 100), (2, 3)) if quick else ((200, 1000, 2000), (2, 5, 10))
    plane = [try_pair(kind, sizes[-2], 2, steps) for kind in KINDS]
    grid = [try_pair("clusters", n, d, steps) for d in dimensions for n in sizes]
    trials = list(dict.fromkeys(plane + grid))
    figure, (left, right) = draw(1, 2, size=(3.6, 2.9))
    show_plane(left, plane)
    show_grid(right, grid)
    numbers = {
        "pairs": float(len(trials)),
        "lower_bounds_too_high": float(sum(t.lower > t.exact * (1 + 1e-9) for t in trials)),
        "upper_bounds_too_low": float(sum(t.upper < t.exact * (1 - 1e-9) for t in trials)),
        **{f"{t.kind}_below": t.below for t in plane},
        "below_anywhere": max(t.below for t in trials),
        **{f"{t.kind}_critic_below": t.critic_below for t in plane},
        "critic_below_in_many_dimensions": max(
            t.critic_below for t in grid if t.d == dimensions[-1]
        ),
        "above": max(t.upper / t.exact - 1.0 for t in trials),
        "seconds": max(t.seconds for t in plane),
    }
    return Outcome(numbers, figure, table(trials))


@cache
def try_pair(kind: str, n: int, d: int, steps: int) -> Trial:
    P, Q = draw_pair(kind, n, d, seed=0)
    truth, start = exact_distance(P, Q), time.process_time()
    found = isotone.wasserstein(
        P, Q, random_state=0, schedule=Schedule(steps=steps), upper_bound=True
    )
    assert found.upper_bound is not None
    seconds = time.process_time() - start
    bounds = found.critic_bound, found.lower_bound, found.upper_bound
    return Trial(kind, n, d, truth, *bounds, seconds)


def show_plane(axis: Axes, trials: list[Trial]) -> None:
    for i, trial in enumerate(trials):
        low, high = trial.critic / trial.exact, trial.upper / trial.exact
        axis.plot([i, i], [low, high], color=CYCLE[0], linewidth=6, solid_capstyle="butt")
        axis.annotate(f"{low:.3f}", (i, low), (0, -10), textcoords="offset points", ha="center")
        axis.plot(
            i, trial.lower / trial.exact, "_", color=CYCLE[1], markersize=18, markeredgewidth=2
        )
    axis.axhline(1.0, color=BLACK, linestyle=":")
    axis.set_xticks(range(len(trials)), [trial.kind for trial in trials])
    axis.set(ylim=(0.5, 1.1), xlim=(-0.6, len(trials) - 0.4))
    axis.set(title=f"{trials[0].n} points in the plane", ylabel="bounds / exact distance")


def show_grid(axis: Axes, trials: list[Trial]) -> None:
    for color, d in zip(CYCLE, sorted({trial.d for trial in trials}), strict=False):
        row = [trial for trial in trials if trial.d == d]
        n, below = [trial.n for trial in row], [100 * trial.critic_below for trial in row]
        axis.plot(n, below, "o-", color=color, label=f"{d} dimensions")
    sizes = sorted({trial.n for trial in trials})
    axis.set(
        xscale="log",
        ylim=(0, 150 * max(t.critic_below for t in trials)),
        xlabel="points in each cloud",
    )
    axis.set_xticks(sizes, [str(n) for n in sizes])
    axis.minorticks_off()
    axis.set(title="clusters", ylabel="critic below exact, %")
    axis.legend(loc="upper right", ncols=2)


def table(trials: list[Trial]) -> str:
    columns = "clouds", "points", "dimensions", "critic alone", "lower bound", "exact"
    rows = [f"| {' | '.join(columns)} | upper bound | seconds |", "|" + " --- |" * 8]
    for t in trials:
        numbers = (
            f"{t.critic:.4f} | {t.lower:.4f} | {t.exact:.4f} | {t.upper:.4f} | {t.seconds:.0f}"
        )
        rows.append(f"| {t.kind} | {t.n} | {t.d} | {numbers} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main(__file__, run)
