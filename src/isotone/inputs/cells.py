"""Cells: what the text and the decimals of a file stand for, exactly.

Scores can be monotone in what a file holds only if reading is: of two cells, the larger must never
become the smaller number. Integers, decimals and numbers written as text are therefore rounded to
the nearest float64, as Python's `float` does. Arrow's own cast of decimals is not even monotone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isotone.inputs.columns import Category, Column, Number
from isotone.inputs.frames import is_category, refuse_scalars
from isotone.typing import Floats, Reals

# How people write a missing number. Not an array of Arrow, the first of which imports pandas.
_BLANK = ["", "-", "?", "na", "n/a", "#n/a", "nan", "null", "none"]
_FLOATS = (np.dtype("f4"), np.dtype("f8"))
_ARROW = (pa.Array, pa.ChunkedArray)
_CELLWISE = (list, tuple, np.ma.MaskedArray)  # whose missing values only Arrow understands


def spelled_out(column: pa.Array) -> pa.Array:
    """Text without spaces around it, and decimals as text, which has all of their digits.

    What is neither comes back as it is. Arrow rounds numbers of text correctly, whatever their
    length, and integers too.
    """
    if pa.types.is_decimal(column.type):
        return column.cast(pa.string())
    return pc.utf8_trim_whitespace(column) if is_text(column.type) else column


def truths_as_numbers(column: pa.Array) -> pa.Array:
    """Text with 1 and 0 for true and false, in capitals or not, as for columns of booleans.

    Yes and no are left alone: they are names as well, and no is a country too.
    """
    if not is_text(column.type):
        return column
    column = pc.utf8_trim_whitespace(column)
    # Most columns hold numbers, and a look at their last letters is cheap.
    if not any(pc.any(pc.ends_with(column, letter)).as_py() for letter in "eE"):
        return column
    words = pc.utf8_lower(column)
    column = pc.if_else(pc.fill_null(pc.equal(words, "true"), False), "1", column)
    return pc.if_else(pc.fill_null(pc.equal(words, "false"), False), "0", column)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def arrow_of(values: Any, name: str) -> pa.Array:
    """A column of a frame, an array or a list as one of Arrow; NaN of pandas becomes null."""
    if isinstance(values, pa.ChunkedArray):
        return arrow_of(values.combine_chunks(), name)
    if isinstance(values, pa.Array):  # few of Arrow's functions take views of text
        return values.cast(pa.large_string()) if str(values.type) == "string_view" else values
    if hasattr(values, "to_arrow"):  # polars
        return arrow_of(values.to_arrow(), name)
    refuse_scalars(values, name)
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise ValueError(
            f"column {name!r} has type {values.dtype}; it must hold real numbers: give real and "
            "imaginary parts as two columns"
        )
    try:
        return arrow_of(pa.array(values, from_pandas=True), name)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return _mixed(values)


def _mixed(values: Any) -> pa.Array:
    """Cells of several kinds, or integers beyond 64 bits, as texts that say the same."""
    cells = (cell.item() if isinstance(cell, np.generic) else cell for cell in values)
    return pa.concat_arrays([_texts(list(run)) for _, run in groupby(cells, type)])


def _texts(cells: list[Any]) -> pa.Array:
    """Cells of one kind as texts."""
    try:
        return pa.array(cells, from_pandas=True).cast(pa.string())
    except (pa.ArrowException, OverflowError):
        return pa.array([str(cell) for cell in cells], pa.string())


def code(column: Column, values: Any) -> Reals:
    """One number per row: the number itself, where it is if it can stay, or the category's place.

    NaN where it is missing and that is no category, infinite where training never saw it.
    """
    if isinstance(column, Number):
        return numbers_of(values, column.name)
    places = places_of(values, column.name, column.categories)
    if isinstance(column, Category) and column.other is not None:
        places[np.isinf(places)] = column.other
    return places


def numbers_of(values: Any, name: str) -> Reals:
    """A column as floats, where it is if it can stay: NaN for missing, infinity for no number."""
    _refuse_categories(values, name)
    array = _plain(values)
    return blank_numbers(arrow_of(values, name), name) if array is None else array


def _refuse_categories(values: Any, name: str) -> None:
    is_arrow = isinstance(values, _ARROW)
    kind = values.type if is_arrow else getattr(values, "dtype", None)
    if pa.types.is_dictionary(kind) if is_arrow else is_category(kind):
        raise ValueError(
            f"column {name!r} is stored as categories ({kind}), which are not numbers even where "
            "they are written as numbers; it must hold numbers: convert it if it does"
        )


def _plain(values: Any) -> Reals | None:
    """Numbers that NumPy can hold, or None."""
    if isinstance(values, _CELLWISE):
        return None
    array = (
        values.to_numpy(zero_copy_only=False)
        if isinstance(values, pa.Array)
        else np.asarray(values)
    )
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        return None
    return array if array.dtype in _FLOATS else array.astype(np.float64)


def blank_numbers(column: pa.Array, name: str) -> Floats:
    """A column as numbers: NaN where it says nothing, infinity where it says something else."""
    values = floats(truths_as_numbers(column), name)
    strange = ~np.isfinite(values)
    strange[strange] = ~is_blank(column.filter(pa.array(strange)))
    return np.where(strange & np.isnan(values), np.inf, values)


def floats(column: pa.Array, name: str) -> Floats:
    """Numbers of a column, with NaN where there is none; categories have no numbers."""
    _refuse_categories(column, name)
    try:
        # An integer beyond 2**53 is rounded: that is monotone, and all a float can do.
        numbers = spelled_out(column).cast(pa.float64(), safe=False)
        return np.asarray(numbers.to_numpy(zero_copy_only=False))
    except pa.ArrowNotImplementedError as error:
        raise ValueError(
            f"column {name!r} has type {column.type}; it must hold numbers: {_advice(column.type)}"
        ) from error
    except pa.ArrowInvalid:
        return np.array([_parse(text) for text in column.to_pylist()])


def _advice(kind: pa.DataType) -> str:
    if pa.types.is_temporal(kind):
        return "leave it out, or convert it to numbers, such as days since some date"
    return "choose another column or convert it"


def decoded(column: pa.Array) -> pa.Array:
    """A column with its values instead of references to categories."""
    return column.dictionary_decode() if is_category(column.type) else column


def _parse(text: str | None) -> float:
    """The number that a text stands for, by the rules of Arrow, or NaN."""
    try:
        number = pa.scalar(None if text is None else text.strip()).cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return np.nan
    return np.nan if number is None else float(number)


def finite_or_blank(column: pa.Array, name: str, first_row: int = 0) -> Floats:
    """A column as numbers, with NaN where it says nothing; anything else raises `ValueError`."""
    if column.type == pa.float64():
        stored: Floats = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
        if np.all(np.isfinite(stored)):
            return stored
    values = blank_numbers(column, name)
    strange = np.isinf(values)
    if strange.any():
        row = int(strange.argmax())
        raise ValueError(
            f"column {name!r} {describe_cell(column[row].as_py())} in row {first_row + row} (data "
            "rows, counted from 0); every row needs a finite number, or an empty cell: correct or "
            "drop such rows"
        )
    return values


def describe_cell(value: Any) -> str:
    """What a cell that is not a number holds, in words."""
    if value is None:
        return "is missing"
    is_text = isinstance(value, str | bytes)
    return f"holds the text {value[:40]!r}" if is_text else f"is {value}"


def holds_text(column: pa.Array, name: str) -> bool:
    """Whether a column holds categories without an order, or nothing that is a number."""
    if is_category(column.type):
        return not column.type.ordered
    try:
        is_number = np.isfinite(floats(truths_as_numbers(column), name))
    except ValueError:  # times, lists and the like
        return True
    return bool(not is_number.any() and not is_blank(column).all())


def is_blank(column: pa.Array) -> NDArray[np.bool_]:
    """Where a column says nothing: null, NaN, or a text such as NA."""
    if pa.types.is_floating(column.type):
        return np.asarray(np.isnan(column.to_numpy(zero_copy_only=False)), dtype=np.bool_)
    blank = pc.is_null(column)
    column = decoded(column)
    if is_text(column.type):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column)).cast(pa.string())
        blank = pc.or_(blank, pc.is_in(words, value_set=pa.array(_BLANK)))
    return np.asarray(blank.to_numpy(zero_copy_only=False), dtype=np.bool_)


def labels(column: pa.Array, name: str | None = None) -> pa.Array:
    """A column as texts without spaces around them; empty ones and NaN become null.

    Parameters
    ----------
    name : of the column, for messages
    """
    column = decoded(column)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    try:
        texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise ValueError(
            f"{'a column' if name is None else f'column {name!r}'} of type {column.type} cannot "
            "be read as text; choose another column, or convert it"
        ) from error
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def places_of(values: Any, name: str, categories: Sequence[str | None]) -> Floats:
    """The place of every row's category; NaN where it is missing and has none, else infinite."""
    places = {None: math.nan} | {text: float(k) for k, text in enumerate(categories)}
    texts = labels(arrow_of(values, name), name)
    found = pc.index_in(texts, value_set=pa.array(list(places), pa.string()))
    index = pc.fill_null(found, len(places)).to_numpy()
    codes: Floats = np.array([*places.values(), math.inf])[index]
    return codes


def class_numbers(cells: pa.Array, name: str, classes: Sequence[str]) -> Floats:
    """The number of every row's class, not finite where a row has none of them.

    Matched as text, and where that fails as numbers: 1.0, and true, is the class 1.
    """
    found = places_of(cells, name, classes)
    lost = ~np.isfinite(found)
    if lost.any():
        values = floats(truths_as_numbers(decoded(cells)), name)
        for k, text in enumerate(classes):
            found[lost & (values == class_number(text))] = k
    return found


def class_number(name: str) -> float:
    """The number that the name of a class may stand for; NaN if it is none."""
    try:
        return float({"false": "0", "true": "1"}.get(name.casefold(), name))
    except ValueError:
        return math.nan
