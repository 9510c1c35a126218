"""`isotone score`: stream a table, or a directory of tables, through a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

import isotone
from isotone.cli.console.destination import check_directory
from isotone.cli.console.options import ON_UNSEEN, listed, policy_of
from isotone.cli.console.terminal import progress, say
from isotone.data.dataset import tables_in
from isotone.data.several import open_tables
from isotone.data.table import Table, split_tree
from isotone.files import refuse_overwriting
from isotone.frozen.scoring import Scored, Scoring, outputs_of, score_directory
from isotone.inputs.chain import refuse_one_score
from isotone.workers import workers_of


def score(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    tables: Annotated[
        list[str],
        typer.Argument(help="CSV, Parquet, ROOT (file.root:tree); several; or a directory."),
    ],
    out: Annotated[str, typer.Option(help="Where to write: CSV, Parquet, ROOT, or a directory.")],
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns to copy: a,b,...; repeatable.")
    ] = None,
    probability: Annotated[bool, typer.Option(help="Write probabilities too.")] = False,
    on_unseen: Annotated[str, ON_UNSEEN] = "error",
    workers: Annotated[int, typer.Option(help="Processes, for a directory.")] = 2,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of your own Dask scheduler, for a directory.")
    ] = None,
) -> None:
    """Score every row of a table, of any size, and write the scores to a new table.

    The rows of several tables and of patterns, as in 'data/*.root:tree', come one after the other.
    A branch of a ROOT tree with several values per entry gives a row for each of them.

    A directory of Parquet files is scored file by file, by processes of this machine or by the
    workers of a Dask scheduler. If that was interrupted, run the same command again: it resumes.

    A row is unlike any in training if it has a new category, a value missing in a column that was
    complete, or no number where one is needed. --on-unseen says what it gets: an error with its
    row and column, what a missing value gets, no score, or this score. A new category is like
    rare ones where the model pools these (isotone show tells), and needs none of it.

    Local processes listen on no port. Anyone who can reach a Dask scheduler without TLS can run
    code as its owner: protect the one that you name with --scheduler.
    """
    start = time.perf_counter()
    is_directory = len(tables) == 1 and Path(tables[0]).is_dir()
    if is_directory:
        check_directory(Path(out))
    written = outputs_of(Path(tables[0]), Path(out)) if is_directory else [split_tree(out)[0]]
    refuse_overwriting(written, [model])
    frozen, policy = isotone.load(model), policy_of(on_unseen)
    refuse_one_score(policy, frozen.n_outputs)
    first = next(iter(tables_in(Path(tables[0]))), None) if is_directory else None
    table = open_tables(tables if first is None else [str(first)])
    scoring = Scoring(frozen, _kept(keep, table), probability, policy)
    if is_directory:
        scored = _score_files(scoring, Path(tables[0]), Path(out), workers, scheduler)
    elif scheduler is not None:
        raise ValueError(
            f"`--scheduler` is for directories; {table.path!r} is not one: leave the option out"
        )
    else:
        scored = _score_rows(scoring, table, out)
    what, seconds = "file" if is_directory else "row", time.perf_counter() - start
    say(f"scored {_count(scored.n, what)} in {seconds:.1f} s: {out}")
    if scored.n_pooled:
        pooled = _count(scored.n_pooled, "row")
        say(f"{pooled} held rare or new categories, which the model pools")
    if scored.n_unseen:
        without = f", {scored.n_unscored:,} without a score" if scored.n_unscored else ""
        say(
            f"{_count(scored.n_unseen, 'row')} held values never seen in training; handled by "
            f"`--on-unseen {on_unseen}`{without}"
        )


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _kept(keep: list[str] | None, table: Table) -> tuple[str, ...]:
    """Names separated by commas; a comma in the name of a column is left alone."""
    texts = keep or ()
    return tuple(n for text in texts for n in ([text] if text in table.columns else listed(text)))


def _score_rows(scoring: Scoring, table: Table, out: str) -> Scored:
    with progress("{task.completed:,.0f} rows", table.n_rows) as update:
        return scoring.score(table, out, lambda n: update(advance=n))


def _score_files(
    scoring: Scoring, source: Path, target: Path, workers: int, scheduler: str | None
) -> Scored:
    count = "{task.completed:.0f} of {task.total} files"
    with workers_of(scheduler, workers) as chosen, progress(count) as update:
        show = lambda done, total: update(completed=done, total=total)  # noqa: E731
        return score_directory(scoring, source, target, chosen, show)
