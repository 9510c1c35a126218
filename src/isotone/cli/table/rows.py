"""The rows of `isotone train`: read as one table of Arrow, checked, and split into two parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isotone.checks import check_fraction, check_weights
from isotone.cli.console.options import spelled
from isotone.cli.console.terminal import warn
from isotone.cli.table.columns import Columns, check_numbers
from isotone.cli.table.target import TargetColumn, read_target
from isotone.cli.table.texts import refuse_text
from isotone.data.groups import check_key
from isotone.data.several import open_tables
from isotone.data.source import in_file
from isotone.data.table import Table
from isotone.estimators.columns import find_inputs
from isotone.estimators.pooling import Levels, Rarity
from isotone.inputs.cells import finite_or_blank, labels
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Ordered
from isotone.inputs.frames import is_category
from isotone.training.rows import split
from isotone.typing import Bools, Floats, Indices, Reals

_MANY = 20  # rows that no other column counts by chance


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as an estimator takes them: features, values or classes, weights, and groups."""

    X: Any  # a table of Arrow, or a stream, which has its own targets and weights
    y: Any
    weight: Reals | None
    group: Indices | None = None

    def take(self, rows: Indices) -> Sample:
        return self.only(rows, self.y[rows])

    def only(self, rows: Indices, y: Any) -> Sample:
        """Some of the rows, whose targets are known."""
        weight = None if self.weight is None else self.weight[rows]
        group = None if self.group is None else self.group[rows]
        return Sample(self.X.take(rows), y, weight, group)


@dataclass(frozen=True)
class Reading:
    """How rows are read.

    Parameters
    ----------
    weights : the column of weights, if any
    validation : the fraction of the rows that is left out, or a table of others
    gaps_allowed : whether values may be missing
    positive : of two classes
    min_frequency : of categories that are not pooled
    group_by : columns; rows that share them are not independent
    signed : whether weights may be negative
    """

    weights: str | None
    validation: str
    loss: str
    gaps_allowed: bool
    positive: str | None
    min_frequency: float
    group_by: tuple[str, ...] = ()
    signed: bool = False

    def find_inputs(
        self, columns: Columns, X: pa.Table, weight: Reals | None, levels: Levels | None = None
    ) -> Inputs:
        """What the columns of training rows hold, as an estimator will find it."""
        given = None if weight is None else np.abs(weight.astype(np.float64))
        return find_inputs(X, columns.features, Rarity(self.min_frequency, given, levels or {}))


def read_rows(table: Table, columns: Columns, how: Reading) -> tuple[TargetColumn, Sample, Sample]:
    """What is learned, rows to train on, and rows to judge by: a part of them, or a table."""
    refuse_text(table, columns)
    X, cells, weight, group = _read(table, columns, how, how.group_by)
    _check_gaps(table.path, X, how.gaps_allowed)
    numbers = {n: X[n].to_numpy() for n in X.column_names if pa.types.is_floating(X[n].type)}
    check_numbers(columns, numbers)
    warn_of_counters(numbers)
    counted = _counted(weight, X.num_rows)
    target, y = read_target(columns.target, cells.take(counted), how.loss, counted)
    target = target.with_positive(how.positive)
    sample = Sample(X, None, weight, group).only(counted, y)
    # refuses too many categories before rows are split
    inputs = how.find_inputs(columns, sample.X, sample.weight)
    fraction = fraction_of(how.validation)
    if fraction is not None:
        return target, *_split(table.path, sample, target, fraction)
    if how.validation == table.path:
        raise ValueError(
            "`--validation` is the table itself; give a table of other rows, or a fraction"
        )
    return target, sample, read_validation(columns, inputs, sample.X, target, how)


def fraction_of(validation: str) -> float | None:
    """The fraction that an option gives, or None if it gives a file."""
    try:
        fraction = float(validation)
    except ValueError:
        return None
    return check_fraction("--validation", fraction)


def _counted(weight: Reals | None, n_rows: int) -> Indices:
    """Numbers of the rows that do not have weight 0."""
    return np.arange(n_rows) if weight is None else np.flatnonzero(weight != 0)


def warn_of_counters(numbers: Mapping[str, Floats]) -> None:
    """Warn of columns that count the rows: where rows are sorted, they tell the target."""
    for name, column in numbers.items():
        if len(column) >= _MANY and np.array_equal(np.diff(column), np.ones(len(column) - 1)):
            warn(
                f"column {name!r} counts the rows ({column[0]:g}, {column[1]:g}, {column[2]:g}, "
                "...); if it is only a row number, leave it out with `--features`: new rows will "
                "have other numbers"
            )


