"""`isotone sweep`: a grid of runs, by processes of this machine or on Dask."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from isotone.checks import check_fraction
from isotone.cli.console import terminal
from isotone.cli.console.destination import check_directory
from isotone.cli.console.options import (
    Features,
    InteractionCst,
    MaxIter,
    ScalingOption,
    TablePath,
    counts_of,
    interactions_of,
    listed,
    numbers_of,
    size_of,
    sizes_of,
)
from isotone.cli.console.terminal import output
from isotone.cli.table.columns import Columns, check_numbers, choose_columns
from isotone.data.table import open_table, read_numbers, split_tree
from isotone.files import refuse_overwriting
from isotone.inputs.cells import floats
from isotone.training.rows import Rows, split
from isotone.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotone.nn.interactions import Groups
    from isotone.training.sweep import Problem


def sweep(
    table: TablePath,
    target: Annotated[str, typer.Option(help="Column to learn: 0/1, or a number.")],
    out: Annotated[Path, typer.Option(help="Directory for shards and results.parquet.")],
    features: Features = None,
    increasing: Annotated[
        list[str] | None, typer.Option(help="Features that may only raise the prediction: a,b.")
    ] = None,
    decreasing: Annotated[
        list[str] | None, typer.Option(help="Features that may only lower the prediction: a,b.")
    ] = None,
    interaction_cst: InteractionCst = None,
    log: Annotated[list[str] | None, typer.Option(help="Take the logarithm of these.")] = None,
    scaling: ScalingOption = None,
    seeds: Annotated[str, typer.Option(help="0:100, or 1,2,3.")] = "0:32",
    lipschitz: Annotated[str, typer.Option(help="Values of λ, in scaled units.")] = "1,2,4",
    hidden_layer_sizes: Annotated[
        str, typer.Option(help="Widths, such as 20-20,32-32.")
    ] = "20-20",
    loss: Annotated[
        str, typer.Option(help="Losses, such as cross_entropy,hinge:0.1.")
    ] = "cross_entropy",
    group_size: Annotated[str, typer.Option(help="Units sorted together, or full.")] = "full",
    max_iter: MaxIter = 50,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows per step.")] = 256,
    validation: Annotated[float, typer.Option(help="Fraction of rows to hold out.")] = 0.2,
    shard_size: Annotated[int, typer.Option(min=1, help="Members trained together.")] = 32,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of your own Dask scheduler.")
    ] = None,
) -> None:
    """Train a grid of seeds, λ, widths and losses, and write one table of results.

    Features are standardized, unless --scaling or --log says otherwise.

    With --interaction-cst every group of features needs sorts of its own in every layer:
    --interaction-cst no_interactions --group-size 4 --hidden-layer-sizes 32-32 for up to 8.

    A sweep that was interrupted resumes where it stopped: run the same command again.

    Local processes listen on no port. Anyone who can reach a Dask scheduler without TLS can run
    code as its owner: protecting the one that you name with --scheduler is up to you.
    """
    from isotone.training.recipe import Recipe
    from isotone.training.sweep import Grid
    from isotone.training.sweep import sweep as run

    source = open_table(table)
    columns = choose_columns(
        *(source, target, features, increasing, decreasing, log),
        scaling=scaling,
        unasked="standard",
    )
    for direction in columns.directions:
        if direction.of_class is not None:
            raise ValueError(
                f"`{direction.option}` names a class, but a sweep learns numbers, or the class 1 "
                f"of 0 and 1; leave out ':{direction.of_class}', or use isotone train"
            )
    check_directory(out)
    refuse_overwriting([out / "results.parquet"], [split_tree(table)[0]])
    recipe = Recipe(epochs=max_iter, batch_size=batch_size)
    size = size_of(group_size)
    groups = _groups(interaction_cst, columns.features)
    check_fraction("--validation", validation)
    grid = Grid(
        seeds=counts_of(seeds, "seeds"),
        lipschitz=numbers_of(lipschitz, "lipschitz"),
        hidden_layer_sizes=tuple(
            sizes_of(sizes.replace("-", ",")) for sizes in listed(hidden_layer_sizes)
        ),
        losses=listed(loss),
    )
    problem = replace(
        _problem(table, columns, recipe, validation), group_size=size, interaction_cst=groups
    )
    _check_target(problem, grid.losses, target)
    count = "{task.completed:.0f} of {task.total} shards"
    with workers_of(scheduler, workers) as chosen, terminal.progress(count) as update:
        show = lambda done, total: update(completed=done, total=total)  # noqa: E731
        results = run(problem, grid, out, chosen, shard_size=shard_size, on_done=show)
    _print_best(results, out)


def _groups(texts: Sequence[str] | None, features: Sequence[str]) -> Groups | None:
    """What `--interaction-cst` says, by position."""
    from isotone.estimators.interactions import groups_of

    given = interactions_of(texts, features)
    return None if given is None else groups_of(given, features, features)


def _problem(path: str, columns: Columns, recipe: Any, fraction: float) -> Problem:
    from isotone.estimators.fitting.automatic import fit_scaling
    from isotone.training.sweep import Problem

    _refuse_text(path, columns.target)
    values = read_numbers(path, [*columns.features, columns.target])
    if len(values) == 0:
        raise ValueError(f"{path!r} has no rows; training needs some")
    X, y = values[:, :-1], values[:, -1]
    check_numbers(columns, dict(zip(columns.features, X.T, strict=True)))
    training, held_out = split(len(X), fraction)
    scaling = fit_scaling(columns.scaling, Rows(X, y)[training], columns.features)
    rows = Rows(scaling.transform(X), y)
    return Problem(rows[training], rows[held_out], columns.monotonic_cst, recipe)


def _refuse_text(path: str, target: str) -> None:
    """Refuse a target that names its classes."""
    for batch in islice(open_table(path).batches([target]), 1):
        cell = next((cell for cell in batch.column(target).to_pylist() if cell is not None), 0)
        if isinstance(cell, str) and not np.isfinite(floats(pa.array([cell]), target)).any():
            raise ValueError(
                f"the target {target!r} holds the text {cell[:40]!r} but a sweep learns numbers, "
                "or classes 0 and 1; make such a column, or use isotone train, which takes names "
                "of classes"
            )


def _check_target(problem: Problem, losses: Sequence[str], target: str) -> None:
    """Refuse losses for classes unless the target holds 0 and 1."""
    from isotone.losses import parse_loss

    different = np.unique(np.concatenate([problem.training.y, problem.validation.y]))
    wrong = [loss for loss in losses if parse_loss(loss).outputs == "logits"]
    if wrong and not np.array_equal(different, [0, 1]):
        shown = ", ".join(f"{value:g}" for value in different[:4])
        raise ValueError(
            f"`--loss {wrong[0]}` of a sweep needs a target of 0 and 1 but {target!r} holds "
            f"{shown}{', ...' if len(different) > 4 else ''}; choose --loss squared_error, make "
            "such a column, or use isotone train, which takes all classes"
        )


def _print_best(results: Any, out: Path) -> None:
    """The three runs with the lowest validation loss, for every loss."""
    heads = "loss", "hidden_layer_sizes", "lipschitz", "seed", "validation_loss", "best_epoch"
    table = terminal.columns(*(head.replace("_", " ") for head in heads))
    runs = sorted(results.to_pylist(), key=lambda run: (run["loss"], run["validation_loss"]))
    for _, same in groupby(runs, key=lambda run: run["loss"]):
        for run in islice(same, 3):
            cells = [run[head] for head in heads]
            table.add_row(*(f"{c:.5g}" if isinstance(c, float) else str(c) for c in cells))
    output.print(table)
    terminal.say(f"{results.num_rows} runs: {out / 'results.parquet'}")
