"""A stranger follows each tutorial: every block runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_python(code: str, names: dict[str, Any], page: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, page, "exec"), names)
    return output.getvalue()


def run_shell(code: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "90", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


def missing(expected: str, output: str) -> list[str]:
    """Lines that were not printed, in this order; "..." stands for anything, space for spaces."""
    lines, absent = iter(output.splitlines()), []
    for wanted in expected.splitlines():
        parts = [" ".join(part.split()) for part in wanted.split("...")]
        pattern = re.compile(".*".join(map(re.escape, parts)))
        if not any(pattern.fullmatch(" ".join(line.split())) for line in lines):
            absent.append(wanted)
    return absent


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.stem)
def test_a_stranger_gets_what_the_tutorial_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    work = tmp_path / "results" / "tutorial"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": page.stem}
    output = ""
    for language, code in BLOCK.findall(page.read_text()):
        if language == "python":
            output = run_python(code, names, page.name)
        elif language == "shell":
            output = run_shell(code)
        elif language == "text":
            assert missing(code, output) == [], output


def test_a_page_that_shows_something_else_is_found_out() -> None:
    output = "rate  658 kHz\nall signal  0.73\n"
    assert missing("rate ... kHz\nall signal ...\n", output) == []
    assert missing("all signal ...\nrate ... kHz\n", output) == ["rate ... kHz"]
    assert missing("rate 659 kHz\n", output) == ["rate 659 kHz"]
