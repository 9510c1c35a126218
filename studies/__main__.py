"""All studies: `python -m studies`, or `python -m studies --quick`.

Studies run two at a time; those whose code has not changed are not run again. A full run also
renews the tables in `docs`. The exit code is 1 if a number is not as `expected.toml` says.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from studies.claims import groups, load_claims
from studies.pages import write_pages
from studies.study import Results, Study


def main() -> int:
    parser = argparse.ArgumentParser(description="Run all studies.")
    parser.add_argument("--quick", action="store_true", help="small and fast; writes no docs")
    parser.add_argument("--jobs", type=int, default=2, help="studies at a time")
    parser.add_argument("--only", default="", help="studies whose group/name contains this")
    options = parser.parse_args()
    studies = [
        Study(group, name, options.quick)
        for group in groups()
        for name in load_claims(group)
        if options.only in f"{group}/{name}"
    ]
    console = Console()
    results = run_all(studies, options.jobs, console)
    complaints = [text for study in studies for text in study.complaints(results[study])]
    for text in complaints:
        console.print(f"not as expected: {text}", highlight=False)
    if not options.quick:
        write_pages({(study.group, study.name): results[study] for study in studies})
    console.print(f"{len(studies)} studies; figures and numbers are in results/")
    return 1 if complaints else 0


def run_all(studies: list[Study], jobs: int, console: Console) -> dict[Study, Results]:
    """Results of all studies, with a bar; every job has one thread."""
    found = {study: stored for study in studies if (stored := study.stored())}
    os.environ["OMP_NUM_THREADS"] = "1"
    columns = TextColumn("studies"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, console=console) as bar,
        ProcessPoolExecutor(jobs, mp_context=spawn) as pool,
    ):
        task = bar.add_task("", total=len(studies), completed=len(found))
        futures = {pool.submit(study.run): study for study in studies if study not in found}
        for future in as_completed(futures):
            study = futures[future]
            found[study] = future.result()
            console.print(f"{study.group}/{study.name}: {found[study].seconds} s", highlight=False)
            bar.advance(task)
    return found


if __name__ == "__main__":
    sys.exit(main())
