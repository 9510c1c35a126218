"""Cells: what the text and the decimals of a file stand for, exactly.

Scores can be monotone in what a file holds only if reading is: of two cells, the larger must never
become the smaller number. Integers, decimals and numbers written as text are therefore rounded to
the nearest float64, as Python's `float` does. Arrow's own cast of decimals is not even monotone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


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
