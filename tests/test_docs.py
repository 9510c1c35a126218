"""What the documentation shows runs, and what it links to is there."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent
MODULES = sorted(p.stem for p in (ROOT / "src/isotone").glob("*.py") if p.stem != "__init__")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(f"isotone.{name}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_on_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile("\n".join(code), str(page), "exec"), names)
    if page.name == "README.md":
        assert names["certificate"].holds


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_make_targets_that_are_mentioned_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"`make ([a-z-]+)`", page.read_text())) <= targets
