"""Scan: how far training gets on toys in a fixed number of steps, by one choice.

Every ablation is such a scan: the toys and all else are the same, one option varies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from matplotlib.figure import Figure

from isotone.nn import Options
from isotone.typing import Floats
from studies.figures import BLACK, CYCLE, draw
from studies.paper.fits import fit, full_batch, network, predict
from studies.paper.toys import Toy


@dataclass(frozen=True)
class Scan:
    """Root mean square residuals of all seeds after training, by toy and choice."""

    errors: Mapping[tuple[str, str], Floats]

    @property
    def toys(self) -> list[str]:
        return list(dict.fromkeys(toy for toy, _ in self.errors))

    @property
    def choices(self) -> list[str]:
        return list(dict.fromkeys(choice for _, choice in self.errors))

    def median(self, toy: str, choice: str) -> float:
        return float(np.median(self.errors[toy, choice]))

    def typical(self, choice: str) -> float:
        """Geometric mean over the toys of the median over seeds."""
        medians = [self.median(toy, choice) for toy in self.toys]
        return float(np.exp(np.mean(np.log(medians))))

    def wins(self, choice: str, other: str) -> float:
        """Share of toys and seeds for which a choice ends lower than another."""
        pairs = [self.errors[toy, choice] < self.errors[toy, other] for toy in self.toys]
        return float(np.mean(pairs))


def measure(
    toy: Toy, depth: int, n_seeds: int, steps: int, width: int = 20, **options: Unpack[Options]
) -> Floats:
    """Residuals after training; `depth` is the number of weight matrices."""
    widths = [toy.x.shape[1], *[width] * (depth - 1), 1]
    members = [network(widths, toy, seed, **options) for seed in range(n_seeds)]
    fit(members, toy, full_batch(toy, steps))
    residuals = predict(members, toy.x) - toy.y
    errors: Floats = np.sqrt(np.square(residuals).mean(axis=1))
    return errors


def show(scan: Scan, size: tuple[float, float] = (1.9, 2.4)) -> Figure:
    """A panel for every toy: seeds as dots, their median as a bar; one axis for all toys."""
    figure, panels = draw(1, len(scan.toys), size=size, sharey=True)
    for panel, toy in zip(panels, scan.toys, strict=True):
        for i, choice in enumerate(scan.choices):
            errors = scan.errors[toy, choice]
            sideways = i + np.linspace(-0.2, 0.2, len(errors))
            panel.plot(sideways, errors, "o", color=CYCLE[i % len(CYCLE)], markersize=3, alpha=0.8)
            panel.plot([i - 0.32, i + 0.32], [np.median(errors)] * 2, color=BLACK, linewidth=1.5)
        panel.set_xticks(range(len(scan.choices)), scan.choices, rotation=40, ha="right")
        panel.set(title=toy, yscale="log")
    panels[0].set_ylabel("RMS residual after training")
    return figure


def table(scan: Scan, heading: str = "toy") -> str:
    """Markdown: the median over seeds and, in brackets, the worst seed."""
    head = f"| {heading} | " + " | ".join(scan.choices) + " |\n"
    rule = "| --- |" + " --- |" * len(scan.choices) + "\n"
    rows = [
        f"| {toy.replace('|x|', 'abs(x)')} | "
        + " | ".join(
            f"{scan.median(toy, choice):.4f} ({scan.errors[toy, choice].max():.3f})"
            for choice in scan.choices
        )
        + " |\n"
        for toy in scan.toys
    ]
    mean = "| geometric mean | " + " | ".join(f"{scan.typical(c):.4f}" for c in scan.choices)
    return head + rule + "".join(rows) + mean + " |\n"
