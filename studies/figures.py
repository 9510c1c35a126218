"""Figures: one look for all studies, readable in print and without color vision.

The colors are those of Okabe and Ito; heat maps go through `cividis` or, around zero, from blue
over white to orange. No window is ever opened.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from isotone.typing import Floats

BLUE, ORANGE, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222"
SKY, YELLOW, GRAY = "#56B4E9", "#E69F00", "#8C8C8C"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY, BLACK)
_DPI = 110  # of heat maps and crowds of points, which are made of pixels
_CROWD = 100  # points, each of which would be a shape of its own in the file
AROUND_ZERO = LinearSegmentedColormap.from_list("around-zero", [BLUE, "#F7F7F7", ORANGE])

mpl.rcParams.update(
    {
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.labelsize": 9,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "lines.linewidth": 1.2,
        "pdf.fonttype": 42,  # text that can be searched and edited
        "svg.hashsalt": "isotone",  # names inside a file do not change from run to run
    }
)


def draw(
    n_rows: int = 1, n_columns: int = 1, *, size: tuple[float, float], **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row; `size` is of one panel, in inches."""
    figure = Figure(figsize=(n_columns * size[0], n_rows * size[1]), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False, **options)
    return figure, list(panels.flat)


def plot_seeds(panel: Axes, x: Floats, curves: Floats, color: str, label: str) -> None:
    """Light lines for seeds and a dark one for their mean, as in the paper."""
    panel.plot(x, curves.T, color=color, alpha=0.25, linewidth=0.7)
    panel.plot(x, curves.mean(axis=0), color=color, linewidth=2.0, label=label)


def save(figure: Figure, stem: Path) -> None:
    """Write `stem`.svg for pages, `stem`.pdf for print; the same numbers give the same bytes."""
    for line in figure.findobj(Line2D):
        has_points = line.get_marker() not in ("", " ", "None", None)
        line.set_rasterized(has_points and np.size(line.get_xdata()) > _CROWD)
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".svg"), dpi=_DPI, metadata={"Date": None})
    figure.savefig(stem.with_suffix(".pdf"), dpi=300, metadata={"CreationDate": None})
