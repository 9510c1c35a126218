"""A wrong simulation: models trained on one detector, judged in another.

Question: how do rate and efficiency change if the detector is worse than simulated?
Data: collisions and decays made for this, the same in all detectors; thresholds stay as chosen.
Claim: none beforehand.
Run time: some minutes to make the collisions, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from studies.trigger.detectors import DETECTORS, NOMINAL, Amount, Response, responses
from studies.trigger.figures import save
from studies.trigger.models import Model
from studies.trigger.parameters import Floats
from studies.trigger.resampling import BEAUTY_BELOW
from studies.trigger.study import Verdict
from studies.trigger.tables import Candidates

WORSE = tuple(name for name in DETECTORS if name != NOMINAL)
_COLORS = ("#555555", "#CC79A7", "#E69F00", "#0072B2")


@dataclass(frozen=True)
class Change:
    """Rate in a worse detector over that as simulated, and changes of efficiency."""

    rate: float
    rate_error: float
    beauty: float
    charm: float


def run(
    verdicts: Mapping[str, Verdict], directory: Path, out: Path, amount: Amount
) -> dict[str, Any]:
    """The figure and the numbers: by model and detector."""
    seen = responses(directory, amount)
    found = {
        name: {worse: change(v.model, v.point.threshold, seen, worse) for worse in WORSE}
        for name, v in verdicts.items()
    }
    save(figure(found), out / "wrong_simulation")
    for name, changes in found.items():
        for worse, one in changes.items():
            print(
                f"{name}, {worse}: rate × {one.rate:.2f} ± {one.rate_error:.2f}, "
                f"beauty {one.beauty:+.3f}, charm {one.charm:+.3f}",
                flush=True,
            )
    plain = {n: {w: vars(one) for w, one in changes.items()} for n, changes in found.items()}
    return {"amount": vars(amount), **plain}


def change(model: Model, threshold: float, seen: Mapping[str, Response], worse: str) -> Change:
    """What becomes of a model at its threshold."""
    n = 1 + max(int(one.collisions.collision.max()) for one in seen.values())
    before, after = (accepted(model, threshold, seen[d].collisions, n) for d in (NOMINAL, worse))
    total = max(before.sum(), 1.0)
    ratio = after.sum() / total
    error = np.sqrt(((after - ratio * before) ** 2).sum()) / total  # drawing collisions anew
    old, new = (efficiencies(model, threshold, seen[d]) for d in (NOMINAL, worse))
    return Change(float(ratio), float(error), new[0] - old[0], new[1] - old[1])


def accepted(model: Model, threshold: float, candidates: Candidates, n: int) -> Floats:
    """How many passes of each of `n` collisions are kept."""
    passed = model.score(candidates.X) > threshold
    first = np.unique(candidates.event[passed], return_index=True)[1]
    return np.bincount(candidates.collision[passed][first], minlength=n).astype(float)


def efficiencies(model: Model, threshold: float, seen: Response) -> tuple[float, float]:
    """Of beauty and charm with respect to the truth cut."""
    passed = model.score(seen.signal.X) > threshold
    first = np.unique(seen.signal.event[passed], return_index=True)[1]
    beauty = seen.signal.channel[passed][first] < BEAUTY_BELOW
    n_beauty = int((seen.hadrons < BEAUTY_BELOW).sum())
    n_charm = len(seen.hadrons) - n_beauty
    return float(beauty.sum() / max(n_beauty, 1)), float((~beauty).sum() / max(n_charm, 1))


def figure(found: Mapping[str, Mapping[str, Change]]) -> Figure:
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    panels = figure.subplots(1, 3)
    labels = [name.replace(" +", "\n+").replace(" ×", "\n×") for name in WORSE]
    for i, (name, changes) in enumerate(found.items()):
        x = np.arange(len(WORSE)) + 0.16 * (i - (len(found) - 1) / 2)
        style = {"color": _COLORS[i % 4], "marker": "o", "linestyle": "none", "label": name}
        rates = [changes[w].rate for w in WORSE]
        panels[0].errorbar(x, rates, [changes[w].rate_error for w in WORSE], **style)
        panels[1].plot(x, [100 * changes[w].beauty for w in WORSE], **style)
        panels[2].plot(x, [100 * changes[w].charm for w in WORSE], **style)
    titles = ("rate, over that as simulated", "beauty efficiency, change [%]")
    for panel, title in zip(panels, (*titles, "charm efficiency, change [%]"), strict=True):
        panel.set_title(title, fontsize=9)
        panel.set_xticks(range(len(WORSE)), labels, fontsize=8)
        panel.grid(alpha=0.3, axis="y")
    panels[0].axhline(1.0, color="0.6", linewidth=0.8)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure
