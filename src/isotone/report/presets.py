"""Presets: rows to begin with. Typical ones are medians of many rows; others are rows of a table,
and are in the file only if rows are to be embedded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.report.controls import start_row
from isotone.report.outcomes import Outcomes
from isotone.report.table.sample import Sample
from isotone.typing import Floats

MIN_GROUP = 20  # rows behind a median that the file holds
_MAX_CLASSES = 8
_MAX_GROUPS = 32
_SEED = 0


def typical_rows(
    frozen: FrozenNetwork, outcomes: Outcomes, sample: Sample, scores: Floats
) -> list[dict[str, Any]]:
    """Medians of every column, within classes and among the lowest and highest scores."""
    groups: dict[str, Any] = {}
    if sample.y is not None and outcomes.classes:
        for k in range(min(len(outcomes.classes), _MAX_CLASSES)):
            groups[f"median of {outcomes.name(k)}"] = sample.y == k
    if scores.ndim == 1:
        low, high = np.quantile(scores, [0.1, 0.9])
        groups["median of the lowest tenth of scores"] = scores <= low
        groups["median of the highest tenth of scores"] = scores >= high
    found = []
    for name, rows in groups.items():
        part = replace(sample, X=sample.X[rows], weight=sample.weight[rows])
        if len(part) >= MIN_GROUP and part.weight.any():
            found.append({"name": name, "number": None, "row": start_row(frozen, part)})
    return found


def background_rows(frozen: FrozenNetwork, sample: Sample, scores: Floats) -> list[list[float]]:
    """Medians of groups of about equally many rows with similar scores, to compare a row with.

    Of several outputs the first orders the rows. Fewer than two groups are none.
    """
    n_groups = min(len(sample) // MIN_GROUP, _MAX_GROUPS)
    if n_groups < 2:
        return []
    order = np.argsort(scores.reshape(len(sample), -1)[:, 0], kind="stable")
    groups = np.array_split(order, n_groups)
    parts = [replace(sample, X=sample.X[rows], weight=sample.weight[rows]) for rows in groups]
    return [start_row(frozen, part) for part in parts if part.weight.any()]


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
