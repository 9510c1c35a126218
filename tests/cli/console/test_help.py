"""Help is laid out by the terminal, not by the source."""

from __future__ import annotations

import re

import pytest
import typer
from typer.core import TyperOption
from typer.testing import CliRunner

from isotone.cli import app
from isotone.cli.console.groups import GROUPS

MOST = 8  # options in one panel, unless they are all about one thing
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def options(command: str) -> list[TyperOption]:
    return [each for each in COMMANDS[command].params if isinstance(each, TyperOption)]


def test_help_fills_its_lines() -> None:
    shown = CliRunner().invoke(app, ["explain", "--help"], env={"COLUMNS": "80"}).stdout
    (paragraph,) = re.findall(r"Contributions are.*?\n\s*\n", shown, re.DOTALL)
    *full, _ = paragraph.strip().splitlines()
    assert all(len(line.strip()) > 60 for line in full)


def test_an_example_comes_before_options_and_details_after_them() -> None:
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "80"}).stdout
    places = [shown.index(text) for text in ("isotone train loans.csv", "─ Options ─", "Losses:")]
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_shown_in_groups(command: str) -> None:
    first = [each.name for each in options(command) if each.rich_help_panel is None]
    assert len(first) <= MOST
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"}).stdout
    for panel in {each.rich_help_panel for each in options(command)} - {None}:
        assert f"─ {panel} ─" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "…" not in re.sub(r"Usage.*", "", shown)  # nothing is cut off


def test_every_group_holds_options_that_exist() -> None:
    for command, panels in GROUPS.items():
        known = {each.name for each in options(command)}
        named = [name for names in panels.values() for name in names]
        assert set(named) - known <= {"joint_cst"}  # which a sweep has not
        assert len(named) == len(set(named))
