"""A browser, a table of people, and its report open in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import Opened, opened
from isotone import report
from reports import rows, two_classes


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def page(browser: Any, tmp_path: Path, table: Path) -> Iterator[Opened]:
    report.write(two_classes(), tmp_path / "report.html", table, target="paid")
    with opened(browser, tmp_path / "report.html") as found:
        yield found
        found.assert_clean()
