"""Take the picture of the demo's report that the README shows.

    python -m demo.picture    # or make report-picture

It needs Chromium, playwright, and the report that `make demo` writes.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from PIL import Image

from demo import summary

PICTURE = Path("docs/figures/report.png")
_WIDTH, _HEIGHT = 1400, 940


def take(page: Path, out: Path) -> None:
    """The first screen, as on a laptop."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium")
    if browser is None or not page.exists():
        raise SystemExit(f"this needs chromium on the path and {page}, which `make demo` writes")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=options)
        opened = running.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
        opened.goto(page.resolve().as_uri())
        opened.wait_for_function("() => isotone.app.pending === null")
        opened.screenshot(path=out)
        running.close()
    shrink(out)


def shrink(path: Path) -> None:
    """Few colors are enough for lines and letters."""
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE)
    few.save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo.picture", description=__doc__.split("\n")[0])
    parser.add_argument("--report", type=Path, default=Path("results/demo") / summary.REPORT)
    parser.add_argument("--out", type=Path, default=PICTURE)
    options = parser.parse_args()
    take(options.report, options.out)


if __name__ == "__main__":
    main()
