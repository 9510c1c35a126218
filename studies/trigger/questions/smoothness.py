"""Smoothness: how suddenly a small shift of a feature changes the efficiency.

Question: does the efficiency change smoothly when Σp_T or the displacement is slightly wrong?
Data: any sample; validation candidates of signal, all given the same value of one feature.
Claim: the boundary of trees is a staircase, with a stair where a feature crosses a split; ours is
    a curve. Efficiencies need not follow: a straight edge lets many candidates in at once.
Run time: seconds, and a minute for every further seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.signal import find_peaks

from isotone.typing import Floats
from studies.figures import save
from studies.trigger.analysis.figures import MODEL_COLORS
from studies.trigger.analysis.models import Effort, Model, train_lipschitz, train_trees
from studies.trigger.analysis.study import FREE, OURS, TREES, Verdict
from studies.trigger.analysis.tables import TWO, Tables
from studies.trigger.analysis.working_point import choose

COLORS = dict(zip((TREES, OURS), MODEL_COLORS, strict=True))


@dataclass(frozen=True)
class Feature:
    """What is varied: its column, and values with a small step between them."""

    name: str
    label: str
    step: str
    column: int
    values: Floats


STEP = 0.02
#: where boundaries are looked at: displacements, and the values of Σp_T that are tried
DISPLACEMENT, PT = np.linspace(3.0, 5.0, 201), np.linspace(0.5, 12.0, 1151)
FEATURES = (
    Feature("sum_pt", r"$\sum p_{\mathrm{T}}$ [GeV]", "20 MeV more", 1, np.arange(1.5, 5.0, STEP)),
    Feature(
        *("ln_min_ip_chi2", r"$\ln\,\min\chi^2_{\mathrm{IP}}$", f"{STEP:g} more", 3),
        np.arange(2.0, 6.0, STEP),
    ),
)


def efficiency(model: Model, threshold: float, X: Floats, feature: Feature) -> Floats:
    """Share of the rows that pass if all had the same value of the feature, for each value.

    The rows are the same for all values: what jumps is the model, not the sample.
    """
    shares = []
    for value in feature.values:
        moved = X.copy()
        moved[:, feature.column] = value
        shares.append(np.mean(model.score(moved) >= threshold))
    return np.array(shares)


def boundary(model: Model, threshold: float, displacement: Floats, pt: Floats) -> Floats:
    """The least Σp_T that passes at each displacement, for a model of these two inputs."""
    rows = np.zeros((len(displacement) * len(pt), 4))
    rows[:, 3], rows[:, 1] = np.repeat(displacement, len(pt)), np.tile(pt, len(displacement))
    passed = (model.score(rows) >= threshold).reshape(len(displacement), len(pt))
    return np.where(passed.any(axis=1), pt[passed.argmax(axis=1)], np.nan)


def run(
    two: Mapping[str, Verdict],
    four: Mapping[str, Verdict],
    tables: Tables,
    out: Path,
    effort: Effort,
    seeds: Sequence[int] = (),
    n_rows: int = 1000,
) -> dict[str, Any]:
    """The figure and the numbers, of models of two and of four inputs at their working points.

    Stairs are also those of two inputs and other seeds.
    """
    X = tables.signal.validation.X
    X = X[np.linspace(0, len(X) - 1, n_rows).astype(int)]
    found = {
        name: {
            feature.name: efficiency(four[name].model, four[name].point.threshold, X, feature)
            for feature in FEATURES
        }
        for name in COLORS
    }
    lines = {n: boundary(two[n].model, two[n].point.threshold, DISPLACEMENT, PT) for n in COLORS}
    save(figure(found, DISPLACEMENT, lines), out / "smoothness")
    far = np.linspace(4.0, float(np.quantile(tables.collisions.X[:, 3], 0.98)), 101)
    several = {name: [stairs(line)] for name, line in lines.items()}
    for seed in seeds:
        for name, model in _train(tables, effort, seed).items():
            threshold = choose(model.score(tables.collisions.validation.X), tables).threshold
            several[name].append(stairs(boundary(model, threshold, DISPLACEMENT, PT)))
    return {
        "corner": corner(far, boundary(two[FREE].model, two[FREE].point.threshold, far, PT)),
        **{name: {**changes(found[name]), "stairs": several[name]} for name in COLORS},
    }


def _train(tables: Tables, effort: Effort, seed: int) -> dict[str, Model]:
    """The monotone models of two inputs."""
    X, y, group = tables.training(seed)
    return {
        TREES: train_trees(X, y, group, TWO, effort, seed=seed),
        OURS: train_lipschitz(X, y, TWO, effort, seed=seed),
    }


def corner(x: Floats, line: Floats) -> dict[str, float]:
    """Where a boundary is lowest, and how high it is at the far end; infinite if out of range."""
    line = np.nan_to_num(line, nan=np.inf)
    least = int(np.argmin(line))
    return {"at": x[least], "least": line[least], "end": x[-1], "there": line[-1]}


def changes(found: Mapping[str, Floats]) -> dict[str, float]:
    """Largest change of efficiency in a step of each feature."""
    return {
        f"largest change in {STEP:g}, {feature}": float(np.abs(np.diff(curve)).max())
        for feature, curve in found.items()
    }


def stairs(line: Floats) -> list[float]:
    """Heights of the stairs of a line: steps that are steeper than the line on both sides.

    A staircase is jagged because flat and steep parts alternate. So the height of a stair is what
    its step drops beyond the flattest step between it and a steeper one (or the end), on the side
    where that is less: the prominence of a peak of the slope. A straight part has no stairs
    however steep it is, nor has a wall with which the line begins or ends. Points that are not
    finite, where nothing passes, are left out.

    Examples
    --------
    >>> stairs(np.array([5.0, 5.0, 3.0, 3.0, 2.0, 2.0]))  # flat, down by 2, flat, down by 1, flat
    [2.0, 1.0]
    >>> stairs(np.array([np.nan, 9.0, 5.0, 3.0, 2.0, 2.0]))  # steep, then ever flatter
    []
    """
    steps = np.abs(np.diff(line[np.isfinite(line)]))
    _, about = find_peaks(steps, prominence=0.0)
    return [float(height) for height in about["prominences"]]


def figure(
    found: Mapping[str, Mapping[str, Floats]], x: Floats, lines: Mapping[str, Floats]
) -> Figure:
    """Boundaries of two inputs, and changes of efficiency of four."""
    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    panels = figure.subplots(1, 3)
    for name, color in COLORS.items():
        panels[0].plot(x, lines[name], color=color, label=name)
        for panel, feature in zip(panels[1:], FEATURES, strict=True):
            change = 100 * np.diff(found[name][feature.name])
            panel.plot(feature.values[1:], change, color=color, linewidth=1.0)
            panel.set(xlabel=feature.label, ylabel="rise of efficiency [percentage points]")
    panels[0].set(xlabel=FEATURES[1].label, ylabel=f"least {FEATURES[0].label} that passes")
    panels[0].set_title("boundary, two inputs", fontsize=9)
    for panel, feature in zip(panels[1:], FEATURES, strict=True):
        panel.set_title(f"four inputs, {feature.step} of the feature", fontsize=9)
    for panel in panels:
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    return figure
