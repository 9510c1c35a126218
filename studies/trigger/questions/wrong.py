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

from isotone.typing import Floats
from studies.figures import save
from studies.trigger.analysis.models import Model
from studies.trigger.analysis.resampling import BEAUTY_BELOW
from studies.trigger.analysis.study import Verdict
from studies.trigger.analysis.tables import Candidates
from studies.trigger.questions.detectors import DETECTORS, NOMINAL, Amount, Response, responses

WORSE = tuple(name for name in DETECTORS if name != NOMINAL)
_COLORS = ("#555555", "#CC79A7", "#E69F00", "#0072B2")


@dataclass(frozen=True)
class Change:
    """Rate in a worse detector over that as simulated, and changes of efficiency."""

    rate: float
    rate_error: float
    beauty: float
    beauty_error: float
    charm: float
    charm_error: float


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
                f"beauty {one.beauty:+.3f} ± {one.beauty_error:.3f}, "
                f"charm {one.charm:+.3f} ± {one.charm_error:.3f}",
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
    of_signal = [
        difference(model, threshold, seen[worse], seen[NOMINAL], b) for b in (True, False)
    ]
    return Change(float(ratio), float(error), *of_signal[0], *of_signal[1])


def accepted(model: Model, threshold: float, candidates: Candidates, n: int) -> Floats:
    """How many passes of each of `n` collisions are kept."""
    passed = model.score(candidates.X) >= threshold
    first = np.unique(candidates.event[passed], return_index=True)[1]
    return np.bincount(candidates.collision[passed][first], minlength=n).astype(float)


def difference(
    model: Model, threshold: float, new: Response, old: Response, beauty: bool
) -> tuple[float, float]:
    """Change of efficiency with respect to the truth cut, and its error from drawing hadrons.

    The hadrons are the same in both detectors, so that only those count that pass in one of them.
    """
    n = max(int(((new.hadrons < BEAUTY_BELOW) == beauty).sum()), 1)
    now, before = (_passed(model, threshold, one.signal, beauty) for one in (new, old))
    gained, lost = len(now - before), len(before - now)
    change = (gained - lost) / n
    return change, float(np.sqrt((gained + lost) / n - change**2) / np.sqrt(n))


def _passed(model: Model, threshold: float, signal: Candidates, beauty: bool) -> set[int]:
    kept = (model.score(signal.X) >= threshold) & ((signal.channel < BEAUTY_BELOW) == beauty)
    return set(signal.event[kept].tolist())


def figure(found: Mapping[str, Mapping[str, Change]]) -> Figure:
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    panels = figure.subplots(1, 3)
    labels = [name.replace(" +", "\n+").replace(" ×", "\n×") for name in WORSE]
    for i, (name, changes) in enumerate(found.items()):
        x = np.arange(len(WORSE)) + 0.16 * (i - (len(found) - 1) / 2)
        style = {"color": _COLORS[i % 4], "marker": "o", "linestyle": "none", "label": name}
        rates = [changes[w].rate for w in WORSE]
        panels[0].errorbar(x, rates, [changes[w].rate_error for w in WORSE], **style)
        for panel, flavor in zip(panels[1:], ("beauty", "charm"), strict=True):
            values = [100 * getattr(changes[w], flavor) for w in WORSE]
            panel.errorbar(
                x, values, [100 * getattr(changes[w], f"{flavor}_error") for w in WORSE], **style
            )
    changes_of = (
        f"{flavor} efficiency, change [percentage points]" for flavor in ("beauty", "charm")
    )
    titles = ("rate, over that as simulated", *changes_of)
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title, fontsize=9)
        panel.set_xticks(range(len(WORSE)), labels, fontsize=8)
        panel.grid(alpha=0.3, axis="y")
    panels[0].axhline(1.0, color="0.6", linewidth=0.8)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4, fontsize=8, frameon=False)
    return figure
