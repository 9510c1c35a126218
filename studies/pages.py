"""Pages: tables of results in the documentation, so that the two cannot drift apart.

What stands between `<!-- begin paper/fig1_outlier -->` and `<!-- end -->` on a page of `docs` is
written by `python -m studies`: the claims of that study and what we get, or the study's own table.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from studies.claims import Claim
from studies.fingerprint import ROOT
from studies.study import Results, Study

DOCS = ROOT / "docs"
_BLOCK = re.compile(r"(<!-- begin (\w+)/(\w+)( table)? -->\n).*?(<!-- end -->)", re.DOTALL)
_HEADS = {"paper": ("the paper says", "we measure", "we get", "reproduced")}  # by group
_HEAD = ("claim", "we measure", "we get", "holds")


def claims_table(group: str, claims: Mapping[str, Claim], numbers: Mapping[str, float]) -> str:
    """A Markdown table of what is claimed, by the paper or by us, and what we get."""
    rows = [f"| {' | '.join(_HEADS.get(group, _HEAD))} |\n| --- | --- | --- | --- |\n"]
    for name, claim in claims.items():
        number = numbers[name]
        cells = claim.paper, claim.measured, show(number), claim.verdict(number)
        rows.append("| " + " | ".join(cells) + " |\n")
    return "".join(rows)


def show(number: float) -> str:
    """Three digits; whole numbers as such."""
    if float(number).is_integer():
        return str(int(number))
    return f"{number:.3g}" if abs(number) >= 1e-4 else f"{number:.1e}"


def write_pages(results: Mapping[tuple[str, str], Results], docs: Path = DOCS) -> None:
    """Renew every block of a study whose results are given, and the pictures of its figure."""
    for page in sorted(docs.glob("*.md")):
        old = page.read_text()
        new = _BLOCK.sub(lambda block: _renew(block, results), old)
        if new != old:
            page.write_text(new)
        for group, name in re.findall(r"\(figures/(\w+)-(\w+)\.svg\)", new):
            if (group, name) in results:
                target = docs / "figures" / f"{group}-{name}.svg"
                shutil.copyfile(Study(group, name).stem.with_suffix(".svg"), target)


def _renew(block: re.Match[str], results: Mapping[tuple[str, str], Results]) -> str:
    begin, group, name, own, end = block.groups()
    found = results.get((group, name))
    if found is None:
        return block.group()
    claims = Study(group, name).claims
    table = found.table if own else claims_table(group, claims, found.numbers)
    return f"{begin}\n{table.strip()}\n\n{end}"
