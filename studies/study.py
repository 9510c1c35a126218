"""Study: a script that answers one question with a figure and a few numbers.

A study is a module `studies.<group>.<name>` with a function `run(quick) -> Outcome`. Its results
go to `results/<group>/<name>/`: the figure as SVG and PDF, and the numbers as `results.json`. They
are kept as long as the code that made them is the same (`studies.fingerprint`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from studies.claims import Claim, load_claims
from studies.figures import save
from studies.fingerprint import ROOT, fingerprint


@dataclass(frozen=True)
class Outcome:
    """What a study found; `table` is Markdown for a page of the documentation."""

    numbers: dict[str, float]
    figure: Figure
    table: str = ""


@dataclass(frozen=True)
class Results:
    """What is stored of an outcome; `seconds` are those of the processor."""

    key: str
    quick: bool
    seconds: float
    numbers: dict[str, float]
    table: str = ""


@dataclass(frozen=True)
class Study:
    """One study, run in full or quickly; quick numbers only show that everything works."""

    group: str
    name: str
    quick: bool = False
    root: Path = field(default=ROOT / "results")

    @property
    def directory(self) -> Path:
        return self.root / ("quick" if self.quick else "") / self.group / self.name

    @property
    def stem(self) -> Path:
        """The figure without its suffix."""
        return self.directory / self.name

    @property
    def claims(self) -> dict[str, Claim]:
        return load_claims(self.group)[self.name]

    def key(self) -> str:
        return fingerprint(f"studies.{self.group}.{self.name}", f"quick={self.quick}")

    def stored(self) -> Results | None:
        """Results of exactly this code, if there are any."""
        files = [self.stem.with_suffix(suffix) for suffix in (".svg", ".pdf")]
        path = self.directory / "results.json"
        if not all(file.exists() for file in [*files, path]):
            return None
        content = json.loads(path.read_text())
        return Results(**content) if content["key"] == self.key() else None

    def run(self) -> Results:
        """Stored results, or new ones."""
        return self.stored() or self._run()

    def _run(self) -> Results:
        module = importlib.import_module(f"studies.{self.group}.{self.name}")
        key, start = self.key(), time.process_time()
        outcome: Outcome = module.run(self.quick)
        save(outcome.figure, self.stem)
        seconds = round(time.process_time() - start, 1)
        numbers = {name: float(number) for name, number in outcome.numbers.items()}
        results = Results(key, self.quick, seconds, numbers, outcome.table)
        text = json.dumps(asdict(results), indent=2, ensure_ascii=False)
        (self.directory / "results.json").write_text(text + "\n")
        return results

    def complaints(self, results: Results) -> list[str]:
        """What is not as `expected.toml` says; quick runs are held to theorems only."""
        if set(results.numbers) != set(self.claims):
            odd = sorted(set(results.numbers) ^ set(self.claims))
            return [f"{self.name}: {odd} are in results or in expected.toml, but not in both"]
        complaints = []
        for name, claim in self.claims.items():
            if claim.theorem or not self.quick:
                complaint = claim.complaint(results.numbers[name], self.quick)
                complaints += [f"{self.name}.{name}: {complaint}"] if complaint else []
        return complaints


def main(script: str, run: Callable[[bool], Outcome]) -> None:
    """The command line of a study; `run` is there for readers, `Study` finds it by name."""
    parser = argparse.ArgumentParser(description=(run.__globals__["__doc__"] or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    path = Path(script)
    study = Study(path.parent.name, path.stem, parser.parse_args().quick)
    results = study.run()
    for name, value in results.numbers.items():
        print(f"{name:44s} {value:.4g}")
    print(f"{results.seconds} s of processor time; see {study.directory}")
    for complaint in study.complaints(results):
        print(f"NOT AS EXPECTED {complaint}")
