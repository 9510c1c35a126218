"""The further questions on the page: λ, seeds, smoothness, a wrong simulation, speed."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.trigger.analysis.study import OURS, TREES
from studies.trigger.pages.effect import FLAVORS, MODELS, stairs
from studies.trigger.pages.markdown import join, table
from studies.trigger.questions.calibration import ERRORS
from studies.trigger.questions.detectors import DETECTORS, NOMINAL

Numbers = dict[str, Any]


def scan(numbers: Numbers) -> str:
    """Means over seeds for every λ, and the models without a certificate."""
    members, rows = numbers["scan"]["members"], []
    for value in sorted({one["lipschitz"] for one in members}):
        some = [one for one in members if one["lipschitz"] == value]
        mean = {k: float(np.mean([one[k] for one in some])) for k in some[0] if k in _SCANNED}
        flips = [
            join(
                (100 * float(np.mean([one[kind][error] for one in some])) for kind in _KINDS),
                ".2f",
            )
            for error in ERRORS
        ]
        cells = f"{mean['beauty']:.3f}, {mean['charm']:.3f}"
        late = f"{mean['late_beauty']:.2f}, {mean['late_charm']:.2f}"
        rows.append([f"{value:g}{' (default)' if value == 2 else ''}", cells, late, *flips])
    for name, measured in numbers["scan"]["others"].items():
        rows.append(
            [
                name,
                *_unscanned(numbers["4 inputs"][name]),
                *(f"{100 * measured[e]:.2f}, –" for e in ERRORS),
            ]
        )
    head = ["λ", "beauty, charm efficiency", "15–25 ps over plateau: beauty, charm"]
    return table([*head, *(f"{error}: measured, certified [%]" for error in ERRORS)], rows)


_SCANNED = ("beauty", "charm", "late_beauty", "late_charm")
_KINDS = ("measured", "certified")


def _unscanned(found: Numbers) -> list[str]:
    """Mean efficiencies and flatness of a model that is not in the scan."""
    value, beauty = np.array(found["channels"]), np.array(found["codes"]) < 20_000_000
    means = f"{value[beauty].mean():.3f}, {value[~beauty].mean():.3f}"
    return [means, f"{found['late_to_plateau']:.2f}, {found['late_charm']:.2f}"]


def seeds(numbers: Numbers) -> str:
    one, rows = numbers["seeds"], []
    plan = one["plan"]
    trained = f"{plan['n_seeds']} seeds, {plan['epochs']} epochs of {one['n_rows']:,} rows"
    for flavor in FLAVORS:
        keys = ("mean", "observed", "noise", "seeds", "sample", "threshold")
        mean, *others = (100 * one[flavor][key] for key in keys)
        rows.append([f"{flavor}, {trained}", f"{mean:.1f}", *(f"{v:.2f}" for v in others)])
    return table(
        ["", "mean", "spread", "noise of the rows", "spread of seeds", "sample", "threshold"], rows
    )


def smoothness(numbers: Numbers) -> str:
    rows = []
    for name in (TREES, OURS):
        found = numbers["smoothness"][name]
        counts, highest = stairs(numbers, name)
        changes = [f"{value:.3f}" for key, value in found.items() if key != "stairs"]
        rows.append([name, *changes, f"{join(counts, 'd')}; {join(highest, '.2f')} GeV"])
    return table(["", "Σp_T, 20 MeV", "ln min χ²_IP, 0.02", "boundary"], rows)


def wrong(numbers: Numbers) -> str:
    worse = [name for name in DETECTORS if name != NOMINAL]
    rows = []
    for model in MODELS:
        found = numbers["wrong simulation"][model]
        rates = [f"{found[w]['rate']:.2f} ± {found[w]['rate_error']:.2f}" for w in worse]
        first = found[worse[0]]
        changes = [f"{join([first[f]], '+.3f')} ± {first[f'{f}_error']:.3f}" for f in FLAVORS]
        rows.append([model, *rates, *changes])
    head = [f"rate, {worse[0]}", *worse[1:], *(f"{f}, {worse[0]}" for f in FLAVORS)]
    return table(["", *head], rows)


def speed(numbers: Numbers) -> str:
    rows = [
        [name, f"{one['per_second'] / 1e6:.3g} million", _two(1e6 * one["latency"])]
        for name, one in numbers["speed"].items()
        if name != "n_rows"
    ]
    return table(["", "candidates per second", "one candidate [µs]"], rows)


def _two(value: float) -> str:
    """A number with two digits that count, and without an exponent."""
    return f"{float(f'{value:.2g}'):g}"
