"""Cells: one contestant on one split of one data set by one protocol; computed once, then kept.

A cell is a file below `results/tabular/`. It is kept as long as the code that made it is the same,
so that a comparison can be stopped at any moment and goes on where it was.
"""

from __future__ import annotations

import importlib.metadata
import json
import time
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from isotone.files import replacing
from studies.fingerprint import ROOT, digest, files_of, sources
from studies.tabular.contest import Contestant
from studies.tabular.models import distilled, ours, peers, trees
from studies.tabular.protocols.clean import Score, clean
from studies.tabular.protocols.reference import OWN, SAME, reference

Protocol = Literal["clean", "reference", "beginnings", "rehearsal"]

CONTESTANTS: dict[str, Contestant] = {
    contestant.name: contestant
    for contestant in (
        ours.SMALL,
        ours.WIDE,
        distilled.DISTILLED,
        peers.Authors(),
        peers.Mononet(),
        trees.LightGBM(),
        trees.XGBoost(),
        trees.HistGradientBoosting(),
        peers.Perceptron(),
        peers.Linear(),
    )
}
REFERENCE = ("reference", "reference_rows")  # the modules of that protocol
_HERE = __name__.rpartition(".")[0]
_SHARED = ("studies.tabular.datasets", "studies.tabular.contest", f"{_HERE}.clean")
_PACKAGES = {"xgboost": "xgboost-cpu", "sklearn": "scikit-learn"}


@dataclass(frozen=True)
class Cell:
    """One entry of the comparison."""

    protocol: Protocol
    dataset: str
    contestant: str
    split: int
    quick: bool = False
    root: Path = field(default=ROOT / "results")

    @property
    def path(self) -> Path:
        directory = self.root / ("quick" if self.quick else "") / "tabular" / self.protocol
        name = "".join(c if c.isalnum() else "-" for c in self.contestant)
        return directory / self.dataset / f"{name}-{self.split}.json"

    def key(self) -> str:
        """A digest of the code that a cell depends on."""
        modules = REFERENCE if self.protocol == "reference" else ()
        return key_of(CONTESTANTS[OWN if self.contestant == SAME else self.contestant], *modules)

    def stored(self) -> Score | None:
        """The outcome, if this code has computed it before."""
        if not self.path.exists():
            return None
        content = json.loads(self.path.read_text())
        return Score(**content["score"]) if content["key"] == self.key() else None

    def run(self) -> Score:
        """The stored outcome, or a new one."""
        return self.stored() or self._run()

    def _run(self) -> Score:
        start = time.process_time()
        score = self.compute()
        seconds = round(time.process_time() - start, 2)
        content = {"key": self.key(), "seconds": seconds, "score": asdict(score)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as part:
            part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return score

    def compute(self) -> Score:
        if self.protocol == "reference":
            return reference(self.contestant, self.dataset, self.split, self.quick)
        return clean(CONTESTANTS[self.contestant], self.dataset, self.split, self.quick)


def key_of(contestant: Contestant, *protocol: str) -> str:
    """A digest of what a contestant is made of, and of modules of its protocol."""
    own = type(contestant).__module__
    needs = ("isotone", "sklearn") if own == distilled.__name__ else (contestant.needs,)
    return _digest(own, protocol, needs)


@lru_cache(maxsize=32)
def _digest(own: str, protocol: tuple[str, ...], needs: tuple[str, ...]) -> str:
    named = files_of([*_SHARED, *(f"{_HERE}.{name}" for name in protocol)])
    paths = sources(own, *_SHARED) | named
    names = (_PACKAGES.get(name, name) for name in needs if name != "isotone")
    versions = (f"{name} {importlib.metadata.version(name)}" for name in names)
    return digest(paths, *versions)
