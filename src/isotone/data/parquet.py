"""The Parquet file, read and written in pieces; categories come back as categories.

Parquet keeps categories of text as such but stores those of integers as plain integers. That they
were categories is in notes: of Arrow, which keeps its whole schema, and of pandas. That they had
an order is in these notes too, but the order itself is only in how the file was written.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from isotone.inputs.frames import is_category

_BUFFER_BYTES = 2**20
_KEEP_ORDER = ("parquet-cpp-arrow", "Polars")  # writers


def open_file(
    path: str,
    metadata: pyarrow.parquet.FileMetaData | None = None,
    buffer_bytes: int = _BUFFER_BYTES,
) -> pyarrow.parquet.ParquetFile:
    """The file, set so that a row group of any size is read page by page.

    Parameters
    ----------
    metadata : what its footer says, if that is known already
    buffer_bytes : of every column
    """
    return pyarrow.parquet.ParquetFile(
        path, metadata=metadata, pre_buffer=False, buffer_size=buffer_bytes
    )


def batches(
    file: pyarrow.parquet.ParquetFile,
    columns: list[str],
    n_rows: int,
    groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The named columns, at most `n_rows` rows at a time; categories are dictionary-encoded.

    Parameters
    ----------
    groups : numbers of the row groups to read; by default all
    """
    notes, sure = file.metadata.metadata, _sure_orders(file)
    for batch in file.iter_batches(n_rows, row_groups=groups, columns=columns):
        batch.validate(full=True)  # texts of a damaged file need not be text
        yield _without_orders(restore_categories(batch.select(columns), notes), sure)


def restore_categories(
    batch: pa.RecordBatch, notes: Mapping[bytes, bytes] | None
) -> pa.RecordBatch:
    """The batch with categories where its file notes that there were some."""
    for name in noted_categories(notes).intersection(batch.schema.names):
        column = batch.column(name).dictionary_encode()
        batch = batch.set_column(batch.schema.names.index(name), name, column)
    return batch


def _sure_orders(file: pyarrow.parquet.ParquetFile) -> frozenset[str]:
    """Names of the columns whose categories are stored in their order.

    Arrow and Polars write the dictionary of a column as it was. Others, and Arrow if told to write
    no dictionaries, leave categories in the order in which rows have them.
    """
    metadata, kinds = file.metadata, file.schema_arrow.types
    has_orders = any(is_category(kind) and kind.ordered for kind in kinds)
    if not has_orders or not str(metadata.created_by).startswith(_KEEP_ORDER):
        return frozenset()
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    unsure = {chunk.path_in_schema for chunk in chunks if not chunk.has_dictionary_page}
    return frozenset(file.schema_arrow.names) - unsure


def _without_orders(batch: pa.RecordBatch, sure: frozenset[str]) -> pa.RecordBatch:
    """The batch with categories that have an order only where that is sure."""
    for i, field in enumerate(batch.schema):
        if is_category(field.type) and field.type.ordered and field.name not in sure:
            column = batch.column(i)
            plain = pa.DictionaryArray.from_arrays(column.indices, column.dictionary)
            batch = batch.set_column(i, field.name, plain)
    return batch


def write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches and give the number of rows."""
    n_rows = 0
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return n_rows


def noted_categories(notes: Mapping[bytes, bytes] | None) -> frozenset[str]:
    """Names of the columns that were categories when they were written.

    Parameters
    ----------
    notes : the key-value metadata of a file, as ``pyarrow.parquet.ParquetFile.metadata`` has it
    """
    notes = notes or {}
    return _noted_by_arrow(notes.get(b"ARROW:schema")) | _noted_by_pandas(notes.get(b"pandas"))


def noted_index(path: str) -> tuple[str, ...]:
    """Columns that pandas notes as an index; a counter is left out."""
    notes = pyarrow.parquet.read_schema(path).metadata or {}
    try:
        entries = json.loads(notes.get(b"pandas", b"{}"))["index_columns"]
        return tuple(entry for entry in entries if isinstance(entry, str))
    except (ValueError, KeyError, TypeError, RecursionError):  # of another program
        return ()


def _noted_by_arrow(note: bytes | None) -> frozenset[str]:
    try:
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(note or b"")))
    except (pa.ArrowException, OSError, ValueError):
        return frozenset()  # a note that is absent, or of a later version
    return frozenset(field.name for field in schema if is_category(field.type))


def _noted_by_pandas(note: bytes | None) -> frozenset[str]:
    try:
        columns = json.loads(note or b"{}")["columns"]
        return frozenset(str(c["name"]) for c in columns if c["pandas_type"] == "categorical")
    except (ValueError, KeyError, TypeError, RecursionError):
        return frozenset()
