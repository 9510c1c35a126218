"""The record of a working point: a JSON file that says what was judged, how, and with what result.

It names the model by its fingerprint, the threshold and the rule, so that an export or a bundle
made from it is about the same decisions.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import isotone
from isotone.data.table import split_tree
from isotone.files.untrusted import open_regular, read_json
from isotone.frozen.network import FrozenNetwork
from isotone.trigger.curve import RateCurve
from isotone.trigger.efficiency import Efficiency
from isotone.trigger.judgement import Judgement
from isotone.trigger.shares import RateShares
from isotone.trigger.tistos import Overlap

RULE = ">="  # a candidate passes if score >= threshold
FORMAT = 1
_PIECE = 2**20


@dataclass(frozen=True)
class Point:
    """A threshold, and the fingerprint of the model that it was chosen for."""

    threshold: float
    fingerprint: str

    def check(self, frozen: FrozenNetwork) -> None:
        """Raise `ValueError` if the threshold was chosen for another model."""
        if self.fingerprint != frozen.fingerprint:
            raise ValueError(
                f"the threshold was chosen for the model {self.fingerprint[:12]}… but this one is "
                f"{frozen.fingerprint[:12]}…; scores of two models cannot be compared: run "
                "`isotone trigger` with this model"
            )


def to_dict(
    found: Judgement, frozen: FrozenNetwork, tables: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of the file."""
    return {
        "format": FORMAT,
        "isotone": isotone.__version__,
        "fingerprint": frozen.fingerprint,
        "rule": RULE,
        **vars(found.point),
        "settings": dict(settings),
        "tables": [describe_table(path) for path in tables],
        "rate_curve": curve_to_dict(found.curve),
        "groups": {name or "all": numbers(each) for name, each in found.groups.items()},
        "edges": None if found.edges is None else found.edges.tolist(),
        "curves": {name: numbers(each) for name, each in found.curves.items()},
        "rates": {name: _shares(each) for name, each in found.shares.items()},
        "overlaps": {name or "all": _overlap(each) for name, each in found.overlaps.items()},
    }


def _shares(found: RateShares) -> dict[str, Any]:
    content = {name: values.tolist() for name, values in vars(found).items()}
    return content | {"limit": [x if math.isfinite(x) else None for x in content["limit"]]}


def _overlap(found: Overlap) -> dict[str, Any]:
    known = np.isfinite(found.bias)
    pairs = list(zip(found.bias.tolist(), found.bias_error.tolist(), known, strict=True))
    return numbers(found.tis) | {
        "bias": [bias if is_known else None for bias, _, is_known in pairs],
        "bias_error": [error if is_known else None for _, error, is_known in pairs],
    }


def describe_table(path: str) -> dict[str, Any]:
    """Path, size and SHA-256 of a file; the path alone of what is not one."""
    file = split_tree(path)[0]
    if "://" in path or not file.is_file():
        return {"path": path}
    opened, size = open_regular(file)
    with opened:
        digest = hashlib.sha256()
        while piece := opened.read(_PIECE):
            digest.update(piece)
    return {"path": path, "bytes": size, "sha256": digest.hexdigest()}


def curve_to_dict(curve: RateCurve) -> dict[str, Any]:
    """Lists, one entry per point."""
    found = numbers(curve.efficiency)
    return {
        "max_rate": curve.max_rates.tolist(),
        "rate": found.pop("at"),
        "rate_error": curve.rate_errors.tolist(),
        "rate_limit": [point.rate_limit for point in curve.points],
        "threshold": curve.thresholds.tolist(),
        "n_passed": [point.n_passed for point in curve.points],
        **found,
    }


def numbers(found: Efficiency) -> dict[str, Any]:
    """Lists; null where there are no events, or no positive weight."""
    values = [value if np.isfinite(value) else None for value in found.value.tolist()]
    errors = [error if np.isfinite(error) else None for error in found.error.tolist()]
    return {
        "at": found.at.tolist(),
        "efficiency": values,
        "error": errors,
        "events": found.n.tolist(),
        "passed": found.n_passed.tolist(),
    }


def read_point(path: str | Path) -> Point:
    """The threshold of a file that `isotone trigger --out` wrote."""
    try:
        content = read_json(path)
    except ValueError as error:
        raise _refused(path, f"is not JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _refused(path, f"has no format {FORMAT}")
    threshold: Any = content.get("threshold")
    fingerprint = content.get("fingerprint")
    if type(threshold) not in (int, float) or not math.isfinite(threshold):
        raise _refused(path, f"has the threshold {threshold!r:.50}, which is not a number")
    if content.get("rule") != RULE:
        raise _refused(path, f"has the rule {content.get('rule')!r:.50} instead of {RULE!r}")
    if not isinstance(fingerprint, str):
        raise _refused(path, "names no model")
    return Point(float(threshold), fingerprint)


def _refused(path: str | Path, what: str) -> ValueError:
    return ValueError(
        f"{str(path)!r} {what}; it must be what `isotone trigger --out` wrote: run that again"
    )
