"""Stand-ins: rows that take the place of test rows, so that rules can be decided without them.

In large tables they are rows that the clean split leaves unused; in small ones the validation
rows, while a quarter of the training rows takes the place of these. Such rows are test rows of
other splits, except in bike sharing, Adult and BlogFeedback.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from studies.tabular.contest import Contestant, Problem, Table
from studies.tabular.datasets import Dataset
from studies.tabular.protocols import (
    MOST_ROWS,
    THRESHOLDS,
    VALIDATION,
    Split,
    best_threshold,
    measure,
    split,
)


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
