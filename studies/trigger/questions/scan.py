"""Scan of λ: what robustness costs, and what it buys.

Question: how do efficiency, flatness in lifetime and sensitivity to calibration depend on λ?
Data: any sample; decisions about validation candidates of signal.
Claim: the certified share of decisions that a wrong calibration can change falls with λ and is
    never exceeded; at λ = 2 the cost in efficiency is small.
Run time: some minutes for a full sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import isotone
from isotone.typing import Floats
from studies.figures import save
from studies.trigger.analysis.figures import BEAUTY_COLOR, CHARM_COLOR
from studies.trigger.analysis.models import Effort, Lipschitz, Model, train_many
from studies.trigger.analysis.resampling import BEAUTY_BELOW
from studies.trigger.analysis.study import Verdict, judge, late_to_plateau
from studies.trigger.analysis.tables import FOUR, Tables
from studies.trigger.questions.calibration import ERRORS, certified_flips, measured_flips

LIPSCHITZ = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
N_SEEDS = 3
_ROWS = 20_000
_COLORS = ("#009E73", "#CC79A7", "#E69F00")


def run(
    tables: Tables, out: Path, effort: Effort, others: Mapping[str, Verdict], threads: int = 1
) -> dict[str, Any]:
    """Train all λ with several seeds at once, judge, draw; the numbers.

    Parameters
    ----------
    others : models without a certificate, whose flips are measured only
    """
    X, y, _ = tables.training()
    members = [(seed, lipschitz) for lipschitz in LIPSCHITZ for seed in range(N_SEEDS)]
    models = train_many(X, y, FOUR, effort, members, threads)
    rows = thinned(tables.signal.validation.X)
    found = [
        {"seed": seed, "lipschitz": lipschitz, **examine(model, tables, rows)}
        for (seed, lipschitz), model in zip(members, models, strict=True)
    ]
    measured = {name: flips(v.model, v.point.threshold, rows) for name, v in others.items()}
    save(figure(found), out / "scan")
    report(found, measured)
    return {"members": found, "others": measured, "n_rows": len(rows)}


def thinned(X: Floats) -> Floats:
    """At most 20 000 rows, evenly spread."""
    return X[:: max(1, -(-len(X) // _ROWS))]


def flips(model: Model, threshold: float, rows: Floats) -> dict[str, float]:
    """Measured share of decisions that change, for every error of calibration."""
    return {name: measured_flips(model, threshold, rows, shift) for name, shift in ERRORS.items()}


def examine(model: Lipschitz, tables: Tables, rows: Floats) -> dict[str, Any]:
    """Efficiencies, flatness, and flips, measured and certified."""
    verdict = judge(model, tables)
    threshold = verdict.point.threshold
    certificate = isotone.certify(model.frozen)
    beauty = verdict.channels.at < BEAUTY_BELOW
    return {
        "holds": certificate.holds,
        "beauty": float(verdict.channels.value[beauty].mean()),
        "charm": float(verdict.channels.value[~beauty].mean()),
        "late_beauty": late_to_plateau(verdict.beauty),
        "late_charm": late_to_plateau(verdict.charm),
        "measured": flips(model, threshold, rows),
        "certified": {
            name: certified_flips(certificate, threshold, rows, shift)
            for name, shift in ERRORS.items()
        },
    }


def figure(found: list[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(12.0, 3.3), layout="constrained")
    panels = figure.subplots(1, 3)
    colors = (("beauty", BEAUTY_COLOR), ("charm", CHARM_COLOR))
    for name, color in colors:
        _line(panels[0], [one[name] for one in found], color, label=name)
        _line(panels[1], [one[f"late_{name}"] for one in found], color, label=name)
    panels[0].set(ylabel="mean efficiency at the working point", ylim=(0, 0.8))
    panels[1].set(ylabel="efficiency at 15-25 ps / plateau", ylim=(0, 1.6))
    panels[1].axhline(1.0, color="0.6", linewidth=0.8)
    for name, color in zip(ERRORS, _COLORS, strict=True):
        _line(panels[2], [100 * one["certified"][name] for one in found], color, label=name)
        _line(panels[2], [100 * one["measured"][name] for one in found], color, linestyle="--")
    panels[2].plot([], [], color="0.3", label="certified, at most")
    panels[2].plot([], [], color="0.3", linestyle="--", label="measured")
    panels[2].set(ylabel="decisions that change [%]", yscale="log")
    for panel in panels:
        panel.set(xlabel="λ", xscale="log")
        panel.set_xticks(LIPSCHITZ, [f"{value:g}" for value in LIPSCHITZ])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].legend(loc="upper right", fontsize=8)
    panels[1].legend(loc="lower left", fontsize=8)
    handles, labels = panels[2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)
    return figure


def _line(panel: Axes, values: list[float], color: str, **style: Any) -> None:
    """Means over seeds with their range."""
    by_lipschitz = np.reshape(values, (len(LIPSCHITZ), -1))
    middle = by_lipschitz.mean(axis=1)
    ends = np.abs(np.stack([by_lipschitz.min(axis=1), by_lipschitz.max(axis=1)]) - middle)
    panel.errorbar(LIPSCHITZ, middle, ends, color=color, marker="o", markersize=3, **style)


def report(found: list[dict[str, Any]], others: Mapping[str, Mapping[str, float]]) -> None:
    """One line for each λ, of the first seed, and for the others."""
    for one in found[::N_SEEDS]:
        pairs = (
            f"{name} {100 * one['measured'][name]:.2f} <= {100 * one['certified'][name]:.2f} %"
            for name in ERRORS
        )
        print(
            f"λ = {one['lipschitz']:g}: beauty {one['beauty']:.3f}, charm {one['charm']:.3f}, "
            f"late {one['late_beauty']:.2f}, {one['late_charm']:.2f}; flips: {', '.join(pairs)}"
        )
    for name, measured in others.items():
        text = ", ".join(f"{error} {100 * share:.2f} %" for error, share in measured.items())
        print(f"{name}: measured flips {text}", flush=True)
