"""`isotone train`: from a table to a certified model file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from isotone.checks import check_choice
from isotone.cli.console import terminal
from isotone.cli.console.destination import Destination, checkpoint_files, remove_checkpoints
from isotone.cli.console.options import (
    Features,
    InteractionCst,
    MaxIter,
    ScalingOption,
    frequency_of,
    interactions_of,
    listed,
    rates_of,
)
from isotone.cli.console.terminal import output, printable
from isotone.cli.table.columns import choose_columns
from isotone.cli.table.directory import check_workers, is_streamed, survey_rows
from isotone.cli.table.estimator import estimator_of, loss_of, settings_of
from isotone.cli.table.given import BackgroundPaths, Given, SignalPaths, TablePaths
from isotone.cli.table.judging import judge
from isotone.cli.table.outcome import print_next, print_outcome, print_scaling
from isotone.cli.table.rows import Reading, Sample, read_rows
from isotone.cli.table.target import TargetColumn
from isotone.data.table import split_tree
from isotone.export.lhcb.fold import check_shape
from isotone.files import refuse_overwriting, remove_leftovers, write_whole
from isotone.files.locks import making, sole_use
from isotone.frozen.network import FrozenNetwork
from isotone.selftest import carry
from isotone.typing import Gaps
from isotone.workers import Workers, workers_of

if TYPE_CHECKING:
    from isotone.estimators.estimator import MonotonicEstimator

_FILES = ("certificate.json", "history.json", "metrics.json")  # beside the model


def train(
    out: Annotated[Path, typer.Option(help="Directory for all results, or an .isotone file.")],
    tables: TablePaths = None,
    target: Annotated[
        str | None, typer.Option(help="Column to learn: classes or numbers.")
    ] = None,
    signal: SignalPaths = None,
    background: BackgroundPaths = None,
    positive: Annotated[
        str | None, typer.Option(help="With two classes, the one that scores refer to.")
    ] = None,
    features: Features = None,
    increasing: Annotated[
        list[str] | None,
        typer.Option(help="Features that may only raise the prediction: a,b, or a:CLASS."),
    ] = None,
    decreasing: Annotated[
        list[str] | None,
        typer.Option(help="Features that may only lower the prediction: a,b, or a:CLASS."),
    ] = None,
    joint_cst: Annotated[
        list[str] | None,
        typer.Option(help="Never fall while columns move together: a=1,b=-1; may be repeated."),
    ] = None,
    interaction_cst: InteractionCst = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns of text: one feature for every category.")
    ] = None,
    ordered: Annotated[
        list[str] | None,
        typer.Option(help="Categories from the lowest to the highest: 'size=S<M<L'."),
    ] = None,
    min_frequency: Annotated[
        str,
        typer.Option(help="Fewest rows, or share, of a category that is not pooled: 10, 0.01."),
    ] = "1",
    missing: Annotated[
        str, typer.Option(help="Missing values: error, or indicator (learn from them).")
    ] = "error",
    lipschitz: Annotated[
        str, typer.Option(help="λ: 2, or a=2,b=0.5, or auto, or learned.")
    ] = "auto",
    lipschitz_max: Annotated[float, typer.Option(help="The largest λ that is learned.")] = 8.0,
    knots: Annotated[str, typer.Option(help="Pieces of every number: 32, none, auto.")] = "auto",
    log: Annotated[
        list[str] | None, typer.Option(help="Take the logarithm: a,b, or b=0.5 for log(b + 0.5).")
    ] = None,
    scaling: ScalingOption = None,
    hidden_layer_sizes: Annotated[str, typer.Option(help="Widths of hidden layers.")] = "32,32",
    group_size: Annotated[
        str, typer.Option(help="Units sorted together: 2, full, auto.")
    ] = "auto",
    loss: Annotated[str | None, typer.Option(help="Default: depends on the target.")] = None,
    class_weight: Annotated[
        str, typer.Option(help="none, or balanced: rare classes count as much as others.")
    ] = "none",
    max_iter: MaxIter = 100,
    n_members: Annotated[
        int | None, typer.Option(min=1, help="Networks to average; 4, or 1 with --for.")
    ] = None,
    evaluator: Annotated[
        str | None,
        typer.Option("--for", help="A network for LHCb's evaluators: allen or hlt2."),
    ] = None,
    random_state: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed; the same seed gives the same model.")
    ] = 0,
    weights: Annotated[str | None, typer.Option(help="Column of row weights.")] = None,
    signed_weights: Annotated[
        bool, typer.Option("--signed-weights", help="Weights may be negative, as sWeights are.")
    ] = False,
    validation: Annotated[
        str, typer.Option(help="Fraction of rows to hold out, or a table.")
    ] = "0.2",
    group_by: Annotated[
        list[str] | None,
        typer.Option(help="Columns a,b: rows that share them are held out together."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a killed run.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes, for a large directory.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of your own Dask scheduler, for a directory.")
    ] = None,
) -> None:
    """Train a model on a table, certify it, and say how good it is on held-out rows.

    A target of text, or of two numbers, is learned as classes, any other as a number. A direction
    is about the number, or about the probability of a class: the CLASS you name with it, or else
    that of --positive, or else the larger of two numbers, or true. With two classes the score is
    about that of --positive, by default the last in order: a larger score makes that class more
    likely.

    With --joint-cst income=1,debt=-1 the prediction never falls when income rises by as much as
    debt falls: income matters at least as much as debt.

    Losses: cross_entropy for classes, and for two of them hinge or dynamic_hinge; squared_error,
    absolute_error, quantile or quantile:0.9 for numbers. Whole numbers are learned as classes with
    --loss cross_entropy.

    Name a column of text in --categorical, or in --ordered if its categories have an order: such a
    column may have a direction. Ordered categories in a Parquet file are used as they are.
    Categories with fewer rows than --min-frequency, but not ordered ones, are learned as one, and
    a new category is scored as one of them.

    With --scaling none the network sees features as they are, and λ is per unit of each: use it
    where units carry a meaning, or where columns are scaled already. standard is mean and standard
    deviation, robust median and quartiles, log the logarithm, standardized; auto, the default,
    takes the logarithm of skewed columns. What was done is printed. Knots replace a scaling: add
    --knots none, or give --lipschitz, to have none.

    With --interaction-cst a,b --interaction-cst c,d the score is a sum of a function of a and b,
    one of c and d, and one of all other features; no_interactions makes it a sum of functions of
    single features. The certificate proves it.

    With --for allen, or hlt2, the network is one that LHCb's evaluators of HLT1 and HLT2 can
    compute: pairs, one member, no knots, and no scaling unless --scaling asks for a linear one, so
    that λ, which --lipschitz must give, is per raw unit. Write it with isotone export --to allen.

    Several tables, trees and patterns are one table: 'data/*.root:DecayTree' more.root:dir/tree.
    With --signal s.root:T --background b.root:T (each may be repeated, and be a pattern) the class
    is 1 for rows of the former and 0 for the latter, in a column called signal, or as --target
    says. A branch of a ROOT tree with several values per entry gives a row for each of them, and
    other branches repeat theirs.

    Rows that are not independent, such as the candidates of one event, would be learned and held
    out at once: with --group-by run,event all rows of an event are on one side, also where λ,
    knots and epochs are chosen. These columns are no features unless --features names them.

    With --signed-weights some --weights may be negative, as sWeights and those of NLO generators
    are. The network learns from their mean given features and class, which is estimated and never
    negative; metrics use the weights as they are.

    A directory of Parquet files is one table, and so are several such files. If they have more
    than 262,144 rows, these stay on disk: a first pass counts categories and classes and draws a
    sample of 131,072 rows, which decides scaling, knots and λ; then every pass streams all rows.
    At most 131,072 rows are held out. With --workers or --scheduler, processes of this machine or
    the workers of a Dask scheduler train the members of the average, to the same bits; they must
    see the files, and --out, under the same paths.

    Options that take columns may be repeated. Put a name with a comma, or with spaces around it,
    in double quotes: '"income, net",debt'.

    Writes model.isotone, certificate.json, history.json and metrics.json to the directory --out,
    or only the model if --out ends in .isotone.

    For example:

    isotone train loans.csv --target paid --increasing income:yes --decreasing debt:yes --out model
    """
    check_choice("--missing", missing, get_args(Gaps))
    check_choice("--class-weight", class_weight, ("none", "balanced"))
    given = Given.of(tables, signal, background, target)
    destination = _destination(out, [*given.local_files, split_tree(validation)[0]])
    source = given.open()
    check_workers(source, workers, scheduler)
    columns = choose_columns(
        source,
        given.target,
        features,
        increasing,
        decreasing,
        log,
        weights,
        categorical,
        ordered,
        scaling,
        group_by,
        gaps_allowed=missing == "indicator",
        unasked="identity" if evaluator else "auto",
    )
    kind, level = loss_of(loss)
    frequency = frequency_of(min_frequency)
    asked = (weights, validation, kind, missing == "indicator", positive, frequency)
    how = Reading(*asked, group_by=listed(group_by), signed=signed_weights)
    read = survey_rows if is_streamed(source) else read_rows
    learned, training, held_out = read(source, columns, how)
    estimator = estimator_of(learned, columns, kind, level, class_weight)
    shape = (lipschitz, knots, hidden_layer_sizes, group_size, n_members)
    estimator.set_params(
        joint_cst=[rates_of(text, "joint-cst") for text in joint_cst or ()] or None,
        interaction_cst=interactions_of(interaction_cst, columns.features),
        lipschitz_max=lipschitz_max,
        min_frequency=frequency,
        signed_weights=signed_weights,
        max_iter=max_iter,
        random_state=random_state,
        verbose=True,
        **settings_of(evaluator, columns, missing, *shape),
    )
    made_from = given.describe() | {"rows": len(training.X), "random_state": random_state}
    where = (scheduler, workers) if is_streamed(source) else (None, 1)
    with workers_of(*where) as chosen:
        metrics = _make(estimator, training, held_out, destination, made_from, resume, chosen)
    _print(estimator, learned, metrics, destination.model, evaluator)
    print_next(destination.model, given.paths, validation)


def _print(
    estimator: MonotonicEstimator,
    target: TargetColumn,
    metrics: dict[str, float],
    model: Path,
    evaluator: str | None,
) -> None:
    levels = estimator.network_.provenance.get("quantiles")
    about = f"quantile {levels[0]:g} of {target.name}" if levels else target.describe()
    print_outcome(estimator.certificate_, about, metrics)
    print_scaling(estimator.network_)
    output.print(printable(f"written: {model}"), soft_wrap=True)
    if evaluator is not None:
        check_shape(estimator.network_, evaluator)
        terminal.say(f"fits {evaluator}: write it with isotone export --to {evaluator}")


def _destination(out: Path, tables: Sequence[Path]) -> Destination:
    """Where results go, none of them in place of a table that is read."""
    destination = Destination.of(out, "model.isotone")
    parts = checkpoint_files(destination.checkpoints)
    refuse_overwriting([destination.model, *destination.beside(*_FILES), *parts], tables)
    return destination


def _make(
    estimator: MonotonicEstimator,
    training: Sample,
    held_out: Sample,
    destination: Destination,
    made_from: dict[str, Any],
    resume: bool,
    workers: Workers,
) -> dict[str, float]:
    """Fit, judge and write, alone in the room of the results; the metrics."""
    with sole_use(destination.room), making(destination.checkpoints):
        _fit(estimator, training, destination.checkpoints, resume, workers)
        metrics = judge(estimator, held_out)
        provenance = dict(estimator.network_.provenance) | made_from
        named = replace(estimator.network_, provenance=provenance)  # certified as it was
        network = carry(named)
        _write(estimator, network, metrics, destination)
        remove_checkpoints(destination.checkpoints)
    with suppress(OSError):  # it is gone, or another run has begun
        destination.checkpoints.rmdir()
    return metrics


def _fit(
    estimator: MonotonicEstimator, rows: Sample, checkpoints: Path, resume: bool, workers: Workers
) -> None:
    from isotone.training.checkpoint import CheckpointError

    if not resume:
        remove_checkpoints(checkpoints)
    estimator.keep_checkpoints(checkpoints)
    try:
        estimator.fit(rows.X, rows.y, rows.weight, groups=rows.group, workers=workers)
    except CheckpointError as error:
        raise ValueError(
            f"`--resume` is impossible: the checkpoint in {str(checkpoints.parent)!r} "
            f"{error.reason}; give the table and the options of the run that was killed, or leave "
            "out `--resume` to start over"
        ) from error


def _write(
    estimator: MonotonicEstimator,
    network: FrozenNetwork,
    metrics: dict[str, float],
    to: Destination,
) -> None:
    to.model.parent.mkdir(parents=True, exist_ok=True)
    network.save(to.model)
    remove_leftovers(to.model, *to.beside(*_FILES))
    if to.directory is None:
        return
    certificate = estimator.certificate_
    losses = estimator.history_.to_dict() | {"fingerprint": certificate.fingerprint}
    texts = {
        "certificate.json": certificate.to_json(),
        "history.json": json.dumps(losses, indent=1),
        "metrics.json": json.dumps(metrics, indent=1),
    }
    for name, text in texts.items():
        write_whole(to.directory / name, text)
