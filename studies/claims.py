"""Claims: what the paper says, the number that tests it, and what we expect to get.

Every group of studies has an `expected.toml` with a table for each number of each study:

    [fig1_outlier.slope_certified]
    paper = "the slope is bounded by λ = 1"            # the claim, in the paper's terms
    measured = "largest slope by certificate, 10 seeds"  # what our number is
    holds = "<= 1"                                       # when the claim counts as reproduced
    value = 1.0                                          # what we got when this was written
    tolerance = 0.001                                    # by how much another machine may differ
    theorem = true                                       # must hold in quick runs, too

`holds` may be absent: the number is then shown beside the claim and judged by nobody.
"""

from __future__ import annotations

import operator
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

STUDIES = Path(__file__).parent
Verdict = Literal["yes", "no", ""]
_RELATIONS = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Claim:
    """One number of a study; see the module."""

    measured: str
    value: float
    tolerance: float
    paper: str = ""
    holds: str = ""
    theorem: bool = False

    def verdict(self, number: float) -> Verdict:
        if not self.holds:
            return ""
        relation, limit = self.holds.split()
        return "yes" if _RELATIONS[relation](number, float(limit)) else "no"

    def complaint(self, number: float, quick: bool = False) -> str | None:
        """What is wrong with a number, or None."""
        if self.theorem and self.verdict(number) != "yes":
            return f"{number:.4g} must be {self.holds}"
        if not quick and not abs(number - self.value) <= self.tolerance:
            return f"{number:.4g}, but {self.value:.4g} ± {self.tolerance:.2g} was expected"
        return None


def groups() -> list[str]:
    """The groups of studies that say what to expect."""
    return sorted(path.parent.name for path in STUDIES.glob("*/expected.toml"))


def load_claims(group: str) -> dict[str, dict[str, Claim]]:
    """Claims by study and number, in the order of the file."""
    content = tomllib.loads((STUDIES / group / "expected.toml").read_text())
    return {
        study: {name: Claim(**fields) for name, fields in numbers.items()}
        for study, numbers in content.items()
    }
