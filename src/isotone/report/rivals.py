"""Rivals: another model beside ours, on the same rows and, where it can run in the page, sliders.

A rival is a model file, or a column of the table that holds the scores of any other model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotone.certificate.certify import certify
from isotone.frozen.loading import load
from isotone.frozen.network import FrozenNetwork
from isotone.report.numbers import describe_network
from isotone.report.outcomes import Outcomes
from isotone.report.table.curves import Binned, ranking
from isotone.report.table.sample import Sample
from isotone.report.table.statistics import bins_of, metrics_of
from isotone.typing import Bools, Floats

MAX_SWAPS = 200  # rows that change their decision, by number
_MAX_COLUMNS = 60
_MODEL = "model.isotone"  # as `isotone train` calls every model
_PLAIN = {"against": "the other model", "challenger": "the challenger"}


@dataclass(frozen=True, eq=False)
class Rival:
    """Another model by its name, itself if it is a frozen network, and what it is for.

    Parameters
    ----------
    role : "against" to be broken on the sliders, "challenger" to be compared row by row
    column : of the table, with its scores, if there is no network
    """

    name: str
    role: str
    frozen: FrozenNetwork | None = None
    column: str | None = None

    def describe(
        self,
        frozen: FrozenNetwork,
        outcomes: Outcomes,
        sample: Sample | None,
        scores: Floats | None,
        embed_rows: int,
    ) -> dict[str, Any]:
        """What the page shows of it."""
        found: dict[str, Any] = {"name": self.name, "role": self.role, "network": None}
        if self.frozen is not None:
            _refuse_other_outputs(frozen, self.frozen, self.name)
            if _same_columns(frozen, self.frozen):
                place = frozen.inputs.encoded.index
                found["network"] = describe_network(certify(self.frozen))
                found["places"] = [place(name) for name in self.frozen.inputs.encoded]
        if sample is None or scores is None:
            self._refuse_column()
            return found
        theirs = self._scores(frozen, outcomes, sample)
        return found | _compare(frozen, outcomes, sample, scores, theirs, self, embed_rows)

    def _refuse_column(self) -> None:
        if self.column is not None:
            raise ValueError(
                f"`{self.column}` is not a model file, and without a table it cannot be a column "
                "of scores; give the path of an .isotone file, or a table"
            )

    def _scores(self, frozen: FrozenNetwork, outcomes: Outcomes, sample: Sample) -> Floats:
        if self.column is not None:
            return _column(sample, self.column, outcomes)
        assert self.frozen is not None
        if not _same_columns(frozen, self.frozen):
            raise ValueError(
                f"{self.name!r} takes other columns than the model of the report, or encodes them "
                "differently; train both on the same columns, or give its scores as a column"
            )
        places = [frozen.inputs.encoded.index(name) for name in self.frozen.inputs.encoded]
        return self.frozen.score_features(sample.X[:, places]).astype(float)


def rival_of(given: FrozenNetwork | str | Path, role: str) -> Rival:
    """A network as it is, a model file by its name, and anything else as a column."""
    if isinstance(given, FrozenNetwork):
        return Rival(_PLAIN[role], role, frozen=given)
    path = Path(given)
    if path.is_file():
        name = _PLAIN[role] if path.name == _MODEL else path.name
        return Rival(name, role, frozen=load(path))
    return Rival(str(given), role, column=str(given))


def _same_columns(ours: FrozenNetwork, theirs: FrozenNetwork) -> bool:
    """Whether every column of theirs is one of ours, encoded in the same way."""
    return all(column in ours.inputs.columns for column in theirs.inputs.columns)


def _refuse_other_outputs(ours: FrozenNetwork, theirs: FrozenNetwork, name: str) -> None:
    mine, other = ((frozen.outputs, frozen.n_outputs, frozen.classes) for frozen in (ours, theirs))
    if mine != other:
        raise ValueError(
            f"{name!r} has outputs {other} but the model of the report {mine}; both must predict "
            "the same: train them with the same target"
        )


def _column(sample: Sample, name: str, outcomes: Outcomes) -> Floats:
    """The scores in a column, as logits if they are probabilities."""
    values = sample.columns.get(name)
    if values is None or values.dtype.kind != "f" or not np.all(np.isfinite(values)):
        raise ValueError(
            f"`{name}` is neither a model file nor a column of finite numbers in the table; give "
            "the path of an .isotone file, or a column with the scores of another model"
        )
    if outcomes.kind == "classes":
        raise ValueError(
            f"the column {name!r} cannot hold the scores of {len(outcomes.classes)} classes; give "
            "a model file"
        )
    scores = np.asarray(values, dtype=float)
    if outcomes.has_probability and scores.min() >= 0 and scores.max() <= 1:
        p = np.clip(scores, 1e-12, 1 - 1e-12)
        return np.asarray(np.log(p / (1 - p)))
    return scores


def _compare(
    frozen: FrozenNetwork,
    outcomes: Outcomes,
    sample: Sample,
    ours: Floats,
    theirs: Floats,
    rival: Rival,
    embed_rows: int,
) -> dict[str, Any]:
    both = [_metrics(frozen, outcomes, sample, scores) for scores in (ours, theirs)]
    found: dict[str, Any] = {
        "metrics": [[name, value, both[1].get(name)] for name, value in both[0].items()],
        "means": _means(sample, ours, theirs) if ours.ndim == 1 else [],
        "swaps": None,
    }
    decided = [outcomes.decide(scores) for scores in (ours, theirs)]
    if decided[0] is None or decided[1] is None:
        return found
    swaps = decided[0] != decided[1]
    return found | {"swaps": _swaps(outcomes, sample, decided, swaps, ours, theirs, embed_rows)}


def _metrics(
    frozen: FrozenNetwork, outcomes: Outcomes, sample: Sample, scores: Floats
) -> dict[str, float | None]:
    probability = frozen.to_probability(scores) if outcomes.has_probability else None
    found = dict(metrics_of(outcomes, sample, scores, probability))
    y = sample.y
    if y is not None and outcomes.kind == "two classes" and 0 < y.mean() < 1:
        found = {"AUC": ranking(scores, y == 1, sample.weight)["area"]} | found
    return found


def _means(sample: Sample, ours: Floats, theirs: Floats) -> list[dict[str, Any]]:
    """Mean scores of both in bins of every column."""
    found = []
    for name, column in list(sample.columns.items())[:_MAX_COLUMNS]:
        index, bins = bins_of(column)
        curves = [
            {"name": title} | Binned.mean(index, scores, sample.weight, len(bins["at"])).to_dict()
            for title, scores in (("this model", ours), ("the other", theirs))
        ]
        found.append({"column": name} | bins | {"curves": curves})
    return found


def _swaps(
    outcomes: Outcomes,
    sample: Sample,
    decided: list[Any],
    swaps: Bools,
    ours: Floats,
    theirs: Floats,
    embed_rows: int,
) -> dict[str, Any]:
    """How often decisions differ, in which direction, who is right, where, and in which rows."""
    n, weight = len(outcomes.classes), sample.weight
    pairs = decided[0].astype(int) * n + decided[1].astype(int)
    table = np.bincount(pairs, weight, n * n).reshape(n, n)
    where = []
    for name, column in list(sample.columns.items())[:_MAX_COLUMNS]:
        index, bins = bins_of(column)
        share = Binned.mean(index, swaps.astype(float), weight, len(bins["at"]))
        curves = [{"name": "decisions that differ"} | share.to_dict()]
        where.append({"column": name} | bins | {"curves": curves})
    right = None
    if sample.y is not None:
        right = [float(weight[swaps & (each == sample.y)].sum()) for each in decided]
    rows = np.flatnonzero(swaps)[: min(MAX_SWAPS, embed_rows)]
    return {
        "table": table.tolist(),
        "right": right,
        "where": where,
        "n": int(swaps.sum()),
        "rows": [[int(sample.numbers[r]), int(decided[0][r]), int(decided[1][r])] for r in rows],
    }
