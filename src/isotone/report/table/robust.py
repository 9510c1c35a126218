"""Robustness of a table: what is certified about its rows when columns are shifted, and measured.

Decisions are looked at for every threshold that the page can move to (`report.table.stops`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.certificate.certify import Certificate
from isotone.certificate.robustness import Contest, Decisions, Radius, shift_ranges
from isotone.inputs.columns import Number
from isotone.report.outcomes import Outcomes
from isotone.report.table.curves import histogram
from isotone.report.table.sample import Sample
from isotone.report.table.stops import covered, crossed
from isotone.rounding import digits_up
from isotone.typing import Floats

N_SHIFTS = 11
MAX_SHIFTED = 20  # columns whose shifts are shown, those with the largest effects
_MAX_WORK = 1e11  # multiplications for the shifts of all columns, some ten seconds
_MAX_ROWS = 50_000  # for the same
_BLOCK = 65536  # rows at a time
_USUAL = 0.01  # of the standard deviation of a column: its shift if nobody gives one


def shifts_of(
    certificate: Certificate, sample: Sample, asked: Mapping[str, float] | None
) -> dict[str, float]:
    """The shift of every column that moves: as asked for, or 1 % of its standard deviation."""
    columns = certificate.frozen.inputs.columns
    if asked is not None:
        shift_ranges(asked, columns)  # refuses what cannot be shifted
        return {name: abs(float(shift)) for name, shift in asked.items()}
    numbers = [c.name for c in columns if isinstance(c, Number)]
    found = {name: _spread(_values(certificate, sample, name), _USUAL) for name in numbers}
    return {name: shift for name, shift in found.items() if shift > 0}


@ieee_arithmetic()
def robustness(
    certificate: Certificate,
    outcomes: Outcomes,
    sample: Sample,
    scores: Floats,
    stops: Floats | None,
    shifts: Mapping[str, float],
    effects: Sequence[float],
) -> tuple[dict[str, Any] | None, Floats | None]:
    """Panels about shifts and radii, and the radius of every row; None for several numbers."""
    if outcomes.kind == "values":
        if scores.ndim > 1:
            return None, None
        moves = _moves(certificate, sample, shifts)
        curves = _curves(certificate, outcomes, sample, scores, np.empty(0), effects)
        return {"moves": moves, "shifts": curves, "user": dict(shifts)}, None
    radius = _radius(certificate, outcomes, sample.X)
    at = np.array([outcomes.threshold or 0.0]) if stops is None else stops
    return {
        "user": dict(shifts),
        "certified": _certified(certificate, sample, scores, at, shifts),
        "shifts": _curves(certificate, outcomes, sample, scores, at, effects),
        "radii": _radii(outcomes, sample, radius.scaled),
    }, radius.scaled


def _radius(certificate: Certificate, outcomes: Outcomes, X: Floats) -> Radius:
    threshold = outcomes.threshold or 0.0
    parts = [certificate.radius_of_features(X[rows], threshold) for rows in _blocks(len(X))]
    return Radius(
        *(np.concatenate([getattr(p, n) for p in parts]) for n in ("scaled", "down", "up"))
    )


def _radii(outcomes: Outcomes, sample: Sample, scaled: Floats) -> dict[str, Any]:
    """Distribution of the distance that all features may move together."""
    classes = range(len(outcomes.classes))
    parts = {"all rows": np.ones(len(sample), bool)}
    if sample.y is not None:
        parts = {outcomes.name(c): sample.y == c for c in classes}
    finite = scaled[np.isfinite(scaled)]
    top = float(np.quantile(finite, 0.995)) if len(finite) else 1.0
    quantiles = np.quantile(scaled, [0.1, 0.5], method="inverted_cdf", weights=sample.weight)
    return histogram(scaled, parts, sample.weight, (0.0, top or 1.0)) | {
        "tenth": float(quantiles[0]),
        "median": float(quantiles[1]),
    }


def _certified(
    certificate: Certificate,
    sample: Sample,
    scores: Floats,
    stops: Floats,
    shifts: Mapping[str, float],
) -> list[float]:
    """Share of rows, at every stop, whose decision stands under all shifts at once."""
    lost, decisions = np.zeros(len(stops)), certificate.decisions()
    for rows in _blocks(len(sample)):
        X, score, weight = sample.X[rows], scores[rows], sample.weight[rows]
        if isinstance(decisions, Contest):
            flips = decisions.can_flip(X, score, *_moved(certificate, X, shifts))
            lost += weight[flips].sum()
        else:
            fall, rise = _changes(certificate, decisions, X, shifts)
            lost += _uncertified(decisions, score, fall, rise, weight, stops)
    return [float(share) for share in 1.0 - lost / sample.weight.sum()]


def _blocks(n_rows: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, n_rows, _BLOCK)]


def _changes(
    certificate: Certificate, decisions: Decisions, X: Floats, shifts: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Largest fall and rise of every score under all shifts at once, (n_rows,) each."""
    fall, rise = decisions.changes(X, *_moved(certificate, X, shifts))
    return fall.sum(axis=1), rise.sum(axis=1)


