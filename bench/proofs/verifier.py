"""Two certifiers on many files: `isotone.certify` and `verifier/`, models and changed ones.

`python -m bench.proofs.verifier --models 10000` draws so many models of every kind, many of them
on the edge of what can be proved, changes each of their files, most with checksums that fit again,
and compares what both certifiers say. Files on which they disagree are kept. With `--page`, the
second is the worker of the playground, the very script that its page runs. Needs Node.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

_BATCH = 250
_ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first model")
    parser.add_argument("--kept", type=Path, default=Path("results/verifier"))
    parser.add_argument("--page", action="store_true", help="ask the playground's worker")
    options = parser.parse_args()
    sys.path.insert(0, str(_ROOT / "tests"))  # which have the models
    warnings.simplefilter("ignore")
    campaign = Campaign(options.kept, "playgrounds" if options.page else "rivals")
    end = options.first + options.models
    for start in range(options.first, end, _BATCH):
        campaign.run(range(start, min(start + _BATCH, end)))
        print(f"seeds to {min(start + _BATCH, end)}: {dict(campaign.outcomes)}", flush=True)
    campaign.report()
    raise SystemExit(campaign.n_disagreements > 0)


class Campaign:
    """What both certifiers said so far.

    Parameters
    ----------
    kept : where files on which they disagree are kept
    asked : the module whose `verify` is the second certifier
    """

    def __init__(self, kept: Path, asked: str) -> None:
        self.kept, self.asked = kept, asked
        self.outcomes: Counter[tuple[str, str, str]] = Counter()
        self.n_disagreements = 0

    def run(self, seeds: range) -> None:
        """Draw, change, ask both, compare."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [path for seed in seeds for path in _write(Path(folder), seed)]
            rivals: Any = importlib.import_module("rivals")
            asked: Any = importlib.import_module(self.asked)
            for path, theirs in zip(paths, asked.verify(paths), strict=True):
                self._count(path, rivals.Pair(path, theirs))

    def _count(self, path: Path, pair: Any) -> None:
        what = path.stem.split("-")[0]
        said = "HOLDS, its E is smaller" if pair.is_sharper else pair.theirs["verdict"]
        self.outcomes[what, pair.our_verdict, said] += 1
        for text in pair.disagreements():
            self.n_disagreements += 1
            self.kept.mkdir(parents=True, exist_ok=True)
            (self.kept / path.name).write_bytes(path.read_bytes())
            print(f"{self.kept / path.name}: {text}", flush=True)

    def report(self) -> None:
        table = Table("file", "isotone certify", "isotone-verify", "files")
        for key, count in sorted(self.outcomes.items()):
            table.add_row(*key, f"{count:,}")
        Console().print(table)
        print(f"{self.n_disagreements} disagreements")


def _write(folder: Path, seed: int) -> list[Path]:
    """A model and a changed one."""
    candidates: Any = importlib.import_module("candidates")
    mutants: Any = importlib.import_module("mutants")
    model, changed = folder / f"model-{seed}.isotone", folder / f"changed-{seed}.isotone"
    candidates.draw_model(seed).save(model)
    changed.write_bytes(mutants.mutate(model.read_bytes(), np.random.default_rng([seed, 1])))
    return [model, changed]


if __name__ == "__main__":
    main()
