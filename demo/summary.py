"""The summary of the demo: ten lines for the terminal, a page with the pictures."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotone import Certificate, Engine
from isotone.typing import Floats
from studies.trigger.analysis.efficiency import EDGES
from studies.trigger.analysis.study import FREE, OURS, Verdict, late_to_plateau
from studies.trigger.analysis.tables import Tables

# What the demo writes.
MODEL, CPP, ONNX = "trigger.isotone", "trigger", "trigger.onnx"
CANDIDATES, SCORES = "candidates.parquet", "scores.parquet"
WORKING_POINT, REPORT, SUMMARY = "working-point.json", "report.html", "summary.md"
FIG_4, FIG_5 = "fig4_heatmaps", "fig5_lifetime"


@dataclass(frozen=True)
class Facts:
    """What the demo found, about candidates that no model was trained on.

    Parameters
    ----------
    flip_bound, flips : shares of decisions that `shifts` can change, and that one draw changed
    rows_per_second : of the engine, one thread
    """

    certificate: Certificate
    two: dict[str, Verdict]
    four: dict[str, Verdict]
    flip_bound: float
    flips: float
    rows_per_second: float

    @classmethod
    def of(
        cls,
        certificate: Certificate,
        two: dict[str, Verdict],
        four: dict[str, Verdict],
        tables: Tables,
    ) -> Facts:
        X = tables.collisions.validation.X
        engine = Engine(certificate.frozen)
        robustness = shifted(certificate, X, four[OURS].point.threshold)
        return cls(certificate, two, four, *robustness, speed(engine, X))


def shifts(X: Floats) -> Floats:
    """What a calibration that is off by 2 % does to the features, at their medians.

    Σp_T changes by 2 %. χ² goes as the inverse square of a resolution: it changes by 4 %, and its
    logarithm by 0.04.
    """
    median = np.median(X, axis=0)
    return np.array([0.04, 0.02 * median[1], 0.04 * median[2], 0.04])


def shifted(certificate: Certificate, X: Floats, threshold: float) -> tuple[float, float]:
    """The share of decisions that `shifts` can change at most, and what one draw changes."""
    delta = shifts(X)
    moved = X + np.random.default_rng(0).uniform(-delta, delta, X.shape)
    score = certificate.frozen.score
    flips = np.mean((score(moved) >= threshold) != (score(X) >= threshold))
    return certificate.flip_bound(X, delta, threshold), float(flips)


def speed(engine: Engine, X: Floats) -> float:
    """Rows per second, the best of several runs."""
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        engine(X)
        seconds.append(time.perf_counter() - start)
    return len(X) / min(seconds)


def line(name: str, verdict: Verdict) -> str:
    point = verdict.point
    return (
        f"{name:37s} {point.rate / 1e3:.0f} ± {point.rate_error / 1e3:.0f} kHz, late / plateau "
        f"{late_to_plateau(verdict.beauty):.2f}"
    )


def ten_lines(facts: Facts, out: Path, seconds: float) -> str:
    """What was found, and where it is."""
    ours, free = facts.four[OURS], facts.four[FREE]
    verdict = "holds" if facts.certificate.holds else "FAILS"
    return "\n".join(
        [
            f"certificate    {verdict}: {facts.certificate.guarantee}",
            f"working point  score ≥ {ours.point.threshold:.4f}: {ours.point.rate / 1e3:.0f} ± "
            f"{ours.point.rate_error / 1e3:.0f} kHz of 30 MHz, on unseen collisions",
            "long lifetimes beauty efficiency at 15 to 25 ps over its plateau: "
            f"{late_to_plateau(ours.beauty):.2f}; unconstrained: "
            f"{late_to_plateau(free.beauty):.2f}",
            "robustness     shifts as of a calibration 2 % off change at most "
            f"{_percent_up(facts.flip_bound)} % of decisions; "
            f"{100 * facts.flips:.2f} % in a trial",
            f"engine         {facts.rows_per_second / 1e6:.0f} million candidates per second, one "
            "thread",
            f"model          {out / MODEL}, threshold in {out / WORKING_POINT}",
            f"exports        {out / CPP}/ (C++), {out / ONNX}",
            f"scores         {out / SCORES}",
            f"figures        {out / FIG_4}.svg, {out / FIG_5}.svg",
            f"report         {out / REPORT} (open it in a browser), {out / SUMMARY}, "
            f"after {seconds:.0f} s",
        ]
    )


def page(facts: Facts) -> str:
    """The page, in Markdown; pictures and files are beside it."""
    point = facts.four[OURS].point
    return PAGE.format(
        verdict="holds" if facts.certificate.holds else "FAILS",
        guarantee=facts.certificate.guarantee,
        fingerprint=facts.certificate.fingerprint,
        threshold=repr(point.threshold),
        rate=f"{point.rate / 1e3:.0f} ± {point.rate_error / 1e3:.0f}",
        slopes=_slopes(facts.certificate),
        models=_models(facts),
        curve=_curve(facts.four[OURS]),
        bound=_percent_up(facts.flip_bound),
        flips=f"{100 * facts.flips:.2f}",
        model=MODEL,
        cpp=CPP,
        onnx=ONNX,
        candidates=CANDIDATES,
        scores=SCORES,
        working_point=WORKING_POINT,
        report=REPORT,
        fig_4=FIG_4,
        fig_5=FIG_5,
    )


def _percent_up(share: float) -> str:
    """In percent, rounded up: what is printed is still a bound."""
    return f"{math.ceil(1e4 * share) / 100:.2f}"


def _slopes(certificate: Certificate) -> str:
    return "\n".join(f"| `{slope.feature}` | {slope.raw} |" for slope in certificate.slopes)


def _models(facts: Facts) -> str:
    rows = []
    for n, verdicts in ((2, facts.two), (4, facts.four)):
        for name, verdict in verdicts.items():
            beauty = verdict.channels.at < 20_000_000
            value = verdict.channels.value
            rows.append(
                f"| {n} | {name} | {verdict.point.rate / 1e3:.0f} | "
                f"{late_to_plateau(verdict.beauty):.2f} | {np.median(value[beauty]):.3f} | "
                f"{np.median(value[~beauty]):.3f} |"
            )
    return "\n".join(rows)


def _curve(verdict: Verdict) -> str:
    both = (verdict.beauty, verdict.charm)
    return "\n".join(
        f"| {EDGES[i]:g} to {EDGES[i + 1]:g} | "
        + " | ".join(f"{curve.value[i]:.2f} ± {curve.error[i]:.2f}" for curve in both)
        + " |"
        for i in range(len(EDGES) - 1)
    )


PAGE = """# A heavy-flavor trigger, LHCb-like

