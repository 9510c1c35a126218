"""Notebooks: reports inline, badges of fitted estimators, tables of radii and distances."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from browser import opened
from isotone import MonotonicRegressor, certify
from isotone.estimators.notebook import WithBadge
from isotone.transport.wasserstein import Distance
from networks import by_hand, small
from reports import rows, two_classes


def test_a_report_is_shown_inline() -> None:
    """In a frame that may run scripts but is not of the notebook's origin."""
    shown = two_classes().report(rows(), target="paid", height=700)
    text = shown._repr_html_()
    assert '<iframe class="isotone-report" srcdoc="&lt;!DOCTYPE html&gt;' in text
    assert 'sandbox="allow-scripts allow-downloads allow-modals"' in text
    assert "of the table" in shown.html
    assert "height:700px" in text
    assert "allow-same-origin" not in text
    assert "</iframe>" not in text[:-9]
    assert repr(shown).startswith("<report, ")
    assert "<dt>Proved directions</dt>" in two_classes().report().html


def test_links_to_sections_stay_in_the_frame(browser: Any, tmp_path: Path) -> None:
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<h1>Notebook</h1>{two_classes().report(rows())._repr_html_()}")
    with opened(browser, notebook, "() => true") as page:
        frame = page.page.frame_locator("iframe")
        frame.locator("nav a", has_text="Proof").click()
        frame.locator("#verdict").wait_for()
        assert frame.locator("h1", has_text="Notebook").count() == 0
        page.assert_clean()


def test_fitted_estimators_wear_a_badge() -> None:
    X = np.linspace(-1, 1, 40)[:, None]
    model = MonotonicRegressor(monotonic_cst=[1], max_iter=1, random_state=0)
    with sklearn.config_context(display="diagram"):
        assert "certificate" not in model._repr_mimebundle_()["text/html"]
        model.fit(X, X[:, 0])
        html = model._repr_mimebundle_()["text/html"]
        assert "✓ certificate holds: computed scores are monotone to the last bit" in html
        assert model._repr_html_().startswith("<p><strong")
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def test_a_certificate_that_fails_has_a_red_badge() -> None:
    certificate = certify(by_hand(-1.5))
    assert certificate._repr_html_().startswith('<strong style="background:#b3261e')

    class Fitted(WithBadge):
        certificate_ = certificate

    assert "✗ certificate FAILS" in Fitted()._verdict()


def test_radii_are_printed_as_a_table() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    radius = certify(small()).certified_radius(X)
    lines = str(radius).splitlines()
    assert lines[0].split() == ["row", "together,", "scaled"] + [
        word for name in small().features for side in ("down", "up") for word in (name, side)
    ]
    for r, line in enumerate(lines[1:11]):
        shown = np.array(line.split()[1:], float)
        proved = np.array([radius.scaled[r], *np.stack([radius.down[r], radius.up[r]]).T.ravel()])
        assert line.split()[0] == str(r)
        assert np.all(shown <= proved)  # a rounded number may not promise more
        np.testing.assert_allclose(shown, proved, rtol=1e-3)
    assert lines[-1] == "... and 20 more rows"
    assert "Certified radius" in radius._repr_html_()


def test_a_distance_is_printed_with_its_bounds() -> None:
    history: Any = None
    distance = Distance(1.0, 0.875, 1.125, 0.75, None, small(), history)
    lines = [line.split() for line in str(distance).splitlines()]
    assert ["at", "least", "(certified)", "0.875"] in lines
    assert ["at", "most", "(feasible", "plan)", "1.125"] in lines
    close = str(replace(distance, lower_bound=1.9999999, upper_bound=2.0000001))
    assert "1.99999\n" in close
    assert "2.00001\n" in close
    assert not any("held-out" in line for line in lines)
    assert "Wasserstein distance of order 1" in distance._repr_html_()


def test_a_report_is_as_dark_as_its_notebook(browser: Any, tmp_path: Path) -> None:
    """Though the system is set to the other."""
    shown = two_classes().report()._repr_html_()
    dark = "matchMedia('(prefers-color-scheme: dark)').matches"
    with browser.new_context(color_scheme="null") as context:
        page = context.new_page()
        for light in ("true", "false"):
            (file := tmp_path / "notebook.html").write_text(
                f'<!DOCTYPE html><body data-jp-theme-light="{light}">{shown}', encoding="utf-8"
            )
            page.goto(file.as_uri())
            assert page.frames[1].evaluate(dark) is (light == "false")
            page.frames[1].wait_for_function("() => typeof isotone === 'object' && isotone.app")
            assert page.frames[1].locator("#copy-link").is_hidden()
