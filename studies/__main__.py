"""All studies and the tables of `studies.tabular`: `python -m studies`, or with `--quick`.

Two processes work on one queue, the longest first; what was computed by the same code is not
computed again. A full run also renews the tables in `docs`. The exit code is 1 if a number is not
as `expected.toml` says.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from studies.claims import groups, load_claims
from studies.jobs import Done, Job, run_jobs, save_seconds
from studies.pages import write_pages
from studies.study import Results, Study
from studies.tabular import compare


def main() -> int:
    parser = argparse.ArgumentParser(description="Run all studies.")
    parser.add_argument("--quick", action="store_true", help="small and fast; writes no docs")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default="", help="studies whose group/name contains this")
    parser.add_argument("--seconds", action="store_true", help="renew studies/seconds.json")
    options = parser.parse_args()
    console = Console()
    studies = [
        Study(group, name, options.quick)
        for group in groups()
        for name in load_claims(group)
        if options.only in f"{group}/{name}"
    ]
    cells = [] if options.only else compare.wanted(console, options.quick)
    results = {study: stored for study in studies if (stored := study.stored())}
    scores = compare.stored(cells)
    jobs = jobs_of([study for study in studies if study not in results])
    jobs += compare.jobs_of(cell for cell in cells if cell not in scores)
    found = run_jobs(jobs, options.jobs, console)
    if options.seconds:
        save_seconds(found)
    if not options.only:
        compare.report(scores | compare.outcomes(found), options.quick, console)
    return conclude(results | outcomes(found), options.quick, console)


def jobs_of(studies: list[Study]) -> list[Job]:
    return [Job(("quick/" if s.quick else "") + f"{s.group}/{s.name}", (s,)) for s in studies]


def outcomes(found: dict[Job, Done]) -> dict[Study, Results]:
    """Those of the studies among what was run."""
    pairs = [pair for done in found.values() for pair in done.outcomes.items()]
    return {study: results for study, results in pairs if isinstance(study, Study)}


def conclude(results: dict[Study, Results], quick: bool, console: Console) -> int:
    """Say what is not as expected, and write the rest into `docs`."""
    complaints = [text for study in results for text in study.complaints(results[study])]
    for text in complaints:
        console.print(f"not as expected: {text}", highlight=False)
    if not quick:
        write_pages({(study.group, study.name): results[study] for study in results})
    console.print(f"{len(results)} studies; figures and numbers are in results/")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
