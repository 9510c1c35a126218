r"""Drift: how far new rows are from a reference, and what that can mean for the score.

The score changes by at most :math:`|W_k(x_k) - W_k(y_k)|` when feature k moves from x to y
(`isotone.certificate.coordinates`), and by no more than the sum of these when all of them move.
Let :math:`d_k` be the Wasserstein distance between the coordinates :math:`W_k` of both tables, and
d the sum of all :math:`d_k`. Then

- between the tables lies a transport of at least d, measured in changes of the score that the
  certified slopes allow, and of at least the distance of the scores themselves (the score is a
  function of constant 1 in that metric);
- if only single features drifted, and their dependence (the copula) is that of the reference, then
  the scores of both tables are at most d apart. Where they are farther apart, the dependence has
  changed: no drift of single columns explains it;
- if the certificate proves that the model is additive, mean scores are at most d apart, whatever
  the dependence.

Both sides of these comparisons include the errors of sketches and of computed scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isotone.certificate.certify import Certificate, certify
from isotone.frozen.network import FrozenNetwork
from isotone.monitoring.columns import ColumnDrift, Distances, compare_column, compare_score
from isotone.monitoring.levels import (
    DEVIATIONS,
    Level,
    Levels,
    Mark,
    Share,
    worst,
    worst_first,
)
from isotone.monitoring.sketch import wasserstein
from isotone.monitoring.summary import TableSummary, coordinates_of


@dataclass(frozen=True)
class Drift:
    """How new rows differ from the reference; `level` is the whole of it in one word.

    Parameters
    ----------
    columns, scores : of every column and of every output
    decisions : by class, or of accepted rows
    shift_bound : d of this module with all errors, None for several outputs
    transport : the least transport between both tables, see this module
    additive : whether the model is proved to be additive, so that `shift_bound` holds for means
    dependence_changed : whether no drift of single columns explains that of the score
    """

    level: Level
    reasons: tuple[str, ...]
    fingerprint: str
    n_reference: int
    n_new: int
    threshold: float | None
    columns: tuple[ColumnDrift, ...]
    scores: tuple[ColumnDrift, ...]
    decisions: dict[str, Share]
    shift_bound: float | None
    transport: float | None
    additive: bool
    dependence_changed: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON content."""
        return asdict(self)


@dataclass(frozen=True)
class Moves:
    """Distances of the coordinates of every feature.

    Parameters
    ----------
    most, least : (n_encoded,), bounds on them; none if there are several outputs, or a table has
        no scores
    error : of two computed scores together
    """

    most: tuple[float, ...]
    least: tuple[float, ...]
    error: float

    @classmethod
    def of(cls, certificate: Certificate, reference: TableSummary, new: TableSummary) -> Moves:
        coordinates, error = coordinates_of(certificate), 2 * certificate.rounding_errors[0]
        if coordinates is None or not (reference.n_scored and new.n_scored):
            return cls((), (), error)
        most, least = [], []
        for name, slack in zip(reference.coordinates, coordinates.rounding.tolist(), strict=True):
            P, Q = reference.coordinates[name], new.coordinates[name]
            far, within = wasserstein(P, Q), P.moved + Q.moved + slack
            most.append(far + within)
            least.append(max(far - within, 0.0))
        return cls(tuple(most), tuple(least), error)

    @property
    def bound(self) -> float | None:
        """How far scores may be apart if features drifted one by one; None if unknown."""
        total = math.fsum(self.most) + self.error
        return total if self.most and math.isfinite(total) else None

    def by_column(self, frozen: FrozenNetwork) -> list[float | None]:
        """How far the features of every column may have moved the score."""
        n = len(frozen.inputs.columns)
        if not self.most:
            return [None] * n
        return [*np.bincount(frozen.inputs.owners, self.most, n).tolist()]


