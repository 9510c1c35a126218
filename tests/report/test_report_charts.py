"""Every chart of a report: values under the pointer, downloads, enlarging, and paper."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from browser import Opened, opened
from isotone import MonotonicNetwork, freeze, report
from reports import two_classes

NAMES = ["income", "debt", "age"]


TOLD = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
    const box = chart.getBoundingClientRect();
    if (!box.width) return [];
    const tips = [0.5, 0.3, 0.7, 0.2, 0.85].map((share) => {
        const place = { clientX: box.left + share * box.width, clientY: box.top + box.height / 2 };
        chart.dispatchEvent(new PointerEvent("pointermove", place));
        return isotone.tipBox && !isotone.tipBox.hidden ? isotone.tipBox.textContent : "";
    });
    const saves = [...chart.parentElement.querySelectorAll(".save")];
    const kept = saves.map((each) => each.textContent);
    return [[chart.getAttribute("aria-label"), tips.join(""), kept]];
})"""


def test_every_chart_tells_its_values_and_can_be_kept(page: Opened) -> None:
    page.run("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.run("() => isotone.app.changed()")
    page.settle()
    told = page.run(TOLD)
    assert len(told) >= 10
    for title, tips, kept in told:
        assert tips, title
        assert {"SVG", "CSV"} <= set(kept), title


def test_a_card_can_be_enlarged(page: Opened) -> None:
    card = page.page.locator("[data-name=debt]")
    before = card.locator("svg.chart").bounding_box()
    page.page.get_by_label("debt: enlarge").click(force=True)
    page.settle()
    after = card.locator("svg.chart").bounding_box()
    assert after["width"] > 1.5 * before["width"]
    assert after["height"] > 1.5 * before["height"]
    page.page.get_by_label("debt: reduce").click(force=True)
    page.settle()
    assert card.locator("svg.chart").bounding_box()["width"] == pytest.approx(
        before["width"], abs=1
    )


def test_the_page_for_an_auditor_is_one_page(browser: Any, tmp_path: Path, table: Path) -> None:
    """With one class and with several, on paper of either kind."""
    torch.manual_seed(0)
    signs = np.array([[1, 0, -1], [0, 0, 0], [0, 1, 0]])
    network = MonotonicNetwork([3, 8, 3], monotonic_cst=signs, outputs="logits")
    several = replace(freeze(network, features=NAMES), classes=("a", "b", "c"))
    report.write(two_classes(), tmp_path / "two.html", table, target="paid")
    report.write(several, tmp_path / "several.html")
    for name in ("two", "several"):
        with opened(browser, tmp_path / f"{name}.html") as page:
            page.run(
                "() => document.querySelectorAll('details').forEach((d) => { d.open = true; })"
            )
            for paper in ("A4", "Letter"):
                page.run("() => document.body.classList.add('one-page')")
                pdf = page.page.pdf(format=paper)
                assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
