"""What the documentation shows runs, and what it links to is there."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import torch

import isotone
from demo.gallery import EXAMPLES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "isotone"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if path.stem != "__init__"
)
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
API = sorted((DOCS / "api").glob("*.md"))
FILES_AND_KEYS = {"isotone.hpp", "isotone.json", "isotone.fingerprint", "isotone.features"}
ALL_PAGES = [*PAGES, *sorted(DOCS.glob("*/*.md"))]  # tutorials run in test_tutorials.py


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


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda p: p.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_pages_name_the_commands_that_their_numbers_come_from() -> None:
    index = (DOCS / "index.md").read_text()
    rows = re.findall(r"^\| \[.*?\]\((\S+)\) \| .* \| (.*?) ?\|$", index, re.MULTILINE)
    assert {name for name, _ in rows} == {
        *(page.name for page in DOCS.glob("*.md") if page.name != "index.md"),
        "api/index.md",
    }
    for name, commands in rows:
        for command in re.findall(r"`(make [a-z-]+)`", commands):
            assert command in (DOCS / name).read_text(), (name, command)


def test_make_targets_that_are_mentioned_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in ALL_PAGES:
        assert set(re.findall(r"`make ([a-z-]+)`", page.read_text())) <= targets


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda p: p.name)
def test_names_on_the_page_are_names_of_the_library(page: Path) -> None:
    for name in re.findall(r"`((?:isotone|studies)(?:\.\w+)+)[`(]", page.read_text()):
        if name not in FILES_AND_KEYS:
            assert pkgutil.resolve_name(name) is not None


def test_every_module_is_in_the_reference() -> None:
    """A new module gets its lines on one of the pages of docs/api."""
    told = re.findall(r"automodule:: isotone\.(\S+)", "".join(map(Path.read_text, API)))
    modules = [name for name in MODULES if not name.startswith(("cli.", "report."))]
    assert sorted(told) == sorted([*modules, "report", "export", "files"])


def test_every_public_name_is_in_the_index() -> None:
    told = re.findall(r"~isotone\.([\w.]+)\.(\w+)", (DOCS / "api" / "index.md").read_text())
    assert {name: home for home, name in told} == isotone._HOME


def test_every_public_name_of_a_package_is_in_the_index() -> None:
    index = (DOCS / "api" / "index.md").read_text()
    rows = re.findall(r"^\| `isotone\.(\w+)` \| (`.*`) \|$", index, re.MULTILINE)
    told = {package: re.findall(r"`(\w+)`", names) for package, names in rows}
    packages = {name: getattr(isotone, name) for name in isotone._MODULES}
    assert told == {name: p.__all__ for name, p in packages.items() if hasattr(p, "_HOME")}


class Links(HTMLParser):
    """What a page links to, what it loads, and the places on it that can be linked to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links, self.loads, self.places = set[str](), set[str](), {""}
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.places.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag in ("script", "img", "iframe"):
            self.loads.add(found.get("src", ""))
        elif tag == "link" and found.get("rel") == "stylesheet":
            self.loads.add(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation as HTML; warnings are errors."""
    out = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", DOCS, out]
    run = subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return out


@pytest.mark.slow
def test_the_site_hangs_together_and_needs_no_network(site: Path) -> None:
    live = {site / "gallery" / f"{name}.html" for name in EXAMPLES}  # `make docs` makes them
    pages = {path: Links(path) for path in site.rglob("*.html") if path not in live}
    assert {site / page.relative_to(DOCS).with_suffix(".html") for page in ALL_PAGES[2:]} <= {
        *pages
    }
    for path, page in pages.items():
        assert not any("//" in target for target in page.loads), path
        for link in page.links:
            name, _, place = link.partition("#")
            if "://" not in name and not name.startswith("mailto:"):
                target = (path.parent / name).resolve() if name else path
                if target in live:
                    continue
                assert target in pages, f"{path.name}: {link}"
                assert unquote(place) in pages[target].places, f"{path.name}: {link}"
