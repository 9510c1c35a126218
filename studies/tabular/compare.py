"""Compare: every contestant on every data set, `python -m studies.tabular.compare`.

Two processes with one thread each. What has been computed is kept: stop it whenever you like. Once
all is there, `results.json` and the tables of the two pages in `docs` are written.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console

from studies.fingerprint import ROOT
from studies.jobs import Done, Job, run_jobs
from studies.tabular.contest import Contestant
from studies.tabular.datasets import LOADERS, load
from studies.tabular.files import NoDataError
from studies.tabular.pages.picture import write_picture
from studies.tabular.pages.tables import overview, save_results, summarize, write_pages
from studies.tabular.protocols import beginnings
from studies.tabular.protocols.beginnings import AUTHORS, INITS, Beginning
from studies.tabular.protocols.cells import CONTESTANTS, Cell
from studies.tabular.protocols.clean import N_SPLITS, Score
from studies.tabular.protocols.reference import N_SEEDS, OWN, PUBLISHED, RUNS, SAME

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
    cells = wanted(console, options.quick, options.data, options.splits)
    cells = [c for c in cells if not options.models or c.contestant in options.models]
    scores = stored(cells) if options.write else run_all(cells, options.jobs, console)
    report(scores, options.quick, console, partly=options.write)
    return 0


def wanted(
    console: Console, quick: bool, datasets: list[str] | None = None, n_splits: int = N_SPLITS
) -> list[Cell]:
    """All cells, except those that are not stored and whose data are unavailable."""
    names = list(datasets or (QUICK if quick else LOADERS))
    cells = cells_of(names, 1 if quick else n_splits, quick)
    known = stored(cells)
    missing = {cell.dataset for cell in cells if cell not in known}
    present = available(console, [name for name in names if name in missing])
    return [cell for cell in cells if cell in known or cell.dataset in present]


def report(scores: dict[Cell, Score], quick: bool, console: Console, partly: bool = False) -> None:
    """Show what was found; once all cells are there, or `partly`, write down what is stored."""
    if not scores:
        console.print("nothing to compare")
        return
    results = summarize(scores)
    every = cells_of(list(LOADERS), N_SPLITS)
    known = {} if quick else stored(every)
    if known and (partly or len(known) == len(every)):
        results = summarize(known)
        save_results(results)
        write_pages(results)
        write_picture(results)
    elif not quick:
        n = len(every) - len(known)
        console.print(f"{n} cells are missing; results.json and docs stay as they are")
    console.print(overview(results), highlight=False, markup=False, soft_wrap=True)


def available(console: Console, names: list[str]) -> list[str]:
    """The data sets that are available; says what is missing."""
    present = []
    for name in names:
        try:
            load(name)
            present.append(name)
        except NoDataError as error:
            console.print(f"without {name}: {error}", highlight=False, markup=False)
    return present


def installed(contestants: Mapping[str, Contestant] = CONTESTANTS) -> list[str]:
    """The contestants whose libraries are here."""
    return [name for name, c in contestants.items() if importlib.util.find_spec(c.needs)]


def cells_of(
    datasets: list[str], n_splits: int, quick: bool = False, root: Path = ROOT / "results"
) -> list[Cell]:
    """All cells of both protocols and of the beginnings."""
    cells: list[Cell] = [
        Cell("reference", dataset, contestant, seed, quick, root)
        for seed in range(1 if quick else N_SEEDS)
        for dataset in datasets
        for contestant in of_reference(dataset)
    ]
    cells += [
        Cell("clean", dataset, contestant, k, quick, root)
        for k in range(n_splits)
        for dataset in datasets
        for contestant in installed()
    ]
    return cells + [
        Beginning("beginnings", dataset, variant, k, quick, root)
        for dataset in datasets
        if dataset == beginnings.DATASET
        for variant in (*installed({AUTHORS: CONTESTANTS[AUTHORS]}), *INITS)
        for k in range(beginnings.n_splits(quick))
    ]


def of_reference(dataset: str) -> list[str]:
    """The contestants of the reference protocol: all where there are published figures."""
    names = list(RUNS) if dataset in PUBLISHED else [OWN, "monotonicnetworks"]
    return [name for name in names if name in (OWN, SAME, *installed())]


def stored(cells: list[Cell]) -> dict[Cell, Score]:
    found = {cell: cell.stored() for cell in cells}
    return {cell: score for cell, score in found.items() if score is not None}


def jobs_of(cells: Iterable[Cell]) -> list[Job]:
    """Cells of one contestant on one data set by one protocol are one job."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        name = f"{cell.protocol}/{cell.dataset}/{cell.contestant}"
        groups.setdefault(f"quick/{name}" if cell.quick else name, []).append(cell)
    return [Job(name, tuple(group)) for name, group in groups.items()]


def run_all(cells: list[Cell], n_processes: int, console: Console) -> dict[Cell, Score]:
    """The outcome of every cell, with a bar."""
    scores = stored(cells)
    jobs = jobs_of(cell for cell in cells if cell not in scores)
    return scores | outcomes(run_jobs(jobs, n_processes, console))


def outcomes(found: dict[Job, Done]) -> dict[Cell, Score]:
    """Those of the cells among what was run."""
    pairs = [pair for done in found.values() for pair in done.outcomes.items()]
    return {cell: score for cell, score in pairs if isinstance(cell, Cell)}


if __name__ == "__main__":
    sys.exit(main())
