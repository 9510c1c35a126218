"""Physics: efficiencies against a true quantity, by channel, and against the output rate.

They draw what `isotone.trigger` computes, for your own table: Fig. 5 of the paper is `efficiency`,
Fig. 6 `channels`; `heatmap` is Fig. 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from isotone.plot.canvas import BLACK, BLUE, GRAY, ORANGE, axes_of, literal
from isotone.trigger.curve import RateCurve
from isotone.trigger.efficiency import Efficiency
from isotone.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = (BLUE, ORANGE, "#009E73", "#CC79A7", BLACK, "#E69F00")
_MARKS = "os^Dvx"
_TOP, _TICKS = 1.18, np.linspace(0.0, 1.0, 6)  # with room for a legend
_SHARE = 0.28  # of the height, that the distribution takes


def efficiency(
    curves: Efficiency | Mapping[str, Efficiency],
    edges: ArrayLike,
    *,
    values: ArrayLike | Mapping[str, ArrayLike] | None = None,
    label: str = "",
    unit: str = "",
    log: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw efficiencies in bins of a true quantity, and its distribution underneath.

    As in the paper's Fig. 5. Vertical bars are errors, horizontal ones bins; empty bins are left
    out.

    Parameters
    ----------
    curves : what `isotone.trigger.by_bin` gives; several by name
    edges : of the bins
    values : of the quantity, one per event, or by the names of the curves: their distribution is
        drawn, each with the same area
    label, unit : of the quantity; formulas between dollar signs are drawn as such
    log : a logarithmic axis; by default where edges are positive and span more than a decade
    """
    ax, bounds = axes_of(ax), np.asarray(edges, dtype=float)
    named = curves if isinstance(curves, Mapping) else {"": curves}
    _check_curves(named, bounds)
    by_ratio = bool(bounds[0] > 0 and bounds[-1] > 10 * bounds[0]) if log is None else log
    middles = _middles(bounds, by_ratio)
    sides = np.stack([middles - bounds[:-1], bounds[1:] - middles])
    for i, (name, curve) in enumerate(named.items()):
        known, color = curve.n > 0, _COLORS[i % len(_COLORS)]
        ax.errorbar(
            middles[known],
            curve.value[known],
            yerr=_bars(curve)[:, known],
            xerr=sides[:, known],
            fmt=_MARKS[i % len(_MARKS)],
            color=color,
            markersize=4,
            label=literal(name) or None,
        )
    if values is not None:
        _distribution(ax, values, list(named), bounds, by_ratio)
    ax.set(ylim=(0.0, _TOP), xlim=bounds[[0, -1]], ylabel="efficiency")
    ax.set_yticks(_TICKS)
    ax.set_xlabel(f"{label} [{unit}]" if unit else label)
    if by_ratio:
        _by_ratio(ax)
    if any(named) or values is not None:
        ax.legend(fontsize="small", loc="upper center", ncols=4, frameon=False)
    return ax


def channels(
    names: Sequence[str],
    before: Efficiency,
    after: Efficiency | Mapping[str, Efficiency],
    *,
    what: str = "the reference",
    labels: Mapping[str, str] | None = None,
    axes: Sequence[Axes] | None = None,
) -> tuple[Axes, Axes]:
    """Draw the change of efficiency of every channel, absolute and relative, with medians.

    As in the paper's Fig. 6, with channels named. Channels are in the order of the last model's
    absolute change. No errors are drawn: both models judge the same events, so that those of the
    difference are not those of the efficiencies.

    Parameters
    ----------
    names : of the channels, as in `Efficiency.at`
    before, after : what `isotone.trigger.by_group` gives, for the model that is compared with and
        for one or several others, by name
    what : the model that is compared with, in words
    labels : of channels, by name; formulas between dollar signs are drawn as such
    axes : two, for the absolute and the relative change
    """
    named = after if isinstance(after, Mapping) else {"": after}
    for each in (before, *named.values()):
        if list(map(str, each.at)) != list(map(str, names)):
            raise ValueError(
                "`before` and `after` must have the channels of `names`, in that order; use "
                "`isotone.trigger.by_group` with the same events for all of them"
            )
    left, right = _two_axes(axes, len(names))
    absolute = {model: 100 * (each.value - before.value) for model, each in named.items()}
    order = np.argsort(list(absolute.values())[-1], kind="stable")
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(before.value > 0, 1.0 / before.value, np.nan)
    _points(left, {model: change[order] for model, change in absolute.items()}, "points")
    relative = {model: (change * share)[order] for model, change in absolute.items()}
    _points(right, relative, "%")
    words = [(labels or {}).get(str(names[i])) or literal(str(names[i]), 40) for i in order]
    left.set_yticks(range(len(words)), words, fontsize="small")
    right.set_yticks(range(len(words)), [""] * len(words))
    left.set_xlabel("change of efficiency [percentage points]")
    right.set_xlabel(f"relative to {what} [%]")
    if any(named):
        left.legend(fontsize="small")
    return left, right


