"""Fig. 1: does a bounded slope make a fit robust to an outlier?

Question: what do unconstrained and Lipschitz networks (λ = 1) make of one bad point?
Data: sin x + ε at 60 points, σ = 1 at one and 0.01 elsewhere (Eq. 10); first draw beyond 1 σ.
Claim: the unconstrained network follows the outlier, the Lipschitz network ignores it.
Run time: about 10 seconds; --quick 2 seconds.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from isotone import LipschitzNetwork
from isotone.losses import AbsoluteError, SquaredError
from isotone.typing import Floats
from studies.figures import BLACK, BLUE, GREEN, ORANGE, draw, plot_seeds
from studies.paper.fits import certified_slopes, fit, full_batch, network, predict
from studies.paper.toys import OUTLIER, Toy, outlier
from studies.paper.unconstrained import Stack
from studies.study import Outcome, main

WIDTHS = [1, 32, 32, 32, 1]
GRID = np.linspace(0.0, 2.0 * math.pi, 2001)[:, None]


def run(quick: bool) -> Outcome:
    n_seeds, steps = (3, 20) if quick else (10, 2000)
    toy = next(toy for toy in map(outlier, range(100)) if abs(deviation(toy)) > 1.0)
    squared, absolute = (
        train_lipschitz(toy, loss, n_seeds, steps) for loss in (SquaredError(), AbsoluteError())
    )
    free, free_absolute = (Stack(WIDTHS, n_seeds) for _ in range(2))
    free.train(toy.x, toy.y, steps)
    free_absolute.train(toy.x, toy.y, steps, absolute=True)
    figure, (panel,) = draw(size=(5.4, 3.6))
    show(panel, toy, predict(squared, GRID), predict(absolute, GRID), free.predict(GRID))
    numbers = {
        "outlier": deviation(toy),
        "unconstrained_pull": pull(toy, free.predict(toy.x)),
        "unconstrained_pull_absolute": pull(toy, free_absolute.predict(toy.x)),
        "lipschitz_pull": pull(toy, predict(squared, toy.x)),
        "lipschitz_pull_absolute": pull(toy, predict(absolute, toy.x)),
        "lipschitz_largest_slope": certified_slopes([*squared, *absolute])[1],
        "unconstrained_largest_slope": steepest(free.predict(GRID)).min(),
        "unconstrained_error": error(free.predict(GRID)),
        "lipschitz_error": error(predict(squared, GRID)),
        "lipschitz_error_absolute": error(predict(absolute, GRID)),
    }
    return Outcome(numbers, figure)


def train_lipschitz(
    toy: Toy, loss: SquaredError | AbsoluteError, n_seeds: int, steps: int
) -> list[LipschitzNetwork]:
    members = [network(WIDTHS, toy, seed) for seed in range(n_seeds)]
    fit(members, toy, full_batch(toy, steps), loss)
    return members


def deviation(toy: Toy) -> float:
    """ε of the outlier."""
    return float(toy.y[OUTLIER] - np.sin(toy.x[OUTLIER, 0]))


def pull(toy: Toy, predictions: Floats) -> float:
    """How far the fits follow the outlier, as a share of its distance; mean of the seeds."""
    shifts = predictions[:, OUTLIER] - np.sin(toy.x[OUTLIER, 0])
    return float(np.mean(shifts) / deviation(toy))


def steepest(curves: Floats) -> Floats:
    """Largest slope of every curve, between neighbors on the grid."""
    slopes: Floats = np.abs(np.diff(curves, axis=1) / np.diff(GRID[:, 0])).max(axis=1)
    return slopes


def error(curves: Floats) -> float:
    """Root mean square error against sin x over the full range."""
    return float(np.sqrt(np.square(curves - np.sin(GRID[:, 0])).mean()))


def show(panel: Axes, toy: Toy, squared: Floats, absolute: Floats, free: Floats) -> None:
    x = GRID[:, 0]
    plot_seeds(panel, x, free, ORANGE, "unconstrained, squared error")
    plot_seeds(panel, x, squared, BLUE, "λ = 1, squared error")
    plot_seeds(panel, x, absolute, GREEN, "λ = 1, absolute error")
    panel.plot(x, np.sin(x), color=BLACK, linestyle=":", label="sin x")
    panel.plot(toy.x[:, 0], toy.y, "o", color=BLACK, markersize=3.5, label="data")
    where = toy.x[OUTLIER, 0], toy.y[OUTLIER]
    panel.annotate("outlier", where, xytext=(10, -2), textcoords="offset points")
    panel.set(xlabel="x", ylabel="y")
    panel.legend(loc="upper right")


if __name__ == "__main__":
    main(__file__, run)
