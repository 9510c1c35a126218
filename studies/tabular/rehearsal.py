"""Rehearsal: rules of a contestant are decided here, on rows outside the test.

`python -m studies.tabular.rehearsal california --models isotone LightGBM` tries contestants and
prints what they reach. As the clean protocol, but judged on `stand_ins`. What `REHEARSED` reach on
all data sets is a part of the comparison, `studies.tabular.compare`.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

from studies.tabular import ours, taught
from studies.tabular.cells import CONTESTANTS, Cell, key_of
from studies.tabular.contest import Contestant
from studies.tabular.datasets import LOADERS, load
from studies.tabular.protocols import Score
from studies.tabular.stand_ins import rehearse

BEFORE = ours.Isotone("isotone, before codes", 32, members=16)
REHEARSED: dict[str, Contestant] = {
    contestant.name: contestant
    for contestant in (BEFORE, ours.WIDE, taught.TAUGHT, CONTESTANTS["LightGBM"])
}
_SMALL = ("heart", "auto_mpg", "boston", "german")  # these have a third split


@dataclass(frozen=True)
class Rehearsal(Cell):
    """One of `REHEARSED` on one split; the value of its score is the loss."""

    def key(self) -> str:
        return key_of(REHEARSED[self.contestant], "stand_ins", "rehearsal")

    def compute(self) -> Score:
        contestant, data = REHEARSED[self.contestant], load(self.dataset)
        loss, _, setting = rehearse(contestant, data, self.split, self.quick)
        return Score(loss, 0, 0.0, None, setting)


def n_splits(dataset: str, quick: bool) -> int:
    if quick:
        return 1
    return 3 if dataset in _SMALL else 2


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Try contestants without their test rows.")
    names = CONTESTANTS | REHEARSED
    parser.add_argument("data", nargs="+", choices=list(LOADERS))
    parser.add_argument("--models", nargs="+", choices=list(names), default=["isotone"])
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args(arguments)
    for name in options.data:
        for model in options.models:
            for k in range(options.splits):
                start = time.process_time()
                loss, value, text = rehearse(names[model], load(name), k)
                spent = time.process_time() - start
                print(f"{name} {k} {model}: loss {loss:.5g}, {value:.5g}; {spent:.1f} s; {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
