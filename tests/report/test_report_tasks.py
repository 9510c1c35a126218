"""Twelve things that a new reader does with a report: by mouse, and by the keyboard alone."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, Protocol

import pytest

from browser import Opened, opened
from isotone import report
from reports import rows, two_classes

pytestmark = pytest.mark.slow

WIDTHS = [1400, 820, 390]
MOST_TABS = 160


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    rows().to_csv(folder / "people.csv", index=False)
    other = two_classes(seed=3)
    report.write(
        two_classes(), folder / "report.html", folder / "people.csv", target="paid", against=other
    )
    return folder / "report.html"


class Hand(Protocol):
    """How a reader gets to something, uses it, and chooses from a list."""

    def use(self, place: str) -> None: ...
    def choose(self, place: str, label: str) -> None: ...
    def nudge(self, place: str) -> None: ...


class Mouse:
    def __init__(self, page: Opened) -> None:
        self.page = page

    def use(self, place: str) -> None:
        self.page.page.locator(place).first.click(force=True)

    def choose(self, place: str, label: str) -> None:
        self.page.page.select_option(place, label=label)

    def nudge(self, place: str) -> None:
        """Press the slider a little to the right of where it stands."""
        slider = self.page.page.locator(place)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        share = float(slider.input_value()) / 1000
        self.page.page.mouse.click(
            box["x"] + 9 + min(share + 0.15, 0.98) * (box["width"] - 18),
            box["y"] + box["height"] / 2,
        )


class Keyboard:
    def __init__(self, page: Opened) -> None:
        self.page = page

    def reach(self, place: str) -> None:
        """Press Tab until the focus is there."""
        script = "place => document.activeElement === document.querySelector(place)"
        for _ in range(MOST_TABS):
            if self.page.run(script, place):
                return
            self.page.page.keyboard.press("Tab")
        raise AssertionError(f"{place} was not reached with Tab")

    def use(self, place: str) -> None:
        self.reach(place)
        self.page.page.keyboard.press("Enter")

    def choose(self, place: str, label: str) -> None:
        self.reach(place)
        self.page.page.keyboard.type(label)
        self.page.page.keyboard.press("Enter")

    def nudge(self, place: str) -> None:
        self.reach(place)
        self.page.page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", [Mouse, Keyboard])
def test_twelve_tasks(browser: Any, written: Path, kind: Any, width: int) -> None:
    """In the order of the page, so that Tab alone leads from one to the next."""
    with opened(browser, written, viewport={"width": width, "height": 900}) as page:
        hand: Hand = kind(page)
        said = page.page.inner_text("header")
        assert "Every declared constraint holds" in said  # 1: the verdict, and
        assert "AUC" in said  # 2: how good it is, on the first screen
        print_page(page, hand)
        link = copy_link(page, hand)
        slide(page, hand)
        judge(page, hand)
        reason(page, hand)
        turn(page, hand)
        break_it(page, hand)
        save(page, hand)
        prove(page, hand)
        reopen(page, link)
        assert page.run("() => document.documentElement.scrollWidth") <= width
        page.assert_clean()


def print_page(page: Opened, hand: Hand) -> None:
    page.run("() => { window.print = () => { window.printed = document.body.className; }; }")
    hand.use("#print-page")
    assert page.run("() => window.printed") == "one-page"
    page.run("() => document.body.classList.remove('one-page')")


def copy_link(page: Opened, hand: Hand) -> str:
    hand.use("#copy-link")
    link: str = page.run("() => window.location.hash")
    assert link.startswith("#row=")
    return link


def slide(page: Opened, hand: Hand) -> None:
    before = page.run("() => [...isotone.app.row]")
    hand.nudge("#slider-0")
    page.settle()
    assert page.run("() => isotone.app.row[0]") > before[0]
    page.page.fill("#value-1", "0.25")
    page.settle()
    assert page.run("() => isotone.app.row[1]") == 0.25


def judge(page: Opened, hand: Hand) -> None:
    hand.choose("#view", "score")
    page.settle()
    assert page.run("() => isotone.app.view.name") == "score"
    before = page.page.inner_text(".rates")
    hand.nudge("#threshold")
    page.settle()
    assert page.page.inner_text(".rates") != before


def reason(page: Opened, hand: Hand) -> None:
    hand.choose("#compared", "the median of the table")
    page.settle()
    assert "sign proved" in page.page.inner_text("#why tbody")


def turn(page: Opened, hand: Hand) -> None:
    hand.choose("#allowed-2", "stays")
    page.settle()
    before = page.run("() => isotone.app.judge.decide(isotone.app.scores)")
    hand.use("#turn")
    page.settle()
    assert page.run("() => isotone.app.judge.decide(isotone.app.scores)") != before


def break_it(page: Opened, hand: Hand) -> None:
    hand.use("#break-it")
    page.settle()
    said = page.page.inner_text("#break")
    assert "this model in 0" in said


def save(page: Opened, hand: Hand) -> None:
    with page.page.expect_download() as started:
        hand.use("[aria-label^='receiver operating characteristic: download as CSV']")
    text = Path(started.value.path()).read_text()
    head, *lines = csv.reader(io.StringIO(text))
    assert head == ["series", "false-positive rate", "true-positive rate"]
    assert len(lines) > 10


def prove(page: Opened, hand: Hand) -> None:
    hand.use("#proof > summary")
    assert "What is not guaranteed" in page.page.inner_text("#proof")


def reopen(page: Opened, link: str) -> None:
    """The link brings the sliders back, whatever was done since."""
    page.run("link => { window.history.replaceState(null, '', link); }", link)
    page.page.reload()
    page.page.wait_for_function("() => typeof isotone === 'object' && isotone.app")
    page.settle()
    assert page.run("() => isotone.app.row") == page.run("() => isotone.app.data.start")
