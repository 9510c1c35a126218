"""Summary: what a table looks like to a model, in a small file.

Distributions of every column, of the score and of its coordinates (`isotone.certificate`), missing
and unseen values, and decisions. Made in one pass, in memory that does not grow with the table. A
summary of the reference is enough to judge new rows; the reference itself is not needed again. It
holds no rows, but values of columns: treat it as the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import isotone
from isotone.certificate.certify import Certificate, certify
from isotone.certificate.coordinates import Coordinates
from isotone.certificate.robustness import Decisions
from isotone.data.table import open_table
from isotone.files import write_whole
from isotone.files.untrusted import read_json
from isotone.frozen.engine import Engine
from isotone.frozen.loading import check_network, describing
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import has_features
from isotone.inputs.columns import Category, Column
from isotone.monitoring.sketch import Sketch, Sketcher
from isotone.report.outcomes import threshold_of
from isotone.typing import Floats, Integers

FORMAT = 1
Unseen = Literal["missing", "skip"]


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """One column of the table.

    Parameters
    ----------
    sketch : of what is present: numbers, or ranks of ordered categories; None for categories
    counts : of every category, and of the others that are pooled; None if there is a sketch
    """

    name: str
    n_missing: int
    n_unseen: int
    sketch: Sketch | None
    counts: Integers | None


@dataclass(frozen=True, eq=False)
class TableSummary:
    """What a table looks like to a model.

    Parameters
    ----------
    fingerprint : of the model
    n_rows : of the table
    n_scored : of them have a score
    columns : in the order of the model
    scores : of every output, by its name
    coordinates : of every feature, how far it can move the score, by name; empty for several
        outputs
    threshold : a row is accepted if its score is at least this; None if nothing is decided so
    decided : how many rows are refused and accepted, or decided for each class; empty without
        decisions
    """

    fingerprint: str
    n_rows: int
    n_scored: int
    columns: tuple[ColumnSummary, ...]
    scores: Mapping[str, Sketch]
    coordinates: Mapping[str, Sketch]
    threshold: float | None
    decided: tuple[int, ...]

    def save(self, path: str | Path) -> None:
        """Write a JSON file; distributions are compressed to about 512 values each."""
        write_whole(path, json.dumps(self.to_dict(), allow_nan=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON content."""
        return {
            "format": FORMAT,
            "isotone": isotone.__version__,
            "fingerprint": self.fingerprint,
            "n_rows": self.n_rows,
            "n_scored": self.n_scored,
            "columns": [_column_to_dict(column) for column in self.columns],
            "scores": {name: each.to_dict() for name, each in self.scores.items()},
            "coordinates": {name: each.to_dict() for name, each in self.coordinates.items()},
            "threshold": self.threshold,
            "decided": list(self.decided),
        }


def summarize(
    frozen: FrozenNetwork,
    table: Any,
    *,
    threshold: float | None = None,
    on_unseen: Unseen = "skip",
) -> TableSummary:
    """Look at a table once.

    Parameters
    ----------
    table : path of a CSV, Parquet or ROOT file, or rows as for `FrozenNetwork.score`
    threshold : of decisions, for one output; 0 for two classes by default
    on_unseen : rows with values never seen in training have no score ("skip"), or are scored as if
        these were "missing"
    """
    check_network("`summarize` looks with", frozen)
    looker = _Looker(certify(frozen), threshold_of(frozen, threshold), on_unseen)
    for raw in _batches(frozen, table):
        looker.add(raw)
    if not looker.n_rows:
        raise ValueError("the table has no rows; give one that has some")
    return looker.summary()


def read_summary(path: str | Path, frozen: FrozenNetwork) -> TableSummary:
    """Read what `TableSummary.save` wrote, for this model."""
    content = read_json(path)
    advice = "; it must be what `isotone monitor --save-reference` wrote: run that again"
    with describing(f"{str(path)!r} is not a summary", advice):
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r:.50} instead of {FORMAT}")
        found = _from_dict(content)
        names = tuple(column.name for column in found.columns)
        if found.fingerprint == frozen.fingerprint and names != frozen.inputs.names:
            raise ValueError("its columns are not those of the model")
    if found.fingerprint != frozen.fingerprint:
        raise ValueError(
            f"{str(path)!r} is a summary for the model {found.fingerprint[:12]}… but this one is "
            f"{frozen.fingerprint[:12]}…; scores of two models cannot be compared: summarize the "
            "reference again"
        )
    return found


def coordinates_of(certificate: Certificate) -> Coordinates | None:
    """How far every feature can move the score; None for several outputs."""
    if len(certificate.constants) > 1:
        return None
    decisions = certificate.decisions()
    assert isinstance(decisions, Decisions)
    return Coordinates(decisions.copies, np.maximum(decisions.fall, decisions.rise))


def _batches(frozen: FrozenNetwork, table: Any) -> Iterator[list[Any]]:
    """Raw columns of some rows at a time."""
    if not isinstance(table, str | Path):
        yield from frozen.inputs.batches(table)
        return
    opened, names = open_table(table), list(frozen.inputs.names)
    opened.require(names)
    for batch in opened.batches(names):
        yield [batch.column(name) for name in names]


