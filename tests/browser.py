"""A real browser for tests: Chromium of the system, without a window and without a network."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
READY = "() => window.location && typeof isotone === 'object' && isotone.app"
SETTLED = """() => isotone.app.pending === null
    && isotone.app.drawnAt === document.body.clientWidth"""


# The middle of an element, in the window, once it is in sight.
MIDDLE = """place => {
    const element = document.querySelector(place);
    element.scrollIntoView({ behavior: "instant", block: "center" });
    const { left, top, width, height } = element.getBoundingClientRect();
    return [left + width / 2, top + height / 2];
}"""
CHOOSE = """([place, label]) => {
    const list = document.querySelector(place);
    list.selectedIndex = [...list.options].findIndex((option) => option.label === label);
    list.dispatchEvent(new Event("input", { bubbles: true }));
    list.dispatchEvent(new Event("change", { bubbles: true }));
}"""


@dataclass
class Page(ABC):
    """A page in some browser, what it wrote to the console, and what it asked the network for."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @abstractmethod
    def run(self, script: str, argument: Any = None) -> Any:
        """What a function of JavaScript returns in the page."""

    @abstractmethod
    def wait(self, script: str) -> None:
        """Wait until a function returns true."""

    @abstractmethod
    def press(self, key: str) -> None: ...

    @abstractmethod
    def type(self, text: str) -> None: ...

    @abstractmethod
    def click_at(self, x: float, y: float) -> None: ...

    @abstractmethod
    def saved(self, save: Callable[[], None]) -> str:
        """The text of the file that is downloaded when `save` is called."""

    @abstractmethod
    def attach(self, place: str, file: Path) -> None:
        """Choose a file for a field that takes one."""

    @abstractmethod
    def printed(self) -> bytes:
        """The page on A4 paper, as PDF."""

    @abstractmethod
    def reload(self) -> None: ...

    def settle(self) -> None:
        """Wait until the page has drawn what changed."""
        self.wait(SETTLED)

    def click(self, place: str) -> None:
        """Click into the middle of the first element that a selector finds."""
        self.click_at(*self.run(MIDDLE, place))

    def choose(self, place: str, label: str) -> None:
        """Choose from a list, whose open form the system draws, out of reach of scripts."""
        self.run(CHOOSE, [place, label])

    def focus(self, place: str) -> None:
        self.run("place => { document.querySelector(place).focus(); }", place)

    def fill(self, place: str, text: str) -> None:
        """Replace what stands in a field, by keys."""
        self.focus(place)
        self.run("place => { document.querySelector(place).select(); }", place)
        self.type(text)

    def text(self, place: str) -> str:
        return str(self.run("place => document.querySelector(place).innerText", place))

    def texts(self, place: str) -> list[str]:
        """The texts of all elements that a selector finds."""
        script = "place => Array.from(document.querySelectorAll(place), (each) => each.innerText)"
        found: list[str] = self.run(script, place)
        return found

    def assert_clean(self) -> None:
        assert self.console == []
        assert self.requests == []


class Opened(Page):
    """A page in Chromium; `page` is Playwright's."""

    def run(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(script, argument)

    def wait(self, script: str) -> None:
        self.page.wait_for_function(script)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def click_at(self, x: float, y: float) -> None:
        self.page.mouse.click(x, y)

    def saved(self, save: Callable[[], None]) -> str:
        with self.page.expect_download() as started:
            save()
        return Path(started.value.path()).read_text(encoding="utf-8")

    def attach(self, place: str, file: Path) -> None:
        self.page.set_input_files(place, file)

    def printed(self) -> bytes:
        return bytes(self.page.pdf(format="A4"))

    def reload(self) -> None:
        self.page.reload()


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
