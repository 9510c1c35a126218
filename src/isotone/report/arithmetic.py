"""The numbers of a network and of its certificate, as the scripts of the page take them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isotone.certificate.certify import Certificate
from isotone.certificate.robustness import Decisions
from isotone.export.json import to_dict
from isotone.report.verdict import keeps


def describe_network(certificate: Certificate) -> dict[str, Any]:
    """Every number that decides a score, and the slopes and errors that are certified.

    Floats are written with the shortest decimal that reads back to the same double.
    """
    frozen = certificate.frozen
    data = to_dict(frozen)
    names = "features", "outputs", "precision", "scaling", "clip", "grid", "steps", "residual"
    slopes: list[list[list[float]]] = [[] for _ in range(frozen.n_outputs)]
    for slope in certificate.slopes:
        slopes[slope.output].append([slope.scaled.low, slope.scaled.high])
    return {name: data[name] for name in names} | {
        "fingerprint": certificate.fingerprint,
        "directions": _kept_directions(certificate),
        "declared": frozen.monotonic_cst.tolist(),
        "slopes": slopes,
        "errors": [
            error if math.isfinite(error) else None for error in certificate.rounding_errors
        ],
    }


def _kept_directions(certificate: Certificate) -> list[list[int]]:
    """Declared directions that are proved, (n_outputs, n_features); 0 for all others."""
    frozen = certificate.frozen
    directions = np.zeros((frozen.n_outputs, frozen.n_features), int)
    for found in certificate.verdicts:
        if keeps(found):
            directions[found.output, frozen.features.index(found.feature)] = found.direction
    rows: list[list[int]] = directions.tolist()
    return rows


def describe_decision(certificate: Certificate, threshold: float | None) -> dict[str, Any] | None:
    """What `Decisions.radius` needs: one threshold, or every pair of classes."""
    frozen = certificate.frozen
    if frozen.of_classes:
        rivals = [
            {str(other): _describe(each) for other, each in certificate.rivals(k).items()}
            for k in range(frozen.n_outputs)
        ]
        return {"kind": "classes", "rivals": rivals}
    if threshold is None:
        return None
    decisions = certificate.decisions(threshold)
    assert isinstance(decisions, Decisions)
    return {"kind": "threshold", "threshold": threshold, "decisions": _describe(decisions)}


def _describe(decisions: Decisions) -> dict[str, Any]:
    return {
        "fall": decisions.fall.tolist(),
        "rise": decisions.rise.tolist(),
        "exact": decisions.exact.tolist(),
        "error": decisions.error if math.isfinite(decisions.error) else None,
    }
