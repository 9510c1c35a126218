"""Candidates of a trigger: a table, scored, and grouped into events.

An event has one or several candidates and is judged by the best of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isotone.data.groups import check_key
from isotone.data.several import open_tables
from isotone.data.table import Table, numbers
from isotone.frozen.engine import Engine
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.cells import class_numbers, finite_or_blank, is_blank, labels
from isotone.inputs.chain import Policy
from isotone.trigger.working_point import best_scores
from isotone.typing import Bools, Floats, Indices, Integers

_NONE = "(none)"  # the label of a missing value


@dataclass(frozen=True, eq=False)
class Candidates:
    """Scored candidates, or, after `best`, events: one row each.

    Parameters
    ----------
    score : (n,); -∞ where there is none, so that it passes nowhere
    is_signal : (n,), the others count for the rate
    event : (n,), numbers; candidates of signal and of background never share one
    labels : kept columns of text, by name
    values : kept columns of numbers, by name; NaN where there is none
    weight : (n,), which may be negative; None if all count alike
    """

    score: Floats
    is_signal: Bools
    event: Integers
    labels: Mapping[str, NDArray[Any]]
    values: Mapping[str, Floats]
    weight: Floats | None = None

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: NDArray[Any]) -> Candidates:
        return Candidates(
            self.score[rows],
            self.is_signal[rows],
            self.event[rows],
            {name: column[rows] for name, column in self.labels.items()},
            {name: column[rows] for name, column in self.values.items()},
            None if self.weight is None else self.weight[rows],
        )

    @property
    def background(self) -> Candidates:
        return self[~self.is_signal]

    @property
    def signal(self) -> Candidates:
        return self[self.is_signal]

    def best(self, columns: Sequence[str]) -> Candidates:
        """One row for every event, with the largest score; all candidates of it weigh the same.

        Parameters
        ----------
        columns : which to keep; they must be the same in all candidates of an event
        """
        score, first = best_scores(self.score, self.event)
        labels = {name: self.labels[name] for name in columns if name in self.labels}
        values = {name: self.values[name] for name in columns if name in self.values}
        named = {f"column {name!r}": each for name, each in (labels | values).items()}
        weights = {} if self.weight is None else {"the column of weights": self.weight}
        self._check_same(first, named | weights)
        return replace(replace(self, labels=labels, values=values)[first], score=score)

    def _check_same(self, first: Indices, columns: Mapping[str, NDArray[Any]]) -> None:
        index = np.searchsorted(self.event[first], self.event)
        for name, column in columns.items():
            other = column[first][index]
            # NaN differs from itself, and is the same here
            differs = (column != other) & ((column == column) | (other == other))
            if differs.any():
                row = int(differs.argmax())
                raise ValueError(
                    f"{name} is {other[row]} and {column[row]} for two candidates of one "
                    "event; it must have one value per event: choose another column, name all "
                    "columns that identify an event, or keep only the candidates of the true decay"
                )


def read_candidates(
    frozen: FrozenNetwork,
    *paths: str,
    target: str | None = None,
    event: Sequence[str],
    keep_labels: Sequence[str] = (),
    keep_values: Sequence[str] = (),
    on_unseen: Policy = "error",
    signal: Sequence[str] = (),
    background: Sequence[str] = (),
    weights: str | None = None,
) -> Candidates:
    """Read tables of candidates and score them.

    Parameters
    ----------
    paths : CSV, Parquet or ROOT, as in `isotone.data.several.open_tables`; the candidates of an
        event may be in several
    target : a column of these with 0 for background, what counts for the rate, and 1 for signal
    event : the columns that tell events apart, such as run and event; background and signal may
        use the same numbers
    keep_labels, keep_values : columns to keep, as text or as numbers
    on_unseen : what a candidate with values never seen in training gets, see `isotone.Engine`; one
        without a score never passes: its score here is -∞
    signal, background : tables of signal alone, and of background alone, which need no target
    weights : a column of weights, which may be negative
    """
    if frozen.n_outputs != 1:
        raise ValueError(
            f"the model has {frozen.n_outputs} outputs; a trigger needs one score: train it on "
            "two classes"
        )
    names = event, keep_labels, keep_values, weights
    parts = []
    tables = _tables(paths, target, signal, background)
    for table, kind in tables:
        try:
            parts += _read(Engine(frozen, on_unseen=on_unseen), table, kind, *names)
        except ValueError as error:
            raise (
                ValueError(f"in {table.path!r}: {error}") if len(tables) > 1 else error
            ) from error
    return _together(parts, *names)


def _tables(
    paths: Sequence[str], target: str | None, signal: Sequence[str], background: Sequence[str]
) -> list[tuple[Table, str | bool]]:
    """Tables of single files with the column that tells signal, or whether all of it is signal."""
    if paths and target is None:
        raise ValueError(
            f"{paths[0]!r} may hold signal and background; `target` must name the column that "
            "tells them apart: give it, or give the tables as `signal` and `background`"
        )
    kinds: tuple[tuple[Sequence[str], str | bool | None], ...]
    kinds = (paths, target), (signal, True), (background, False)
    return [
        (part, kind)
        for names, kind in kinds
        if names and kind is not None
        for part in open_tables(names).parts
    ]


def _read(
    engine: Engine,
    table: Table,
    target: str | bool,
    event: Sequence[str],
    keep_labels: Sequence[str],
    keep_values: Sequence[str],
    weights: str | None,
) -> list[Any]:
    """Scores, labels and kept columns of a table, piece by piece."""
    texts = [*event, *keep_labels]
    inputs = engine.network.inputs
    told = [target] if isinstance(target, str) else []
    counted = [*keep_values, *([weights] if weights else [])]
    parts, n_rows = [], 0
    table.require(inputs.names)
    for batch in table.batches([*inputs.names, *told, *texts, *counted]):
        score = engine.score_batch([batch.column(name) for name in inputs.names], n_rows)
        known = np.full(len(batch), target) if not told else _is_signal(batch, told[0], n_rows)
        for name in event:
            check_key(batch.column(name), name, n_rows)
        strings = {name: _texts(batch.column(name)) for name in texts}
        values = [finite_or_blank(batch.column(name), name, n_rows) for name in keep_values]
        weight = numbers(batch, [weights], n_rows)[:, 0] if weights else None
        score = np.where(np.isnan(score), -np.inf, score)
        parts.append((score, known, strings, values, weight))
        n_rows += batch.num_rows
    if n_rows == 0:
        raise ValueError(f"{table.path!r} has no rows; give a table of candidates")
    return parts


def _texts(column: pa.Array) -> pa.Array:
    """A column as texts; null where it says nothing, as NaN does."""
    return pc.if_else(pa.array(is_blank(column)), pa.scalar(None, pa.string()), labels(column))


def _together(
    parts: list[Any],
    event: Sequence[str],
    keep_labels: Sequence[str],
    keep_values: Sequence[str],
    weights: str | None,
) -> Candidates:
    is_signal = np.concatenate([part[1] for part in parts])
    number = is_signal.astype(np.int64)
    for name in event:
        codes, found = _codes([part[2][name] for part in parts])
        # numbered anew after every column, so that products of numbers cannot overflow
        number = np.unique(number * len(found) + codes, return_inverse=True)[1].astype(np.int64)
    kept = {}
    for name in keep_labels:
        codes, found = _codes([part[2][name] for part in parts])
        kept[name] = found[codes]
    return Candidates(
        np.concatenate([part[0] for part in parts]).astype(float),
        is_signal,
        number,
        kept,
        {n: np.concatenate([part[3][i] for part in parts]) for i, n in enumerate(keep_values)},
        np.concatenate([part[4] for part in parts]) if weights else None,
    )


def _codes(column: list[pa.Array]) -> tuple[Integers, NDArray[Any]]:
    """Texts as numbers, and the texts that the numbers stand for."""
    filled = pc.fill_null(pa.chunked_array(column), _NONE)
    encoded = filled.combine_chunks().dictionary_encode()
    found = np.array(encoded.dictionary.to_pylist(), dtype=object)
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), found


def _is_signal(batch: pa.RecordBatch, target: str, first_row: int) -> Bools:
    cells = batch.column(target)
    found = class_numbers(cells, target, ("0", "1"))
    strange = ~np.isfinite(found)
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(
            f"column {target!r} is {labels(cells)[row].as_py()} in row {first_row + row} (data "
            "rows, counted from 0); it must be 0 for background and 1 for signal: choose another "
            "column, or correct it"
        )
    return np.asarray(found == 1.0)
