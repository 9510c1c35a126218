"""Compare: every contestant on every data set, `python -m studies.tabular.compare`.

Runs one process per core with one thread each. What has been computed is kept: stop it whenever
you like. A full run writes `results.json` and the tables of `docs/tabular.md`.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import sys
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from studies.tabular.cells import CONTESTANTS, ROOT, Cell
from studies.tabular.datasets import LOADERS, load
from studies.tabular.files import NoDataError
from studies.tabular.protocols import N_SPLITS, Score
from studies.tabular.reference import N_SEEDS, OWN, PUBLISHED, RUNS, SAME
from studies.tabular.tables import overview, save_results, summarize, write_page

QUICK = ("heart", "auto_mpg")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare models on tables with directions.")
    parser.add_argument("--quick", action="store_true", help="seconds, to see that it works")
    parser.add_argument("--data", nargs="+", choices=list(LOADERS), help="only these")
    parser.add_argument("--models", nargs="+", choices=list(CONTESTANTS), help="only these")
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="of the clean protocol")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--write", action="store_true", help="write what is there, run nothing")
    options = parser.parse_args(arguments)
    console = Console()
    present = available(console, list(options.data or (QUICK if options.quick else LOADERS)))
    cells = cells_of(present, 1 if options.quick else options.splits, options.quick)
    cells = [c for c in cells if c.contestant in (options.models or (SAME, *CONTESTANTS))]
    scores = stored(cells) if options.write else run_all(cells, options.jobs, console)
    if not scores:
        console.print("nothing to compare")
        return 0
    results = summarize(scores)
    if not options.quick:
        everything = cells_of(list(LOADERS), N_SPLITS)
        results = summarize(stored(everything))
        save_results(results)
        write_page(results)
    console.print(overview(results), highlight=False, markup=False, soft_wrap=True)
    return 0


def available(console: Console, names: list[str]) -> list[str]:
    """The data sets that are to be had; says what is missing."""
    present = []
    for name in names:
        try:
            load(name)
            present.append(name)
        except NoDataError as error:
            console.print(f"without {name}: {error}", highlight=False, markup=False)
    return present


def installed() -> list[str]:
    """The contestants whose libraries are here."""
    return [name for name, c in CONTESTANTS.items() if importlib.util.find_spec(c.needs)]


def cells_of(
    datasets: list[str], n_splits: int, quick: bool = False, root: Path = ROOT / "results"
) -> list[Cell]:
    """All cells, in an order in which a part of them is useful: split by split."""
    cells = [
        Cell("reference", dataset, contestant, seed, quick, root)
        for seed in range(1 if quick else N_SEEDS)
        for dataset in datasets
        for contestant in of_reference(dataset)
    ]
    return cells + [
        Cell("clean", dataset, contestant, k, quick, root)
        for k in range(n_splits)
        for dataset in datasets
        for contestant in installed()
    ]


def of_reference(dataset: str) -> list[str]:
    """The contestants of the reference protocol: all where there are published figures."""
    names = list(RUNS) if dataset in PUBLISHED else [OWN, "monotonicnetworks"]
    return [name for name in names if name in (OWN, SAME, *installed())]


def stored(cells: list[Cell]) -> dict[Cell, Score]:
    found = {cell: cell.stored() for cell in cells}
    return {cell: score for cell, score in found.items() if score is not None}


def run_all(cells: list[Cell], jobs: int, console: Console) -> dict[Cell, Score]:
    """The outcome of every cell, with a bar."""
    scores = stored(cells)
    missing = [cell for cell in cells if cell not in scores]
    os.environ["OMP_NUM_THREADS"] = "1"  # inherited by the workers
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(TextColumn("{task.description}"), *columns, console=console) as bar,
        ProcessPoolExecutor(jobs, mp_context=spawn) as pool,
    ):
        task = bar.add_task("comparing", total=len(cells), completed=len(scores))
        futures: dict[Future[Score], Cell] = {pool.submit(cell.run): cell for cell in missing}
        for future in as_completed(futures):
            cell = futures[future]
            scores[cell] = future.result()
            bar.update(task, advance=1, description=f"{cell.dataset}, {cell.contestant}")
    return scores


if __name__ == "__main__":
    sys.exit(main())