Made by `make demo` from the small sample of `studies/trigger`; what is and what is not modelled is
told in `docs/trigger.md`. All numbers are of candidates that no model was trained on.

## The model

`{model}`, a monotone Lipschitz network with four inputs.
Its certificate **{verdict}**: {guarantee}.
Fingerprint `{fingerprint}`.

| feature | change of the score per unit |
| --- | --- |
{slopes}

## The working point

A candidate passes if its score is at least {threshold}. Then {rate} kHz of 30 MHz pass; the error
is from the number of collisions. A calibration that is off by 2 % shifts both
logarithms by up to 0.04, Σp_T by up to 2 % and the vertex χ² by up to 4 % (of their medians). At
most {bound} % of the decisions on candidates can change then, by the certificate; {flips} %
did in one trial.

| proper time [ps] | beauty | charm |
| --- | --- | --- |
{curve}

## Long lifetimes are kept

What flew far is more interesting, not less. Background from material and from ghosts lies far out
as well, and an unconstrained network learns to give up that corner:

![Response of three models with two inputs, and their boundaries]({fig_4}.svg)

At the same output rate, four inputs, efficiency of hadrons that have a candidate:

![Efficiency against proper time for three models]({fig_5}.svg)

| inputs | model | rate [kHz] | beauty at 15 to 25 ps over plateau | beauty | charm |
| --- | --- | --- | --- | --- | --- |
{models}

The last two columns are medians over 24 and 17 channels, with respect to the truth cut.

## Files

| file | what it is |
| --- | --- |
| `{model}` | the model: `isotone certify`, `isotone score`, `isotone.load` |
| `{cpp}/` | the model in C++, two headers and an example; its scores have the same bits |
| `{onnx}` | the model for ONNX Runtime |
| `{report}` | the model to look at and to push on, in a browser |
| `{working_point}` | threshold, rate and efficiencies |
| `{candidates}` | the candidates that the working point was chosen on |
| `{scores}` | the scores of all collisions of the sample |
"""
