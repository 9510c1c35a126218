"""The rows of `isotone train`: read, encoded, checked, and split into two parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from isotone.checks import check_fraction, check_weights
from isotone.cli.columns import Columns, check_numbers
from isotone.cli.options import spelled
from isotone.cli.target import Target, read_target
from isotone.cli.terminal import errors, printable
from isotone.data.categories import MAX_CATEGORIES, find_inputs
from isotone.data.table import Table, open_table
from isotone.inputs.cells import finite_or_blank, floats, is_blank, is_text, truths_as_numbers
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number
from isotone.inputs.frames import is_category
from isotone.training.rows import Rows, split
from isotone.typing import Bools, Floats

_MANY = 20  # rows that no other column counts by chance
_YES_OR_NO = {"yes", "no", "y", "n", "t", "f", "on", "off", "none", ""}


@dataclass(frozen=True, eq=False)
class Reading:
    """What `read_rows` found: encoded rows, NaN where numbers are missing."""

    inputs: Inputs
    target: Target
    training: Rows
    validation: Rows


def read_rows(
    table: Table,
    columns: Columns,
    *,
    weights: str | None,
    validation: str,
    loss: str,
    gaps_allowed: bool,
    positive: str | None = None,
) -> Reading:
    """Rows to train on, and rows to judge by: a part of the table, or another one."""
    _refuse_text(table, columns)
    inputs = find_inputs(table, columns.features, columns.categorical)
    rows, cells = _read(table, inputs, columns.target, weights)
    _check_gaps(table, rows, inputs, gaps_allowed)
    check_numbers(columns, inputs.uncompleted, rows.x)
    _warn_of_counters(inputs.uncompleted, rows.x)
    counted = rows.counted()
    target, y = read_target(columns.target, cells.take(counted), loss, counted)
    target, y = target.with_positive(positive, y)
    rows = replace(rows[counted], y=y)
    fraction = _fraction(validation)
    if fraction is None:
        other = _read_validation(table, validation, inputs, target, weights)
        _check_gaps(open_table(validation), other, inputs, gaps_allowed)
        _refuse_new_gaps(validation, rows, other, inputs)
        return Reading(inputs, target, rows, other)
    _, left = split(len(rows), fraction)
    left &= ~_only_there(_traits(rows, target), left)
    if not left.any():
        raise ValueError(
            f"the {len(rows)} rows of {table.path!r} leave none to validate on; give more rows, "
            "or a table of other rows with `--validation FILE`"
        )
    return Reading(inputs, target, rows[~left], rows[left])


def _fraction(validation: str) -> float | None:
    """The fraction that an option gives, or None if it gives a file."""
    try:
        fraction = float(validation)
    except ValueError:
        return None
    return check_fraction("--validation", fraction)


def _refuse_text(table: Table, columns: Columns) -> None:
    """Name all columns of text at once, and what to do with them."""
    names = [name for name in columns.features if name not in columns.categorical]
    batch = next(iter(table.batches(names)), None) if names else None
    texts = [] if batch is None else [n for n in names if _is_text(batch.column(n), n)]
    if not texts:
        return
    assert batch is not None
    example = batch.column(texts[0]).drop_null()[0].as_py()
    others = [name for name in columns.features if name not in texts]
    few = [n for n in texts if _has_few(batch.column(n))]
    categorical = [n for n in columns.features if n in few or n in columns.categorical]
    advice = [f"leave out such columns with `{spelled('features', *others)}`"] if others else []
    if any(pa.types.is_temporal(batch.column(n).type) for n in texts):
        advice += ["make numbers of times, such as the days since some date"]
    if {str(cell).strip().lower() for cell in batch.column(texts[0]).to_pylist()} <= _YES_OR_NO:
        advice += ["write 1 and 0, or true and false, for yes and no"]
    advice += [f"make categories with `{spelled('categorical', *categorical)}`"] if few else []
    if re.fullmatch(r"\s*[+-]?\d*,\d+\s*", str(example)):
        advice = ["write decimals with a point, as in 0.5"]
    what = f"column {texts[0]!r} holds" if len(texts) == 1 else f"columns {', '.join(texts)} hold"
    kinds = {_describe(batch.column(n).type) for n in texts}
    raise ValueError(
        f"{what} {' and '.join(sorted(kinds))}, such as {example!r:.40} in {texts[0]!r}; a "
        "feature must hold numbers: "
        f"{', or '.join(advice) or 'choose another table'}"
    )


def _describe(kind: pa.DataType) -> str:
    if is_category(kind):
        return "categories"
    return "text" if is_text(kind) else "non-numeric values"


def _has_few(column: pa.Array) -> bool:
    """Whether a column could be one of categories."""
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        return False
    return len(column.unique()) <= MAX_CATEGORIES


def _is_text(column: pa.Array, name: str) -> bool:
    """Whether a column holds categories, or something of which nothing is a number."""
    if is_category(column.type):
        return True
    try:
        is_number = np.isfinite(floats(truths_as_numbers(column), name))
    except ValueError:  # times, lists and the like
        return True
    return bool(not is_number.any() and not is_blank(column).all())


def _warn_of_counters(names: Sequence[str], X: Floats) -> None:
    """Warn of columns that count the rows: where rows are sorted, they tell the target."""
    for name, column in zip(names, X.T, strict=True):
        if len(column) >= _MANY and np.array_equal(np.diff(column), np.ones(len(column) - 1)):
            errors.print("warning: ", style="bold yellow", end="")
            errors.print(
                printable(
                    f"column {name!r} counts the rows ({column[0]:g}, {column[1]:g}, "
                    f"{column[2]:g}, ...); if it is only their number, leave it out with "
                    "`--features`: new rows have other numbers"
                ),
                soft_wrap=True,
            )


def _read(table: Table, inputs: Inputs, target: str, weights: str | None) -> tuple[Rows, pa.Array]:
    """Features and weights, and the cells of the target."""
    names = [*inputs.names, target, *([weights] if weights else [])]
    X, cells, weight, n_rows = [], [], [], 0
    for batch in table.batches(names):
        X.append(_features(inputs, batch, n_rows))
        cells.append(batch.column(target))
        if weights:
            weight.append(finite_or_blank(batch.column(weights), weights, n_rows))
        n_rows += batch.num_rows
    if n_rows == 0:
        raise ValueError(f"{table.path!r} has no rows; training needs some")
    rows = Rows(np.concatenate(X), np.zeros(n_rows))
    if weights:
        every = check_weights(f"--weights {weights}", np.concatenate(weight), n_rows)
        rows = replace(rows, weight=every)
    return rows, pa.chunked_array(cells).combine_chunks()


def _check_gaps(table: Table, rows: Rows, inputs: Inputs, allowed: bool) -> None:
    """Refuse empty columns, and gaps unless they are allowed."""
    gaps = np.isnan(rows.x)
    names = inputs.uncompleted
    empty = [name for i, name in enumerate(names) if gaps[:, i].all()]
    if empty:
        others = [name for name in inputs.names if name not in empty]
        hint = f" with `{spelled('features', *others)}`" if others else ""
        raise ValueError(
            f"column {empty[0]!r} of {table.path!r} is empty, and every feature needs some "
            f"numbers; leave it out{hint}"
        )
    missing = {f"missing({c.name})": c.name for c in inputs.columns if isinstance(c, Category)}
    holes = [(missing[n], rows.x[:, i] > 0) for i, n in enumerate(names) if n in missing]
    holes += [(n, gaps[:, i]) for i, n in enumerate(names) if gaps[:, i].any()]
    if holes and not allowed:
        name, mask = holes[0]
        shown = ", ".join(f"{n} ({m.sum()})" for n, m in holes)
        raise ValueError(
            f"values are missing in {shown} of {table.path!r}; the first is {name!r} in row "
            f"{int(mask.argmax())} (data rows, counted from 0): fill or drop such rows, or add "
            "`--missing indicator` to learn from missing values"
        )


def _read_validation(
    table: Table, validation: str, inputs: Inputs, target: Target, weights: str | None
) -> Rows:
    if validation == table.path:
        raise ValueError("`--validation` is the table itself; give other rows, or a fraction")
    other = open_table(validation)
    rows, cells = _read(other, inputs, target.name, weights)
    loss = "squared_error" if target.classes is None else "cross_entropy"
    counted = rows.counted()
    found = read_target(target.name, cells.take(counted), loss, counted, varied=False)
    return replace(rows[counted], y=_same_classes(target, *found))


def _same_classes(target: Target, other: Target, y: Floats) -> Floats:
    """Numbers of the classes of the training rows, for those of other rows."""
    if target.classes is None or other.classes is None:
        if target.classes != other.classes:
            raise ValueError(
                f"the validation rows do not hold numbers in {target.name!r}, as the others do; "
                "correct them"
            )
        return y
    unseen = [name for name in other.classes if name not in target.classes]
    if unseen:
        raise ValueError(
            f"the validation rows have a {target.name!r} of {unseen[0]}, which no training row "
            "has; correct or drop such rows"
        )
    numbers = [float(target.classes.index(other.classes[int(k)])) for k in y]
    return np.array(numbers)


def _refuse_new_gaps(path: str, rows: Rows, other: Rows, inputs: Inputs) -> None:
    new = np.isnan(other.x).any(axis=0) & ~np.isnan(rows.x).any(axis=0)
    if new.any():
        name = inputs.uncompleted[int(new.argmax())]
        raise ValueError(
            f"values of {name!r} are missing in {path!r} but in no training row, so nothing can "
            "be learned about missing values there; fill or drop these rows"
        )


def _traits(rows: Rows, target: Target) -> Bools:
    """What some rows have and others do not: missing values, and classes."""
    classes = range(len(target.classes or ()))
    of_class = [rows.y == k for k in classes]
    return np.column_stack([np.isnan(rows.x), *of_class])


def _only_there(traits: Bools, left: Bools) -> Bools:
    """Rows that have a trait which only rows that are left out have: they must be trained on."""
    alone = traits[left].any(axis=0) & ~traits[~left].any(axis=0)
    return np.asarray(left & traits[:, alone].any(axis=1), dtype=np.bool_)


def _features(inputs: Inputs, batch: pa.RecordBatch, first_row: int) -> Floats:
    """Features of a batch without indicators, with NaN for missing values among numbers."""
    raw = [batch.column(name) for name in inputs.names]
    arrays = inputs.read(raw)
    if np.isinf(arrays).any():
        _refuse_strange(inputs, raw, first_row)
    return np.column_stack(arrays)


def _refuse_strange(inputs: Inputs, raw: list[pa.Array], first_row: int) -> None:
    """Raise the error about a cell that is not a number, or about a category that is new."""
    for column, values in zip(inputs.columns, raw, strict=True):
        if isinstance(column, Number):
            try:
                finite_or_blank(values, column.name, first_row)
            except ValueError as error:
                option = spelled("categorical", column.name)
                raise ValueError(f"{error}, or make categories with `{option}`") from error
    unseen = [np.where(np.isnan(array), 0.0, array) for array in inputs.read(raw)]
    inputs.refuse(raw, unseen, first_row)
