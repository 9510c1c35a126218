"""Rehearsal: rules of a contestant are decided here, on rows outside the test.

`python -m studies.tabular.protocols.rehearsal california --models isotone LightGBM` tries
contestants and prints what they reach. What `REHEARSED` reach on all data sets is a part of the
comparison, `studies.tabular.compare`.

As the clean protocol, but judged on stand-ins for the test rows. In large tables these are rows
that the clean split leaves unused; in small ones the validation rows, while a quarter of the
training rows takes the place of these. Such rows are test rows of other splits, except in bike
sharing, Adult and BlogFeedback.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace

import numpy as np

from studies.tabular.contest import Contestant, Problem, Table
from studies.tabular.datasets import LOADERS, Dataset, load
from studies.tabular.models import distilled, ours
from studies.tabular.protocols.cells import CONTESTANTS, Cell, key_of
from studies.tabular.protocols.clean import (
    MOST_ROWS,
    THRESHOLDS,
    VALIDATION,
    Score,
    Split,
    best_threshold,
    measure,
    split,
)

WITHOUT_KNOTS = ours.Isotone("isotone, without knots", 32, members=16)
REHEARSED: dict[str, Contestant] = {
    contestant.name: contestant
    for contestant in (WITHOUT_KNOTS, ours.WIDE, distilled.DISTILLED, CONTESTANTS["LightGBM"])
}
_SMALL = ("heart", "auto_mpg", "boston", "german")  # these have a third split


@dataclass(frozen=True)
class Rehearsal(Cell):
    """One of `REHEARSED` on one split; the value of its score is the loss."""

    def key(self) -> str:
        return key_of(REHEARSED[self.contestant], "rehearsal")

    def compute(self) -> Score:
        contestant, data = REHEARSED[self.contestant], load(self.dataset)
        loss, _, setting = rehearse(contestant, data, self.split, self.quick)
        return Score(loss, 0, 0.0, None, setting)


def n_splits(dataset: str, quick: bool) -> int:
    if quick:
        return 1
    return 3 if dataset in _SMALL else 2


def rehearse(
    contestant: Contestant, data: Dataset, k: int, quick: bool = False
) -> tuple[float, float, str]:
    """The loss, the value of the data set's metric, and what was chosen."""
    problem, parts = Problem.of(data, k, quick), stand_ins(data, k)
    choice = contestant.choose(problem, parts.train, parts.validation)
    model = contestant.fit(problem, parts.train + parts.validation, choice)
    threshold = 0.5
    if data.metric == "accuracy":
        threshold = best_threshold(parts.validation.y, choice.score, THRESHOLDS)
    score = model.score(parts.test.X)
    value = measure(data.metric, parts.test.y, score, threshold)
    return problem.loss(parts.test.y, score), value, f"{choice.setting}, {choice.rounds} rounds"


def stand_ins(data: Dataset, k: int) -> Split:
    """A split without its test rows: others take their place."""
    parts, n = split(data, k), len(data.y)
    numbered = split(replace(data, X=np.arange(n, dtype=np.float64)[:, None]), k)
    used = [table.X[:, 0] for table in (numbered.train, numbered.validation, numbered.test)]
    unused = np.setdiff1d(np.arange(n), np.concatenate(used))
    if len(unused) >= MOST_ROWS // 4:
        return Split(parts.train, parts.validation, Table(data.X[unused], data.y[unused]))
    order = np.random.default_rng([k, 5]).permutation(len(parts.train))
    held_out, kept = np.split(order, [int(VALIDATION * len(order))])
    train, validation = (Table(parts.train.X[i], parts.train.y[i]) for i in (kept, held_out))
    return Split(train, validation, parts.validation)


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
