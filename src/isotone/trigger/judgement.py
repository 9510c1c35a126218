"""Judgement: the rate and the efficiencies that scored candidates have at a working point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isotone.trigger.candidates import Candidates
from isotone.trigger.curve import RateCurve, rate_curve, usual_rates
from isotone.trigger.efficiency import Efficiency, by_bin, by_group, quantile_edges
from isotone.trigger.shares import RateShares, rates_by
from isotone.trigger.tistos import Overlap, overlap
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
    rate_by, examined : columns, the output rate for each value; and, if known, how many events of
        each value were examined
    tis : column; signal events with 1 fired independently of the signal, see `overlap`
    """

    max_rate: float | None = None
    threshold: float | None = None
    rates: tuple[float, ...] | None = None
    groups: tuple[str, ...] = ()
    against: str | None = None
    split: str | None = None
    edges: Floats | None = None
    block: str | None = None
    rate_by: tuple[str, ...] = ()
    examined: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tis: str | None = None

    @property
    def labels(self) -> list[str]:
        """All columns that are needed as texts."""
        return _once(*self.groups, self.split, self.block, *self.rate_by)

    @property
    def values(self) -> list[str]:
        """All columns that are needed as numbers."""
        return _once(self.against, self.tis)


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
    shares : of the rate, by column
    overlaps : efficiencies by overlap, by column as `groups`, and by the quantity of `curves`
    """

    point: WorkingPoint
    n_tied: int
    curve: RateCurve
    groups: dict[str, Efficiency]
    curves: dict[str, Efficiency]
    edges: Floats | None
    values: dict[str, Floats]
    shares: dict[str, RateShares]
    overlaps: dict[str, Overlap]


def _once(*names: str | None) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))


def judge(candidates: Candidates, exposure: Exposure, asked: Asked) -> Judgement:
    """Find the working point that is asked for, and what passes there."""
    background = candidates.background.best(_once(asked.block, *asked.rate_by))
    background = background[np.isfinite(background.score)]
    blocks = background.labels[asked.block] if asked.block else None
    best, n_tied = background.score, 0
    if asked.threshold is not None:
        point = at_threshold(best, exposure, asked.threshold, blocks, background.weight)
    else:
        assert asked.max_rate is not None
        point = choose(best, exposure, asked.max_rate, blocks, background.weight)
        if background.weight is None:
            n_tied = _ties(best, point, exposure.n_allowed(asked.max_rate))
    signal = candidates.signal.best(_once(*asked.groups, asked.split, *asked.values))
    rates = usual_rates(asked.max_rate or point.rate, exposure)
    rates = rates if asked.rates is None else np.array(asked.rates)
    weights = background.weight, signal.weight
    curve = rate_curve(best, signal.score, exposure, rates, blocks, *weights)
    passed = signal.score >= point.threshold
    groups = {"": by_group(passed, np.full(len(signal), "all signal"), signal.weight)}
    groups |= {
        name: _in_order(by_group(passed, signal.labels[name], signal.weight))
        for name in asked.groups
    }
    curves, edges, values = _curves(signal, passed, asked)
    shares = {
        name: rates_by(
            *(best >= point.threshold, background.labels[name], exposure, blocks),
            *(asked.examined.get(name), background.weight),
        )
        for name in asked.rate_by
    }
    overlaps = _overlaps(signal, passed, asked, groups, edges)
    return Judgement(point, n_tied, curve, groups, curves, edges, values, shares, overlaps)


def _overlaps(
    signal: Candidates,
    passed: Bools,
    asked: Asked,
    groups: Mapping[str, Efficiency],
    edges: Floats | None,
) -> dict[str, Overlap]:
    if asked.tis is None:
        return {}
    flags = signal.values[asked.tis]
    if not np.isin(flags, (0.0, 1.0)).all():
        raise ValueError(
            f"`tis={asked.tis}` must be 1 for signal events that fired independently of the "
            "signal and 0 for the others; choose another column, or correct it"
        )
    is_tis, every = flags == 1.0, np.ones(len(signal), dtype=bool)
    found = {"": overlap(passed, is_tis, [every], groups[""].at, signal.weight)}
    for name in asked.groups:
        at = groups[name].at
        each = [signal.labels[name] == label for label in at]
        found[name] = overlap(passed, is_tis, each, at, signal.weight)
    if asked.against is not None and edges is not None:
        index = np.searchsorted(edges, signal.values[asked.against], side="right") - 1
        bins = [index == i for i in range(len(edges) - 1)]
        middles = 0.5 * (edges[:-1] + edges[1:])
        found[asked.against] = overlap(passed, is_tis, bins, middles, signal.weight)
    return found


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
    curves = {}
    for name, rows in parts.items():
        weight = None if signal.weight is None else signal.weight[rows]
        curves[name] = by_bin(passed[rows], values[rows], edges, weight)
    return curves, edges, {name: values[rows] for name, rows in parts.items()}


def _in_order(found: Efficiency) -> Efficiency:
    """Sorted as numbers, if all groups are: 2 before 10."""
    try:
        order = np.argsort(found.at.astype(float), kind="stable")
    except ValueError:
        return found
    return found.take(order)


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
