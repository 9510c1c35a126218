"""Tables of reasons: one table in pieces, and another with what was found of every row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from isotone.data.table import Table, split_tree, write_table
from isotone.explanation.points import Points
from isotone.explanation.reasons import Explainer, Reasons, Side
from isotone.explanation.recourse.changes import AllowedChange
from isotone.explanation.recourse.search import Recourse, find_recourse
from isotone.explanation.texts import Texts
from isotone.files import refuse_overwriting
from isotone.frozen.scoring import kept_schema, while_unchanged
from isotone.inputs.cells import arrow_of, labels
from isotone.inputs.chain import Policy, has_features
from isotone.inputs.columns import Number
from isotone.typing import Floats, Indices

_ROWS = 8192


@dataclass
class ExplainedRows:
    """What was found in all rows: numbers of them, and sums of sizes of contributions."""

    n_columns: int
    n_rows: int = 0
    n_explained: int = 0
    n_needed: int = 0
    n_turned: int = 0
    n_impossible: int = 0
    sizes: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = np.zeros(self.n_columns)

    def add(self, reasons: Reasons, recourse: Recourse | None) -> None:
        known = has_features(reasons.contributions)
        self.n_rows += len(known)
        self.n_explained += int(known.sum())
        self.sizes += np.abs(reasons.contributions[known]).sum(axis=0)
        if recourse is not None:
            needed = recourse.needed
            self.n_needed += int(needed.sum())
            self.n_turned += int((needed & recourse.found).sum())
            self.n_impossible += int((needed & recourse.impossible).sum())


@dataclass(frozen=True, eq=False)
class Explaining:
    """What is written for every row.

    Parameters
    ----------
    explainer : finds the contributions
    keep : columns of the table to copy
    top, side : how many reasons are named, and whether those that raise, lower, or both
    texts : if the named reasons are to have sentences
    points : if contributions are to be in points
    changes : if recourse is searched for; with its threshold and the wanted decision
    on_unseen : what to do with rows that contain values never seen in training
    """

    explainer: Explainer
    keep: tuple[str, ...] = ()
    top: int = 0
    side: Side = "both"
    texts: Texts | None = None
    points: Points | None = None
    changes: Mapping[str, AllowedChange] | None = None
    threshold: float = 0.0
    to: Any = "accept"
    on_unseen: Policy = "error"

    def write(
        self,
        table: Table,
        target: str,
        rows: Collection[int] | None = None,
        on_rows: Callable[[int], object] = lambda n: None,
    ) -> ExplainedRows:
        """Explain rows of a table, by default all, and write what was found.

        Memory does not grow with the table, and the file appears whole or not at all.

        Parameters
        ----------
        rows : their numbers, counted from 0; the file has them in the order of the table
        on_rows : called with the number of rows of every piece that is done
        """
        refuse_overwriting([split_tree(target)[0]], table.local_files)
        table.require(self.explainer.frozen.inputs.names)
        kept = kept_schema(table, self.keep, target)
        nothing = self._columns([], np.empty(0, np.int64), self._nothing())
        for name in kept.names:
            if name in nothing:
                raise ValueError(
                    f"`--keep {name}` has the name of an output column; they must differ: rename "
                    "the column of the table"
                )
        schema = pa.schema([*kept, *((name, array.type) for name, array in nothing.items())])
        found = ExplainedRows(len(self.explainer.frozen.inputs.columns))
        pieces = self._pieces(table, kept, schema, _Wanted.of(rows), found, on_rows)
        write_table(target, schema, while_unchanged(table.local_files, pieces))
        return found

    def _nothing(self) -> tuple[Reasons, Recourse | None]:
        return self._explain(np.empty((0, len(self.explainer.frozen.inputs.encoded))))

    def _explain(self, features: Floats) -> tuple[Reasons, Recourse | None]:
        reasons = self.explainer.explain_features(features, self.on_unseen)
        recourse = None
        if self.changes:
            recourse = find_recourse(
                self.explainer.certificate,
                features,
                self.changes,
                threshold=self.threshold,
                to=self.to,
                encoded=True,
            )
        return reasons if self.points is None else reasons.in_points(self.points), recourse

    def _pieces(
        self,
        table: Table,
        kept: pa.Schema,
        schema: pa.Schema,
        wanted: _Wanted,
        found: ExplainedRows,
        on_rows: Callable[[int], object],
    ) -> Iterator[pa.RecordBatch]:
        first_row, inputs = 0, self.explainer.frozen.inputs
        for whole in table.batches([*kept.names, *inputs.names], _ROWS):
            numbers = wanted.among(first_row, whole.num_rows)
            if len(numbers):
                batch = whole.take(pa.array(numbers - first_row))
                features = _encoded(self.explainer, batch, numbers, self.on_unseen)
                both = self._explain(features)
                found.add(*both)
                columns = [batch.column(entry.name).cast(entry.type) for entry in kept]
                raw = [batch.column(name) for name in inputs.names]
                arrays = [*columns, *self._columns(raw, numbers, both).values()]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            first_row += whole.num_rows
            on_rows(whole.num_rows)
            if wanted.is_done(first_row):
                return
        wanted.check(first_row)

    def _columns(
        self, raw: list[Any], numbers: Indices, found: tuple[Reasons, Recourse | None]
    ) -> dict[str, pa.Array]:
        """Output columns by name."""
        reasons, recourse = found
        columns = {
            "row": pa.array(numbers, pa.int64()),
            reasons.output.replace(" ", "_"): _numbers(reasons.score),
            "baseline": _numbers(np.full(len(numbers), reasons.baseline)),
        }
        for what, values in (("contribution", reasons.contributions), ("error", reasons.errors)):
            if what == "contribution" or not self.explainer.is_exact:
                columns |= _by_column(what, reasons.columns, values)
        signs = reasons.proved.signs
        for name, own in zip(reasons.columns, signs.T, strict=True):
            columns[f"proved({name})"] = pa.array(own, pa.int8())
        columns |= self._named(raw, reasons)
        return columns if recourse is None else columns | _of_recourse(recourse)

    def _named(self, raw: list[Any], reasons: Reasons) -> dict[str, pa.Array]:
        """The names of the first reasons, and their sentences."""
        if not self.top:
            return {}
        ranked = reasons.ranked(self.top, self.side)
        names = np.array([*reasons.columns, None], dtype=object)
        sentences = None if self.texts is None else self._sentences(raw, reasons, ranked)
        columns = {}
        for k in range(ranked.shape[1]):
            columns[f"reason_{k + 1}"] = pa.array(names[ranked[:, k]], pa.string())
            if sentences is not None:
                columns[f"text_{k + 1}"] = pa.array([row[k] for row in sentences], pa.string())
        return columns

    def _sentences(
        self, raw: list[Any], reasons: Reasons, ranked: Indices
    ) -> list[list[str | None]]:
        assert self.texts is not None
        cells = _cells(self.explainer, raw) if raw else []
        names, found = reasons.columns, reasons.contributions
        return [
            [
                None if c < 0 else self.texts.sentence(names[c], cells[c][i], float(found[i, c]))
                for c in row
            ]
            for i, row in enumerate(ranked.tolist())
        ]


@dataclass(frozen=True)
class _Wanted:
    """Which rows of a table are wanted: all, or these."""

    numbers: Indices | None

    @classmethod
    def of(cls, rows: Collection[int] | None) -> _Wanted:
        return cls(None if rows is None else np.unique(np.array(list(rows), np.int64)))

    def among(self, first: int, n: int) -> Indices:
        """Numbers of wanted rows from `first` on."""
        if self.numbers is None:
            return np.arange(first, first + n)
        return self.numbers[(self.numbers >= first) & (self.numbers < first + n)]

    def check(self, n_rows: int) -> None:
        """Raise `ValueError` if the table has fewer rows."""
        if self.numbers is not None:
            raise ValueError(
                f"`--rows` asks for row {int(self.numbers.max(initial=0))} (data rows, counted "
                f"from 0) but the table has {n_rows}; give smaller numbers"
            )

    def is_done(self, first: int) -> bool:
        return self.numbers is not None and not np.any(self.numbers >= first)


def _encoded(
    explainer: Explainer, batch: pa.RecordBatch, numbers: Indices, on_unseen: Policy
) -> Floats:
    """Features of some rows; an error names the row of the table."""
    inputs = explainer.frozen.inputs
    if on_unseen != "error":
        return inputs.encode(batch, on_unseen=on_unseen)
    features = inputs.encode(batch, on_unseen="skip")
    strange = ~has_features(features)
    if strange.any():
        row = int(strange.argmax())
        inputs.encode(batch.slice(row, 1), first_row=int(numbers[row]))
    return features


def _cells(explainer: Explainer, raw: list[Any]) -> list[list[Any]]:
    """Values of rows by column: numbers, or texts; None where they are missing."""
    inputs = explainer.frozen.inputs
    codes = inputs.code(raw)
    return [
        [None if np.isnan(value) else float(value) for value in own]
        if isinstance(column, Number)
        else labels(arrow_of(cells, column.name), column.name).to_pylist()
        for column, own, cells in zip(inputs.columns, codes, raw, strict=True)
    ]


def _by_column(what: str, names: tuple[str, ...], values: Floats) -> dict[str, pa.Array]:
    return {f"{what}({name})": _numbers(own) for name, own in zip(names, values.T, strict=True)}


def _numbers(values: Floats) -> pa.Array:
    """A column of numbers, empty where there is none."""
    return pa.array(values, pa.float64(), from_pandas=True)


def _of_recourse(recourse: Recourse) -> dict[str, pa.Array]:
    """What turning the decision costs, at least costs, and the values after it."""
    columns = {
        "recourse_cost": _numbers(recourse.cost),
        "recourse_bound": _numbers(recourse.bound),
    }
    for name, cells in recourse.changed().items():
        kind = pa.float64() if isinstance(recourse.inputs.column(name), Number) else pa.string()
        shown = [v if ok else None for v, ok in zip(cells, recourse.found, strict=True)]
        columns[f"recourse({name})"] = pa.array(shown, kind)
    return columns
