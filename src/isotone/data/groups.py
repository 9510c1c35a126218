"""Groups: rows that are not independent, such as the candidates of one event.

A group is named by one or several columns. Its key is a number of 64 bits that depends on their
values alone, so that it is the same in every file and batch; two groups share one by chance in a
pair of 10¹⁹, and are then one group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isotone.inputs.cells import is_blank, labels

Keys = NDArray[np.uint64]

#: the smallest whole numbers that have no other of their own above them
_EXACT = {pa.float16(): 2**11, pa.float32(): 2**24, pa.float64(): 2**53}
_FRACTION = np.uint64(0x9E3779B97F4A7C15)  # tells bits of fractions from those of whole numbers


def check_key(column: pa.Array, name: str, first_row: int) -> None:
    """Refuse missing values, and floating-point numbers so large that neighbors are the same."""
    blank = is_blank(column)
    if blank.any():
        raise ValueError(
            f"column {name!r} is missing in row {first_row + int(blank.argmax())} (data rows, "
            "counted from 0); every row must belong to an event, or a group: fill or drop it"
        )
    limit = _EXACT.get(column.type)
    if limit is None or not len(column):
        return
    largest = float(np.abs(column.to_numpy(zero_copy_only=False)).max())
    if largest >= limit:
        raise ValueError(
            f"column {name!r} holds numbers of type {column.type} up to {largest:.0f}; from "
            f"{limit} on they cannot tell neighbors apart, and events would be merged: store the "
            "column as integers"
        )


def keys_of(batch: pa.RecordBatch, names: Sequence[str], first_row: int) -> Keys:
    """The key of the group of every row.

    Parameters
    ----------
    names : of columns; rows that share all of their values are one group

    Examples
    --------
    >>> batch = pa.record_batch({"run": [7, 7, 8], "event": [1.0, 2.0, 1.0]})
    >>> keys = keys_of(batch, ["run", "event"], 0)
    >>> len(set(keys.tolist())), len(set(keys_of(batch, ["run"], 0).tolist()))
    (3, 2)
    """
    found = np.zeros(len(batch), np.uint64)
    for name in names:
        column = batch.column(name)
        check_key(column, name, first_row)
        found = mixed(found ^ _bits(column, name))
    return found


def mixed(bits: Keys) -> Keys:
    """Every bit of the result depends on all bits (the finalizer of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))


def _bits(column: pa.Array, name: str) -> Keys:
    """Numbers that tell values apart: equal numbers have equal ones, whatever their type."""
    if pa.types.is_integer(column.type):
        whole: NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
        return whole.view(np.uint64)
    if pa.types.is_floating(column.type):
        return _float_bits(column.to_numpy(zero_copy_only=False).astype(np.float64))
    encoded = labels(column, name).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
    known = np.frombuffer(b"".join(digests), np.uint64)
    codes: NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False)
    return known[codes]


def _float_bits(values: NDArray[np.float64]) -> Keys:
    whole = np.floor(values) == values
    bits = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64)
    return np.where(whole, bits, values.view(np.uint64) ^ _FRACTION)
