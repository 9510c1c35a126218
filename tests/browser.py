"""A real browser for tests: Chromium of the system, without a window and without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
READY = "() => window.location && typeof isotone === 'object' && isotone.app"
SETTLED = """() => isotone.app.pending === null
    && isotone.app.drawnAt === document.body.clientWidth"""


@dataclass
class Opened:
    """A page, what it wrote to the console, and what it asked the network for."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def run(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def settle(self) -> None:
        """Wait until the page has drawn what changed."""
        self.page.wait_for_function(SETTLED)

    def assert_clean(self) -> None:
        assert self.console == []
        assert self.requests == []


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser; skips the test where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = next((path for path in map(shutil.which, NAMES) if path), None)
    if executable is None:
        pytest.skip("Chromium is not installed, so no page was opened: apt-get install chromium")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=options)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, path: Path, ready: str = READY, **options: Any) -> Iterator[Opened]:
    """A report in a page of its own; whatever would leave the page is recorded and refused.

    Parameters
    ----------
    ready : script that tells when the page can be used; by default when a report is drawn
    """
    context = browser.new_context(**options)
    page = context.new_page()
    found = Opened(page)
    address = path.resolve().as_uri()

    def judge(route: Any) -> None:
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            found.requests.append(route.request.url)
            route.abort()

    context.route("**/*", judge)
    page.on("console", lambda message: found.console.append(message.text))
    page.on("pageerror", lambda error: found.console.append(str(error)))
    page.goto(address)
    page.wait_for_function(ready)
    if ready == READY:
        found.settle()
    yield found
    context.close()
