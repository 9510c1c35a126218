"""Reports in a real browser: the page computes what the engine does, and nothing leaves it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from bench.proofs import last_bit
from browser import Opened, opened
from isotone import FrozenNetwork, Log, MonotonicNetwork, Scaling, certify, freeze, report
from isotone.export.parity import check_rows
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number, Ordered
from isotone.report.numbers import describe_network
from networks import every_step, small
from reports import EVIL, rows, two_classes
from test_parity import NETWORKS

N_ROWS = 10_000
SIZES = [(360, 740), (1280, 800), (1920, 1080)]  # phone, laptop, wide

SCORE = "rows => rows.map(row => isotone.app.network.score(row))"
SCORE_BY = """([network, rows]) => {
    const made = new isotone.Network(network);
    return rows.map(row => made.score(row));
}"""
PROBABILITY = "rows => rows.map(row => isotone.app.network.probability(row))"
# texts of one chart whose boxes meet
OVERLAPS = """() => [...document.querySelectorAll("svg.chart")].flatMap(chart => {
    const texts = [...chart.querySelectorAll("text")].filter(text => text.getClientRects().length);
    const boxes = texts.map(text => text.getBoundingClientRect());
    const found = [];
    boxes.forEach((a, i) => boxes.slice(0, i).forEach((b, j) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && tall > 3) found.push([texts[i].textContent, texts[j].textContent]);
    }));
    return found;
})"""
SNAP = 1e-5  # slopes are of exact scores; those of the page are of rows snapped to 2⁻²⁰
# how far a curve leaves its envelope, at the worst
ESCAPE = """() => {
    const { app } = isotone;
    return Math.max(...isotone.responses(app, app.curved, 50).flatMap(({ control, samples }) => {
        const i = control.feature;
        const here = app.network.position(i, app.row[i]);
        return samples.map(({ value, scores }) => {
            const step = app.network.position(i, value) - here;
            const parts = [app.network, app.judge, app.scores, app.view, i, step];
            const [low, high] = isotone.envelope(...parts);
            return Math.max(low - app.show(scores), app.show(scores) - high);
        });
    }));
}"""


def scores(found: Any, X: np.ndarray) -> np.ndarray:
    return np.array(found, dtype=float).reshape(len(X), -1)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_page_scores_as_the_engine_does(name: str, browser: Any, tmp_path: Path) -> None:
    """Bit for bit in float64; in float32 both are within E of the exact score."""
    frozen = NETWORKS[name]
    report.write(frozen, tmp_path / "report.html")
    n_rows = N_ROWS if name == "paper" else N_ROWS // 5
    X = check_rows(frozen, n_rows, seed=2)[:n_rows]  # the edges come first
    expected = frozen.score(X).astype(float).reshape(len(X), -1)
    with opened(browser, tmp_path / "report.html") as page:
        found = scores(page.run(SCORE, X.tolist()), X)
        if frozen.precision == "float64":
            assert np.array_equal(found, expected)
        else:
            error = np.array(certify(frozen).rounding_errors)
            assert np.all(np.abs(found - expected) <= 2 * error)
        page.assert_clean()


@pytest.mark.parametrize(
    "options", [{}, {"precision": "float32", "clip": 8.0, "grid": 2.0**-6}], ids=str
)
def test_the_page_is_monotone_to_the_last_bit_where_it_says_so(
    options: dict[str, Any], browser: Any, tmp_path: Path
) -> None:
    """Its own arithmetic, without fused multiply-add, keeps what the certificate promises."""
    frozen = freeze(last_bit.adversarial([4, 20, 20, 1], 0), **options)
    report.write(frozen, tmp_path / "report.html")
    assert "monotone to the last bit" in (tmp_path / "report.html").read_text()
    rng = np.random.default_rng(0)
    low = last_bit.base_rows(frozen, rng, 3000) * frozen.clip / 1024
    one, more = low.copy(), low.copy()
    one[:, 0] = np.nextafter(low[:, 0], np.inf)
    more[:, 0] = np.maximum(low[:, 0] + 10.0 ** rng.uniform(-12, 0, len(low)), one[:, 0])
    with opened(browser, tmp_path / "report.html") as page:
        below, just, above = (scores(page.run(SCORE, X.tolist()), X) for X in (low, one, more))
    assert np.all(just >= below)
    assert np.all(above >= below)


def test_every_kind_of_step_and_probability_has_the_bits_of_the_engine(
    browser: Any, tmp_path: Path
) -> None:
    activations = "relu", "leaky_relu", "abs", "hardtanh", "sigmoid", "softplus"
    report.write(every_step(3, outputs="logits"), tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        for name in activations:
            frozen = every_step(1, name, seed=3, grid=None)
            X = check_rows(frozen, 200)
            described = describe_network(certify(frozen))
            found = scores(page.run(SCORE_BY, [described, X.tolist()]), X)
            assert np.array_equal(found[:, 0], frozen.score(X)), name
        z = np.random.default_rng(0).normal(scale=100.0, size=(1000, 3))
        z[:2] = [[800.0, -800.0, 0.0], [0.0, 0.0, 0.0]]
        expected = every_step(3, outputs="logits").to_probability(z)
        assert np.array_equal(page.run(PROBABILITY, z.tolist()), expected)
        two = np.array(page.run(PROBABILITY, z[:, :1].tolist()))[:, 1]
        assert np.array_equal(two, two_classes().to_probability(z[:, 0]))


def test_sliders_and_boxes_move_the_row_and_the_certificate_follows(
    browser: Any, tmp_path: Path
) -> None:
    X = np.random.default_rng(0).exponential(size=(50, 3)) * [1.0, 100.0, 0.01]
    scaling = Scaling.fit(X, ["standard", "log", "robust"])
    frozen = replace(small((1, -1, 0), scaling=scaling, features=["up", "down", "free"]))
    report.write(frozen, tmp_path / "report.html", threshold=0.25)
    certificate = certify(frozen)
    with opened(browser, tmp_path / "report.html") as page:
        for k, key in enumerate(["End", "ArrowRight", "Home"]):
            before = page.run("() => isotone.app.row")
            page.page.focus(f"#slider-{k}")
            page.page.keyboard.press(key)
            page.settle()
            row = page.run("() => isotone.app.row")
            assert [i for i in range(3) if row[i] != before[i]] == [k]
            check_row(page, frozen, certificate, row)
        page.page.fill("#value-2", "123.456")
        page.settle()
        row = page.run("() => isotone.app.row")
        assert row[2] == 123.456
        assert page.page.text_content(".outside >> nth=2") == "unusual"
        check_row(page, frozen, certificate, row)
        page.page.fill("#value-2", "")  # no number: nothing happens
        assert page.run("() => isotone.app.row") == row
        page.assert_clean()


def check_row(page: Opened, frozen: FrozenNetwork, certificate: Any, row: list[float]) -> None:
    """Score, radius and flips of the page are those of the library."""
    score = frozen.score([row])[0]
    assert page.run("() => isotone.app.scores") == [score]
    shown = (page.page.text_content(".big") or "").replace("−", "-").replace(",", "")
    assert float(shown) == pytest.approx(score, rel=1e-4)
    radius = certificate.certified_radius([row], threshold=0.25)
    assert page.run("() => isotone.app.radius.scaled") == pytest.approx(radius.scaled[0])
    for side in ("down", "up"):
        found = page.run(f"() => isotone.app.radius.{side}")
        assert found == pytest.approx(getattr(radius, side)[0].tolist())
    assert page.run(ESCAPE) <= SNAP
    for i, flips in enumerate(page.run(FLIPS)):
        for value in filter(None, flips.values()):
            moved = [*row[:i], value, *row[i + 1 :]]
            assert (frozen.score([moved])[0] >= 0.25) != (score >= 0.25)
            assert abs(value - row[i]) > (radius.up if value > row[i] else radius.down)[0, i]


FLIPS = """() => isotone.responses(isotone.app, isotone.app.curved, 96).map(
    ({ control, samples }) => isotone.nearestFlips(isotone.app, control, samples))"""


def test_a_table_brings_rows_panels_and_choices(browser: Any, tmp_path: Path, table: Path) -> None:
    frozen, frame = two_classes(), rows()
    report.write(frozen, tmp_path / "report.html", table, target="paid", embed_rows=100)
    with opened(browser, tmp_path / "report.html") as page:
        held = page.run("() => isotone.app.data.rows.number")
        page.page.fill("#row", "7")
        page.page.keyboard.press("Enter")
        page.settle()
        expected = frame[["income", "debt", "age"]].iloc[held[6]].tolist()
        assert page.run("() => isotone.app.row") == expected
        assert f"row {held[6]} of people.csv" in page.page.inner_text(".presets")
        extreme = page.page.locator("#preset option", has_text="highest score").text_content()
        assert re.fullmatch(r"highest score \(row \d+, counted from 0\)", extreme)
        page.page.select_option("#preset", label="median of the table")
        page.page.click("text=Go there")
        page.settle()
        assert page.run("() => isotone.app.row") == page.run("() => isotone.app.data.start")
        page.page.select_option("#view", label="score")
        page.page.select_option("#map-x", label="age")
        page.page.select_option("#map-y", label="income")
        page.page.select_option("#against", label="city")
        page.page.select_option("#shift-feature", label="debt")
        page.page.focus("#shift")
        page.page.keyboard.press("End")
        page.settle()
        assert page.run("() => isotone.app.view.name") == "score"
        assert "score against age and income" in page.run(
            "() => [...document.querySelectorAll('svg')].map(s => s.getAttribute('aria-label'))"
        )
        assert "If debt is off by up to" in page.page.inner_text("#robustness")
        assert "100 of the 400 rows of people.csv" in page.page.inner_text("footer")
        page.assert_clean()


def test_a_click_into_a_picture_moves_the_row(browser: Any, tmp_path: Path) -> None:
    report.write(two_classes(), tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        before = page.run("() => isotone.app.row")
        page.page.locator("#curves svg").nth(1).click(position={"x": 100, "y": 60})
        page.settle()
        after = page.run("() => isotone.app.row")
        assert [a != b for a, b in zip(after, before, strict=True)] == [False, True, False]
        page.page.locator("#heat svg.chart").click(position={"x": 200, "y": 100})
        page.settle()
        assert (
            sum(a != b for a, b in zip(page.run("() => isotone.app.row"), after, strict=True)) == 2
        )
        page.assert_clean()


def encoded() -> FrozenNetwork:
    inputs = Inputs((Number("age", fill=40.0), Category("city", (EVIL, "Rome"))))
    frozen = replace(small((1, 0, 0, 0)), features=inputs.features, inputs=inputs)
    return replace(frozen, outputs="logits", classes=(EVIL, "b"), provenance={"target": EVIL})


def assert_nothing_is_said_of_a_missing_number(page: Opened, frozen: FrozenNetwork) -> None:
    """No row has the flag of a missing age and another age than its fill."""
    cells = page.page.inner_text(".flips tr:has(th:text-is('age'))").split("\t")
    assert cells[1:] == ["missing", "–", "–"]
    assert "age" not in page.page.inner_text("ul.stands") if page.run(_HAS_STANDS) else True
    samples = page.run(_SAMPLES)
    rows = np.array([[value, 0.0, 1.0, 0.0] for value, _ in samples])
    assert [scores[0] for _, scores in samples] == frozen.score_features(rows).tolist()


_HAS_STANDS = "() => document.querySelector('ul.stands') !== null"
_SAMPLES = """() => isotone.responses(isotone.app, [isotone.app.data.controls[0]], 8)[0]
    .samples.map(({ value, scores }) => [value, scores])"""


def test_categories_and_gaps_have_controls_and_names_stay_text(
    browser: Any, tmp_path: Path
) -> None:
    frozen = encoded()
    frame = pd.DataFrame({"age": [20.0, None, 60.0], "city": ["Rome", EVIL, "Rome"], EVIL: "b"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "report.html", tmp_path / "t.csv", title=EVIL)
    with opened(browser, tmp_path / "report.html") as page:
        for text in (EVIL, "Rome"):
            page.page.select_option("#value-1", label=text)
            page.settle()
            row = page.run("() => isotone.app.row")
            assert row[1:3] == [float(text == EVIL), float(text == "Rome")]
            assert page.run("() => isotone.app.scores") == [
                frozen.score_features(np.array([row]))[0]
            ]
        page.page.check("#missing-0")
        page.settle()
        assert page.run("() => isotone.app.row") == [40.0, 0.0, 1.0, 1.0]
        assert page.page.is_disabled("#slider-0")
        assert_nothing_is_said_of_a_missing_number(page, frozen)
        page.page.uncheck("#missing-0")
        assert not page.page.is_disabled("#value-0")
        assert page.page.inner_text("h1") == EVIL
        assert page.run("() => typeof hacked") == "undefined"
        assert page.run("() => document.querySelectorAll('img[onerror]').length") == 0
        page.assert_clean()


def test_a_pool_of_categories_is_one_of_them(browser: Any, tmp_path: Path) -> None:
    inputs = Inputs((Number("age"), Category("city", ("Oslo", "Rome"), pooled=12)))
    frozen = replace(small((1, 0, 0, 0)), features=inputs.features, inputs=inputs)
    frame = pd.DataFrame({"age": [20.0, 40.0, 60.0], "city": ["Rome", "Bonn", "new"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "report.html", tmp_path / "t.csv")
    with opened(browser, tmp_path / "report.html") as page:
        page.page.fill("#value-0", "20")
        for text, city in (("(other: 12 pooled)", "anywhere"), ("Rome", "Rome")):
            page.page.select_option("#value-1", label=text)
            page.settle()
            raw = {"age": [page.run("() => isotone.app.row")[0]], "city": [city]}
            assert page.run("() => isotone.app.scores") == frozen.score(raw).tolist()
        page.assert_clean()


def test_ordered_categories_are_chosen_by_name(browser: Any, tmp_path: Path) -> None:
    inputs = Inputs((Number("age"), Ordered("size", ("S", "M", "L"), fill=0.5)))
    frozen = replace(small((1, 1, 0)), features=inputs.features, inputs=inputs, outputs="logits")
    report.write(frozen, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        for rank, text in enumerate("SML"):
            page.page.select_option("#value-1", label=text)
            page.settle()
            row = page.run("() => isotone.app.row")
            assert row[1:] == [rank, 0.0]
            assert page.run("() => isotone.app.scores") == [
                frozen.score_features(np.array([row]))[0]
            ]
            cells = page.page.inner_text(".flips tr:has(th:text-is('size'))").split("\t")
            assert cells[1] == text
            assert text in cells[2].split(", ")
            assert set(cells[3].split(", ")) <= {*"SML", "no category"}
        page.page.check("#missing-1")
        page.settle()
        assert page.run("() => isotone.app.row")[1:] == [0.5, 1.0]
        assert page.page.is_disabled("#value-1")
        assert (
            page.page.inner_text(".flips tr:has(th:text-is('size'))").split("\t")[1] == "missing"
        )
        page.page.uncheck("#missing-1")
        page.settle()
        assert page.run("() => isotone.app.row")[1:] == [0.0, 0.0]
        page.assert_clean()


def test_one_row_and_columns_of_one_value_are_drawn(browser: Any, tmp_path: Path) -> None:
    """Bins of no width: ticks of such an axis never ended, and the page hung."""
    rows(1).assign(run=0.1257302210933933).to_csv(tmp_path / "t.csv", index=False)
    report.write(two_classes(), tmp_path / "report.html", tmp_path / "t.csv", target="paid")
    with opened(browser, tmp_path / "report.html") as page:
        for name in ("income", "run"):
            page.page.select_option("#against", label=name)
            texts = page.page.locator(f"#quality svg[aria-label$='against {name}'] text")
            assert texts.count() > 3
        page.assert_clean()


def test_large_numbers_fit_into_their_box(browser: Any, tmp_path: Path) -> None:
    report.write(two_classes(), tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        page.run("() => isotone.app.setRow([-150810000000, 0.00000125, 12.5])")
        boxes = [page.page.input_value(f"#value-{k}") for k in range(3)]
        assert [float(box) for box in boxes] == [-150810000000, 0.00000125, 12.5]
        assert boxes == ["-1.5081e+11", "1.25e-6", "12.5"]


def test_what_lies_far_outside_or_has_odd_units_is_drawn_and_moved(
    browser: Any, tmp_path: Path
) -> None:
    names = ["income", "debt", "age"]
    units = Scaling.fit(rows()[names].to_numpy() * [1e12, 1e-30, 1], "standard")
    frozen = replace(two_classes(), scaling=units)
    report.write(frozen, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        for k in range(2):
            page.page.focus(f"#slider-{k}")
            page.page.keyboard.press("Home")
            assert page.run("() => isotone.app.row")[k] < 0
            assert len(page.page.input_value(f"#value-{k}")) <= 10
        for far in ("9e99", "-1e308"):
            page.page.fill("#value-0", far)
            page.settle()
            row = page.run("() => isotone.app.row")
            assert page.run("() => isotone.app.scores") == frozen.score([row]).tolist()
        page.assert_clean()


NARROWEST = """() => Math.min(...[...document.querySelectorAll(".control > label")].map(
    label => label.getBoundingClientRect().width))"""


def test_names_keep_their_room_beside_directions_of_several_classes(
    browser: Any, tmp_path: Path
) -> None:
    frozen = every_step(3, outputs="logits")
    kinds = tuple(f"a class with a long name, {k}" for k in range(3))
    report.write(replace(frozen, classes=kinds), tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        words = [[1] * frozen.n_features] * 3
        page.run("words => { isotone.app.data.network.declared = words; }", words)
        page.run("""() => document.querySelectorAll(".direction").forEach((each, k) => {
            each.textContent = isotone.app.direction([k]); })""")
        for width, height in SIZES:
            page.page.set_viewport_size({"width": width, "height": height})
            assert page.run(NARROWEST) >= 90


def test_directions_that_are_not_proved_are_not_called_free(browser: Any, tmp_path: Path) -> None:
    honest = two_classes()
    report.write(replace(honest, residual=-honest.residual), tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        found = page.page.locator(".direction").all_inner_texts()
        assert found == ["↕ should rise, not proved", "↕ should fall, not proved", "↕ free"]


BACKGROUND = "() => getComputedStyle(document.body).backgroundColor"


TICKS = """() => [...document.querySelectorAll("#curves svg.chart")].map((chart) =>
    [...chart.querySelectorAll(".labels text")].map((text) => text.textContent)
        .filter((text) => !text.includes("%")))"""


def test_logarithmic_axes_of_columns_with_zeros_have_ticks(browser: Any, tmp_path: Path) -> None:
    """Ticks are spread, and 0 is one of them where rows have it."""
    rng = np.random.default_rng(0)
    size = np.where(rng.random(500) < 0.3, 0.0, rng.lognormal(3, 2, 500))
    gains = 100 * rng.normal(size=500)
    X = np.column_stack([size, size, np.maximum(size, 0.01), gains])
    kinds = [Log(offset=1.0), Log(floor=1e-12), "log", Log(offset=500.0)]
    torch.manual_seed(0)
    names = ["offset", "floor", "positive", "gains"]
    network = MonotonicNetwork([4, 8, 1], monotonic_cst=[1, 1, 1, 1], outputs="logits")
    frozen = freeze(network, scaling=Scaling.fit(X, kinds), features=names)
    pd.DataFrame(X, columns=names).to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "report.html", tmp_path / "t.csv")
    with opened(browser, tmp_path / "report.html") as page:
        found = dict(zip(names, page.run(TICKS), strict=True))
        page.assert_clean()
    assert all(len(ticks) >= 3 for ticks in found.values()), found
    assert {name for name, ticks in found.items() if "0" in ticks} == {"offset", "floor", "gains"}
    assert {"10", "100", "1000"} <= set(found["offset"])
    assert any(tick.startswith("\u2212") for tick in found["gains"])


@pytest.mark.parametrize("kind", ["two classes", "classes", "values", "several values"])
def test_it_fits_every_screen_and_no_texts_overlap(
    kind: str, browser: Any, tmp_path: Path, table: Path
) -> None:
    names = ["income", "debt", "age"]
    frozen = {
        "two classes": two_classes(),
        "classes": replace(every_step(3, outputs="logits"), features=tuple(names)),
        "values": small(features=names),
        "several values": replace(every_step(2), features=tuple(names)),
    }[kind]
    target = {"two classes": "paid", "values": "weight"}.get(kind)
    losses = {"training": [[1.0], [0.5]], "validation": [[1.0], [0.7]]}
    history = losses | {"best_epoch": [1], "seconds": 1.0}
    report.write(frozen, tmp_path / "report.html", table, target=target, history=history)
    with opened(browser, tmp_path / "report.html", color_scheme="dark") as page:
        for width, height in SIZES:
            page.page.set_viewport_size({"width": width, "height": height})
            page.settle()
            assert page.run("() => document.documentElement.scrollWidth") <= width
            assert page.run(OVERLAPS) == []
        assert page.run(ESCAPE) <= SNAP
        assert page.run(BACKGROUND) == "rgb(20, 24, 29)"
        page.page.emulate_media(media="print")
        assert page.run(BACKGROUND) == "rgb(255, 255, 255)"
        page.assert_clean()
