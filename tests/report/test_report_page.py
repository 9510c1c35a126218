"""What people do with a report in a browser: drag the threshold, step, hover, keep, break."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import metrics

from browser import Opened, opened
from isotone import FrozenNetwork, MonotonicNetwork, freeze, report
from isotone.explanation import explain
from networks import small
from reports import rows, two_classes

NAMES = ["income", "debt", "age"]
SHAPLEY = "isotone.finish(isotone.shapley"


def confusion(page: Opened) -> list[list[float]]:
    cells = page.page.locator(".confusion td strong").all_inner_texts()
    return np.array([float(cell.replace(",", "")) for cell in cells]).reshape(2, 2).tolist()


def test_the_threshold_moves_everything_that_depends_on_it(page: Opened) -> None:
    frozen, frame = two_classes(), rows()
    stops, scores = page.run("() => isotone.app.data.stops.at"), frozen.score(frame)
    for key, times in (("ArrowRight", 7), ("End", 1), ("ArrowLeft", 20), ("Home", 1)):
        page.page.focus("#threshold")
        for _ in range(times):
            page.page.keyboard.press(key)
        page.settle()
        stop = stops[page.run("() => isotone.app.threshold.k")]
        expected = metrics.confusion_matrix(frame["paid"], scores >= stop)
        assert confusion(page) == expected.tolist()
        assert page.run("() => isotone.app.judge.threshold") == stop
        rates = page.run("() => isotone.app.threshold.shares()")
        assert rates["tpr"] == pytest.approx(expected[1, 1] / expected[1].sum())
        assert rates["fpr"] == pytest.approx(expected[0, 1] / expected[0].sum())
    assert page.run("() => isotone.app.threshold.k") == 0
    page.page.click("text=as declared")
    page.settle()
    assert page.run("() => isotone.app.judge.threshold") == 0


def test_rates_by_column_follow_the_threshold(page: Opened) -> None:
    frozen, frame = two_classes(), rows()
    scores = frozen.score(frame)
    page.page.select_option("#against", label="city")
    for key in ("End", "Home", "PageUp"):
        page.page.focus("#threshold")
        page.page.keyboard.press(key)
        page.settle()
        stop = page.run("() => isotone.app.threshold.value")
        decided = frame.assign(decided=scores >= stop).groupby(["paid", "city"])["decided"].mean()
        shown = dict(line.rsplit(",", 1) for line in saved(page, "against city").splitlines()[1:])
        found = {key: float(share) for key, share in shown.items()}
        expected = {f"paid = {y},{city}": share for (y, city), share in decided.items()}
        assert found == pytest.approx(expected, abs=1e-12)


def saved(page: Opened, title: str) -> str:
    """The CSV of a chart."""
    with page.page.expect_download() as started:
        page.page.locator(f"[aria-label*='{title}: download as CSV']").dispatch_event("click")
    return Path(started.value.path()).read_text()


def test_the_threshold_is_dragged_in_the_picture(page: Opened) -> None:
    box = page.page.locator(".strip svg.chart").bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 40)
    page.page.mouse.down()
    seen = []
    for share in (0.6, 0.7, 0.8):
        page.page.mouse.move(box["x"] + share * box["width"], box["y"] + 40)
        page.settle()
        seen.append(page.run("() => isotone.app.threshold.value"))
    page.page.mouse.up()
    assert seen == sorted(seen)
    assert len(set(seen)) == 3
    page.page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 40)
    assert page.run("() => isotone.app.threshold.value") == seen[-1]


def test_a_slider_lies_under_its_curve_and_both_are_on_the_screen(page: Opened) -> None:
    for k in range(3):
        curve = page.page.locator("#curves svg.chart").nth(k).bounding_box()
        slider = page.page.locator(f"#slider-{k}").bounding_box()
        assert curve is not None
        assert slider is not None
        assert 0 <= slider["y"] - (curve["y"] + curve["height"]) < 20
    thumb = page.run("""() => isotone.app.cards.map(({ card, control }) => {
        const dot = card.querySelector(".marks.current").getBoundingClientRect();
        const track = card.querySelector("input[type=range]").getBoundingClientRect();
        const share = card.querySelector("input[type=range]").value / 1000;
        return (dot.left + dot.right) / 2 - (track.left + 9 + share * (track.width - 18));
    })""")
    assert np.all(np.abs(thumb) < 2)  # pixels


def whole() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(0, 4, 300), "debt": rng.integers(0, 90000, 300)})
    return frame.assign(age=rng.normal(size=300), paid=rng.integers(0, 2, 300))


def test_sliders_of_whole_numbers_step_by_whole_numbers(browser: Any, tmp_path: Path) -> None:
    whole().to_csv(tmp_path / "t.csv", index=False)
    report.write(two_classes(), tmp_path / "report.html", tmp_path / "t.csv", target="paid")
    with opened(browser, tmp_path / "report.html") as page:
        page.page.focus("#slider-0")
        before = page.run("() => isotone.app.row[0]")
        page.page.keyboard.press("ArrowRight")
        assert page.run("() => isotone.app.row[0]") == before + 1
        page.page.keyboard.press("ArrowLeft")
        page.page.keyboard.press("ArrowLeft")
        assert page.run("() => isotone.app.row[0]") == before - 1
        for k, column in enumerate(["income", "debt"]):
            page.page.focus(f"#slider-{k}")
            page.page.keyboard.press("Home")
            assert page.run("() => isotone.app.row")[k] == 0
            page.page.keyboard.press("End")
            end = page.run("() => isotone.app.row")[k]
            assert end == round(end) >= whole()[column].max()
        page.assert_clean()


def test_a_link_keeps_the_row_the_view_and_the_threshold(
    browser: Any, tmp_path: Path, table: Path
) -> None:
    path = tmp_path / "report.html"
    report.write(two_classes(), path, table, target="paid")
    with opened(browser, path) as page:
        page.page.fill("#value-1", "0.625")
        page.page.select_option("#view", label="score")
        page.page.focus("#threshold")
        page.page.keyboard.press("ArrowRight")
        page.settle()
        state = page.run("() => [isotone.app.row, isotone.app.view.name, isotone.app.threshold.k]")
        mark = page.run("() => isotone.state.write(isotone.app)")
        page.page.goto("about:blank")
        page.page.goto(path.resolve().as_uri() + mark)
        page.page.wait_for_function("() => typeof isotone === 'object' && isotone.app")
        page.settle()
        again = page.run("() => [isotone.app.row, isotone.app.view.name, isotone.app.threshold.k]")
        assert again == state
        assert page.page.input_value("#value-1") == "0.625"
        assert not page.run("() => isotone.state.read(isotone.app, '#row=1,2')")
        page.assert_clean()


def test_values_show_under_the_pointer_and_charts_can_be_kept(page: Opened) -> None:
    """Every chart tells its numbers: hovered, as CSV and as SVG."""
    box = page.page.locator("#curves svg.chart").nth(0).bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 60)
    tip = page.page.inner_text(".tip")
    assert "income" in tip
    assert "probability" in tip
    page.page.mouse.move(5, 5)
    assert page.page.is_hidden(".tip")
    n_charts = page.page.locator("svg.chart").count()
    assert page.page.get_by_text("CSV", exact=True).count() >= n_charts - 1  # but the strip's
    with page.page.expect_download() as kept:
        page.page.get_by_label("precision against recall: download as CSV").click(force=True)
    lines = Path(kept.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "series,recall,precision"
    drawn = page.run("() => isotone.app.data.statistics.outputs[0].ranking.precision")
    assert [float(line.split(",")[2]) for line in lines[1:]] == drawn
    with page.page.expect_download() as kept:
        page.page.get_by_label("calibration: download as SVG").click(force=True)
    text = Path(kept.value.path()).read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert 'xmlns="http://www.w3.org/2000/svg"' in text


def test_now_is_one_number_and_the_boundary_is_in_the_legend_only_if_it_is_drawn(
    page: Opened,
) -> None:
    page.page.fill("#value-0", "0.123456")
    page.settle()
    cells = page.page.locator(".flips tbody tr").all_inner_texts()
    assert any("0.123456" in cell for cell in cells)
    says = page.page.inner_text(".flips p >> nth=0")
    if "income" in says:
        assert "from 0.123456 to" in says
    drawn = page.run("() => document.querySelector('#heat .boundary[d]').getAttribute('d') !== ''")
    legend = page.page.inner_text("#heat .legend")
    assert drawn
    assert "boundary of the decision" in legend
    assert "not in this picture" not in legend
    page.run("() => isotone.app.setRow([50, -50, 0])")
    page.settle()
    assert page.run("() => isotone.app.judge.decide(isotone.app.scores)") in (0, 1)


def test_several_classes_open_where_something_is_promised(
    browser: Any, tmp_path: Path, table: Path
) -> None:
    torch.manual_seed(0)
    directions = [[0, 0, 0], [1, -1, 0], [0, 0, 0]]
    network = MonotonicNetwork([3, 8, 3], monotonic_cst=directions, outputs="logits")
    frozen = freeze(network, features=NAMES)
    frame = rows().assign(kind=np.random.default_rng(0).integers(0, 3, 400))
    frame.to_csv(table, index=False)
    report.write(frozen, tmp_path / "report.html", table, target="kind")
    with opened(browser, tmp_path / "report.html") as page:
        assert page.run("() => isotone.app.view.output") == 1
        assert page.page.locator(".confusion tbody tr").count() == 3
        page.assert_clean()


def swinging() -> FrozenNetwork:
    """A model of the same columns that nobody keeps from falling with income."""
    frozen = two_classes(seed=3)
    return replace(frozen, monotonic_cst=0 * frozen.monotonic_cst, residual=-frozen.residual)


def test_a_rival_that_falls_is_marked_and_ours_cannot(
    browser: Any, tmp_path: Path, table: Path
) -> None:
    options: dict[str, Any] = {"target": "paid", "against": swinging(), "compare": two_classes(1)}
    report.write(two_classes(), tmp_path / "report.html", table, **options)
    with opened(browser, tmp_path / "report.html") as page:
        assert page.page.locator(".line.worse").count() > 0
        assert "impossible, proved" in page.page.inner_text("#break")
        row = rows()[NAMES].to_numpy()[5].tolist()
        shown = page.run("row => isotone.app.rival.network.score(row)", row)
        assert shown == swinging().score([row]).tolist()
        page.page.click("#break-it")
        page.settle()
        says = page.page.inner_text("#break")
        assert "this model in 0." in says
        assert "Decisions differ in" in page.page.inner_text("#challenger")
        page.assert_clean()


def test_many_features_are_searched_and_sorted(browser: Any, tmp_path: Path) -> None:
    names = [f"x{i:02d}" for i in range(20)]
    frozen = small((1,) * 20, features=names)
    X = np.random.default_rng(0).normal(size=(200, 20))
    pd.DataFrame(X, columns=names).to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "report.html", tmp_path / "t.csv", threshold=0.0)
    with opened(browser, tmp_path / "report.html") as page:
        effect = dict(
            page.run("() => isotone.app.data.controls.map(({ name, effect }) => [name, effect])")
        )
        found = page.page.locator("#curves .control > label").all_inner_texts()
        assert found == sorted(names, key=lambda name: -effect[name])
        page.page.select_option("#order", label="as in the table")
        assert page.page.locator("#curves .control > label").all_inner_texts() == names
        page.page.fill("#search", "x1")
        assert page.page.locator("#curves .control:visible").count() == 10
        page.settle()
        assert "All 20 features are in this table" in page.page.inner_text(".flips")
        page.assert_clean()


def test_numbers_have_panels_of_residuals(browser: Any, tmp_path: Path, table: Path) -> None:
    report.write(small(features=NAMES), tmp_path / "report.html", table, target="weight")
    with opened(browser, tmp_path / "report.html") as page:
        heads = page.page.locator("h3").all_inner_texts()
        for head in ("Predicted against observed", "Residuals", "Residuals by prediction"):
            assert head in heads
        assert "certified" in page.page.inner_text("#robustness")
        assert "Certified: raising one feature changes it by" in page.page.inner_text(".answer")
        for row in rows()[NAMES].to_numpy()[:20].tolist():
            page.run("row => isotone.app.setRow(row)", row)
            steps = page.run(STEPS)
            for i, step in enumerate(steps):
                moved = [value + step["by"] * (i == k) for k, value in enumerate(row)]
                before, after = small(features=NAMES).score([row, moved])
                assert step["low"] <= after - before <= step["high"]
        page.assert_clean()


STEPS = """() => isotone.app.data.controls.map(
    (control) => isotone.certifiedStep(isotone.app, control))"""


def test_epochs_are_whole_and_validation_is_drawn_if_it_was_recorded(
    browser: Any, tmp_path: Path
) -> None:
    losses = {"training": [[1.0], [0.8], [0.7]], "validation": [[1.1], [0.9], [0.8]]}
    history = losses | {"best_epoch": [2], "seconds": 1.0}
    report.write(two_classes(), tmp_path / "report.html", history=history)
    with opened(browser, tmp_path / "report.html") as page:
        labels = page.page.locator("#training .labels text").all_text_contents()
        assert "1.5" not in labels
        assert {"1", "2", "3"} <= set(labels)
        assert "validation rows" in page.page.inner_text("#training")
        page.assert_clean()


def test_the_choice_of_columns_opens_on_a_feature_not_on_an_identifier(
    browser: Any, tmp_path: Path
) -> None:
    frame = rows()
    frame.insert(0, "customer", np.arange(5000, 5400))
    frame.to_csv(tmp_path / "t.csv", index=False)
    report.write(two_classes(), tmp_path / "report.html", tmp_path / "t.csv", target="paid")
    with opened(browser, tmp_path / "report.html") as page:
        chosen = page.run("() => document.querySelector('#against').selectedOptions[0].text")
        assert chosen in NAMES
        page.assert_clean()


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))


def test_one_page_is_printed_for_an_auditor(page: Opened) -> None:
    whole = pages(page.page.pdf(format="A4"))
    page.run("() => { window.print = () => {}; }")
    page.page.click("#print-page")
    page.run("() => window.dispatchEvent(new Event('beforeprint'))")
    assert pages(page.page.pdf(format="A4")) == 1 < whole
    page.run("() => window.dispatchEvent(new Event('afterprint'))")
    assert page.run("() => document.body.className") == ""


# headings that a page may end with
ORPHANS = """() => [...document.querySelectorAll(".section-head")].filter((head) => {
    const style = getComputedStyle(head);
    return style.breakAfter !== "avoid" || style.breakInside !== "avoid";
}).length"""


def test_headings_stay_with_what_they_head_on_paper(page: Opened) -> None:
    page.page.emulate_media(media="print")
    assert page.run(ORPHANS) == 0
    assert page.page.locator(".section-head").count() >= 2


def test_reasons_of_the_page_are_those_of_the_engine(page: Opened) -> None:
    """Exact Shapley values against one row, and their sum."""
    frozen, frame = two_classes(), rows()
    start = page.run("() => isotone.app.data.start")
    for row in frame[NAMES].to_numpy()[:10].tolist():
        found = page.run(f"row => {SHAPLEY}(isotone.app, row, [isotone.app.data.start]))", row)
        engine = explain(frozen, [row], [start], method="exact")
        shares = [part["share"] for part in found["parts"]]
        assert shares == pytest.approx(engine.contributions[0].tolist(), abs=1e-12)
        assert sum(shares) == pytest.approx(found["total"] - found["from"], abs=1e-12)
        assert found["total"] == frozen.score([row])[0]
    page.page.fill("#value-1", "1.5")
    page.page.select_option("#compared", label="the median of the table")
    page.settle()
    says = page.page.inner_text("#why tbody")
    assert "→ 1.5" in says
    assert "sign proved" in says
    page.page.select_option("#compared", label="the median of paid = 1")
    page.settle()
    assert page.page.locator("#why tbody tr").count() == 3


def test_no_sign_is_proved_where_rounding_can_turn_it(browser: Any, tmp_path: Path) -> None:
    """Without a grid directions are promised up to rounding errors, as `explain` has it."""
    frozen = small(precision="float32")
    assert frozen.grid is None
    report.write(frozen, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        page.page.fill("#value-0", "1.5")
        page.settle()
        says = page.page.inner_text("#why tbody")
        assert "→ 1.5" in says
        assert "sign proved" not in says
        page.assert_clean()


def test_reasons_of_classes_are_called_probabilities(browser: Any, tmp_path: Path) -> None:
    """Whatever is shown: they are of the probability also where the curves are of the score."""
    torch.manual_seed(0)
    signs = np.array([[1, 0], [0, 0], [0, 0]])
    network = MonotonicNetwork([2, 8, 3], monotonic_cst=signs, outputs="logits")
    frozen = replace(freeze(network), classes=("a", "b", "c"))
    report.write(frozen, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        page.page.fill("#value-0", "1.5")
        page.run("() => { const { app } = isotone; app.view = app.views[4]; app.changed(); }")
        page.settle()
        assert page.run("() => isotone.app.view.name") == "score of b"
        assert "The probability of b is" in page.page.inner_text("#why")
        page.assert_clean()


def test_charts_can_be_enlarged(page: Opened) -> None:
    chart = page.page.locator("#quality figure:has-text('Precision and recall') svg.chart")
    small_box = chart.bounding_box()
    page.page.get_by_label("Precision and recall: enlarge").press("Enter")
    page.settle()
    large = chart.bounding_box()
    assert small_box is not None
    assert large is not None
    assert large["width"] > 1.5 * small_box["width"]
    page.page.get_by_label("Precision and recall: reduce").press("Enter")
    page.page.wait_for_function(
        "width => [...document.querySelectorAll('#quality svg.chart')]"
        ".every((chart) => chart.getBoundingClientRect().width < width)",
        arg=1.5 * small_box["width"],
    )
    again = chart.bounding_box()
    assert again is not None
    assert again["width"] == pytest.approx(small_box["width"], abs=1)


def test_columns_of_whole_numbers_show_their_exact_range(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    people = rows().assign(income=rng.integers(4_000, 200_000, 400))
    people.loc[0, "income"] = 212_517
    people.to_csv(tmp_path / "people.csv", index=False)
    report.write(two_classes(), tmp_path / "report.html", tmp_path / "people.csv", target="paid")
    with opened(browser, tmp_path / "report.html") as page:
        assert f"table: {people['income'].min()} to 212,517" in page.text("[data-name=income]")
