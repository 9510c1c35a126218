"""Frames per second of a report while a slider is dragged: `python -m bench.pages.frames`.

Question: does a report keep up with the screen, 60 times a second?
Data: the gallery's reports, and one of a model of 100 columns.
Method: Chromium without a window shows the first screen, and the first slider, or that of the
threshold, moves with every frame for some seconds. Late frames come more than 20 ms after the one
before; *script* is what drawing the frame took in JavaScript.
Run time: two minutes once `make docs` has made the gallery. Needs Chromium and playwright. The
processor does a graphics card's work, so that other programs on it cost frames.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import isotone
from demo import gallery
from isotone import MonotonicNetwork, freeze

SIZES = {"laptop": (1400, 940), "tablet": (820, 1180), "phone": (390, 844)}
_LATE = 20.0  # milliseconds; a frame has 16.7
SLIDERS = {"slider": ".card input[type=range]", "threshold": "#threshold"}
_DRAG = """async ([place, seconds]) => {
  const slider = document.querySelector(place);
  const [low, high] = [Number(slider.min), Number(slider.max)];
  const gaps = [], scripts = [], start = performance.now();
  const draw = isotone.app.drawLive.bind(isotone.app);
  isotone.app.drawLive = () => {
    const began = performance.now();
    draw();
    scripts.push(performance.now() - began);
  };
  let before = null;
  await new Promise((done) => requestAnimationFrame(function frame(now) {
    if (before !== null) gaps.push(now - before);
    before = now;
    if (now - start > 1000 * seconds) return done();
    slider.value = low + (high - low) * (0.5 + 0.45 * Math.sin((now - start) / 300));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    requestAnimationFrame(frame);
  }));
  return { gaps, scripts };
}"""


def wide(n_columns: int = 100) -> gallery.Example:
    """A network of many columns; how long its page takes does not depend on its weights."""
    rng = np.random.default_rng(0)
    network = MonotonicNetwork([n_columns, 64, 64, 1], monotonic_cst=[1] * n_columns, group_size=8)
    names = [f"column {k}" for k in range(n_columns)]
    frozen = replace(freeze(network, features=names), outputs="logits")
    rows = pd.DataFrame(rng.normal(size=(4000, n_columns)), columns=names)
    rows["y"] = rng.integers(0, 2, len(rows))
    return gallery.Example(frozen, rows, "y", "Many columns")


def pages(folder: Path) -> Iterator[Path]:
    """The reports of the gallery, which are made if they are not there, and the wide one."""
    for name, make in gallery.EXAMPLES.items():
        page = gallery.OUT / f"{name}.html"
        if not page.exists():
            page.parent.mkdir(parents=True, exist_ok=True)
            make().write(page)
        yield page
    page = folder / "100 columns.html"
    wide().write(page)
    yield page


def drag(
    browser: Any, page: Path, size: tuple[int, int], place: str, seconds: float
) -> dict[str, Any] | None:
    """Gaps between frames and times of scripts, in milliseconds; None without such a slider."""
    opened = browser.new_page(viewport={"width": size[0], "height": size[1]})
    opened.goto(page.resolve().as_uri())
    opened.wait_for_function("() => isotone.app.pending === null")
    if not opened.locator(place).count():
        return None
    opened.evaluate(_DRAG, [place, 1.0])  # the page learns how much it may draw
    found: dict[str, Any] = opened.evaluate(_DRAG, [place, seconds])
    opened.close()
    return found


def measure(browser: Any, page: Path, seconds: float) -> Iterator[list[str]]:
    """The rows of a page: every screen, and all that can be dragged there."""
    for (screen, size), (name, place) in product(SIZES.items(), SLIDERS.items()):
        found = drag(browser, page, size, place, seconds)
        if found is None:
            continue
        gaps = np.array(found["gaps"])
        late, rate = 100 * np.mean(gaps > _LATE), 1000 / gaps.mean()
        numbers = [f"{rate:.1f}", f"{late:.1f}", f"{gaps.max():.0f}"]
        yield [page.stem, screen, name, *numbers, f"{np.median(found['scripts']):.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="of dragging")
    seconds = parser.parse_args().seconds
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium")
    if executable is None:
        raise SystemExit("this needs Chromium (Debian: apt-get install chromium)")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    heads = ["frames/s", "late, %", "longest, ms", "script, ms: median"]
    table = Table("report", "screen", "dragged", *heads)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=executable, args=options)
        for page in pages(Path(folder)):
            for row in measure(browser, page, seconds):
                table.add_row(*row)
        browser.close()
    Console(width=100).print(table, f"isotone {isotone.__version__}")


if __name__ == "__main__":
    main()
