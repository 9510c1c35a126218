"""Fig. 7: which losses suit a Lipschitz network on separable classes?

Question: how accurate is a network with λ = 1 after training with six losses, with what margin?
Data: two moons, noise 0.05, 1000 rows to train on and 2000 other rows for validation; 5 seeds.
Claim: high-temperature BCE and hinges of small margin are accurate, MSE and plain BCE are not;
    the dynamic hinge has the largest margin of the accurate ones and nears the signed distance.
Run time: about 15 seconds; --quick 4 seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from isotone import LipschitzNetwork, Recipe
from isotone.losses import CrossEntropy, DynamicHinge, Hinge, Loss, SquaredError
from isotone.typing import Floats
from studies.figures import AROUND_ZERO, BLACK, draw
from studies.paper.distance import SignedDistance
from studies.paper.fits import fit, network, predict
from studies.paper.toys import Toy, moons
from studies.study import Outcome, main

WIDTHS = [2, 64, 64, 64, 1]
LOSSES: dict[str, tuple[str, Loss]] = {
    "mse": ("mean squared error", SquaredError()),
    "bce": ("cross-entropy", CrossEntropy()),
    "bce_16": ("cross-entropy, τ = 16", CrossEntropy(16.0)),
    "hinge_1": ("hinge, margin 1", Hinge(1.0)),
    "hinge_0.1": ("hinge, margin 0.1", Hinge(0.1)),
    "dynamic": ("hinge, dynamic margin", DynamicHinge()),
}
ACCURATE = 0.999
EXTENT = (-1.6, 2.6, -1.1, 1.6)


@dataclass(frozen=True)
class Fit:
    """What one loss leads to: means over seeds, and the networks."""

    accuracy: float
    margin: float
    distance_error: float
    members: list[LipschitzNetwork]


def run(quick: bool) -> Outcome:
    n_seeds, epochs, step = (1, 3, 0.05) if quick else (5, 300, 0.01)
    rows, validation = moons(0), moons(1, 2000)
    distance = SignedDistance(rows.x, rows.y, step)
    truth = distance(validation.x)
    fits = {
        name: train(loss, rows, validation, truth, n_seeds, epochs)
        for name, (_, loss) in LOSSES.items()
    }
    figure, panels = draw(2, 3, size=(2.7, 2.1), sharex=True, sharey=True)
    for panel, name in zip(panels, LOSSES, strict=True):
        show(panel, LOSSES[name][0], fits[name], validation)
    for panel in panels[3:]:
        panel.set_xlabel("$x_1$")
    for panel in panels[::3]:
        panel.set_ylabel("$x_2$")
    figure.colorbar(panels[-1].images[0], ax=panels, label="output of the network", shrink=0.8)
    numbers = {f"accuracy_{name}": fit.accuracy for name, fit in fits.items()}
    numbers |= {f"margin_{name}": fit.margin for name, fit in fits.items()}
    numbers["margin_lead"] = lead(fits)
    numbers["margin_of_distance"] = float(np.abs(truth).mean())
    numbers |= {
        f"distance_error_{name}": fits[name].distance_error
        for name in ("bce_16", "hinge_0.1", "dynamic")
    }
    return Outcome(numbers, figure)


def train(loss: Loss, rows: Toy, validation: Toy, truth: Floats, n_seeds: int, epochs: int) -> Fit:
    """MSE has the labels ±1 as its targets; the other losses know what labels mean."""
    target = 2.0 * rows.y - 1.0 if isinstance(loss, SquaredError) else rows.y
    members = [network(WIDTHS, rows, seed, outputs=loss.outputs) for seed in range(n_seeds)]
    fit(members, Toy(rows.x, target), Recipe(epochs=epochs, batch_size=250), loss)
    scores = predict(members, validation.x)
    right = (scores > 0) == (validation.y > 0)
    error = np.abs(scores - truth).mean()
    return Fit(float(right.mean()), float(np.abs(scores).mean()), float(error), members)


def lead(fits: dict[str, Fit]) -> float:
    """Mean margin of the dynamic hinge beyond that of the best other accurate loss."""
    others = [
        fit.margin for name, fit in fits.items() if name != "dynamic" and fit.accuracy >= ACCURATE
    ]
    return fits["dynamic"].margin - max(others, default=0.0)


def show(panel: Axes, title: str, fit: Fit, validation: Toy) -> None:
    """Heat map and boundary of the first seed, with validation rows."""
    x, y = np.linspace(*EXTENT[:2], 211), np.linspace(*EXTENT[2:], 136)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    score = predict(fit.members[:1], grid)[0].reshape(len(y), len(x))
    panel.imshow(
        score, extent=EXTENT, origin="lower", cmap=AROUND_ZERO, vmin=-1.0, vmax=1.0, aspect="auto"
    )
    for label, marker, color in ((0, "o", "#00334F"), (1, "^", "#702F00")):
        some = validation.x[validation.y == label][::8]
        panel.plot(
            *some.T,
            marker,
            color=color,
            markersize=2.6,
            markeredgewidth=0.3,
            markeredgecolor="white",
        )
    panel.contour(x, y, score, levels=[0.0], colors=BLACK, linewidths=1.2)
    panel.set_title(f"{title}\naccuracy {100 * fit.accuracy:.1f} %, margin {fit.margin:.2f}")


if __name__ == "__main__":
    main(__file__, run)
