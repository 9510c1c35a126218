"""Reports in a real browser: the page computes what the engine does, and nothing leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Opened, chromium, opened
from isotone import FrozenNetwork, certify, report
from isotone.export.parity import check_rows
from networks import every_step, small
from test_parity import NETWORKS

N_ROWS = 10_000
SCORE = "rows => rows.map(row => isotone.app.network.score(row))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def scored(page: Opened, X: np.ndarray) -> np.ndarray:
    return np.array(page.run(SCORE, X.tolist()), dtype=float).reshape(len(X), -1)


PARITY: dict[str, FrozenNetwork] = {
    **NETWORKS,
    **{
        name: every_step(1, name, seed=3, grid=None)
        for name in ("relu", "leaky_relu", "abs", "hardtanh", "sigmoid", "softplus")
    },
    "logits of three classes": every_step(3, outputs="logits", classes=("a", "b", "c")),
}


@pytest.mark.parametrize("name", PARITY)
def test_the_page_scores_as_the_engine_does(name: str, browser: Any, tmp_path: Path) -> None:
    """Bit for bit in float64; within twice the certificate's E in float32."""
    frozen = PARITY[name]
    report.write(frozen, tmp_path / "report.html")
    X = (
        check_rows(frozen, N_ROWS, seed=2)[-N_ROWS:]
        if name == "paper"
        else check_rows(frozen, 500)
    )
    expected = frozen.score(X).astype(float).reshape(len(X), -1)
    with opened(browser, tmp_path / "report.html") as page:
        found = scored(page, X)
        if frozen.precision == "float64":
            assert np.array_equal(found, expected)
        else:
            assert np.all(
                np.abs(found - expected) <= 2 * np.array(certify(frozen).rounding_errors)
            )
        if frozen.outputs == "logits":
            script = "rows => rows.map(row => isotone.app.network.probability(row))"
            z = np.clip(expected, -800, 800)
            assert np.array_equal(page.run(script, z.tolist()), frozen.to_probability(z))
        page.assert_clean()


def test_moving_a_slider_and_typing_a_number_change_the_score(
    browser: Any, tmp_path: Path
) -> None:
    frozen = small(features=["up", "free", "down"])
    report.write(frozen, tmp_path / "report.html", threshold=0.0)
    certificate = certify(frozen)
    with opened(browser, tmp_path / "report.html") as page:
        for k, key in enumerate(["End", "ArrowRight", "Home"]):
            before = page.run("() => isotone.app.row")
            page.page.focus(f"#slider-{k}")
            page.page.keyboard.press(key)
            page.settle()
            row = page.run("() => isotone.app.row")
            assert [i for i in range(3) if row[i] != before[i]] == [k]
            assert page.run("() => isotone.app.scores") == [frozen.score([row])[0]]
        page.page.fill("#value-1", "123.456")
        page.settle()
        row = page.run("() => isotone.app.row")
        assert row[1] == 123.456
        assert page.page.text_content(".outside >> nth=1") == "outside"
        assert page.run("() => isotone.app.scores") == [frozen.score([row])[0]]
        radius = certificate.certified_radius([row])
        assert page.run("() => isotone.app.radius.scaled") == pytest.approx(radius.scaled[0])
        for side in ("down", "up"):
            found = page.run(f"() => isotone.app.radius.{side}")
            assert found == pytest.approx(getattr(radius, side)[0].tolist())
        page.assert_clean()
