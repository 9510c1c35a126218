"""Figures 4, 5 and 6 of the paper's trigger section, for our sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from isotone.plot import color_map
from isotone.trigger import Efficiency
from isotone.typing import Bools, Floats, Indices, Integers
from studies.figures import BLUE, ORANGE, YELLOW
from studies.trigger.analysis.models import Model

BEAUTY_COLOR, CHARM_COLOR = BLUE, ORANGE
MODEL_COLORS = YELLOW, BLUE  # monotone trees, and ours
_GRID = 100


def heat_maps(models: Mapping[str, tuple[Model, float]], X: Floats, y: Integers) -> Figure:
    """Fig. 4: response of models of two inputs, with the boundary at the working point.

    The upper row is the response itself, as the probability of signal; the lower one its rank, so
    that models on different scales look alike.

    Parameters
    ----------
    models : by title, each with its threshold
    X, y : features and labels of the candidates, whose outline is drawn
    """
    figure = Figure(figsize=(3.4 * len(models), 5.8), layout="constrained")
    panels = figure.subplots(2, len(models), squeeze=False, sharex=True, sharey=True)
    axes = [_axis(X[:, i]) for i in (3, 1)]
    for column, (title, (model, threshold)) in zip(panels.T, models.items(), strict=True):
        images = _heat_maps(column, model, threshold, axes)
        for panel in column:
            _outline(panel, X, y, axes)
        column[0].set_title(title)
        column[-1].set_xlabel(r"$\ln\,\min\chi^2_{\mathrm{IP}}$")
    for row, image, label in zip(
        panels, images, ("response", "rank of the response"), strict=True
    ):
        row[0].set_ylabel(r"$\sum p_{\mathrm{T}}$ [GeV]")
        figure.colorbar(image, ax=row, label=label, shrink=0.9)
    _explain_lines(panels[0, 0])
    return figure


def _explain_lines(panel: Axes) -> None:
    panel.plot([], [], color="0.25", linestyle="dashed", label="90 % of signal")
    panel.plot([], [], color="0.25", linestyle="dotted", label="90 % of background")
    panel.plot([], [], color="black", linewidth=2.0, label="working point")
    panel.legend(loc="upper right", fontsize=7, frameon=True, framealpha=0.9)


def _axis(values: Floats) -> Floats:
    low, high = np.quantile(values, [0.02, 0.98])
    return np.linspace(low, high, _GRID)


def _heat_maps(
    panels: Sequence[Axes], model: Model, threshold: float, axes: list[Floats]
) -> list[Any]:
    """The response in the first panel, in the second its rank on the grid."""
    rows = np.zeros((_GRID * _GRID, 4))
    rows[:, 3], rows[:, 1] = (mesh.ravel() for mesh in np.meshgrid(*axes))
    response = model.score(rows)
    rank = np.searchsorted(np.sort(response), response) / _GRID**2
    colors = (1.0 / (1.0 + np.exp(-response)), rank)
    images = [
        color_map(p, axes, c, response - threshold) for p, c in zip(panels, colors, strict=True)
    ]
    for image in images:
        image.set_clim(0.0, 1.0)
    return images


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


@dataclass(frozen=True, eq=False)
class Changes:
    """Efficiencies of channels by models, and what they are compared with.

    Parameters
    ----------
    names : of the channels
    before : (n_channels,), efficiencies of the model that is compared with
    after : by model, the same
    """

    names: Sequence[str]
    before: Floats
    after: Mapping[str, Floats]

    def __getitem__(self, rows: Bools | Indices) -> Changes:
        after = {model: values[rows] for model, values in self.after.items()}
        return Changes(list(np.array(self.names)[rows]), self.before[rows], after)

    def absolute(self, model: str) -> Floats:
        return np.asarray(self.after[model] - self.before)

    def relative(self, model: str) -> Floats:
        """Of what the other model keeps; NaN where that is nothing."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.before > 0, self.absolute(model) / self.before, np.nan)

    def in_order(self) -> Changes:
        """By the absolute change of the last model."""
        return self[np.argsort(self.absolute(list(self.after)[-1]), kind="stable")]


def channels(beauty: Changes, charm: Changes) -> Figure:
    """Fig. 6: change of efficiency of every channel, absolute and relative, with medians."""
    figure = Figure(figsize=(8.6, 9.2), layout="constrained")
    heights = [len(beauty.names) + 1, len(charm.names) + 1]
    panels = figure.subplots(2, 2, sharex="col", sharey="row", height_ratios=heights)
    for row, changes, title in zip(panels, (beauty, charm), ("beauty", "charm"), strict=True):
        ordered = changes.in_order()
        for panel, kind in zip(row, (ordered.absolute, ordered.relative), strict=True):
            _named_points(panel, {model: 100 * kind(model) for model in ordered.after})
        row[0].set_yticks(range(len(ordered.names)), ordered.names, fontsize=7)
        row[0].set_ylabel(f"{len(ordered.names)} {title} channels")
    panels[1, 0].set_xlabel("change of efficiency [percentage points]")
    panels[1, 1].set_xlabel("change relative to the unconstrained network [%]")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _named_points(panel: Axes, changes: Mapping[str, Floats]) -> None:
    """A point per channel and model, and a line at the median of each model."""
    medians = [float(np.nanmedian(values)) for values in changes.values()]
    for (model, values), color, marker in zip(changes.items(), MODEL_COLORS, "so", strict=False):
        panel.plot(values, range(len(values)), marker, color=color, markersize=4, label=model)
    for middle, color in zip(medians, MODEL_COLORS, strict=False):
        panel.axvline(middle, color=color, linestyle="dashed")
    panel.set_title(f"medians: {', '.join(f'{m:+.1f}' for m in medians)}", fontsize=9)
    panel.axvline(0.0, color="0.5", linewidth=0.8)
    panel.grid(alpha=0.3, axis="x")
