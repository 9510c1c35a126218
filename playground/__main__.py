"""Write the playground: `python -m playground --out playground.html`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from playground.page import assemble


def main() -> None:
    parser = argparse.ArgumentParser(prog="playground", description="Write the playground.")
    parser.add_argument("--out", type=Path, default=Path("build/playground.html"))
    options: Any = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(assemble(), encoding="utf-8")
    print(f"{options.out}: {options.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
