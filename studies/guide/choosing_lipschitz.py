"""Choosing λ: what it costs, and what it buys.

Question: how do fit, generalization and certified robustness of a classifier depend on λ?
Data: scikit-learn's breast cancer table, five features, three of them increasing; five folds.
Claim: too small a λ cannot fit, a large one only weakens what can be promised.
Run time: about 10 seconds; --quick 1 second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import isotone
from isotone import FrozenNetwork, plot
from isotone.typing import Floats
from studies.figures import BLUE, CYCLE, GRAY, ORANGE, draw
from studies.study import Outcome, main

FEATURES = tuple(
    f"mean {name}" for name in ("radius", "texture", "smoothness", "symmetry", "concave points")
)
DIRECTIONS = (1, 1, 0, 0, 1)
LADDER = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)
SHOWN = (1 / 8, 1 / 2, 2.0, 16.0)
SHIFT = 0.1  # of every feature, in standard deviations
_DRAWS = 20


@dataclass(frozen=True)
class Rung:
    """One λ: means over folds, of rows that were not learned from unless said."""

    lipschitz: float
    learned_loss: float
    loss: float
    accuracy: float
    radius: float
    certified: float
    measured: float


def run(quick: bool) -> Outcome:
    X, y = table()
    ladder = LADDER[::4] if quick else LADDER
    n_folds, epochs = (2, 5) if quick else (5, 100)
    rungs = [climb(X, y, lipschitz, n_folds, epochs) for lipschitz in ladder]
    shown = ladder if quick else SHOWN
    networks = [train(X, y, lipschitz, epochs) for lipschitz in shown]
    return Outcome(
        numbers(rungs), figure(rungs, dict(zip(shown, networks, strict=True)), X), text(rungs)
    )


def table() -> tuple[Floats, Floats]:
    """Features, and 1 for malignant."""
    data = load_breast_cancer()
    names = list(data.feature_names)
    columns = [names.index(feature) for feature in FEATURES]
    return data.data[:, columns], (data.target == 0).astype(np.float64)


def train(X: Floats, y: Floats, lipschitz: float, epochs: int) -> FrozenNetwork:
    """The default classifier at one λ."""
    model = isotone.MonotonicClassifier(
        list(DIRECTIONS), lipschitz=lipschitz, max_iter=epochs, random_state=0
    )
    fitted = model.fit(pd.DataFrame(X, columns=list(FEATURES)), y)
    network: FrozenNetwork = fitted.network_
    return network


def climb(X: Floats, y: Floats, lipschitz: float, n_folds: int, epochs: int) -> Rung:
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    found = []
    for learn, rest in folds.split(X, y):
        frozen = train(X[learn], y[learn], lipschitz, epochs)
        found.append(judge(frozen, X[learn], y[learn], X[rest], y[rest]))
    return Rung(lipschitz, *np.mean(found, axis=0))


def judge(
    frozen: FrozenNetwork, X_learned: Floats, y_learned: Floats, X: Floats, y: Floats
) -> tuple[float, ...]:
    """The numbers of a `Rung`, for one fold."""
    certificate, score = isotone.certify(frozen), frozen.score(X)
    shifts = SHIFT * X_learned.std(axis=0)
    rng = np.random.default_rng(0)
    moved = [X + rng.uniform(-shifts, shifts, X.shape) for _ in range(_DRAWS)]
    flips = [np.mean((frozen.score(rows) >= 0) != (score >= 0)) for rows in moved]
    return (
        float(log_loss(y_learned, frozen.probability(X_learned))),
        float(log_loss(y, frozen.probability(X))),
        float(np.mean((score >= 0) == (y == 1))),
        float(np.median(certificate.certified_radius(X).scaled)),
        certificate.flip_bound(X, shifts),
        float(np.max(flips)),
    )


def numbers(rungs: Sequence[Rung]) -> dict[str, float]:
    best = min(rungs, key=lambda rung: rung.loss)
    first, last = rungs[0], rungs[-1]
    return {
        "best_lipschitz": best.lipschitz,
        "best_loss": best.loss,
        "smallest_loss_ratio": first.loss / best.loss,
        "largest_loss_ratio": last.loss / best.loss,
        "largest_learned_ratio": last.learned_loss / best.learned_loss,
        "best_certified": best.certified,
        "largest_certified": last.certified,
        "most_measured": max(rung.measured for rung in rungs),
        "never_exceeded": max(rung.measured - rung.certified for rung in rungs),
    }


def figure(rungs: Sequence[Rung], networks: dict[float, FrozenNetwork], X: Floats) -> Figure:
    """Curves, loss and robustness against λ; below, what three λ allow."""
    drawn, panels = draw(2, 3, size=(3.2, 2.7))
    _curves(panels[0], networks, X)
    ladder = [rung.lipschitz for rung in rungs]
    panels[1].plot(ladder, [r.learned_loss for r in rungs], "s-", color=GRAY, label="learned from")
    panels[1].plot(ladder, [r.loss for r in rungs], "o-", color=BLUE, label="unseen")
    panels[1].set(title="can it fit?", ylabel="log-loss", ylim=(0, None))
    certified = [100 * r.certified for r in rungs]
    panels[2].plot(ladder, certified, "o-", color=ORANGE, label="certified: at most")
    panels[2].plot(ladder, [100 * r.measured for r in rungs], "s-", color=BLUE, label="measured")
    panels[2].set(title="can it be relied on?", ylabel="decisions that change [%]")
    for panel in panels[1:3]:
        panel.set(xlabel="λ", xscale="log")
        panel.set_xticks([1 / 16, 1 / 4, 1, 4, 16], ["1/16", "1/4", "1", "4", "16"])
        panel.minorticks_off()
        panel.legend()
    for panel, (lipschitz, frozen) in zip(panels[3:], list(networks.items())[-3:], strict=True):
        plot.response(frozen, "mean radius", X=X, probability=True, ax=panel)
        panel.set(title=f"what λ = {lipschitz:g} allows", ylabel="probability of malignant")
    panels[3].legend()
    return drawn


def _curves(panel: Axes, networks: dict[float, FrozenNetwork], X: Floats) -> None:
    rows = np.tile(np.median(X, axis=0), (200, 1))
    rows[:, 0] = np.linspace(X[:, 0].min(), X[:, 0].max(), 200)
    for color, (lipschitz, frozen) in zip(CYCLE, networks.items(), strict=False):
        panel.plot(rows[:, 0], frozen.probability(rows), color=color, label=f"λ = {lipschitz:g}")
    panel.set(title="what it learns", xlabel="mean radius", ylabel="probability of malignant")
    panel.legend()


def text(rungs: Sequence[Rung]) -> str:
    """The ladder as a Markdown table."""
    head = (
        "| λ | log-loss, learned from | log-loss, unseen | accuracy | median certified radius "
        "| flips, certified | flips, measured |\n" + "| --- " * len(fields(Rung)) + "|\n"
    )
    return head + "".join(
        f"| {r.lipschitz:g} | {r.learned_loss:.3f} | {r.loss:.3f} | {100 * r.accuracy:.1f} % | "
        f"{r.radius:.2f} | {100 * r.certified:.1f} % | {100 * r.measured:.1f} % |\n"
        for r in rungs
    )


if __name__ == "__main__":
    main(__file__, run)
