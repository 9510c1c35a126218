"""Figures 4, 5 and 6 of the paper's trigger section, for our sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from isotone.plot import color_map
from isotone.trigger import Efficiency
from isotone.typing import Floats, Integers
from studies.trigger.analysis.models import Model

BEAUTY_COLOR, CHARM_COLOR = "#0072B2", "#D55E00"
_GRID = 100


def save(figure: Figure, stem: Path) -> Path:
    """Write PNG and PDF; the path of the former."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None})
    figure.savefig(stem.with_suffix(".png"), dpi=130, metadata={"Software": None})
    return stem.with_suffix(".png")


def heat_maps(models: Mapping[str, tuple[Model, float]], X: Floats, y: Integers) -> Figure:
    """Fig. 4: response of models of two inputs, with the boundary at the working point.

    Parameters
    ----------
    models : by title, each with its threshold
    X, y : features and labels of the candidates, whose outline is drawn
    """
    figure = Figure(figsize=(3.4 * len(models), 3.3), layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False, sharey=True)[0]
    axes = [_axis(X[:, i]) for i in (3, 1)]
    for panel, (title, (model, threshold)) in zip(panels, models.items(), strict=True):
        image = _heat_map(panel, model, threshold, axes)
        _outline(panel, X, y, axes)
        panel.set(title=title, xlabel=r"$\ln\,\min\chi^2_{\mathrm{IP}}$")
    panels[0].plot([], [], color="0.25", linestyle="dashed", label="90 % of signal")
    panels[0].plot([], [], color="0.25", linestyle="dotted", label="90 % of background")
    panels[0].plot([], [], color="black", linewidth=2.0, label="working point")
    panels[0].legend(loc="upper right", fontsize=7)
    panels[0].set_ylabel(r"$\sum p_{\mathrm{T}}$ [GeV]")
    figure.colorbar(image, ax=panels, label="rank of the response", shrink=0.9)
    return figure


def _axis(values: Floats) -> Floats:
    low, high = np.quantile(values, [0.02, 0.98])
    return np.linspace(low, high, _GRID)


def _heat_map(panel: Axes, model: Model, threshold: float, axes: list[Floats]) -> Any:
    """The response as its rank on the grid: models on different scales look alike."""
    rows = np.zeros((_GRID * _GRID, 4))
    rows[:, 3], rows[:, 1] = (mesh.ravel() for mesh in np.meshgrid(*axes))
    response = model.score(rows)
    rank = np.searchsorted(np.sort(response), response) / _GRID**2
    return color_map(panel, axes, rank, response - threshold)


def _outline(panel: Axes, X: Floats, y: Integers, axes: list[Floats]) -> None:
    """Where 90 % of signal (dashed) and of background (dotted) lie."""
    for label, style in ((1, "dashed"), (0, "dotted")):
        rows = X[y == label]
        counts, *edges = np.histogram2d(rows[:, 3], rows[:, 1], bins=[a[::5] for a in axes])
        counts = _smooth(_smooth(counts))
        order = np.sort(counts.ravel())[::-1]
        level = order[np.searchsorted(order.cumsum(), 0.9 * order.sum())]
        middle = [0.5 * (edge[1:] + edge[:-1]) for edge in edges]
        panel.contour(*middle, counts.T, levels=[level], colors="0.25", linestyles=style)


def _smooth(counts: Floats) -> Floats:
    """The mean of each bin and its eight neighbors."""
    padded = np.pad(counts, 1, mode="edge")
    n, m = counts.shape
    return np.asarray(sum(padded[i : i + n, j : j + m] for i in range(3) for j in range(3)) / 9)


def lifetimes(curves: Mapping[str, tuple[Efficiency, Efficiency]]) -> Figure:
    """Fig. 5: efficiency of beauty and charm against proper time, a panel per model."""
    figure = Figure(figsize=(3.2 * len(curves), 3.0), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
    styles = (("beauty", BEAUTY_COLOR, "o"), ("charm", CHARM_COLOR, "s"))
    for panel, (title, both) in zip(panels, curves.items(), strict=True):
        for (name, color, marker), curve in zip(styles, both, strict=True):
            panel.errorbar(
                *(curve.at, curve.value, curve.error),
                color=color,
                marker=marker,
                markersize=4,
                label=name,
            )
        panel.set(title=title, xlabel="proper time [ps]", xscale="log", ylim=(0, 1))
        panel.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("efficiency of preselected hadrons")
    panels[0].legend(loc="lower left", frameon=False)
    return figure


def channels(changes: Mapping[str, tuple[Floats, Floats]]) -> Figure:
    """Fig. 6: change of efficiency per channel against the free network, with density and median.

    Parameters
    ----------
    changes : by model, for the channels of beauty and of charm
    """
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = (("beauty", BEAUTY_COLOR), ("charm", CHARM_COLOR))
    for i, (panel, (title, color)) in enumerate(zip(panels, titles, strict=True)):
        _violins(panel, [values[i] for values in changes.values()], color)
        panel.axhline(0.0, color="0.5", linewidth=0.8)
        panel.set_xticks(range(len(changes)), [name.replace(" ", "\n", 1) for name in changes])
        panel.set_xlim(-0.6, len(changes) - 0.4)
        panel.set_title(f"{len(next(iter(changes.values()))[i])} {title} channels")
    panels[0].set_ylabel("efficiency − that of the free network")
    return figure


def _violins(panel: Axes, groups: Sequence[Floats], color: str) -> None:
    rng = np.random.default_rng(0)
    if all(np.ptp(group) > 0 for group in groups):
        bodies: Any = panel.violinplot(groups, range(len(groups)), showextrema=False)
        for body in bodies["bodies"]:
            body.set(facecolor=color, alpha=0.25)
    for i, group in enumerate(groups):
        panel.plot(i + rng.uniform(-0.08, 0.08, len(group)), group, ".", color=color, alpha=0.8)
        panel.plot(i, np.median(group), "o", color="white", markeredgecolor="black", zorder=3)
