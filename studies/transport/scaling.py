"""Time and memory against the number of points.

Question: how do the critic, exact transport and entropic transport grow with the clouds?
Data: two Gaussian clouds in the plane, one shifted by 1, with 10³ to 10⁶ points each.
Claim: the critic's time hardly depends on the number of points and its memory is that of the
clouds, where most solvers hold all n × n distances, and the lazy exact one computes them instead.
Run time: two minutes of one core.
"""

from __future__ import annotations

import ctypes
import gc
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ot
from matplotlib.axes import Axes
from scipy.spatial.distance import cdist

import isotone
from isotone.transport import Schedule
from isotone.typing import Floats
from studies.figures import CYCLE, GRAY, draw
from studies.study import Outcome, main
from studies.transport.pairs import draw_pair, exact_distance

Solver = Callable[[Floats, Floats], float]
EPSILON = 0.05  # the regularization of Sinkhorn's algorithm


@dataclass(frozen=True)
class Point:
    """One measurement; `memory` is what the solver added to the process at its peak, in MB."""

    solver: str
    n: int
    value: float
    seconds: float
    memory: float


def run(quick: bool) -> Outcome:
    few = (100, 200) if quick else (500, 1000, 2000)
    many = (200, 400) if quick else (10**3, 10**4, 10**5, 10**6)
    steps = 20 if quick else 1000
    plan: list[tuple[str, int, Solver]] = [
        (name, n, SOLVERS[name]) for name in SOLVERS for n in few
    ]
    plan += [("emd2", 2 * few[-1], exact_distance)]
    plan += [("emd2_lazy", k * few[-1], lazy_distance) for k in (2, 4)]
    critic(*draw_pair("shifted", 64, 2, seed=0), steps=1)  # so that libraries are loaded
    plan += [("critic", n, lambda P, Q: critic(P, Q, steps)) for n in many]
    points = [measure(name, n, solver) for name, n, solver in plan]
    figure, axes = draw(1, 2, size=(3.6, 2.9))
    show(axes[0], points, "seconds", "processor time, s")
    show(axes[1], points, "memory", "memory added, MB")
    axes[0].legend()
    n = np.array([few[0], many[-1]])
    axes[1].plot(n, 8e-6 * n.astype(float) ** 2, ":", color=GRAY)
    axes[1].annotate("one n × n matrix", (n[0] * 40, 8e-6 * (n[0] * 12.0) ** 2), color=GRAY)
    return Outcome(numbers_of(points), figure, table(points))


def numbers_of(points: list[Point]) -> dict[str, float]:
    """What is largest of the critic and of both exact solvers, and how far these two differ."""
    by = {name: {p.n: p for p in points if p.solver == name} for name in ("critic", *SOLVERS)}
    critics, exact, lazy = by["critic"], by["emd2"], by["emd2_lazy"]
    largest, largest_lazy = critics[max(critics)], lazy[max(lazy)]
    return {
        "largest_cloud": float(largest.n),
        "seconds_at_largest": largest.seconds,
        "megabytes_at_largest": largest.memory,
        "value_at_largest": largest.value,
        "exact_seconds": exact[max(exact)].seconds,
        "exact_megabytes": exact[max(exact)].memory,
        "lazy_difference": max(abs(p.value / lazy[n].value - 1.0) for n, p in exact.items()),
        "lazy_seconds": lazy[max(exact)].seconds,
        "lazy_megabytes": lazy[max(exact)].memory,
        "lazy_seconds_at_largest": largest_lazy.seconds,
        "lazy_megabytes_at_largest": largest_lazy.memory,
    }


def critic(P: Floats, Q: Floats, steps: int) -> float:
    schedule = Schedule(steps=steps)
    return isotone.wasserstein(P, Q, random_state=0, schedule=schedule, refine=False).lower_bound


def lazy_distance(P: Floats, Q: Floats) -> float:
    """POT's network simplex that computes each distance when it looks at it."""
    return float(ot.emd2_lazy(P, Q, metric="euclidean", numItermax=10**8, return_matrix=False))


def sinkhorn(P: Floats, Q: Floats) -> float:
    """POT, in the log domain, with the cost of the plan after at most 200 rounds."""
    cost = cdist(P, Q)
    plan = ot.sinkhorn([], [], cost, EPSILON, method="sinkhorn_log", numItermax=200, warn=False)
    return float((plan * cost).sum())


def geomloss(P: Floats, Q: Floats) -> float:
    """The debiased Sinkhorn divergence of order 1; slower annealing than by default, or else it
    is a third too small."""
    import torch
    from geomloss import SamplesLoss

    loss = SamplesLoss("sinkhorn", p=1, blur=0.01, scaling=0.9, backend="tensorized")
    return float(loss(torch.as_tensor(P), torch.as_tensor(Q)))


SOLVERS: dict[str, Solver] = {
    "emd2": exact_distance,
    "emd2_lazy": lazy_distance,
    "Sinkhorn": sinkhorn,
    "geomloss": geomloss,
}


def measure(name: str, n: int, solver: Solver) -> Point:
    P, Q = draw_pair("shifted", n, 2, seed=0)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # give back what earlier solvers left
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before, start = _status("VmRSS"), time.process_time()
    value = solver(P, Q)
    return Point(name, n, value, time.process_time() - start, (_status("VmHWM") - before) / 1e3)


def _status(key: str) -> float:
    """Kilobytes of this process, as Linux counts them."""
    found = re.search(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return float(found[1])


def show(axis: Axes, points: list[Point], what: str, label: str) -> None:
    for color, solver in zip(CYCLE, ("critic", *SOLVERS), strict=False):
        row = [point for point in points if point.solver == solver]
        values = [getattr(point, what) for point in row]
        axis.plot([p.n for p in row], values, "o-", color=color, markersize=4, label=solver)
    axis.set(xscale="log", yscale="log", xlabel="points in each cloud", ylabel=label)


def table(points: list[Point]) -> str:
    rows = ["| solver | points | value | seconds | MB |", "| --- | --- | --- | --- | --- |"]
    for p in points:
        rows.append(f"| {p.solver} | {p.n:,} | {p.value:.4f} | {p.seconds:.1f} | {p.memory:.0f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main(__file__, run)
