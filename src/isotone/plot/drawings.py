"""Drawings of a frozen network: response curves, heat maps, slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone.certificate.certify import Certificate, certify
from isotone.certificate.verdicts import kept_directions
from isotone.frozen.network import FrozenNetwork
from isotone.plot.canvas import BLACK, BLUE, GRAY, ORANGE, RESPONSE, axes_of, literal, thinned
from isotone.plot.labels import Words, label_of
from isotone.plot.view import (
    NetworkView,
    Point,
    Span,
    Which,
    feature_number,
    kind_of_axis,
    output_number,
    scores_of,
    two_features,
)
from isotone.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

_MARKS = "ox^sDv+*"
_CURVE, _GRID = 401, 121


def response(
    frozen: FrozenNetwork,
    feature: Which,
    *,
    at: Point | None = None,
    X: Any = None,
    span: Span | None = None,
    output: Which = 0,
    probability: bool = False,
    labels: Words | None = None,
    units: Words | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the score along one feature, and what the slope bounds allow from one point.

    The other features stay as they are at the point. If the slope along the feature is within
    [l, h], in scaled units u, the score lies between :math:`f(u_0) + \min(l d, h d)` and
    :math:`f(u_0) + \max(l d, h d)`, where :math:`d = u - u_0`. The band is that, in raw units,
    with twice the rounding error added: the computed curve never leaves it.

    Parameters
    ----------
    feature : name or number
    at : the point, see `isotone.plot`
    X : (n_rows, n_features), raw rows, shown as ticks; they also set the range
    span : the range of the feature, raw
    output : name or number of the output, if there are several
    probability : draw the probability instead of the score
    labels, units : of features, by name, instead of their names and beside them; formulas between
        dollar signs are drawn as such
    """
    ax, view = axes_of(ax), NetworkView.of(frozen, at, X, output, probability)
    i = feature_number(frozen, feature)
    x = view.axis(i, span, _CURVE)
    rows = view.rows({i: x})
    low, high = _envelope(certify(frozen), rows, view.start, i)
    if np.all(np.isfinite([low, high])):
        least, most = (view.shown(scores) for scores in _extremes(low, high, view.output))
        ax.fill_between(
            x, least, most, color=GRAY, alpha=0.25, linewidth=0, label="slope bounds allow"
        )
    ax.plot(x, view.shown(view.scores(rows)), color=BLUE, label="response")
    here = view.shown(view.scores(view.start[None]))
    ax.plot(view.start[i], here[0], "o", color=BLACK, markersize=5, label="from here")
    if view.table is not None:
        ticks = thinned(view.table)[:, i]
        bottom: Any = {"color": BLACK, "alpha": 0.4, "transform": ax.get_xaxis_transform()}
        ax.plot(ticks, np.zeros(len(ticks)), "|", **bottom)
    ax.set(
        xlabel=label_of(frozen.inputs.encoded[i], labels, units),
        ylabel=literal(view.label),
        xlim=x[[0, -1]],
        xscale=kind_of_axis(frozen, i, x),
    )
    return ax


