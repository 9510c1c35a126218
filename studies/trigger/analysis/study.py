"""The study: train, choose working points by rate, and draw Figs. 4, 5 and 6.

Question: does monotonicity keep the longest-lived hadrons, and what does it cost?
Data: a sample made by `studies.trigger.simulation.sample`; without one, the small sample.
Claim: the free network loses beauty beyond 15 ps, ours stays flat; the cost is small.
Run time: a full sample one or two minutes.

`python -m studies.trigger` runs it, and the further questions after it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotone.trigger import Efficiency, WorkingPoint
from studies.figures import save
from studies.trigger.analysis import figures
from studies.trigger.analysis.efficiency import by_channel, by_proper_time, passing
from studies.trigger.analysis.figures import Changes
from studies.trigger.analysis.models import (
    Effort,
    Model,
    train_free,
    train_lipschitz,
    train_trees,
)
from studies.trigger.analysis.tables import FOUR, TWO, Tables
from studies.trigger.analysis.working_point import choose
from studies.trigger.simulation.generation.channels import channels as all_channels

COMMITTED = Path(__file__).parents[1] / "small"
QUICK = Effort(epochs=8, batch_size=128, trees=60)
FREE, TREES, OURS = "unconstrained network", "monotone trees", "monotone Lipschitz network"
FREE_TREES = "unconstrained trees"
DRAWN = (FREE, TREES, OURS)  # the three of the paper's figures


@dataclass(frozen=True, eq=False)
class Verdict:
    """A model at its working point."""

    model: Model
    point: WorkingPoint
    beauty: Efficiency
    charm: Efficiency
    channels: Efficiency

    def numbers(self) -> dict[str, Any]:
        return {
            **asdict(self.point),
            "proper_time": self.beauty.at.tolist(),
            "beauty": self.beauty.value.tolist(),
            "beauty_error": self.beauty.error.tolist(),
            "charm": self.charm.value.tolist(),
            "charm_error": self.charm.error.tolist(),
            "late_to_plateau": late_to_plateau(self.beauty),
            "late_charm": late_to_plateau(self.charm),
            "codes": self.channels.at.tolist(),
            "channels": self.channels.value.tolist(),
            "channels_error": self.channels.error.tolist(),
        }


def late_to_plateau(curve: Efficiency) -> float:
    """Efficiency in the last bin, 15 to 25 ps, over that at 2 to 4 ps.

    Not a number if nothing passes: short trees have so many equal scores that the largest one
    alone can exceed the rate.
    """
    plateau = float(curve.value[3:5].mean())
    return float(curve.value[-1]) / plateau if plateau > 0 else math.nan


def medians(verdict: Verdict, free: Verdict) -> tuple[float, float]:
    """Median change of efficiency over the channels of beauty, and of charm."""
    change = verdict.channels.value - free.channels.value
    beauty = free.channels.at < 20_000_000
    return float(np.median(change[beauty])), float(np.median(change[~beauty]))


def changes(verdicts: dict[str, Verdict]) -> tuple[Changes, Changes]:
    """Efficiencies of the channels of beauty, and of charm, beside those of the free network."""
    free = verdicts[FREE].channels
    decays = {channel.code: channel.name for channel in all_channels()}
    after = {name: verdicts[name].channels.value for name in (TREES, OURS)}
    both = Changes([decays[code] for code in free.at], free.value, after)
    beauty = free.at < 20_000_000
    return both[beauty], both[~beauty]


def judge(model: Model, tables: Tables) -> Verdict:
    """Working point and efficiencies, on validation rows."""
    point = choose(model.score(tables.collisions.validation.X), tables)

    def passed(hadrons: Any, candidates: Any) -> Any:
        return passing(hadrons, candidates, model.score(candidates.X), point.threshold)

    late, candidates = tables.longlived_hadrons.validation, tables.longlived.validation
    late_passed = passed(late, candidates)
    hadrons = tables.signal_hadrons.validation
    return Verdict(
        model,
        point,
        by_proper_time(late, late_passed, flavor=2),
        by_proper_time(late, late_passed, flavor=1),
        by_channel(hadrons, passed(hadrons, tables.signal.validation)),
    )


def train_all(
    tables: Tables, inputs: tuple[int, ...], effort: Effort, seed: int
) -> dict[str, Model]:
    """The three models of the paper's figures, and unconstrained trees."""
    X, y, group = tables.training(seed)
    return {
        FREE: train_free(X, y, inputs, effort, seed=seed),
        FREE_TREES: train_trees(X, y, group, inputs, effort, monotone=False, seed=seed),
        TREES: train_trees(X, y, group, inputs, effort, seed=seed),
        OURS: train_lipschitz(X, y, inputs, effort, seed=seed),
    }


