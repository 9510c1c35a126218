"""Fair timing: contestants take turns in one process, pinned to one core."""

import os
import time
from collections.abc import Callable

Task = Callable[[], object]


def pin() -> int:
    """Stay on one core, and return which."""
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def seconds(task: Task, repeat: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        task()
    return (time.perf_counter() - start) / repeat


def race(tasks: list[Task], n_rounds: int, budget: float) -> list[list[float]]:
    """Seconds per call of every task in every round; each gets about `budget` seconds a round."""
    repeats = [max(1, int(budget / min(seconds(task) for _ in range(2)))) for task in tasks]
    rounds = [
        [seconds(*pair) for pair in zip(tasks, repeats, strict=True)] for _ in range(n_rounds)
    ]
    return [list(times) for times in zip(*rounds, strict=True)]
