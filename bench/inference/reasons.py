"""Reasons: rows explained per CPU second, exactly and by drawn orders, against the shap library.

Question: how many rows per second get their contributions, for how many columns and background
rows, and how does that compare with shap, which calls the same engine?
Data: normal numbers; networks k-20-20-1 with fresh weights, float64.
Method: one pinned core, contestants taking turns in one process; the median of the rounds in CPU
seconds. shap computes the same quantity: its exact explainer against ours, its permutation
explainer with one pair of orders for each background row, as ours has. It explains fewer rows,
because it takes longer. Without shap its columns stay empty; `make bench-reasons` installs it
beside the environment.
Run time: about a minute; ``--quick`` seconds.
"""

import argparse
import time
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import isotone
from bench.race import Task, pin
from isotone import FrozenNetwork
from isotone.explanation import Background, Explainer
from isotone.typing import Floats

CASES = [(k, m) for m in (16, 100) for k in (4, 6, 8, 12)]
MOST_SCORES = 2**20  # of one call, beyond which fewer rows are explained


def draw_network(k: int) -> FrozenNetwork:
    torch.manual_seed(0)
    return isotone.freeze(isotone.MonotonicNetwork([k, 20, 20, 1], monotonic_cst=[1] * k))


def shap_library() -> Any:
    try:
        return import_module("shap")
    except ImportError:
        return None


def shap_task(
    shap: Any, frozen: FrozenNetwork, background: Floats, X: Floats, exact: bool
) -> Task:
    score, k = isotone.Engine(frozen), X.shape[1]
    masker = shap.maskers.Independent(background, max_samples=len(background))
    if exact:
        return partial(shap.explainers.Exact(score, masker), X, max_evals=2**k + 1, silent=True)
    explainer = shap.explainers.Permutation(score, masker)
    return partial(explainer, X, max_evals=2 * k + 1, silent=True)


def cpu_seconds(task: Task) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def contest(k: int, m: int, shap: Any, n_rounds: int) -> dict[str, float]:
    """Rows per CPU second by contestant, and how far shap's exact values are from ours."""
    frozen, rng = draw_network(k), np.random.default_rng(0)
    background = Background.of(frozen, rng.normal(size=(m, k)), n_rows=m)
    tasks: dict[str, tuple[Task, int]] = {}
    for method, per_row in (("exact", 2**k * m), ("sampled", 2 * k * m)):
        n = int(np.clip(MOST_SCORES // per_row, 4, 8192))
        explainer = Explainer(frozen, background, method=method, n_orders=1)  # type: ignore[arg-type]
        X = rng.normal(size=(n, k))
        tasks[method] = partial(explainer.explain, X), n
        if shap is not None:
            few = max(n // 64, 2)
            task = shap_task(shap, frozen, background.features, X[:few], method == "exact")
            tasks[f"shap {method}"] = task, few
    times = {name: [cpu_seconds(task) for _ in range(1)] for name, (task, _) in tasks.items()}
    for _ in range(n_rounds):
        for name, (task, _) in tasks.items():
            times[name].append(cpu_seconds(task))
    found = {name: n / float(np.median(times[name][1:])) for name, (_, n) in tasks.items()}
    return found | ({"difference": difference(tasks)} if shap is not None else {})


def difference(tasks: dict[str, tuple[Task, int]]) -> float:
    """The largest difference between exact values of both, which compute the same."""
    ours, theirs = tasks["exact"][0](), tasks["shap exact"][0]()
    values: Floats = theirs.values  # type: ignore[attr-defined]
    return float(np.abs(ours.contributions[: len(values)] - values).max())  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    console, shap = Console(), shap_library()
    console.print(f"core {pin()}; shap {'is not installed' if shap is None else shap.__version__}")
    names = ("exact", "shap exact", "sampled", "shap sampled", "difference")
    table = Table("columns", "background rows", *names)
    for k, m in CASES[:3] if quick else CASES:
        found = contest(k, m, shap, 1 if quick else 3)
        rates = [f"{found[name]:,.0f}" if name in found else "" for name in names[:-1]]
        table.add_row(str(k), str(m), *rates, f"{found.get('difference', np.nan):.0e}")
    console.print(table)


if __name__ == "__main__":
    main()
