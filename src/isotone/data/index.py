"""Index: columns of a file that name its rows instead of describing them.

pandas writes the index of a frame as a column like any other. In rows sorted by what is learned,
such a column predicts it perfectly, and means nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow.parquet

from isotone.data.table import Table, suffix_of

# What pandas calls an index without a name: in Parquet, in CSV, and when it reads such a CSV.
_UNNAMED = re.compile(r"__index_level_\d+__|\s*|Unnamed: \d+(_level_\d+)?")


def index_columns(table: Table) -> tuple[str, ...]:
    """Columns that pandas wrote as an index: named so in a Parquet file, or without a name."""
    declared = _declared(table.path) if suffix_of(table.path) in (".parquet", ".pq") else ()
    found = (n for n in table.columns if n in declared or _UNNAMED.fullmatch(n))
    return tuple(dict.fromkeys(found))


def _declared(path: str) -> tuple[str, ...]:
    """What the pandas metadata of a Parquet file calls index columns; a counter is left out."""
    metadata = pyarrow.parquet.read_schema(path).metadata or {}
    try:
        content: Any = json.loads(metadata.get(b"pandas", b"{}"))
        entries = content["index_columns"]
        return tuple(entry for entry in entries if isinstance(entry, str))
    except (ValueError, KeyError, TypeError, RecursionError):  # of another program
        return ()