def _moved(
    certificate: Certificate, X: Floats, shifts: Mapping[str, float]
) -> tuple[Floats, Floats]:
    inputs = certificate.frozen.inputs
    low, high = (inputs.shift(X, amounts) for amounts in shift_ranges(shifts, inputs.columns))
    return low, high


def _uncertified(
    decisions: Decisions, score: Floats, fall: Floats, rise: Floats, weight: Floats, stops: Floats
) -> Floats:
    """Weight of the rows, at every stop, whose decision may change; those that move count."""
    low, high = decisions.unsafe(score, fall, rise)
    first, last = np.searchsorted(stops, low), np.searchsorted(stops, high, side="right")
    return covered(first, last, np.where((fall > 0) | (rise > 0), weight, 0.0), len(stops))


def _moves(
    certificate: Certificate, sample: Sample, shifts: Mapping[str, float]
) -> dict[str, Any]:
    """How far the prediction of every row can move under all shifts at once."""
    decisions = certificate.decisions()
    assert isinstance(decisions, Decisions)
    each = [_changes(certificate, decisions, sample.X[b], shifts) for b in _blocks(len(sample))]
    most = np.concatenate([np.maximum(*both) for both in each]) + 2 * decisions.error
    levels = np.quantile(most, [0.5, 0.95], method="inverted_cdf", weights=sample.weight)
    top = float(np.quantile(most, 0.995))
    found = histogram(most, {"all rows": np.ones(len(sample), bool)}, sample.weight, (0.0, top))
    return found | {"median": float(levels[0]), "most": float(levels[1])}


def _curves(
    certificate: Certificate,
    outcomes: Outcomes,
    sample: Sample,
    scores: Floats,
    stops: Floats,
    effects: Sequence[float],
) -> dict[str, Any]:
    """For columns of numbers: the bound, and what shifts of that column alone really do."""
    frozen = certificate.frozen
    numbers = [c for c, column in enumerate(frozen.inputs.columns) if isinstance(column, Number)]
    chosen = sorted(sorted(numbers, key=lambda c: -effects[c])[:MAX_SHIFTED])
    work = 2 * N_SHIFTS * max(len(chosen), 1) * frozen.n_parameters  # for a row
    rows = _spaced(len(sample), min(max(int(_MAX_WORK / work), 1000), _MAX_ROWS))
    some = _Shifted(
        certificate, outcomes, sample.X[rows], scores[rows], sample.weight[rows], stops
    )
    names = {frozen.inputs.columns[c].name: frozen.inputs.places[c] for c in chosen}
    spreads = {name: _spread(_values(certificate, sample, name), 0.25) for name in names}
    spreads = {name: spread for name, spread in spreads.items() if spread > 0}
    return {"n": len(rows), "curves": some.curves(spreads, names)}


