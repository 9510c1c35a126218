"""The page: tables and pictures of docs/trigger.md, from the numbers of a full study.

    python -m studies.trigger.pages results/trigger

What stands between `<!-- begin trigger: NAME -->` and `<!-- end -->` is written here, so that the
page and what was measured cannot drift apart. What is around it, people wrote.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.pages import DOCS
from studies.trigger.pages import effect, questions, sample
from studies.trigger.simulation.parameters import SIZES

Numbers = dict[str, Any]
_BLOCK = re.compile(r"(<!-- begin trigger: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_PICTURE = re.compile(r"\(figures/trigger-(\w+)\.svg\)")

#: by the name that stands on the page
BLOCKS: dict[str, Callable[[Numbers], str]] = {
    "sample": sample.about_sample,
    "checks": sample.checks,
    "settings": sample.settings,
    "rates": effect.rates,
    "lifetimes": effect.lifetimes,
    "late": effect.late,
    "relative": effect.relative,
    "channels": effect.by_channel,
    "claims": effect.claims,
    "scan": questions.scan,
    "seeds": questions.seeds,
    "smoothness": questions.smoothness,
    "wrong": questions.wrong,
    "speed": questions.speed,
}


def write(numbers: Numbers, results: Path, docs: Path = DOCS) -> None:
    """Renew docs/trigger.md and its pictures."""
    if numbers["sample"]["size"]["collisions"] < SIZES["full"].collisions:
        raise ValueError(
            f"{str(results)!r} is of a sample of {numbers['sample']['size']['collisions']} "
            "collisions; the page tells of a full one: run make trigger"
        )
    page = docs / "trigger.md"
    text = _BLOCK.sub(lambda block: _renew(block, numbers), page.read_text())
    page.write_text(text)
    (docs / "figures").mkdir(exist_ok=True)
    for name in _PICTURE.findall(text):
        shutil.copyfile(results / f"{name}.svg", docs / "figures" / f"trigger-{name}.svg")


def _renew(block: re.Match[str], numbers: Numbers) -> str:
    begin, name, end = block.groups()
    return f"{begin}\n{BLOCKS[name](numbers)}\n\n{end}"
