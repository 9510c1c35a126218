"""Columns: how the distribution of one column, or of a score, differs between two tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from isotone.monitoring.levels import Level, Levels, Mark, Share, worst
from isotone.monitoring.sketch import Sketch, kolmogorov_smirnov, wasserstein
from isotone.monitoring.stability import Stability, counts_in, quantile_bins, stability
from isotone.monitoring.summary import TableSummary
from isotone.typing import Floats


@dataclass(frozen=True)
class Distances:
    """Of two distributions of numbers, in their units.

    Those of the tables are within `wasserstein` ± `within` and `ks` ± `ks_within`; both bounds are
    0 if no sketch was compressed.
    """

    wasserstein: float
    within: float
    ks: float
    ks_within: float
    mean_change: float

    @classmethod
    def of(cls, P: Sketch, Q: Sketch) -> Distances | None:
        """None where one of them is empty: nothing has no distance from something."""
        if not (P.n and Q.n):
            return None
        change = Q.mean - P.mean
        moved, jump = P.moved + Q.moved, P.jump + Q.jump
        return cls(wasserstein(P, Q), moved, kolmogorov_smirnov(P, Q), jump, change)


@dataclass(frozen=True)
class ColumnDrift:
    """One column, or the score.

    Parameters
    ----------
    distances : None for categories, and where a table has no number
    variation : total variation, half the sum of differences of shares, for categories
    missing, unseen : shares of rows
    could_move : how far the drift of this column alone can have moved the mean score; None if
        unknown
    """

    name: str
    level: Level
    reasons: tuple[str, ...]
    psi: float
    psi_chance: float
    distances: Distances | None
    variation: float | None
    missing: Share
    unseen: Share
    could_move: float | None


def compare_column(
    reference: TableSummary, new: TableSummary, i: int, levels: Levels, could_move: float | None
) -> ColumnDrift:
    """Column i of two tables."""
    before, now = reference.columns[i], new.columns[i]
    missing = Share.of(before.n_missing, reference.n_rows, now.n_missing, new.n_rows)
    unseen = Share.of(before.n_unseen, reference.n_rows, now.n_unseen, new.n_rows)
    distances, variation = None, None
    if before.sketch is not None and now.sketch is not None:
        found, distances = (
            _stability(before.sketch, now.sketch),
            Distances.of(before.sketch, now.sketch),
        )
    else:
        assert before.counts is not None
        assert now.counts is not None
        p, q = before.counts.astype(float), now.counts.astype(float)
        found, variation = stability(p, q), _variation(p, q)
    marks = [
        *_about_psi(found, levels),
        *_about_share("missing values", missing, levels),
        *_about_share("unseen values", unseen, levels),
    ]
    name, reasons = before.name, tuple(text for _, text in marks)
    return ColumnDrift(
        *(name, worst(marks), reasons, found.psi, found.chance),
        *(distances, variation, missing, unseen, could_move),
    )


def compare_score(
    reference: TableSummary, new: TableSummary, name: str, levels: Levels
) -> ColumnDrift:
    """One output; what is missing are rows without a score."""
    P, Q = reference.scores[name], new.scores[name]
    found, none = _stability(P, Q), Share(0.0, 0.0, 0.0, 0.0)
    lost = [each.n_rows - each.n_scored for each in (reference, new)]
    missing = Share.of(lost[0], reference.n_rows, lost[1], new.n_rows)
    marks = [
        *_about_nothing(reference, new),
        *_about_psi(found, levels),
        *_about_share("rows without a score", missing, levels),
    ]
    reasons = tuple(text for _, text in marks)
    return ColumnDrift(
        *(name, worst(marks), reasons, found.psi, found.chance),
        *(Distances.of(P, Q), None, missing, none, None),
    )


def _stability(P: Sketch, Q: Sketch) -> Stability:
    ends = quantile_bins(P)
    return stability(counts_in(P, ends), counts_in(Q, ends))


def _variation(p: Floats, q: Floats) -> float:
    if not (p.sum() and q.sum()):
        return 0.0
    return 0.5 * float(np.abs(p / p.sum() - q / q.sum()).sum())


def _about_psi(found: Stability, levels: Levels) -> Iterator[Mark]:
    level = levels.judge("psi", found.psi)
    if level != "fine" and found.psi > found.chance:
        yield level, f"population stability index {found.psi:.3g}"


def _about_nothing(reference: TableSummary, new: TableSummary) -> Iterator[Mark]:
    for each, what in ((reference, "row of the reference"), (new, "new row")):
        if not each.n_scored:
            yield "alarm", f"no {what} has a score, so scores cannot be compared"


def _about_share(what: str, share: Share, levels: Levels) -> Iterator[Mark]:
    level = levels.judge("missing", share.change)
    if level != "fine" and not share.is_chance:
        yield level, f"{what} rose from {100 * share.reference:.3g} to {100 * share.new:.3g} %"