def _read(
    table: Table, columns: Columns, how: Reading, group_by: Sequence[str] = ()
) -> tuple[pa.Table, pa.Array, Reals | None, Indices | None]:
    """Features, the cells of the target, weights, and numbers of groups."""
    weights = how.weights
    names = [*columns.features, columns.target, *([weights] if weights else [])]
    parts: dict[str, list[pa.Array]] = {name: [] for name in names}
    labelled: dict[str, list[pa.Array]] = {name: [] for name in group_by}
    table.find([*names, *group_by])
    for part in table.parts:
        with in_file(part.path, several=len(table.parts) > 1):
            _read_part(part, columns, weights, parts, labelled)
    n_rows = sum(map(len, parts[columns.target]))
    if n_rows == 0:
        raise ValueError(f"{table.path!r} has no rows; training needs some")
    X = pa.table({name: _joined(parts[name], name, columns) for name in columns.features})
    cells = pa.chunked_array(_alike(parts[columns.target])).combine_chunks()
    group = numbers_of_groups(labelled) if group_by else None
    if not weights:
        return X, cells, None, group
    given = pa.chunked_array(parts[weights]).to_numpy()
    return X, cells, _checked(f"--weights {weights}", given, how.signed), group


def _checked(name: str, weight: Floats, signed: bool) -> Reals:
    """Weights, none of them missing, nor negative unless they may be."""
    if not signed and np.nanmin(weight, initial=0.0) < 0:
        row = int((weight < 0).argmax())
        raise ValueError(
            f"`{name}` is {weight[row]:g} in row {row} (data rows, counted from 0); a weight says "
            "how often a row counts, so it must be at least 0: correct or drop such rows, or add "
            "`--signed-weights` if negative weights are intended, as in sWeights"
        )
    check_weights(name, np.abs(weight), len(weight))
    return weight


def _read_part(
    table: Table,
    columns: Columns,
    weights: str | None,
    parts: dict[str, list[pa.Array]],
    labelled: dict[str, list[pa.Array]],
) -> None:
    """Add what one file holds, piece by piece, to lists by column."""
    n_rows = 0
    for batch in table.batches([*parts, *labelled]):
        for name, found in labelled.items():
            check_key(batch.column(name), name, n_rows)
            found.append(labels(batch.column(name)))
        for name in columns.features:
            parts[name].append(feature_cells(batch.column(name), name, n_rows, columns))
        parts[columns.target].append(batch.column(columns.target))
        if weights:
            weight = finite_or_blank(batch.column(weights), weights, n_rows)
            parts[weights].append(pa.array(weight))
        n_rows += batch.num_rows


def _alike(cells: list[pa.Array]) -> list[pa.Array]:
    """Cells of several files in one type: numbers if all of them are, and else texts."""
    kinds = {column.type for column in cells}
    if len(kinds) == 1:
        return cells
    is_plain = all(pa.types.is_primitive(k) and not pa.types.is_temporal(k) for k in kinds)
    return [column.cast(pa.float64()) if is_plain else labels(column) for column in cells]


def feature_cells(column: pa.Array, name: str, first_row: int, columns: Columns) -> pa.Array:
    """Categories as text, ordered ones as such, and numbers, NaN where they are missing."""
    if name in columns.categorical:
        return labels(column)
    if name in columns.orders:
        return _ordered(labels(column), name, columns.orders[name], first_row)
    if is_category(column.type) and column.type.ordered:
        return column
    try:
        return pa.array(finite_or_blank(column, name, first_row))
    except ValueError as error:
        option = spelled("categorical", name)
        raise ValueError(f"{error}, or declare categories with `{option}`") from error


def _ordered(texts: pa.Array, name: str, order: tuple[str, ...], first_row: int) -> pa.Array:
    """Ordered categories of texts, each of which must be one of them."""
    places = pc.index_in(texts, value_set=pa.array(order))
    strange = pc.and_(pc.is_null(places), pc.is_valid(texts)).to_numpy(zero_copy_only=False)
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(
            f"column {name!r} holds {texts[row].as_py()[:40]!r} in row {first_row + row} (data "
            f"rows, counted from 0), which is not in its order {' < '.join(order[:10])}; correct "
            "or drop such rows, or add it with `--ordered`"
        )
    return pa.DictionaryArray.from_arrays(places, pa.array(order), ordered=True)


def _joined(parts: list[pa.Array], name: str, columns: Columns) -> pa.Array:
    """One column of its parts, which must agree about an order."""
    orders = [part.dictionary for part in parts if is_category(part.type)]
    if any(order != orders[0] for order in orders):
        raise ValueError(
            f"the categories of column {name!r} are stored in different orders in different parts "
            "of the file; give one order with `--ordered`"
        )
    column = pa.chunked_array(parts).combine_chunks()
    return column.dictionary_encode() if name in columns.categorical else column


def _gaps(X: pa.Table) -> dict[str, Bools]:
    """Where values are missing, by column."""
    return {n: pc.is_null(X[n], nan_is_null=True).to_numpy() for n in X.column_names}


