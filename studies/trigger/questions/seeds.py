"""Seeds: how much the default model depends on its random start.

Question: how far does the efficiency at the working point spread over seeds?
Data: any sample; the rows to judge by are the same for all seeds.
Claim: the spread over seeds is of the order of 0.1 %, below the sample's own error.
Run time: an hour on two cores that others used as well, for 1000 seeds of a full sample.

A part of the spread is the sample's: few candidates near the threshold decide which of two almost
equal models passes more. Drawing collisions and hadrons anew tells how large that part is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from isotone.typing import Floats
from studies.figures import save
from studies.trigger.analysis.figures import BEAUTY_COLOR, CHARM_COLOR
from studies.trigger.analysis.models import Effort, Lipschitz, train_many
from studies.trigger.analysis.resampling import Sampled
from studies.trigger.analysis.tables import FOUR, Tables


@dataclass(frozen=True)
class Plan:
    """How many seeds, trained how long; by default as long as the default model.

    Parameters
    ----------
    n_draws : bootstraps, of at most `n_drawn` of the models
    """

    n_seeds: int = 1000
    epochs: int = 50
    batch_size: int = 128
    n_draws: int = 100
    n_drawn: int = 50


QUICK = Plan(n_seeds=8, epochs=8, n_draws=10, n_drawn=4)


@dataclass(frozen=True)
class Spread:
    """Efficiencies of one flavor over seeds, and the sample's own error.

    Parameters
    ----------
    observed : standard deviation over seeds
    sample : of one model, from drawing collisions and hadrons
    threshold : the part of it from drawing collisions alone
    noise : what the sample adds to the differences between seeds
    """

    mean: float
    observed: float
    sample: float
    threshold: float
    noise: float

    @property
    def seeds(self) -> float:
        """Spread over seeds in a very large sample."""
        return float(np.sqrt(max(self.observed**2 - self.noise**2, 0.0)))


def run(tables: Tables, out: Path, plan: Plan, threads: int = 1) -> dict[str, Any]:
    """Train, judge, draw the figure; the numbers."""
    X, y, _ = tables.training()
    effort = Effort(plan.epochs, plan.batch_size)
    members = [(seed, 2.0) for seed in range(plan.n_seeds)]
    models = train_many(X, y, FOUR, effort, members, threads)
    sampled = Sampled(tables)
    values, spreads = measure(models, sampled, plan)
    save(figure(values, spreads), out / "seeds")
    numbers = {
        name: {**vars(spread), "seeds": spread.seeds}
        for name, spread in zip(("beauty", "charm"), spreads, strict=True)
    }
    report(numbers, plan)
    return {"plan": vars(plan), "n_rows": len(X), **numbers}


def measure(
    models: list[Lipschitz], sampled: Sampled, plan: Plan
) -> tuple[Floats, tuple[Spread, Spread]]:
    """Efficiencies (n_seeds, 2) of beauty and charm, and their spreads."""
    once, kept, values = sampled.as_it_is(), [], []
    for i, model in enumerate(models):
        best = (
            sampled.events.best(model.score(sampled.background.X)),
            sampled.seen.best(model.score(sampled.signal.X)),
        )
        values.append(sampled.efficiency(*best, once))
        if i < plan.n_drawn:
            kept.append(best)
    drawn = {}
    for name, hadrons in (("both", True), ("collisions", False)):
        rng = np.random.default_rng(1)
        draws = [sampled.draw(rng, hadrons=hadrons) for _ in range(plan.n_draws)]
        drawn[name] = np.array(
            [[sampled.efficiency(*best, draw) for best in kept] for draw in draws]
        )
    both = [
        _spread(np.array(values)[:, i], drawn["both"][..., i], drawn["collisions"][..., i])
        for i in range(2)
    ]
    return np.array(values), (both[0], both[1])


def _spread(values: Floats, both: Floats, collisions: Floats) -> Spread:
    """Spreads of one flavor; `both` and `collisions` are (n_draws, n_models)."""
    # what is common to all models is no difference between seeds
    apart = both - both.mean(axis=1, keepdims=True)
    n = both.shape[1]
    noise = np.sqrt(apart.var(axis=0, ddof=1).mean() * n / (n - 1))
    return Spread(
        mean=float(values.mean()),
        observed=float(values.std(ddof=1)),
        sample=float(both.std(axis=0, ddof=1).mean()),
        threshold=float(collisions.std(axis=0, ddof=1).mean()),
        noise=float(noise),
    )


def figure(values: Floats, spreads: tuple[Spread, Spread]) -> Figure:
    """Histograms over seeds, and the error of the sample as a band."""
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = (("beauty", BEAUTY_COLOR), ("charm", CHARM_COLOR))
    for i, (panel, (title, color)) in enumerate(zip(panels, titles, strict=True)):
        spread = spreads[i]
        panel.hist(100 * values[:, i], bins=40, color=color, alpha=0.7, label="seeds")
        panel.axvspan(
            *(100 * (spread.mean + sign * spread.sample) for sign in (-1, 1)),
            color="0.85",
            zorder=0,
            label=f"error of the sample: ± {100 * spread.sample:.2f} %",
        )
        panel.set(
            title=f"{title}, spread {100 * spread.observed:.2f} %",
            xlabel="efficiency at the working point [%]",
        )
        panel.legend(fontsize=7, loc="upper left")
        panel.set_ylim(0, 1.3 * panel.get_ylim()[1])
        panel.locator_params(axis="x", nbins=5)
    panels[0].set_ylabel("seeds")
    return figure


def report(numbers: dict[str, Any], plan: Plan) -> None:
    for name, one in numbers.items():
        print(
            f"{plan.n_seeds} seeds, {name}: efficiency {100 * one['mean']:.2f} %, spread "
            f"{100 * one['observed']:.2f} % ({100 * one['seeds']:.2f} % without the sample's "
            f"{100 * one['noise']:.2f} %); sample {100 * one['sample']:.2f} %, of which threshold "
            f"{100 * one['threshold']:.2f} %",
            flush=True,
        )
