"""Judgement: the rate and the efficiencies that scored candidates have at a working point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.trigger.candidates import Candidates
from isotone.trigger.curve import RateCurve, rate_curve, usual_rates
from isotone.trigger.efficiency import Efficiency, by_bin, by_group, quantile_edges
from isotone.trigger.working_point import Exposure, WorkingPoint, at_threshold, choose
from isotone.typing import Bools, Floats

N_BINS = 10
MAX_CURVES = 6  # columns of a table that is read on a terminal


@dataclass(frozen=True, eq=False)
class Asked:
    """What is to be judged.

    Parameters
    ----------
    max_rate, threshold : one of them; the other is None
    rates : of the rate curve, in Hz; around that of the working point if None
    groups : columns, the efficiency for each value
    against, edges, split : column of a true quantity, bins, and a column that divides the curves
    block : column; events that share it are not independent
    """

    max_rate: float | None = None
    threshold: float | None = None
    rates: tuple[float, ...] | None = None
    groups: tuple[str, ...] = ()
    against: str | None = None
    split: str | None = None
    edges: Floats | None = None
    block: str | None = None

    def columns(self, also: str | None) -> list[str]:
        """Those of groups and curves, and another if there is one, each once."""
        names = (*self.groups, self.split, also)
        return list(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, eq=False)
class Judgement:
    """A working point, and the efficiencies there.

    Parameters
    ----------
    n_tied : background events that share the score just below the threshold, which would be too
        many; 0 if none are
    curve : efficiency against rate
    groups : by column, "" for all signal
    curves : by value of the column that divides them, "all signal" without one
    edges : of the bins of `curves`
    values : of the quantity that `curves` are against, by curve
    """

    point: WorkingPoint
    n_tied: int
    curve: RateCurve
    groups: dict[str, Efficiency]
    curves: dict[str, Efficiency]
    edges: Floats | None
    values: dict[str, Floats]


def judge(candidates: Candidates, exposure: Exposure, asked: Asked) -> Judgement:
    """Find the working point that is asked for, and what passes there."""
    background = candidates.background.best([asked.block] if asked.block else [])
    background = background[np.isfinite(background.score)]
    blocks = background.labels[asked.block] if asked.block else None
    best, n_tied = background.score, 0
    if asked.threshold is not None:
        point = at_threshold(best, exposure, asked.threshold, blocks)
    else:
        assert asked.max_rate is not None
        point = choose(best, exposure, asked.max_rate, blocks)
        n_tied = _ties(best, point, exposure.n_allowed(asked.max_rate))
    signal = candidates.signal.best(asked.columns(asked.against))
    rates = usual_rates(asked.max_rate or point.rate, exposure)
    rates = rates if asked.rates is None else np.array(asked.rates)
    curve = rate_curve(best, signal.score, exposure, rates, blocks)
    passed = signal.score >= point.threshold
    groups = {"": by_group(passed, np.full(len(signal), "all signal"))}
    groups |= {name: _in_order(by_group(passed, signal.labels[name])) for name in asked.groups}
    return Judgement(point, n_tied, curve, groups, *_curves(signal, passed, asked))


def _ties(best: Floats, point: WorkingPoint, n_allowed: int) -> int:
    if point.n_passed == n_allowed:
        return 0
    refused = best[best < point.threshold]
    return int((refused == refused.max()).sum()) if len(refused) else 0


def _curves(
    signal: Candidates, passed: Bools, asked: Asked
) -> tuple[dict[str, Efficiency], Floats | None, dict[str, Floats]]:
    if asked.against is None:
        return {}, None, {}
    values = signal.values[asked.against]
    edges = quantile_edges(values, N_BINS) if asked.edges is None else asked.edges
    parts = _parts(signal, asked.split)
    curves = {name: by_bin(passed[rows], values[rows], edges) for name, rows in parts.items()}
    return curves, edges, {name: values[rows] for name, rows in parts.items()}


def _in_order(found: Efficiency) -> Efficiency:
    """Sorted as numbers, if all groups are: 2 before 10."""
    try:
        order = np.argsort(found.at.astype(float), kind="stable")
    except ValueError:
        return found
    return Efficiency(found.at[order], found.n[order], found.n_passed[order])


def _parts(signal: Candidates, split: str | None) -> dict[str, Any]:
    """Rows of the events of every curve."""
    if split is None:
        return {"all signal": np.ones(len(signal), dtype=bool)}
    column = signal.labels[split]
    names = np.unique(column)
    if len(names) > MAX_CURVES:
        raise ValueError(
            f"`split={split}`: the column has {len(names)} values; at most {MAX_CURVES} curves "
            f"fit a table: choose another, or use `group={split}`"
        )
    return {name: column == name for name in names}
