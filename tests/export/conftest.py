"""One PostgreSQL server for the tests of a file that want it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isotone.export.sql import postgresql


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql.Run]:
    try:
        postgresql.find_server()
        postgresql._account()
    except postgresql.NoServerError as error:
        pytest.skip(str(error))
    with postgresql.server() as run:
        yield run
