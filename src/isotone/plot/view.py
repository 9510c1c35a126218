"""View: what is looked at, one output of a network from one point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.frozen.axes import usual_values
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats

Which = str | int
Point = Mapping[str, float] | Sequence[float] | Floats
Span = tuple[float, float]


@dataclass(frozen=True, eq=False)
class NetworkView:
    """What is looked at: one output of a network, from one point, with rows of data or none."""

    frozen: FrozenNetwork
    start: Floats
    table: Floats | None
    output: int
    probability: bool

    @classmethod
    def of(
        cls, frozen: FrozenNetwork, at: Point | None, X: Any, output: Which, probability: bool
    ) -> NetworkView:
        table = None if X is None else frozen.encode(X)
        start = _point(frozen, at, table)
        return cls(frozen, start, table, output_number(frozen, output), probability)

    def axis(self, i: int, span: Span | None, n: int) -> Floats:
        """Raw values of a feature: as given, over the data, or over what is usual for it."""
        if span is not None:
            ends = np.array(span, dtype=np.float64)
            if ends.shape != (2,) or not np.all(np.isfinite(ends)) or ends[0] >= ends[1]:
                raise ValueError(f"`span={span}` must be finite, (low, high) with low < high")
        else:
            rows = self.table
            if rows is None or len(rows) == 0 or np.ptp(rows[:, i]) == 0:
                rows = usual_values(self.frozen)
            ends = np.append(rows[:, i], self.start[i])
            if np.ptp(ends) == 0:  # a constant
                ends = ends[0] + np.array([-1.0, 1.0])
        space = np.linspace if kind_of_axis(self.frozen, i, ends) == "linear" else np.geomspace
        values: Floats = space(ends.min(), ends.max(), n)
        return values

    def rows(self, columns: Mapping[int, Floats]) -> Floats:
        """The point again and again, with other values in some columns."""
        rows = np.tile(self.start, (len(next(iter(columns.values()))), 1))
        for i, values in columns.items():
            rows[:, i] = values
        return rows

    def scores(self, rows: Floats) -> Floats:
        return scores_of(self.frozen, rows)

    def shown(self, scores: Floats) -> Floats:
        """What is drawn: the score of the output, or its probability."""
        if not self.probability:
            return scores[:, self.output]
        if self.frozen.n_outputs == 1:
            return self.frozen.to_probability(scores[:, 0])
        return self.frozen.to_probability(scores)[:, self.output]

    @property
    def label(self) -> str:
        frozen = self.frozen
        what = "probability" if self.probability else "score"
        if frozen.n_outputs > 1:
            return f"{what} of {frozen.output_names[self.output]}"
        return f"{what} of {frozen.classes[1]}" if frozen.classes else what


def feature_number(frozen: FrozenNetwork, feature: Which) -> int:
    return _place("feature", feature, frozen.inputs.encoded)


def two_features(frozen: FrozenNetwork, features: Any) -> tuple[int, int]:
    if isinstance(features, str) or len(features) != 2:
        raise ValueError(
            f"`features={features!r}` must name two features: one across and one upward"
        )
    i, j = (feature_number(frozen, feature) for feature in features)
    if i == j:
        raise ValueError(
            f"`features={features!r}` are the same; a heat map needs two, or use `response`"
        )
    return i, j


def output_number(frozen: FrozenNetwork, output: Which) -> int:
    return _place("output", output, frozen.output_names)


def _place(what: str, which: Any, names: Sequence[str]) -> int:
    """The number of a feature or output that is given by name or number."""
    if isinstance(which, str) and which in names:
        return list(names).index(which)
    if isinstance(which, int | np.integer) and 0 <= which < len(names):
        return int(which)
    raise ValueError(
        f"there is no {what} {which!r}; choose from {', '.join(map(repr, names))}, or a number "
        f"from 0 to {len(names) - 1}"
    )


def _point(frozen: FrozenNetwork, at: Point | None, table: Floats | None) -> Floats:
    """A whole row: what `at` says, and medians or centers for the rest."""
    names = frozen.inputs.encoded
    known = usual_values(frozen)[1:2] if table is None or len(table) == 0 else table
    start: Floats = np.median(known, axis=0)
    if isinstance(at, Mapping):
        for name, value in at.items():
            start[feature_number(frozen, name)] = value
    elif at is not None:
        start = np.asarray(at, dtype=np.float64)
    if start.shape != (len(names),) or not np.all(np.isfinite(start)):
        raise ValueError(
            f"`at={at!r:.100}` must be a row of {len(names)} finite numbers "
            f"({', '.join(names)}), or numbers by name"
        )
    return start


def kind_of_axis(frozen: FrozenNetwork, i: int, ends: Floats) -> str:
    """The kind of axis: logarithmic where the scaling is, over more than a decade."""
    scaling, k = frozen.scaling, frozen.inputs.firsts[i]
    by_ratio = scaling.log[k] and scaling.offset[k] == 0 and ends.min() > 0
    return "log" if by_ratio and ends.max() > 10.0 * ends.min() else "linear"


def scores_of(frozen: FrozenNetwork, rows: Floats) -> Floats:
    """Scores in float64, (n_rows, n_outputs)."""
    scores: Floats = (
        frozen.score_features(rows).astype(np.float64).reshape(len(rows), frozen.n_outputs)
    )
    return scores
