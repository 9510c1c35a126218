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

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?"
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
    """Lines that were not printed, in this order; see `alike`."""
    lines = iter(output.splitlines())
    return [
        wanted
        for wanted in filter(str.strip, expected.splitlines())
        if not any(alike(wanted, line) for line in lines)
    ]


def alike(wanted: str, line: str) -> bool:
    """Whether lines agree but for spaces, what `near` permits, and what "..." stands for."""
    wanted, line = (" ".join(text.split()) for text in (wanted, line))
    texts = (map(re.escape, text.split("...")) for text in re.split(NUMBER, wanted))
    found = re.fullmatch(f"({NUMBER})".join(map(".*".join, texts)), line)
    return found is not None and all(map(near, re.findall(NUMBER, wanted), found.groups()))


def near(a: str, b: str) -> bool:
    """Whether numbers agree as those of networks that two machines trained.

    The last bits of their libraries differ, and training enlarges that: to 15 %, or a unit in the
    last place that the page shows.
    """
    x, y = (float(number.replace(",", "")) for number in (a, b))
    unit = 10.0 ** -len(a.partition(".")[2])
    return abs(x - y) <= 0.15 * abs(x) + max(0.02, unit)


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
    output = "rate  658.2 ± 41 kHz\nall signal  3,985  0.73\n"
    assert missing("rate 660 ± 40 kHz\nall signal ...\n", output) == []
    assert missing("all signal 3,900 0.73\nrate ... kHz\n", output) == ["rate ... kHz"]
    assert missing("rate 558.2 ± 41 kHz\n", output) == ["rate 558.2 ± 41 kHz"]
    assert missing("rate 658.2 ± 41 Hz\n", output) == ["rate 658.2 ± 41 Hz"]
    assert missing("all signal 3,985 0.93\n", output) == ["all signal 3,985 0.93"]