class _Looker:
    """Counts everything, batch by batch."""

    def __init__(
        self, certificate: Certificate, threshold: float | None, on_unseen: Unseen
    ) -> None:
        self.frozen = frozen = certificate.frozen
        self.as_missing, self.threshold = on_unseen == "missing", threshold
        self.engine = Engine(frozen, on_unseen=on_unseen)
        self.coordinates = coordinates_of(certificate)
        self.columns = [_ColumnLooker(column) for column in frozen.inputs.columns]
        self.scores = [Sketcher() for _ in range(frozen.n_outputs)]
        n_moved = 0 if self.coordinates is None else len(frozen.inputs.encoded)
        self.moved = [Sketcher() for _ in range(n_moved)]
        self.n_rows = self.n_scored = 0
        n_classes = frozen.n_outputs if frozen.of_classes else 2 * (threshold is not None)
        self.decided = np.zeros(n_classes, dtype=np.int64)

    def add(self, raw: list[Any]) -> None:
        inputs = self.frozen.inputs
        for looker, codes in zip(self.columns, inputs.code(raw), strict=True):
            looker.add(np.asarray(codes, dtype=float))
        self.n_rows += len(raw[0])
        scores = self.engine.score_batch(raw, self.n_rows).astype(float)
        self._add_scores(scores.reshape(len(raw[0]), self.frozen.n_outputs))
        if self.coordinates is None:
            return
        features = np.column_stack(
            [np.asarray(f, float) for f in inputs.complete(inputs.read(raw), self.as_missing)]
        )
        found = self.coordinates.transform(features[has_features(features)])
        for stream, along in zip(self.moved, found.T, strict=True):
            stream.add(along)

    def _add_scores(self, scores: Floats) -> None:
        scores = scores[np.isfinite(scores).all(axis=1)]
        self.n_scored += len(scores)
        for stream, output in zip(self.scores, scores.T, strict=True):
            stream.add(output)
        if len(self.decided):
            limit = self.threshold
            chosen = scores.argmax(axis=1) if limit is None else scores[:, 0] >= limit
            self.decided += np.bincount(chosen.astype(np.int64), minlength=len(self.decided))

    def summary(self) -> TableSummary:
        frozen = self.frozen
        outputs = zip(frozen.names_of("score"), self.scores, strict=True)
        features = zip(frozen.inputs.encoded, self.moved, strict=False)  # none if several outputs
        return TableSummary(
            frozen.fingerprint,
            self.n_rows,
            self.n_scored,
            tuple(looker.summary() for looker in self.columns),
            {name: stream.sketch() for name, stream in outputs},
            {name: stream.sketch() for name, stream in features},
            self.threshold,
            tuple(self.decided.tolist()),
        )


class _ColumnLooker:
    """Counts one column."""

    def __init__(self, column: Column) -> None:
        self.column, self.n_missing, self.n_unseen = column, 0, 0
        self.stream = None if isinstance(column, Category) else Sketcher()
        n = len(column.features) if isinstance(column, Category) else 0
        self.counts = np.zeros(n, dtype=np.int64)

    def add(self, codes: Floats) -> None:
        known = codes[np.isfinite(codes)]
        n_missing = int(np.isnan(codes).sum())
        self.n_missing += n_missing
        self.n_unseen += len(codes) - len(known) - n_missing
        if self.stream is None:
            self.counts += np.bincount(known.astype(np.int64), minlength=len(self.counts))
        else:
            self.stream.add(known)

    def summary(self) -> ColumnSummary:
        name, missing, unseen = self.column.name, self.n_missing, self.n_unseen
        if self.stream is None:
            return ColumnSummary(name, missing, unseen, None, self.counts)
        return ColumnSummary(name, missing, unseen, self.stream.sketch(), None)


def _column_to_dict(column: ColumnSummary) -> dict[str, Any]:
    return {
        "name": column.name,
        "n_missing": column.n_missing,
        "n_unseen": column.n_unseen,
        "sketch": None if column.sketch is None else column.sketch.to_dict(),
        "counts": None if column.counts is None else column.counts.tolist(),
    }


def _from_dict(content: Any) -> TableSummary:
    return TableSummary(
        str(content["fingerprint"]),
        _count(content["n_rows"]),
        _count(content["n_scored"]),
        tuple(_column_from_dict(entry) for entry in content["columns"]),
        {name: Sketch.from_dict(each) for name, each in content["scores"].items()},
        {name: Sketch.from_dict(each) for name, each in content["coordinates"].items()},
        None if content["threshold"] is None else float(content["threshold"]),
        tuple(_count(n) for n in content["decided"]),
    )


def _column_from_dict(entry: Any) -> ColumnSummary:
    sketch, counts = entry["sketch"], entry["counts"]
    if (sketch is None) == (counts is None):
        raise ValueError("a column must have a sketch or counts")
    return ColumnSummary(
        str(entry["name"]),
        _count(entry["n_missing"]),
        _count(entry["n_unseen"]),
        None if sketch is None else Sketch.from_dict(sketch),
        None if counts is None else np.array([_count(n) for n in counts], dtype=np.int64),
    )


def _count(n: Any) -> int:
    if type(n) is not int or not 0 <= n < 2**53:
        raise ValueError(f"{n!r:.50} is not a count")
    return n
