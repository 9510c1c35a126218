"""The rows of `isotone train DIR`: those of Parquet files, streamed if they are many."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from isotone.cli.table.columns import Columns, check_numbers
from isotone.cli.table.rows import (
    Reading,
    Sample,
    feature_cells,
    fraction_of,
    read_validation,
    warn_of_counters,
)
from isotone.cli.table.target import TargetColumn, read_target, target_values
from isotone.cli.table.texts import refuse_text
from isotone.data.dataset import Dataset
from isotone.data.source import Source
from isotone.data.survey import Survey, is_small
from isotone.data.table import Table
from isotone.typing import Floats
from isotone.workers import workers_of

_FIRST_ROWS = 1000  # in which a column may count the rows


def check_workers(table: Table, workers: int, scheduler: str | None) -> None:
    """Refuse workers for a table that is read by this process, and those that do not answer."""
    if (workers != 1 or scheduler is not None) and not isinstance(table, Dataset):
        option = f"--workers {workers}" if scheduler is None else f"--scheduler {scheduler}"
        raise ValueError(
            f"`{option}` is for directories; {table.path!r} is not one, and threads train on it: "
            "leave the option out"
        )
    with workers_of(scheduler, workers):  # before the first pass, which may take minutes
        pass


def is_streamed(table: Table) -> bool:
    """Whether a table is too large to be read into memory."""
    return isinstance(table, Dataset) and not is_small(table)


def survey_rows(
    table: Table, columns: Columns, how: Reading
) -> tuple[TargetColumn, Sample, Sample]:
    """What is learned, all rows as a stream to train on, and rows to judge by; as `read_rows`."""
    from isotone.estimators.fitting.conversion import Targets
    from isotone.estimators.fitting.stream import Stream, survey

    assert isinstance(table, Dataset)
    table.find(how.group_by)
    refuse_text(table, columns)
    first = next(iter(table.batches(columns.features, _FIRST_ROWS)))
    warn_of_counters(_numbers(first.select(list(columns.features))))
    fraction = fraction_of(how.validation)
    n_held = 0 if fraction is None else round(fraction * (table.n_rows or 0))
    found = survey(_source(table, columns, how), n_held, verbose=True)
    _check_gaps(table.path, found, how.gaps_allowed)
    sample = found.sample
    check_numbers(columns, _numbers(sample.X))
    target, _ = read_target(columns.target, sample.cells, how.loss, sample.rows)
    target = target.with_positive(how.positive)
    # an estimator takes a stream in place of a table, with the targets and the weights in it
    targets = Targets(target.name, partial(target_values, target))
    training = Sample(Stream(found, targets), y=None, weight=None)
    if fraction is not None:
        held = found.held
        weight = None if how.weights is None else held.weight
        return target, training, Sample(held.X, target_values(target, held.cells), weight)
    inputs = how.find_inputs(columns, sample.X, sample.weight, found.levels)
    return target, training, read_validation(columns, inputs, sample.X, target, how)


def _source(dataset: Dataset, columns: Columns, how: Reading) -> Source:
    feature = partial(feature_cells, columns=columns)
    named = columns.features, columns.target, how.weights, frozenset(columns.categorical)
    return Source(dataset, *named, feature, how.group_by, how.signed)


def _numbers(X: Any) -> dict[str, Floats]:
    """Columns of numbers, by name."""
    names = [field.name for field in X.schema if pa.types.is_floating(field.type)]
    return {name: X.column(name).to_numpy() for name in names}


def _check_gaps(path: str, found: Survey, allowed: bool) -> None:
    """Refuse empty columns, and missing values unless they are allowed."""
    empty = [name for name, (n, _, _) in found.missing.items() if n == found.n_rows]
    if empty:
        raise ValueError(
            f"column {empty[0]!r} of {path!r} is empty, and every feature needs some values; "
            "leave it out with `--features`"
        )
    if found.missing and not allowed:
        name, (_, file, row) = next(iter(found.missing.items()))
        shown = ", ".join(f"{n} ({count})" for n, (count, _, _) in found.missing.items())
        raise ValueError(
            f"values are missing in {shown} of {path!r}; the first is {name!r} in row {row} of "
            f"{file!r} (data rows, counted from 0): fill or drop such rows, or add "
            "`--missing indicator` to learn from missing values"
        )
