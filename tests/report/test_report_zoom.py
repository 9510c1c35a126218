"""Zoom: a card shows a part of its axis, and nothing else on the page changes by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from browser import Opened, opened
from isotone import report
from reports import rows, two_classes

AXIS = "k => isotone.app.cards[k].shown.axis"
WHOLE = "k => isotone.app.data.controls[k].axis"
# raw values and scores of the curve that a card shows, and its ends
DRAWN = """k => {
    const { chart } = isotone.app.cards[k];
    return [chart.series[0].points, [chart.xs.low, chart.xs.high]];
}"""


def zoom(page: Opened, name: str, times: int = 1) -> None:
    page.page.get_by_label(f"{name}: zoom in").focus()
    for _ in range(times):
        page.page.keyboard.press("Enter")
        page.settle()


def test_a_zoomed_curve_is_the_engines_on_half_the_range_around_the_row(page: Opened) -> None:
    flips = page.page.inner_text(".flips")
    row, (low, high) = page.run("() => isotone.app.row"), page.run(WHOLE, 0)
    zoom(page, "income")
    points, ends = page.run(DRAWN, 0)
    assert ends == pytest.approx([(low + row[0]) / 2, (high + row[0]) / 2])
    found = np.array(points)
    assert found[[0, -1], 0] == pytest.approx(ends)
    X = np.tile(row, (len(found), 1))
    X[:, 0] = found[:, 0]
    frozen = two_classes()
    assert np.array_equal(
        found[:, 1], frozen.probability(pd.DataFrame(X, columns=frozen.features))
    )
    assert page.page.inner_text(".flips") == flips
    assert page.run(AXIS, 1) == page.run(WHOLE, 1)


def test_keys_zoom_and_go_back_and_do_not_lose_their_place(page: Opened) -> None:
    zoom(page, "income", 3)
    assert page.run("() => document.activeElement.textContent") == "Zoom in"
    low, high = page.run(AXIS, 0)
    whole = page.run(WHOLE, 0)
    assert high - low == pytest.approx((whole[1] - whole[0]) / 8)
    page.page.get_by_label("income: show the whole range").focus()
    page.page.keyboard.press("Enter")
    page.settle()
    assert page.run(AXIS, 0) == whole
    assert page.run("() => document.activeElement.id") == "slider-0"
    assert page.page.get_by_label("income: show the whole range").is_hidden()


def test_a_double_click_zooms_where_it_is(page: Opened) -> None:
    curve = page.page.locator("#curves .card svg").first
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    assert box is not None
    page.page.mouse.dblclick(box["x"] + 0.8 * box["width"], box["y"] + 60)
    page.settle()
    (low, high), row = page.run(AXIS, 0), page.run("() => isotone.app.row")
    assert low < row[0] < high < page.run(WHOLE, 0)[1]
    assert (row[0] - low) / (high - low) > 0.6


def test_the_slider_is_finer_and_the_range_follows_the_row(page: Opened) -> None:
    zoom(page, "income", 4)
    low, high = page.run(AXIS, 0)
    for key, end in (("End", high), ("Home", low)):
        page.page.focus("#slider-0")
        page.page.keyboard.press(key)
        page.settle()
        assert page.run("() => isotone.app.row[0]") == pytest.approx(end, abs=(high - low) / 1000)
        assert page.run(AXIS, 0) == [low, high]
    page.page.fill("#value-0", "2.5")
    page.settle()
    moved = page.run(AXIS, 0)
    assert np.mean(moved) == pytest.approx(2.5)
    assert moved[1] - moved[0] == pytest.approx(high - low)


def test_whole_numbers_are_not_zoomed_until_none_is_left(browser: Any, tmp_path: Path) -> None:
    frame = rows()
    frame["age"] = (40 + 10 * frame["age"]).round()
    frame.to_csv(tmp_path / "people.csv", index=False)
    report.write(two_classes(), tmp_path / "report.html", tmp_path / "people.csv")
    with opened(browser, tmp_path / "report.html") as page:
        zoom(page, "age", 12)
        low, high = page.run(AXIS, 2)
        assert 4 <= high - low < 8
        for key in ("End", "Home"):
            page.page.focus("#slider-2")
            page.page.keyboard.press(key)
            page.settle()
            age = page.run("() => isotone.app.row[2]")
            assert age == round(age)
            assert low <= age <= high
        page.page.keyboard.press("ArrowLeft")
        page.settle()
        assert page.run("() => isotone.app.row[2]") == age - 1
        page.assert_clean()
