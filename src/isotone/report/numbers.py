"""The numbers of a network and of its certificate, as the scripts of the page take them."""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import numpy as np

from isotone.certificate.certify import Certificate
from isotone.certificate.robustness import Decisions
from isotone.certificate.verdicts import kept_directions
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import arrays_of, describe
from isotone.typing import Reals

_FIRST = r"(0\.\d+\.)*0\.weight"  # arrays of the steps that take the inputs of the network


def describe_network(certificate: Certificate) -> dict[str, Any]:
    """Every number that decides a score, and the slopes and errors that are certified."""
    frozen, copies = certificate.frozen, certificate.frozen.copies
    slopes: list[list[list[float]]] = [[] for _ in range(frozen.n_outputs)]
    for slope in certificate.slopes:
        slopes[slope.output].append([slope.scaled.low, slope.scaled.high])
    plain = {name: getattr(frozen, name) for name in ("precision", "clip", "grid", "fingerprint")}
    return plain | {
        "features": list(frozen.inputs.encoded),
        "scaling": frozen.scaling.to_dict(),
        "counts": frozen.inputs.counts.tolist(),
        "ends": None if copies is None else [ends.tolist() for ends in copies.ends],
        "steps": describe(frozen.steps, numbers=False),
        "arrays": {name: _text(array, frozen) for name, array in _arrays(frozen).items()},
        "directions": kept_directions(frozen, certificate.verdicts).tolist(),
        "declared": frozen.directions.tolist(),
        "slopes": slopes,
        "errors": [
            error if math.isfinite(error) else None for error in certificate.rounding_errors
        ],
    }


def _arrays(frozen: FrozenNetwork) -> dict[str, Reals]:
    """By the names of model files; what is looked up for copies as the engine has it."""
    arrays = arrays_of(frozen.steps) | {"residual": frozen.residual.astype(frozen.precision)}
    if frozen.copies is None:
        return arrays
    looked_up = [n for n in arrays if n == "residual" or re.fullmatch(_FIRST, n)]
    return arrays | {name: frozen.copies.interleaved(arrays[name]) for name in looked_up}


def _text(array: Reals, frozen: FrozenNetwork) -> str:
    """All bits of numbers of the network's precision, little-endian, in base64."""
    kind = np.dtype(frozen.precision).newbyteorder("<")
    return base64.b64encode(array.astype(kind).tobytes()).decode()


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
    """Slopes along copies, and errors."""
    return {
        "fall": decisions.fall.tolist(),
        "rise": decisions.rise.tolist(),
        "exact": decisions.exact.tolist(),
        "error": decisions.error if math.isfinite(decisions.error) else None,
    }
