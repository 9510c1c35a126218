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
from studies.tabular.models import ours, peers, small, trees
from studies.tabular.protocols.clean import Score, clean
from studies.tabular.protocols.reference import reference

Protocol = Literal["clean", "reference", "beginnings"]

CONTESTANTS: dict[str, Contestant] = {
    contestant.name: contestant
    for contestant in (
        ours.PLAIN,
        ours.TAUGHT,
        peers.Authors(),
        peers.Mononet(),
        trees.LightGBM(),
        trees.XGBoost(),
        trees.HistGradientBoosting(),
        trees.CatBoost(),
        peers.Perceptron(),
        peers.Linear(),
    )
}
REFERENCE = ("reference", "reference_rows")  # the modules of that protocol
_HERE = __name__.rpartition(".")[0]
_SHARED = ("studies.tabular.datasets", "studies.tabular.contest", f"{_HERE}.clean")
_PACKAGES = {"xgboost": "xgboost-cpu", "sklearn": "scikit-learn", "isotone": "scikit-learn"}


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
        return key_of(self.contestant, *modules)

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


@lru_cache(maxsize=64)
def key_of(name: str, *protocol: str) -> str:
    """A digest of what a model is made of, and of modules of its protocol.

    What is no contestant is a small network of ours.
    """
    contestant = CONTESTANTS.get(name)
    own = type(contestant).__module__ if contestant else small.__name__
    package = contestant.needs if contestant else "isotone"
    package = _PACKAGES.get(package, package)
    named = files_of([*_SHARED, *(f"{_HERE}.{module}" for module in protocol)])
    version = importlib.metadata.version(package)
    return digest(sources(own, *_SHARED) | named, f"{package} {version}")