def rates(
    curves: RateCurve | Mapping[str, RateCurve],
    *,
    at: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the efficiency against the output rate, with the errors of both.

    Points of one curve share their events: they move up and down together.

    Parameters
    ----------
    curves : what `isotone.trigger.rate_curve` gives; several by name
    at : a rate to mark, in Hz
    """
    ax = axes_of(ax)
    named = curves if isinstance(curves, Mapping) else {"": curves}
    for i, (name, curve) in enumerate(named.items()):
        some = curve.rates > 0
        ax.errorbar(
            curve.rates[some] / 1e3,
            curve.efficiency.value[some],
            yerr=_bars(curve.efficiency)[:, some],
            xerr=curve.rate_errors[some] / 1e3,
            fmt=f"{_MARKS[i % len(_MARKS)]}-",
            color=_COLORS[i % len(_COLORS)],
            markersize=4,
            label=literal(name) or None,
        )
    if at is not None:
        ax.axvline(at / 1e3, color=GRAY, linestyle="dashed", label=f"{at / 1e3:.4g} kHz")
    ax.set(ylim=(0.0, 1.05), xlabel="output rate [kHz]", ylabel="efficiency")
    _by_ratio(ax)
    if any(named) or at is not None:
        ax.legend(fontsize="small", loc="lower right", frameon=False)
    return ax


def _by_ratio(ax: Axes) -> None:
    """A logarithmic axis across, with 1, 2 and 5 of every decade in plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _bars(curve: Efficiency) -> Floats:
    """Errors below and above, (2, n), that stay between 0 and 1."""
    value = np.nan_to_num(curve.value)
    return np.stack([np.minimum(curve.error, value), np.minimum(curve.error, 1.0 - value)])


def _middles(edges: Floats, by_ratio: bool) -> Floats:
    return np.sqrt(edges[:-1] * edges[1:]) if by_ratio else 0.5 * (edges[:-1] + edges[1:])


def _check_curves(curves: Mapping[str, Efficiency], edges: Floats) -> None:
    for name, curve in curves.items():
        if len(curve.n) != len(edges) - 1:
            raise ValueError(
                f"the curve {name!r} has {len(curve.n)} bins but `edges` has {len(edges)} ends; "
                "give the edges that `by_bin` was given"
            )


def _distribution(ax: Axes, values: Any, names: list[str], edges: Floats, by_ratio: bool) -> None:
    """Histograms at the bottom, fine bins between the first and the last edge."""
    given = values if isinstance(values, Mapping) else {"": values}
    space = np.geomspace if by_ratio else np.linspace
    fine = space(edges[0], edges[-1], 41)
    below = ax.twinx()
    below.set_zorder(ax.get_zorder() - 1)
    ax.patch.set_visible(False)
    highest = 0.0
    for name, numbers in given.items():
        color = _COLORS[names.index(name)] if name and name in names else GRAY
        counts = np.histogram(np.asarray(numbers, float), fine)[0]
        heights = counts / max(counts.sum(), 1)
        highest = max(highest, float(heights.max()))
        below.stairs(heights, fine, fill=True, color=color, alpha=0.25)
    ax.fill_between([], [], color=GRAY, alpha=0.25, label="distribution")
    below.set(ylim=(0.0, max(highest, 1e-12) / _SHARE), yticks=[])


def _two_axes(axes: Sequence[Axes] | None, n: int) -> tuple[Axes, Axes]:
    if axes is not None:
        left, right = axes
        return left, right
    first = axes_of(None, height=1.4 + 0.2 * n)
    figure: Any = first.figure
    first.remove()
    figure.set_size_inches(9.0, 1.4 + 0.2 * n)
    left, right = figure.subplots(1, 2)
    return left, right


def _points(ax: Axes, changes: Mapping[str, Floats], unit: str) -> None:
    """A point per channel and model, and a line at the median of each model."""
    medians = []
    for i, (model, values) in enumerate(changes.items()):
        color = _COLORS[i % len(_COLORS)]
        mark = _MARKS[i % len(_MARKS)]
        name = literal(model) or None
        ax.plot(values, range(len(values)), mark, color=color, markersize=4, label=name)
        known = values[np.isfinite(values)]
        middle = float(np.median(known)) if len(known) else np.nan
        ax.axvline(middle, color=color, linestyle="dashed", linewidth=1.0)
        medians.append(f"{middle:+.1f}")
    ax.axvline(0.0, color=GRAY, linewidth=0.8)
    ax.grid(alpha=0.3, axis="x")
    ax.set_title(f"median {', '.join(medians)} {unit}", fontsize="medium")