def run(sample: Path, out: Path, effort: Effort, seed: int = 0) -> dict[str, Any]:
    """Figures 4 to 6 and their numbers, which are also in `out`/numbers.json."""
    tables = Tables.load(sample)
    results = numbers_of(compare(tables, out, effort, seed))
    results |= {"sample": tables.about, "effort": asdict(effort), "seed": seed}
    save_numbers(results, out)
    return results


def compare(
    tables: Tables, out: Path, effort: Effort, seed: int = 0
) -> dict[str, dict[str, Verdict]]:
    """Train, judge and draw all models of two and of four inputs."""
    found = {}
    for n, inputs in ((2, TWO), (4, FOUR)):
        models = train_all(tables, inputs, effort, seed)
        verdicts = {name: judge(model, tables) for name, model in models.items()}
        draw(verdicts, tables, out, n)
        report(verdicts, n)
        found[f"{n} inputs"] = verdicts
    return found


def numbers_of(found: dict[str, dict[str, Verdict]]) -> dict[str, Any]:
    return {
        inputs: {name: verdict.numbers() for name, verdict in verdicts.items()}
        for inputs, verdicts in found.items()
    }


def save_numbers(numbers: dict[str, Any], out: Path) -> None:
    (out / "numbers.json").write_text(json.dumps(numbers, indent=1, ensure_ascii=False) + "\n")


def draw(verdicts: dict[str, Verdict], tables: Tables, out: Path, n: int) -> None:
    if n == 2:
        X, y, _ = tables.training()
        models = {name: (verdicts[name].model, verdicts[name].point.threshold) for name in DRAWN}
        save(figures.heat_maps(models, X, y), out / "fig4_heatmaps")
    curves = {name: (verdicts[name].beauty, verdicts[name].charm) for name in DRAWN}
    save(figures.lifetimes(curves), out / f"fig5_lifetime_{n}")
    save(figures.channels(*changes(verdicts)), out / f"fig6_channels_{n}")


def brief(verdicts: dict[str, Verdict]) -> dict[str, list[float]]:
    """By model: beauty at 15 to 25 ps over its plateau, and what changes against the free one."""
    free = verdicts[FREE]
    return {
        name: [late_to_plateau(verdict.beauty), *medians(verdict, free)]
        for name, verdict in verdicts.items()
    }


def repeat(tables: Tables, effort: Effort, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """The brief numbers for other seeds of all models, without figures."""
    found = []
    for seed in seeds:
        one: dict[str, Any] = {"seed": seed}
        for n, inputs in ((2, TWO), (4, FOUR)):
            models = train_all(tables, inputs, effort, seed)
            one[f"{n} inputs"] = brief({name: judge(m, tables) for name, m in models.items()})
        found.append(one)
    return found


def complaints(briefs: Sequence[dict[str, Any]]) -> list[str]:
    """Where the paper's effect does not show: free below 0.8 of its plateau, ours above 0.95."""
    found = []
    for one in briefs:
        for inputs in ("2 inputs", "4 inputs"):
            free, ours = (one[inputs][name][0] for name in (FREE, OURS))
            if not (free < 0.8 and ours > 0.95):
                found.append(
                    f"seed {one['seed']}, {inputs}: beauty at 15-25 ps over its plateau is "
                    f"{free:.2f} for the {FREE}, and {ours:.2f} for ours"
                )
    return found


def report(verdicts: dict[str, Verdict], n: int) -> None:
    """A few lines for the reader."""
    for name, (late, beauty, charm) in brief(verdicts).items():
        point = verdicts[name].point
        print(
            f"{n} inputs, {name:26s} {point.rate / 1e3:4.0f} ± "
            f"{point.rate_error / 1e3:.0f} kHz; beauty at 15-25 ps / plateau "
            f"{late:.2f}; efficiency against free: "
            f"beauty {beauty:+.3f}, charm {charm:+.3f}"
        )
