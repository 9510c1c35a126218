"""Start: where a warm start begins, the networks of the last fit and what they see.

Inputs, scaling, knots and units stay those of the first fit, so that weights keep their meaning;
rows are those of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from isotone.estimators.fitting.trial import Task, Trial
from isotone.estimators.parameters import Parameters
from isotone.nn.network import MonotonicNetwork


@dataclass(frozen=True, eq=False)
class Start:
    """Where the next fit begins.

    Parameters
    ----------
    task : of the last fit, without its rows
    trials, members : what networks see, and the networks, in units that are not restored yet
    seed : of all fits; members then leave out the same rows
    is_searched : whether members leave rows out
    """

    task: Task
    trials: tuple[Trial, ...]
    members: tuple[list[MonotonicNetwork], ...]
    seed: int
    is_searched: bool

    @classmethod
    def after(
        cls,
        learned: Sequence[tuple[Trial, list[MonotonicNetwork]]],
        seed: int,
        *,
        is_searched: bool,
    ) -> Start | None:
        """What has been learned, for the next fit; None if there will be no warm start."""
        first = learned[0][0]
        if not first.parameters.warm_start:
            return None
        task = first.task.without_rows()
        trials = tuple(replace(trial, task=task) for trial, _ in learned)
        members = tuple(deepcopy(members) for _, members in learned)
        return cls(task, trials, members, seed, is_searched)

    def resume(
        self, task: Task, parameters: Parameters
    ) -> list[tuple[Trial, list[MonotonicNetwork]]]:
        """What networks see of another task, and copies of the networks."""
        return [
            (replace(trial, task=task, parameters=parameters), deepcopy(members))
            for trial, members in zip(self.trials, self.members, strict=True)
        ]
