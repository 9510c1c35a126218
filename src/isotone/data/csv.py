"""The CSV file, read as text and written in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

_BUFFER_BYTES = 2**20
# Leading zeros, or more digits than a 64-bit integer surely holds: a name, not a number.
_LIKE_A_NAME = r"^[+-]?(0\d|\d{19})"

# Arrow counts the line of names as row 1.
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


def open_reader(path: str, convert: pyarrow.csv.ConvertOptions) -> pyarrow.csv.CSVStreamingReader:
    """The file, read in pieces; text is converted as told."""
    return pyarrow.csv.open_csv(
        path,
        # without threads errors name the row, at the same speed
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=_BUFFER_BYTES),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=convert,
    )


def describe_ragged(error: str, path: str) -> str | None:
    """Arrow's error about a row that is too short or too long, with rows counted as elsewhere."""
    if (found := _RAGGED.search(error)) is None:
        return None
    row, expected, got = map(int, found.groups())
    return (
        f"row {row - 2} of {path!r} (data rows, counted from 0) has {got} cells; the first line "
        f"names {expected} columns, and every row needs as many: correct or drop such rows"
    )


def narrowest_type(column: pa.Array, so_far: pa.DataType) -> pa.DataType:
    """The narrowest of int64, float64 and text, not narrower than `so_far`, that says it all."""
    if pc.any(pc.match_substring_regex(column, _LIKE_A_NAME)).as_py():
        return pa.string()
    kinds = [pa.int64(), pa.float64(), pa.string()]
    for kind in kinds[kinds.index(so_far) : -1]:
        try:
            column.cast(kind)
        except pa.ArrowInvalid:
            continue
        return kind
    return pa.string()


def write(path: Path, compress: bool, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write lines and give the number of rows."""
    _check_csv_types(schema)
    n_rows = 0
    with pa.output_stream(str(path), compression="gzip" if compress else None) as file:
        file.write(_csv_lines([pa.array([name]) for name in schema.names]))
        for batch in batches:
            file.write(_csv_lines(batch.columns))
            n_rows += batch.num_rows
    return n_rows


def _check_csv_types(schema: pa.Schema) -> None:
    for field in schema:
        try:
            pa.nulls(0, field.type).cast(pa.string())
        except pa.ArrowNotImplementedError as error:
            raise ValueError(
                f"column {field.name!r} has type {field.type}; a CSV file holds numbers and text: "
                "leave the column out, or write .parquet"
            ) from error


def _csv_lines(columns: Sequence[pa.Array]) -> bytes:
    """Lines with quotes only where needed; Arrow's own writer quotes every text."""
    cells = [_quote(column.cast(pa.string())) for column in columns]
    lines = pc.binary_join_element_wise(*cells, ",", null_handling="replace", null_replacement="")
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def _quote(column: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(column, r'[",\r\n]')
    if not pc.any(special).as_py():
        return column
    doubled = pc.replace_substring(column, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), column)