def compare(
    frozen: FrozenNetwork, reference: TableSummary, new: TableSummary, levels: Levels | None = None
) -> Drift:
    """Compare two summaries that were made with one model.

    Examples
    --------
    >>> import isotone
    >>> network = isotone.MonotonicNetwork([1, 4, 1], monotonic_cst=[1])
    >>> frozen = isotone.freeze(network, features=["x"])
    >>> from isotone.monitoring import summarize
    >>> P, Q = ({"x": np.random.default_rng(0).normal(m, size=1000)} for m in (0.0, 3.0))
    >>> compare(frozen, summarize(frozen, P), summarize(frozen, Q)).level
    'alarm'
    """
    levels = Levels() if levels is None else levels
    _check_pair(frozen, reference, new)
    certificate = certify(frozen)
    moves = Moves.of(certificate, reference, new)
    columns = tuple(
        compare_column(reference, new, i, levels, most)
        for i, most in enumerate(moves.by_column(frozen))
    )
    names = frozen.names_of("score")
    scores = tuple(compare_score(reference, new, name, levels) for name in names)
    decisions, shift = _decisions(frozen, reference, new), scores[0].distances
    changed = _dependence_changed(shift, moves.bound, reference, new)
    marks: list[Mark] = [
        (c.level, f"{c.name}: {r}") for c in (*columns, *scores) for r in c.reasons
    ]
    marks += _about_decisions(decisions, levels)
    if changed:
        marks.append(("alarm", "columns depend on one another in a new way"))
    groups = certificate.interactions
    return Drift(
        level=worst(marks),
        reasons=worst_first(marks),
        fingerprint=frozen.fingerprint,
        n_reference=reference.n_rows,
        n_new=new.n_rows,
        threshold=reference.threshold,
        columns=columns,
        scores=scores,
        decisions=decisions,
        shift_bound=moves.bound,
        transport=_transport(shift, moves),
        additive=bool(groups) and all(len(group) == 1 for group in groups),
        dependence_changed=changed,
    )


def _check_pair(frozen: FrozenNetwork, reference: TableSummary, new: TableSummary) -> None:
    for each in (reference, new):
        if each.fingerprint != frozen.fingerprint:
            raise ValueError(
                "a summary was made with another model; both must be made with the one that is "
                "monitored: summarize the tables again"
            )
    if reference.threshold != new.threshold:
        raise ValueError(
            f"the reference was summarized with `threshold={reference.threshold}` and the new "
            f"rows with `threshold={new.threshold}`; they must agree: summarize the reference "
            "again, or leave the threshold out"
        )


def _transport(shift: Distances | None, moves: Moves) -> float | None:
    """The least transport between both tables; None if unknown."""
    if shift is None or not moves.most:
        return None
    return max(math.fsum(moves.least), shift.wasserstein - shift.within - moves.error)


def _dependence_changed(
    shift: Distances | None, bound: float | None, reference: TableSummary, new: TableSummary
) -> bool:
    """Whether scores are farther apart than the bound and chance allow."""
    P, Q = (next(iter(each.scores.values())) for each in (reference, new))
    if bound is None or shift is None:
        return False
    chance = DEVIATIONS * math.hypot(P.deviation / math.sqrt(P.n), Q.deviation / math.sqrt(Q.n))
    return shift.wasserstein - shift.within > bound + chance


def _decisions(
    frozen: FrozenNetwork, reference: TableSummary, new: TableSummary
) -> dict[str, Share]:
    names = frozen.output_names if frozen.of_classes else ["refused", "accepted"]
    n, m = sum(reference.decided), sum(new.decided)
    if not (n and m):
        return {}
    pairs = zip(names, reference.decided, new.decided, strict=False)  # there may be none
    shares = {name: Share.of(k, n, new_k, m) for name, k, new_k in pairs}
    return shares if frozen.of_classes else {k: v for k, v in shares.items() if k == "accepted"}


def _about_decisions(decisions: dict[str, Share], levels: Levels) -> Iterator[Mark]:
    for name, share in decisions.items():
        relative = abs(share.change) / share.reference if share.reference else math.inf
        level = levels.judge("decisions", relative)
        if level != "fine" and not share.is_chance:
            change = f"from {100 * share.reference:.3g} to {100 * share.new:.3g} %"
            yield level, f"decisions: share of {name} rows went {change}"
