"""Take the picture of the demo's report that the README shows, and those of the gallery.

    python -m demo.picture              # or make report-picture
    python -m demo.picture --gallery    # thumbnails of build/site/gallery, for the documentation

It needs Chromium, playwright, and the reports that `make demo` and `demo.gallery` write.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from PIL import Image

from demo import summary
from demo.gallery import EXAMPLES, OUT

PICTURE = Path("docs/figures/report.png")
THUMBNAILS = Path("docs/_static/thumbnails")
_SCREEN, _THUMB = (1400, 940), (480, 300)
_PROOF = "() => { document.getElementById('proof').open = true; }"
_SCENES = {  # report of the gallery, and the place on it, by the name of the picture
    **{name: (name, None) for name in EXAMPLES},
    "physicist": ("trigger", "#quality"),
    "data-scientist": ("medicine", "#explore"),
    "auditor": ("credit", "#verdict"),
}


def take(page: Path, out: Path, place: str | None = None, height: int = _SCREEN[1]) -> None:
    """The first screen, as on a laptop, or what begins at a place."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium")
    if browser is None or not page.exists():
        raise SystemExit(f"this needs chromium on the path and {page}, which `make demo` writes")
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=options)
        opened = running.new_page(viewport={"width": _SCREEN[0], "height": height})
        opened.goto(page.resolve().as_uri())
        opened.wait_for_function("() => isotone.app.pending === null")
        opened.evaluate(_PROOF)
        if place is not None:
            opened.evaluate("place => document.querySelector(place).scrollIntoView()", place)
            opened.wait_for_timeout(1500)
        opened.screenshot(path=out)
        running.close()
    shrink(out)


def take_gallery(reports: Path) -> None:
    """Thumbnails of the gallery, of the readers' cards, and the pictures of two tutorials."""
    THUMBNAILS.mkdir(parents=True, exist_ok=True)
    for name, (report, place) in _SCENES.items():
        out = THUMBNAILS / f"{name}.png"
        take(reports / f"{report}.html", out, place, height=_SCREEN[0] * _THUMB[1] // _THUMB[0])
        with Image.open(out) as picture:
            small = picture.convert("RGB").resize(_THUMB, Image.Resampling.LANCZOS)
        small.quantize(256).save(out, optimize=True)
    figures = PICTURE.parent
    take(reports / "medicine.html", figures / "tutorial-report.png")
    take(reports / "credit.html", figures / "tutorial-proof.png", "#verdict")


def shrink(path: Path) -> None:
    """Few colors are enough for lines and letters."""
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE)
    few.save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="demo.picture", description=__doc__.split("\n")[0])
    parser.add_argument("--report", type=Path, default=Path("results/demo") / summary.REPORT)
    parser.add_argument("--out", type=Path, default=PICTURE)
    parser.add_argument("--gallery", action="store_true", help="thumbnails of the gallery instead")
    options = parser.parse_args()
    if options.gallery:
        take_gallery(OUT)
    else:
        take(options.report, options.out)


if __name__ == "__main__":
    main()