def heatmap(
    frozen: FrozenNetwork,
    features: tuple[Which, Which] = (0, 1),
    *,
    at: Point | None = None,
    X: Any = None,
    y: Any = None,
    span: tuple[Span, Span] | None = None,
    threshold: float | None = None,
    output: Which = 0,
    probability: bool = False,
    labels: Words | None = None,
    units: Words | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the score over two features, and where the decision changes, as in the paper's Fig. 4.

    The other features stay as they are at the point. The line is where the score crosses
    `threshold`; for several classes, where class `output` begins to win.

    Parameters
    ----------
    features : the one across and the one upward, names or numbers
    at : the point, see `isotone.plot`
    X, y : raw rows to draw on top, at most a thousand of them, and their labels
    span : the ranges of both features, raw
    threshold : in units of the score; 0 for logits if not given, and no line for values
    output : name or number of the output, if there are several
    probability : color by the probability instead of the score
    labels, units : of features, by name, instead of their names and beside them; formulas between
        dollar signs are drawn as such
    """
    ax, view = axes_of(ax), NetworkView.of(frozen, at, X, output, probability)
    i, j = two_features(frozen, features)
    across, upward = span or (None, None)
    axes = [view.axis(i, across, _GRID), view.axis(j, upward, _GRID)]
    meshes = np.meshgrid(*axes)
    scores = view.scores(view.rows({i: meshes[0].ravel(), j: meshes[1].ravel()}))
    lead = _lead(frozen, scores, view.output, threshold)
    image = color_map(ax, axes, view.shown(scores), lead)
    ax.figure.colorbar(image, ax=ax, label=literal(view.label))
    if view.table is not None:
        _points(ax, view.table[:, [i, j]], y)
    names = [label_of(frozen.inputs.encoded[k], labels, units) for k in (i, j)]
    ax.set(xlabel=names[0], xscale=kind_of_axis(frozen, i, axes[0]), xlim=axes[0][[0, -1]])
    ax.set(ylabel=names[1], yscale=kind_of_axis(frozen, j, axes[1]), ylim=axes[1][[0, -1]])
    return ax


def certificate(frozen: FrozenNetwork, *, output: Which = 0, ax: Axes | None = None) -> Axes:
    """Draw the certified interval of the slope along every feature.

    Bars are in scaled units, so that features compare; next to them is the change of the score for
    one raw unit. Blue respects its declared direction, orange does not, gray is free.

    Parameters
    ----------
    output : name or number of the output, if there are several
    """
    k, found = output_number(frozen, output), certify(frozen)
    ax = axes_of(ax, height=1.2 + 0.5 * len(frozen.inputs.encoded))
    colors = _judged(found, k)
    for i, slope in enumerate(slope for slope in found.slopes if slope.output == k):
        low, high = slope.scaled.low, slope.scaled.high
        ax.barh(i, high - low, left=low, height=0.5, color=colors[i])
        beside: Any = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(f"{slope.raw} per unit", (1.02, i), **beside, fontsize="small")
    ax.use_sticky_edges = False  # a little room beside the bars
    ax.axvline(0.0, color=BLACK, linewidth=0.8)
    names = [
        f"{literal(name, 28)}\n{literal(frozen.direction(i))}"
        for i, name in enumerate(frozen.inputs.encoded)
    ]
    ax.set_yticks(range(len(names)), names)
    ax.set(
        ylim=(len(names) - 0.5, -0.5), xlabel="slope in scaled units; at the right in raw units"
    )
    verdict = "holds" if found.holds else "FAILS"
    ax.set_title(f"{verdict}: {found.guarantee}", fontsize="medium", loc="left", wrap=True)
    return ax


def color_map(ax: Axes, axes: Sequence[Floats], colors: Floats, lead: Floats | None) -> QuadMesh:
    """Colors on a grid, and a line where `lead` is zero; rows of the grid follow `axes[1]`."""
    shape = len(axes[1]), len(axes[0])
    image = ax.pcolormesh(
        *axes, colors.reshape(shape), cmap=RESPONSE, shading="nearest", rasterized=True
    )
    if lead is not None and lead.min() < 0 <= lead.max():
        ax.contour(*axes, lead.reshape(shape), levels=[0.0], colors="black", linewidths=2.0)
    return image


def _envelope(found: Certificate, rows: Floats, start: Floats, i: int) -> tuple[Floats, Floats]:
    """Bounds on the computed scores of rows that differ from `start` in feature i alone.

    All copies of a feature move the same way, and each has its slope within that of the feature.
    """
    frozen, inputs = found.frozen, found.frozen.inputs
    copies = slice(inputs.firsts[i], inputs.firsts[i] + inputs.counts[i])
    u = frozen.snap(np.vstack([start, rows]))[:, copies].astype(np.float64)
    moved = (u[1:] - u[0]).sum(axis=1, keepdims=True)
    slopes = [slope.scaled for slope in found.slopes if slope.feature == inputs.encoded[i]]
    low, high = (np.array([getattr(s, end) for s in slopes]) * moved for end in ("low", "high"))
    score = scores_of(frozen, start[None])
    own_rounding = 2.0**-50 * (np.abs(low) + np.abs(high) + np.abs(score))
    slack = 2.0 * np.array(found.rounding_errors) + own_rounding
    return score + np.minimum(low, high) - slack, score + np.maximum(low, high) + slack


def _extremes(low: Floats, high: Floats, k: int) -> tuple[Floats, Floats]:
    """Scores at which output k is as low, and as high, among all as the bounds allow."""
    least, most = high.copy(), low.copy()
    least[:, k], most[:, k] = low[:, k], high[:, k]
    return least, most


def _lead(frozen: FrozenNetwork, scores: Floats, k: int, threshold: float | None) -> Floats | None:
    """What is not negative where the decision is for output k; None if nothing is decided."""
    if frozen.of_classes:
        if threshold is not None:
            raise ValueError(
                f"`threshold={threshold}` is for one output; among several classes the largest "
                "logit wins: leave it out"
            )
        rival: Floats = np.delete(scores, k, axis=1).max(axis=1)
        return scores[:, k] - rival
    if threshold is None and frozen.outputs == "values":
        return None
    return scores[:, k] - (threshold or 0.0)


def _judged(found: Certificate, k: int) -> list[str]:
    """The color of every feature."""
    kept = kept_directions(found.frozen, found.verdicts)
    pairs = zip(found.frozen.directions[k], kept[k], strict=True)
    return [GRAY if declared == 0 else BLUE if holds else ORANGE for declared, holds in pairs]


def _points(ax: Axes, points: Floats, y: Any) -> None:
    """Rows on top of a heat map, with a mark for every label."""
    style: Any = {"color": BLACK, "markersize": 3.5, "alpha": 0.7, "markerfacecolor": "none"}
    if y is None:
        ax.plot(*thinned(points).T, ".", **style)
        return
    labels = np.asarray(y)
    if labels.shape != (len(points),):
        raise ValueError(
            f"`y` has shape {labels.shape} but `X` has {len(points)} rows; give one label per row"
        )
    points, labels = thinned(points), thinned(labels)
    kinds = np.unique(labels)
    if len(kinds) > len(_MARKS):
        raise ValueError(
            f"`y` holds {len(kinds)} different labels; at most {len(_MARKS)} can be told apart: "
            "leave it out, or group them"
        )
    for label, mark in zip(kinds, _MARKS, strict=False):
        ax.plot(*points[labels == label].T, mark, label=literal(str(label)), **style)
    ax.legend(fontsize="small")
