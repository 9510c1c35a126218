"""What a page does in a frame of a drag: it changes what it shows, and asks no more than fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Opened, opened
from isotone import report
from reports import rows, two_classes

pytestmark = pytest.mark.slow

DRAG = """(share) => {
    const slider = document.querySelector("#slider-0");
    slider.value = 1000 * share;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    isotone.app.drawLive();
}"""
SHOWN = """() => [...document.querySelectorAll("#curves svg.chart, .strip svg.chart, .answer")]
    .map((each) => each.outerHTML)"""
AFRESH = """() => {
    const { app } = isotone;
    app.cards.forEach((card) => { card.axes = card.drawn = null; });
    app.threshold.shown = null;
    [app.headline, app.detail, app.pin].forEach((each) => each.replaceChildren());
    app.changed();
}"""
KEEP = """() => {
    window.kept = [...document.querySelectorAll("#curves svg *, .strip svg *, .big, .decision")];
}"""
KEPT = "() => window.kept.every((each) => each.isConnected)"
FIGURE = "() => document.querySelector('#confusion').innerText"
ALIKE = """(rows) => {
    const { data } = isotone.app.network;
    const fresh = (row) => new isotone.Network(data).score(row);
    return rows.every((row) => Object.is(isotone.app.network.score(row)[0], fresh(row)[0]));
}"""


@pytest.fixture
def page(browser: Any, tmp_path: Path, table: Path) -> Iterator[Opened]:
    """A report beside another model, which moves against what was declared."""
    against = two_classes(seed=3)
    report.write(two_classes(), tmp_path / "r.html", table, target="paid", against=against)
    with opened(browser, tmp_path / "r.html") as found:
        yield found
        found.assert_clean()


@pytest.mark.parametrize("view", [0, 1])  # a probability, a score
def test_what_is_changed_looks_as_if_drawn_afresh(page: Opened, view: int) -> None:
    page.page.select_option("#view", str(view))
    for share in (0.1, 0.9, 0.35):
        page.run(DRAG, share)
    page.run("() => isotone.app.threshold.moveTo(3)")
    page.settle()
    shown = page.run(SHOWN)
    page.run(AFRESH)
    page.settle()
    assert page.run(SHOWN) == shown


def test_axes_labels_and_the_answer_stay_while_a_slider_moves(page: Opened) -> None:
    page.run(KEEP)
    before = page.run(SHOWN)
    page.run(DRAG, 0.9)
    assert page.run(KEPT)
    page.settle()
    assert page.run(KEPT)
    assert page.run(SHOWN) != before


def test_figures_off_the_screen_follow_the_threshold_after_the_drag(page: Opened) -> None:
    page.run("() => window.scrollTo({ top: 0, behavior: 'instant' })")
    page.page.wait_for_timeout(100)
    before = page.run(FIGURE)
    page.run("() => { isotone.app.threshold.moveTo(3); isotone.app.drawLive(); }")
    assert page.run(FIGURE) == before
    page.settle()
    assert page.run(FIGURE) != before


def test_figures_on_the_screen_follow_the_threshold_at_once(page: Opened) -> None:
    page.run("() => document.querySelector('#confusion').scrollIntoView({ behavior: 'instant' })")
    page.page.wait_for_timeout(100)
    before = page.run(FIGURE)
    page.run("() => { isotone.app.threshold.moveTo(3); isotone.app.drawLive(); }")
    assert page.run(FIGURE) != before


def test_late_frames_lower_the_budget_and_frames_in_time_raise_it(page: Opened) -> None:
    def after(*frames: tuple[float, float]) -> float:
        """The budget after frames that took some time to draw, and others until the next one."""
        script = """(frames) => {
            const { app } = isotone;
            Object.assign(app, { budget: 1e6, growth: 1.1 });
            frames.forEach(([took, gap]) => app.pace(took, gap));
            return app.budget;
        }"""
        return float(page.run(script, [list(frame) for frame in frames]))

    in_time, late = (2.0, 16.7), (6.0, 33.3)
    assert after(in_time) == pytest.approx(1.1e6)
    assert after((16.0, 16.7)) < 1e6  # too long to draw, though shown in time
    assert after(late) < 1e6
    assert after(late, in_time) < after(in_time, late)  # with care once one was late
    assert after(*[late] * 100) == 1e5
    assert after(*[in_time] * 100) == 2e7
    assert 1e5 < after(*[late] + [in_time] * 99) < 2e7  # one late frame in a hundred is little
    assert after((2.0, 33.3)) > 1e6  # drawing less would not have made it earlier
    assert after(*[late] * 100, *[in_time] * 300) > 1e6  # five seconds later nothing is left of it


def test_scores_do_not_depend_on_the_rows_before(page: Opened) -> None:
    """Arrays are used for row after row; the bits are those of a network that never was used."""
    rng = np.random.default_rng(0)
    some = rows(6)[["income", "debt", "age"]].to_numpy()
    one_moves = np.repeat(some[:1], 20, axis=0)
    one_moves[np.arange(20), rng.integers(0, 3, 20)] = rng.normal(size=20)
    zeros = [[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]]
    assert page.run(ALIKE, [*some.tolist(), *one_moves.tolist(), *zeros])


def test_a_card_that_was_enlarged_for_no_frame_keeps_its_chart(page: Opened) -> None:
    page.run(
        "() => { const b = document.querySelector('.card button.save'); b.click(); b.click(); }"
    )
    page.settle()
    assert page.page.locator(".card:first-child svg.chart").count() == 1
    page.run("""() => document.querySelectorAll('.card button').forEach((b) => {
        if (b.textContent === "Enlarge") { b.click(); b.click(); }
    })""")
    page.settle()
    cards = page.page.locator(".card").count()
    assert page.page.locator(".card svg.chart").count() == cards


def test_pictures_under_marks_stay(page: Opened) -> None:
    """A chart that is not drawn again keeps all that was put into it."""
    page.run(DRAG, 0.9)
    page.settle()
    assert page.page.locator("#heat svg.chart image.heat").count() == 1
    assert page.page.locator("#heat svg.chart .halo").count() == 1
    n_bars = page.page.locator("#importance rect.bar").count()
    assert n_bars == page.run("() => isotone.app.data.controls.length")
