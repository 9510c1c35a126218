"""Robustness of a table: certified radii, and flips of decisions when one feature is shifted."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.certificate.certify import Certificate
from isotone.certificate.robustness import Radius
from isotone.inputs.columns import Number
from isotone.report.curves import histogram
from isotone.report.outcomes import Outcomes
from isotone.report.sample import Sample
from isotone.typing import Floats

N_SHIFTS = 11
_MAX_WORK = 1e11  # multiplications for the shifts of all features, some ten seconds
_BLOCK = 65536  # rows at a time


def robustness(
    certificate: Certificate, outcomes: Outcomes, sample: Sample, scores: Floats
) -> tuple[dict[str, Any] | None, Floats | None]:
    """Panels about radii and shifts, and the radius of every row; None without decisions."""
    if outcomes.decide(scores) is None:
        return None, None
    radius = _radius(certificate, outcomes, sample.X)
    return {
        "radii": _radii(outcomes, sample, radius.scaled),
        "shifts": _shifts(certificate, outcomes, sample, radius),
    }, radius.scaled


def _radius(certificate: Certificate, outcomes: Outcomes, X: Floats) -> Radius:
    parts = [
        certificate.radius_of_features(X[start : start + _BLOCK], outcomes.threshold or 0.0)
        for start in range(0, len(X), _BLOCK)
    ]
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


def _shifts(
    certificate: Certificate, outcomes: Outcomes, sample: Sample, radius: Radius
) -> dict[str, Any]:
    """For every feature that is a number: bound and measured flips against the shift.

    A row whose feature may move by its radius cannot flip under a smaller shift, so the share of
    rows with radius at most δ bounds the share of flips.
    """
    features = _numeric(certificate)
    work = 2 * N_SHIFTS * len(features) * certificate.frozen.n_parameters  # for a row
    rows = _spaced(len(sample), max(int(_MAX_WORK / max(work, 1)), 1000))
    X, weight, curves = sample.X[rows], sample.weight[rows], []
    for i in features:
        spread = _spread(sample.X[:, i])
        if spread == 0:
            continue
        deltas = np.linspace(0.0, spread, N_SHIFTS)
        reach = np.minimum(radius.down[rows, i], radius.up[rows, i])
        curves.append(
            {
                "feature": certificate.frozen.inputs.encoded[i],
                "delta": deltas.tolist(),
                "bound": [_share(reach <= delta, weight) if delta else 0.0 for delta in deltas],
                "up": _flips(certificate, outcomes, X, weight, i, deltas),
                "down": _flips(certificate, outcomes, X, weight, i, -deltas),
            }
        )
    return {"n": len(rows), "curves": curves}


def _numeric(certificate: Certificate) -> list[int]:
    """Features that are columns of numbers."""
    inputs = certificate.frozen.inputs
    return [inputs.encoded.index(c.name) for c in inputs.columns if isinstance(c, Number)]


def _spaced(n_rows: int, most: int) -> Any:
    """Numbers of all rows, or of as many as are wanted, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int))


def _flips(
    certificate: Certificate,
    outcomes: Outcomes,
    X: Floats,
    weight: Floats,
    feature: int,
    deltas: Floats,
) -> list[float]:
    before, shares = outcomes.decide(certificate.frozen.score_features(X)), []
    for delta in deltas:
        moved = X.copy()
        moved[:, feature] += delta
        after = outcomes.decide(certificate.frozen.score_features(moved))
        shares.append(_share(before != after, weight))
    return shares


def _share(flags: Any, weight: Floats) -> float:
    return float(weight[flags].sum() / weight.sum())


def _spread(values: Floats) -> float:
    """A round number near a quarter of the standard deviation of most rows."""
    low, high = np.quantile(values, [0.005, 0.995])
    spread = 0.25 * float(np.std(np.clip(values, low, high)))
    return float(f"{spread:.1g}")
