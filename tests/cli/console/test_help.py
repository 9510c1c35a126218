"""Help is laid out by the terminal, not by the source."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from isotone.cli import app


def test_help_fills_its_lines() -> None:
    shown = CliRunner().invoke(app, ["explain", "--help"], env={"COLUMNS": "80"}).stdout
    (paragraph,) = re.findall(r"Contributions are.*?\n\s*\n", shown, re.DOTALL)
    *full, _ = paragraph.strip().splitlines()
    assert all(len(line.strip()) > 60 for line in full)
