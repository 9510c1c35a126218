"""Presets: rows to begin with, the most extreme ones and some of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.report.outcomes import Outcomes
from isotone.report.sample import Sample
from isotone.typing import Floats

_MAX_CLASSES = 8
_SEED = 0


def extreme_rows(
    frozen: FrozenNetwork,
    outcomes: Outcomes,
    sample: Sample,
    scores: Floats,
    radii: Floats | None,
) -> list[dict[str, Any]]:
    """The most extreme rows, by name."""
    found = _extremes(frozen, outcomes, sample, scores)
    if radii is not None and np.isfinite(radii).any():
        found["most robust decision"] = int(np.where(np.isfinite(radii), radii, -1).argmax())
    numbers = sample.numbers.tolist()
    return [
        {"name": name, "number": numbers[row], "row": sample.X[row].tolist()}
        for name, row in found.items()
    ]


def _extremes(
    frozen: FrozenNetwork, outcomes: Outcomes, sample: Sample, scores: Floats
) -> dict[str, int]:
    if outcomes.kind == "classes":
        probability = frozen.to_probability(scores)
        top = np.sort(scores, axis=1)
        named = {
            f"surest of {outcomes.name(k)}": int(probability[:, k].argmax())
            for k in range(min(len(outcomes.classes), _MAX_CLASSES))
        }
        return named | {"closest decision": int((top[:, -1] - top[:, -2]).argmin())}
    if scores.ndim == 2:
        return {
            f"{word} {name}": int(pick(scores[:, k]))
            for k, name in enumerate(outcomes.outputs[:_MAX_CLASSES])
            for word, pick in (("lowest", np.argmin), ("highest", np.argmax))
        }
    found = {"lowest score": int(scores.argmin()), "highest score": int(scores.argmax())}
    if outcomes.threshold is not None:
        found["closest decision"] = int(np.abs(scores - outcomes.threshold).argmin())
    elif sample.y is not None:
        found["worst prediction"] = int(np.abs(scores - sample.y).argmax())
    return found


def embedded_rows(sample: Sample, max_rows: int) -> dict[str, Any]:
    """Rows that the file holds: all, or as many drawn at random, the same ones every time."""
    n = len(sample)
    rows = np.arange(n)
    if n > max_rows:
        rows = np.sort(np.random.default_rng(_SEED).choice(n, max_rows, replace=False))
    return {
        "number": sample.numbers[rows].tolist(),
        "columns": sample.X[rows].T.tolist(),
        "truth": None if sample.y is None else sample.y[rows].tolist(),
    }