def _check_gaps(path: str, X: pa.Table, allowed: bool) -> None:
    """Refuse empty columns, and missing values unless they are allowed."""
    holes = {name: gaps for name, gaps in _gaps(X).items() if gaps.any()}
    empty = [name for name, gaps in holes.items() if gaps.all()]
    if empty:
        others = [name for name in X.column_names if name not in empty]
        hint = f" with `{spelled('features', *others)}`" if others else ""
        raise ValueError(
            f"column {empty[0]!r} of {path!r} is empty, and every feature needs some "
            f"numbers; leave it out{hint}"
        )
    if holes and not allowed:
        name, mask = next(iter(holes.items()))
        shown = ", ".join(f"{n} ({m.sum()})" for n, m in holes.items())
        raise ValueError(
            f"values are missing in {shown} of {path!r}; the first is {name!r} in row "
            f"{int(mask.argmax())} (data rows, counted from 0): fill or drop such rows, or add "
            "`--missing indicator` to learn from missing values"
        )


def read_validation(
    columns: Columns, inputs: Inputs, training: pa.Table, target: TargetColumn, how: Reading
) -> Sample:
    """Rows of another table, whose categories and classes must be those of the training rows.

    New categories are, too, if the model pools them.
    """
    orders = {c.name: c.categories for c in inputs.columns if isinstance(c, Ordered)}
    table = open_tables([how.validation])
    X, cells, weight, _ = _read(table, replace(columns, orders=orders), how)
    _check_gaps(how.validation, X, how.gaps_allowed)
    for raw in inputs.batches(X):
        codes = inputs.read(raw)
        if np.isinf(codes).any():
            inputs.refuse(raw, [np.where(np.isnan(array), 0.0, array) for array in codes])
    counted = _counted(weight, X.num_rows)
    loss = "squared_error" if target.labels is None else "cross_entropy"
    found, y = read_target(target.name, cells.take(counted), loss, counted, varied=False)
    y = _same_classes(target, found, y)
    sample = Sample(X, None, weight).only(counted, y)
    _refuse_new_gaps(how.validation, training, sample.X)
    return sample


def _same_classes(target: TargetColumn, other: TargetColumn, y: NDArray[Any]) -> NDArray[Any]:
    """Classes of other rows, if training rows have them."""
    if target.classes is None or other.classes is None:
        if target.classes != other.classes:
            raise ValueError(
                f"the validation rows do not hold numbers in {target.name!r}, unlike the training "
                "rows; correct them"
            )
        return y
    unseen = [name for name in other.classes if name not in target.classes]
    if unseen:
        raise ValueError(
            f"the validation rows hold the class {unseen[0]} in {target.name!r}, which no "
            "training row has; correct or drop such rows"
        )
    return y.astype(np.asarray(target.labels).dtype)


def _refuse_new_gaps(path: str, X: pa.Table, other: pa.Table) -> None:
    known = _gaps(X)
    for name, gaps in _gaps(other).items():
        if gaps.any() and not known[name].any():
            raise ValueError(
                f"values of {name!r} are missing in {path!r} but in no training row, so nothing "
                "can be learned about missing values there; fill or drop these rows"
            )


def numbers_of_groups(columns: Mapping[str, list[pa.Array]]) -> Indices:
    """A number for every row; rows that share the texts of all columns have the same."""
    number: Indices = np.zeros(1, np.intp)
    for chunks in columns.values():
        encoded = pa.chunked_array(chunks).combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        # numbered anew after every column, so that products of numbers cannot overflow
        number = np.unique(number * len(encoded.dictionary) + codes, return_inverse=True)[1]
    return number


def _split(
    path: str, sample: Sample, target: TargetColumn, fraction: float
) -> tuple[Sample, Sample]:
    """Rows to train on and a fraction to judge by, without rows that are like no others."""
    _, left = split(len(sample.y), fraction, groups=sample.group)
    alone = _only_there(_traits(sample, target), left)
    left &= ~(alone if sample.group is None else np.isin(sample.group, sample.group[alone]))
    if not left.any():
        raise ValueError(
            f"the {len(sample.y)} rows of {path!r} leave none to validate on; give more rows, "
            "or a table of other rows with `--validation FILE`"
        )
    return sample.take(np.flatnonzero(~left)), sample.take(np.flatnonzero(left))


def _traits(sample: Sample, target: TargetColumn) -> Iterator[NDArray[Any]]:
    """What tells rows apart that a model may know or not: classes, categories, missing values."""
    if target.labels is not None:
        yield sample.y
    for name, gaps in _gaps(sample.X).items():
        column = sample.X[name].combine_chunks()
        unordered = is_category(column.type) and not column.type.ordered
        yield column.indices.fill_null(-1).to_numpy() if unordered else gaps


def _only_there(traits: Iterable[NDArray[Any]], left: Bools) -> Bools:
    """Rows that have a trait which only rows that are left out have: they must be trained on."""
    alone = [left & ~np.isin(trait, trait[~left]) for trait in traits]
    return np.asarray(np.any(alone, axis=0), dtype=np.bool_)
