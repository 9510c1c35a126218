"""Reasons, recourse, points, texts and importance in a report are those of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from browser import Opened, opened
from isotone import FrozenNetwork, MonotonicNetwork, freeze, report
from isotone.explanation import AllowedChange, Points, Texts, explain, find_recourse
from isotone.explanation.importance import effects, most_pairs
from reports import content, rows, two_classes

pytestmark = pytest.mark.slow

NAMES = ["income", "debt", "age"]
SHAPLEY = "row => isotone.finish(isotone.shapley(isotone.app, row, isotone.app.data.background))"
RECOURSE = """([row, allowed]) => {
    const { app } = isotone;
    app.row = row;
    app.scores = app.network.score(row);
    return isotone.finish(new isotone.Recourse(app, allowed).find());
}"""
TEXTS = {
    "income": {"raises": "{column} of {value:,.2f} helps", "lowers": "{value:.3f} is {{low}}"},
    "debt": {"lowers": "debt: {contribution:+.2f}", "raises": "debt: {value}"},
}


@pytest.fixture
def page(browser: Any, tmp_path: Path, table: Path) -> Iterator[Opened]:
    options = {"points": "600@50:1,20", "texts": Texts(TEXTS)}
    report.write(two_classes(), tmp_path / "report.html", table, target="paid", **options)
    with opened(browser, tmp_path / "report.html") as found:
        yield found
        found.assert_clean()


def wide(n: int = 15) -> FrozenNetwork:
    """A network of more columns than sets of them can be enumerated."""
    torch.manual_seed(0)
    network = MonotonicNetwork([n, 16, 1], monotonic_cst=[1] * n, outputs="logits")
    return freeze(network, features=[f"x{k}" for k in range(n)])


def test_reasons_against_the_table_are_those_of_the_engine(page: Opened) -> None:
    """Exact Shapley values against the groups that the file holds."""
    groups = page.run("() => isotone.app.data.background")
    assert len(groups) == 400 // 20
    for row in rows()[NAMES].to_numpy()[:5].tolist():
        found = page.run(SHAPLEY, row)
        engine = explain(two_classes(), [row], groups, method="exact", n_background=len(groups))
        shares = [part["share"] for part in found["parts"]]
        assert found["isExact"]
        assert shares == pytest.approx(engine.contributions[0].tolist(), abs=1e-12)
        assert found["from"] == pytest.approx(engine.baseline, abs=1e-12)
        assert found["total"] == engine.score[0]


def test_groups_are_medians_of_many_rows_and_their_scores_spread(page: Opened) -> None:
    frozen, frame = two_classes(), rows()
    scores = frozen.score(page.run("() => isotone.app.data.background"))
    assert np.corrcoef(scores, np.arange(len(scores)))[0, 1] > 0.9
    assert not set(map(tuple, frame[NAMES].round(12).to_numpy())) & set(
        map(tuple, np.round(page.run("() => isotone.app.data.background"), 12))
    )


def test_a_small_table_has_no_groups(tmp_path: Path) -> None:
    rows(39).to_csv(tmp_path / "t.csv", index=False)
    report.write(two_classes(), tmp_path / "report.html", tmp_path / "t.csv", target="paid")
    assert content(tmp_path / "report.html")["background"] == []


def test_many_columns_are_explained_with_an_error(browser: Any, tmp_path: Path) -> None:
    """The sum is exact for any number of orders, and values lie within a few standard errors."""
    frozen = wide()
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 15)), columns=frozen.features)
    frame.to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "report.html", tmp_path / "t.csv")
    with opened(browser, tmp_path / "report.html") as page:
        groups = page.run("() => isotone.app.data.background")
        row = frame.to_numpy()[7].tolist()
        found = page.run(SHAPLEY, row)
        assert not found["isExact"]
        shares = np.array([part["share"] for part in found["parts"]])
        errors = np.array([part["error"] for part in found["parts"]])
        assert shares.sum() == pytest.approx(found["total"] - found["from"], abs=1e-9)
        options: dict[str, Any] = {"method": "exact", "n_background": len(groups)}
        engine = explain(frozen, [row], groups, **options).contributions[0]
        assert np.all(np.abs(shares - engine) < 5 * errors + 1e-9)
        assert np.all(errors > 0)
        assert "standard error" in page.page.inner_text("#why")
        page.assert_clean()


def allowed_changes(page: Opened, allowed: dict[str, str]) -> dict[str, AllowedChange]:
    controls = {each["name"]: each for each in page.run("() => isotone.app.data.controls")}
    return {
        name: AllowedChange(
            cost=1.0 / controls[name]["spread"],
            up=side != "down",
            down=side != "up",
            low=controls[name]["low"],
            high=controls[name]["high"],
            whole=controls[name]["whole"],
        )
        for name, side in allowed.items()
    }


@pytest.mark.parametrize(
    "allowed",
    [
        {"income": "up"},
        {"income": "any", "debt": "any"},
        {"income": "any", "debt": "down", "age": "any"},
    ],
)
def test_recourse_turns_the_decision_and_has_the_bound_of_the_engine(
    page: Opened, allowed: dict[str, str]
) -> None:
    frozen, frame = two_classes(), rows()
    scores = frozen.score(frame)
    changes = allowed_changes(page, allowed)
    for number in [*np.flatnonzero(scores < 0)[:6], *np.flatnonzero(scores >= 0)[:4]]:
        row = frame[NAMES].to_numpy()[number].tolist()
        found = page.run(RECOURSE, [row, allowed])
        to = "accept" if scores[number] < 0 else "refuse"
        engine = find_recourse(frozen, [row], changes, to=to)
        bound = np.inf if found["bound"] is None else found["bound"]
        assert bound == pytest.approx(engine.bound[0], rel=1e-9)
        assert (found["row"] is None) == bool(np.isinf(engine.cost[0]))
        if found["row"] is not None:
            assert (frozen.score([found["row"]])[0] >= 0) == (to == "accept")
            assert bound <= found["cost"] * (1 + 1e-12)
            assert found["cost"] <= 1.05 * engine.cost[0] + 1e-6
            moved = np.array(found["row"]) != row
            assert set(np.array(NAMES)[moved]) <= set(allowed)


def test_recourse_keeps_whole_numbers_and_the_range_of_the_table(
    browser: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(-3, 4, (200, 3)), columns=NAMES)
    frame.assign(paid=rng.integers(0, 2, 200)).to_csv(tmp_path / "t.csv", index=False)
    report.write(two_classes(), tmp_path / "report.html", tmp_path / "t.csv", target="paid")
    with opened(browser, tmp_path / "report.html") as page:
        for row in frame.to_numpy(float)[:12].tolist():
            found = page.run(RECOURSE, [row, dict.fromkeys(NAMES, "any")])
            if found["row"] is not None:
                there = np.array(found["row"])
                assert np.all(there == np.rint(there))
                assert np.all((there >= -3) & (there <= 3))
        page.assert_clean()


def test_recourse_is_shown_followed_and_limited(page: Opened) -> None:
    """The section tells the change, a button goes there, and what stays is not changed."""
    before = page.run("() => isotone.app.judge.decide(isotone.app.scores)")
    assert "Certified: no allowed change that costs less than" in page.page.inner_text("#recourse")
    page.page.click("#turn")
    page.settle()
    assert page.run("() => isotone.app.judge.decide(isotone.app.scores)") != before
    for k in range(3):
        page.page.select_option(f"#allowed-{k}", label="stays")
    page.settle()
    assert "Nothing may change" in page.page.inner_text("#recourse")


def test_recourse_between_several_classes(browser: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork([2, 8, 3], monotonic_cst=np.zeros((3, 2), int), outputs="logits")
    frozen = replace(freeze(network), classes=("a", "b", "c"))
    report.write(frozen, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as page:
        found = page.run("() => isotone.app.turned")
        if found["row"] is not None:
            start = page.run("() => isotone.app.row")
            winners = frozen.score([start, found["row"]]).argmax(axis=1)
            assert winners[0] != winners[1]
            assert found["bound"] <= found["cost"]
        page.assert_clean()


def test_points_are_shown_as_the_scale_has_them(page: Opened) -> None:
    points, frozen = Points.parse("600@50:1,20"), two_classes()
    page.page.select_option("#view", label="points")
    page.settle()
    row = page.run("() => isotone.app.row")
    expected = points.of_score(frozen.score([row]))[0]
    assert page.run("() => isotone.app.show(isotone.app.scores)") == pytest.approx(expected)
    assert page.run("() => isotone.app.boundary()") == pytest.approx(points.of_score(0.0))
    shown = page.page.inner_text(".big").replace(",", "").replace("−", "-")
    assert float(shown) == pytest.approx(expected, rel=1e-3)
    found = page.run(SHAPLEY, row)
    shares = sum(part["share"] for part in found["parts"])
    assert found["total"] - found["from"] == pytest.approx(shares)


def test_reasons_are_told_in_the_sentences_of_the_engine(page: Opened) -> None:
    texts = Texts(TEXTS)
    for column, value, share in (
        ("income", 1234567.891, 0.5),
        ("income", -0.0625, -0.5),
        ("debt", 0.1, -1.236),
        ("debt", 12.5, 1.0),
        ("age", 41.0, 1.0),
    ):
        found = page.run(
            "given => isotone.sentence(isotone.app.data.texts, ...given)", [column, value, share]
        )
        assert found == texts.sentence(column, value, share)
    assert "age is" in page.page.inner_text("#why tbody")


def test_points_need_one_logit(tmp_path: Path) -> None:
    torch.manual_seed(0)
    frozen = freeze(MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 0]))
    with pytest.raises(ValueError, match="points are for one logit"):
        report.write(frozen, tmp_path / "report.html", points="600@50:1,20")


def test_importance_is_that_of_the_engine(page: Opened) -> None:
    frozen, frame = two_classes(), rows()
    rng = np.random.default_rng(0)
    X = frame[NAMES].to_numpy()
    some = X[rng.choice(len(X), min(len(X), most_pairs(frozen)), p=np.full(len(X), 1 / len(X)))]
    expected = effects(frozen, some, 0)
    shown = page.run("() => isotone.app.data.controls.map(({ effect }) => effect)")
    assert shown == pytest.approx(expected.tolist(), rel=1e-12)
    assert page.page.locator("#importance .bar").count() == 3


def test_a_class_has_one_color_everywhere(browser: Any, tmp_path: Path, table: Path) -> None:
    """In the strip of scores, in histograms and in rates."""
    report.write(two_classes(), tmp_path / "report.html", table, target="paid")
    with opened(browser, tmp_path / "report.html") as page:
        classes = page.run("() => isotone.app.data.outcomes.classes")
        colors = page.run(
            """names => names.map((name) => [...document.querySelectorAll(".legend li")]
            .filter((each) => each.textContent.startsWith(name))
            .map((each) => getComputedStyle(each.querySelector("path")).stroke))""",
            classes,
        )
        assert all(len(found) >= 3 for found in colors)
        assert [len(set(found)) for found in colors] == [1, 1]
        assert colors[0][0] != colors[1][0]


def test_work_that_may_wait_is_dropped_when_a_slider_moves(page: Opened) -> None:
    """A piece of it takes some milliseconds, so that dragging goes on."""
    page.run("""() => {
        const { app } = isotone;
        window.finished = 0;
        app.onChange(function* slow() {
            for (let k = 0; k < 40; k += 1) {
                const start = performance.now();
                while (performance.now() - start < 5);
                yield;
            }
            window.finished += 1;
        });
        app.changed();
    }""")
    page.page.wait_for_timeout(60)
    page.run("() => isotone.app.changed()")
    page.settle()
    assert page.run("() => window.finished") == 1
