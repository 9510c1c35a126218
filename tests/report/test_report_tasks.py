"""Twelve things that a new reader does with a report: by mouse, and by the keyboard alone."""

from __future__ import annotations

import csv
import io
import re
import zlib
from pathlib import Path
from typing import Any, Protocol

import pytest

from browser import MIDDLE, READY, Page
from isotone import report
from reports import rows, two_classes

pytestmark = pytest.mark.slow

WIDTHS = [1400, 820, 390]
MOST_TABS = 160
SLIDER = """place => {
    const { offsetWidth, value } = document.querySelector(place);
    return [offsetWidth, Number(value)];
}"""


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
    def __init__(self, page: Page) -> None:
        self.page = page

    def use(self, place: str) -> None:
        self.page.click(place)

    def choose(self, place: str, label: str) -> None:
        self.page.choose(place, label)

    def nudge(self, place: str) -> None:
        """Press the slider a little to the right of where it stands."""
        x, y = self.page.run(MIDDLE, place)
        width, value = self.page.run(SLIDER, place)
        share = min(value / 1000 + 0.15, 0.98)
        self.page.click_at(x + (share - 0.5) * (width - 18), y)


class Keyboard:
    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, place: str) -> None:
        """Press Tab until the focus is there."""
        script = "place => document.activeElement === document.querySelector(place)"
        for _ in range(MOST_TABS):
            if self.page.run(script, place):
                return
            self.page.press("Tab")
        raise AssertionError(f"{place} was not reached with Tab")

    def use(self, place: str) -> None:
        self.reach(place)
        self.page.press("Enter")

    def choose(self, place: str, label: str) -> None:
        self.reach(place)
        self.page.type(label)
        self.page.press("Enter")

    def nudge(self, place: str) -> None:
        self.reach(place)
        self.page.press("ArrowRight")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", [Mouse, Keyboard])
def test_twelve_tasks(open_page: Any, written: Path, kind: Any, width: int) -> None:
    """In the order of the page, so that Tab alone leads from one to the next."""
    with open_page(written, viewport={"width": width, "height": 900}) as page:
        hand: Hand = kind(page)
        said = page.text("header")
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


def test_an_auditor_gets_one_page(open_page: Any, written: Path) -> None:
    with open_page(written) as page:
        page.run("() => document.body.classList.add('one-page')")
        assert n_sheets(page.printed()) == 1


def n_sheets(pdf: bytes) -> int:
    """Pages of a PDF, whose description Firefox packs."""
    packed = re.findall(rb"/ObjStm.*?stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    objects = [zlib.decompressobj().decompress(each) for each in packed]
    return sum(len(re.findall(rb"/Type\s*/Page\b", each)) for each in [pdf, *objects])


def print_page(page: Page, hand: Hand) -> None:
    page.run("() => { window.print = () => { window.printed = document.body.className; }; }")
    hand.use("#print-page")
    assert page.run("() => window.printed") == "one-page"
    page.run("() => document.body.classList.remove('one-page')")


def copy_link(page: Page, hand: Hand) -> str:
    hand.use("#copy-link")
    link: str = page.run("() => window.location.hash")
    assert link.startswith("#row=")
    return link


def slide(page: Page, hand: Hand) -> None:
    before = page.run("() => [...isotone.app.row]")
    hand.nudge("#slider-0")
    page.settle()
    assert page.run("() => isotone.app.row[0]") > before[0]
    page.fill("#value-1", "0.25")
    page.settle()
    assert page.run("() => isotone.app.row[1]") == 0.25


def judge(page: Page, hand: Hand) -> None:
    hand.choose("#view", "score")
    page.settle()
    assert page.run("() => isotone.app.view.name") == "score"
    before = page.text(".rates")
    hand.nudge("#threshold")
    page.settle()
    assert page.text(".rates") != before


def reason(page: Page, hand: Hand) -> None:
    hand.choose("#compared", "the median of the table")
    page.settle()
    assert "sign proved" in page.text("#why tbody")


def turn(page: Page, hand: Hand) -> None:
    hand.choose("#allowed-2", "stays")
    page.settle()
    before = page.run("() => isotone.app.judge.decide(isotone.app.scores)")
    hand.use("#turn")
    page.settle()
    assert page.run("() => isotone.app.judge.decide(isotone.app.scores)") != before


def break_it(page: Page, hand: Hand) -> None:
    hand.use("#break-it")
    page.settle()
    said = page.text("#break")
    assert "this model in 0" in said


def save(page: Page, hand: Hand) -> None:
    place = "[aria-label^='receiver operating characteristic: download as CSV']"
    head, *lines = csv.reader(io.StringIO(page.saved(lambda: hand.use(place))))
    assert head == ["series", "false-positive rate", "true-positive rate"]
    assert len(lines) > 10


def prove(page: Page, hand: Hand) -> None:
    hand.use("#proof > summary")
    assert "What is not guaranteed" in page.text("#proof")


def reopen(page: Page, link: str) -> None:
    """The link brings the sliders back, whatever was done since."""
    page.run("link => { window.history.replaceState(null, '', link); }", link)
    page.reload()
    page.wait(READY)
    page.settle()
    assert page.run("() => isotone.app.row") == page.run("() => isotone.app.data.start")
