"""Renew docs/trigger.md: `python -m studies.trigger.pages results/trigger`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from studies.trigger.pages.page import write


def main() -> None:
    parser = argparse.ArgumentParser(prog="studies.trigger.pages", description="Renew the page.")
    parser.add_argument("results", type=Path, help="where numbers.json and the figures are")
    results = parser.parse_args().results
    write(json.loads((results / "numbers.json").read_text()), results)


if __name__ == "__main__":
    main()
