"""SQLite and DuckDB in memory, for one query: what the check after an export runs.

A query runs in a thread of its own, so that a signal, which Python handles in the main thread,
ends it.
"""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from typing import Any

from isotone.export.sql.postgresql import Columns, Rows
from isotone.export.sql.statement import quote

_PATIENCE = 0.1  # seconds: an interrupt has no effect while a database plans


def run_sqlite(select: str, table: str, columns: Columns) -> Rows:
    """The rows that a SELECT gives for a table with these columns."""
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        names = ", ".join(map(quote, columns))
        connection.execute(f"CREATE TABLE {quote(table)} ({names})")
        marks = ", ".join("?" * len(columns))
        rows = zip(*columns.values(), strict=True)
        connection.executemany(f"INSERT INTO {quote(table)} VALUES ({marks})", rows)
        return fetch(connection, select)


def run_duckdb(select: str, table: str, columns: Columns) -> Rows:
    """The rows that a SELECT gives for a table with these columns."""
    import duckdb
    import pyarrow as pa

    with closing(duckdb.connect()) as connection:
        connection.register("rows to check", pa.table(columns))
        connection.execute(f'CREATE TABLE {quote(table)} AS SELECT * FROM "rows to check"')
        return fetch(connection, select)


def fetch(connection: Any, select: str) -> Rows:
    """All rows of a SELECT, unless an exception interrupts it."""
    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(lambda: connection.execute(select).fetchall())
        try:
            fetched: Rows = rows.result()
            return fetched
        except BaseException:
            while wait([rows], _PATIENCE).not_done:
                connection.interrupt()
            raise