class _Shifted:
    """Some rows of a table, and what happens to them when one column is shifted."""

    def __init__(
        self,
        certificate: Certificate,
        outcomes: Outcomes,
        X: Floats,
        scores: Floats,
        weight: Floats,
        stops: Floats,
    ) -> None:
        self.certificate, self.outcomes = certificate, outcomes
        self.X, self.scores, self.weight, self.stops = X, scores, weight, stops

    def curves(
        self, spreads: Mapping[str, float], places: Mapping[str, int]
    ) -> list[dict[str, Any]]:
        bounds = self._bounds(spreads, places)
        found = []
        for name, spread in spreads.items():
            deltas = np.linspace(0.0, spread, N_SHIFTS)[1:]
            moved = {"up": deltas, "down": -deltas}
            measured = {
                side: [self._measured({name: (delta, delta)}) for delta in each]
                for side, each in moved.items()
            }
            found.append({"feature": name, "delta": deltas.tolist(), "bound": bounds[name]})
            found[-1] |= measured
        return found

    def _bounds(
        self, spreads: Mapping[str, float], places: Mapping[str, int]
    ) -> dict[str, list[list[float]]]:
        """For every column and shift a bound for every stop; changes of all columns at once."""
        bounds: dict[str, list[list[float]]] = {name: [] for name in spreads}
        decisions = self.certificate.decisions()
        if isinstance(decisions, Contest):
            radius = decisions.radius(self.X, self.scores)
        for step in range(1, N_SHIFTS):
            shifts = {name: spread * step / (N_SHIFTS - 1) for name, spread in spreads.items()}
            if isinstance(decisions, Decisions):
                low, high = _moved(self.certificate, self.X, shifts)
                fall, rise = decisions.changes(self.X, low, high)
            for name, shift in shifts.items():
                i = places[name]
                if isinstance(decisions, Decisions):
                    bounds[name].append(self._bound(decisions, fall[:, i], rise[:, i]))
                else:
                    reach = np.minimum(radius.down[:, i], radius.up[:, i])
                    bounds[name].append([self._share(reach <= shift)])
        return bounds

    def _bound(self, decisions: Decisions, fall: Floats, rise: Floats) -> list[float]:
        if self.outcomes.kind == "values":
            return [float(np.max(np.maximum(fall, rise))) + 2 * decisions.error]
        lost = _uncertified(decisions, self.scores, fall, rise, self.weight, self.stops)
        return [_upward(share) for share in lost / self.weight.sum()]

    def _measured(self, shift: Mapping[str, tuple[float, float]]) -> list[float]:
        """Flips at every stop when all rows move by as much, or the largest change of a value."""
        inputs = self.certificate.frozen.inputs
        amounts = np.array([shift.get(name, (0.0, 0.0))[0] for name in inputs.names])
        after = self.certificate.frozen.score_features(inputs.shift(self.X, amounts)).astype(float)
        if self.outcomes.kind == "values":
            return [float(np.max(np.abs(after - self.scores)))]
        if self.outcomes.kind == "classes":
            return [self._share(self.outcomes.decide(after) != self.outcomes.decide(self.scores))]
        low, high = np.minimum(self.scores, after), np.maximum(self.scores, after)
        flips = crossed(low, high, self.weight, self.stops) / self.weight.sum()
        return [float(f"{share:.6g}") for share in flips]

    def _share(self, flags: Any) -> float:
        return float(self.weight[flags].sum() / self.weight.sum())


def _values(certificate: Certificate, sample: Sample, name: str) -> Floats:
    return np.asarray(sample.X[:, certificate.frozen.inputs.encoded.index(name)])


def _spaced(n_rows: int, most: int) -> Any:
    """Numbers of all rows, or of as many as are wanted, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int))


def _spread(values: Floats, share: float) -> float:
    """A round number near a share of the standard deviation of most rows."""
    low, high = np.quantile(values, [0.005, 0.995])
    return float(f"{share * float(np.std(np.clip(values, low, high))):.1g}")


def _upward(share: float) -> float:
    """Six digits, not less than the share itself."""
    short = float(f"{share:.6g}")
    return short if short >= share else float(digits_up(share, 6))
