"""`isotone explain`: reasons for the scores of rows, and what would turn decisions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, cast

import typer

import isotone
from isotone.checks import check_choice
from isotone.cli.console.options import ON_UNSEEN, counts_of, listed, policy_of
from isotone.cli.console.terminal import columns, indented, output, printable, progress, say
from isotone.cli.console.threshold import threshold_of
from isotone.data.several import open_tables
from isotone.data.table import split_tree
from isotone.explanation.background import N_ROWS, Background
from isotone.explanation.draws import Method
from isotone.explanation.points import Points
from isotone.explanation.reasons import Explainer, Side
from isotone.explanation.recourse.changefile import read_changes, usual_changes
from isotone.explanation.recourse.changes import AllowedChange
from isotone.explanation.table import ExplainedRows, Explaining
from isotone.explanation.texts import Texts
from isotone.files import refuse_overwriting
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy, refuse_one_score

_REASONS, _TEXTS, _RECOURSE = "Reasons", "Named reasons", "Recourse"
_NAMED, _MOST_SHOWN = 4, 20  # reasons with texts, and columns that are printed


def explain(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    table: Annotated[str, typer.Argument(help="CSV, Parquet or ROOT (file.root:tree).")],
    out: Annotated[str, typer.Option(help="The table to write: CSV or Parquet.")],
    rows: Annotated[
        str | None, typer.Option(help="Rows from 0 on, as 0:100 or 3,8; default: all.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns to copy: a,b,...; repeatable.")
    ] = None,
    on_unseen: Annotated[str, ON_UNSEEN] = "error",
    background: Annotated[
        str | None,
        typer.Option(help="Table to compare with; default: TABLE.", rich_help_panel=_REASONS),
    ] = None,
    background_rows: Annotated[
        int,
        typer.Option(min=1, help="Rows drawn from it at random.", rich_help_panel=_REASONS),
    ] = N_ROWS,
    method: Annotated[
        str,
        typer.Option(
            help="exact, sampled, or auto: exact up to 12 columns.", rich_help_panel=_REASONS
        ),
    ] = "auto",
    class_name: Annotated[
        str | None,
        typer.Option(
            "--output", help="Which of several classes or outputs.", rich_help_panel=_REASONS
        ),
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(help="Points at odds, and to double: 600@50:1,20.", rich_help_panel=_REASONS),
    ] = None,
    top: Annotated[
        int, typer.Option(min=0, help="How many reasons to name.", rich_help_panel=_TEXTS)
    ] = 0,
    side: Annotated[
        str,
        typer.Option(help="Which to name: raises, lowers, or both.", rich_help_panel=_TEXTS),
    ] = "both",
    texts: Annotated[
        Path | None,
        typer.Option(help="TOML file with a text for every column.", rich_help_panel=_TEXTS),
    ] = None,
    recourse: Annotated[
        list[str] | None,
        typer.Option(
            help="What may change: income+,debt-,city; or a TOML file.", rich_help_panel=_RECOURSE
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Accept if score ≥ this; default: 0.", rich_help_panel=_RECOURSE),
    ] = None,
    point: Annotated[
        Path | None,
        typer.Option(
            help="The threshold of a file of isotone trigger --out.", rich_help_panel=_RECOURSE
        ),
    ] = None,
    to: Annotated[
        str, typer.Option(help="The decision wanted: accept or refuse.", rich_help_panel=_RECOURSE)
    ] = "accept",
) -> None:
    """Write what every column contributes to the score of every row, against a background.

    Contributions are Shapley values of the columns of the table; they sum to the difference
    between the score and the mean of the background. Up to 12 columns that interact they are
    exact, beyond that estimates with a standard error. proved(column) is 1 or -1 where a declared
    direction proves the sign. Tables of any size are read in pieces.

    With --recourse also the least change that turns the decision: recourse_cost was found,
    recourse_bound is what any change costs at least, infinite if none can. Without a file one
    standard deviation of the background costs 1, and values stay in its range.

    For example:

    isotone explain model.isotone table.csv --out reasons.parquet --top 4 --side lowers

    isotone explain model.isotone table.csv --out reasons.csv --recourse income+,debt-
    """
    start, recourse = time.perf_counter(), recourse or []
    files = [*(split_tree(path)[0] for path in (table, background) if path), model]
    files += [p for p in (texts, point, *map(Path, recourse)) if p and p.suffix]
    refuse_overwriting([split_tree(out)[0]], files)
    check_choice("--side", side, ("both", "raises", "lowers"))
    check_choice("--method", method, ("auto", "exact", "sampled"))
    check_choice("--to", to, ("accept", "refuse"))
    frozen, policy = isotone.load(model), policy_of(on_unseen)
    refuse_one_score(policy, frozen.n_outputs)
    scale, limit = _scale(frozen, points), threshold_of(frozen, threshold, point)
    told = None if texts is None else Texts.read(texts, frozen)
    wanted = None if rows is None else counts_of(rows, "rows")
    opened = open_tables([table])
    against = Background.of(
        frozen, background or opened, n_rows=background_rows, on_unseen=_for_background(policy)
    )
    explainer = Explainer(frozen, against, output=class_name, method=cast(Method, method))
    explaining = Explaining(
        explainer=explainer,
        keep=listed(keep),
        top=top if told is None else top or _NAMED,
        side=cast(Side, side),
        texts=told,
        points=scale,
        changes=_changes(recourse, explainer),
        threshold=0.0 if limit is None else limit,
        to=to,
        on_unseen=policy,
    )
    with progress("{task.completed:,.0f} rows", opened.n_rows) as update:
        found = explaining.write(opened, out, wanted, lambda n: update(advance=n))
    _print(explainer, found, explaining)
    say(f"explained {found.n_explained:,} rows in {time.perf_counter() - start:.1f} s: {out}")


def _scale(frozen: FrozenNetwork, text: str | None) -> Points | None:
    """What `--points` says; only logits have points."""
    if text is None:
        return None
    points = Points.parse(text)
    points.check(frozen)
    return points


def _for_background(policy: Policy) -> Policy:
    return policy if policy in ("error", "missing") else "skip"


def _changes(texts: list[str], explainer: Explainer) -> dict[str, AllowedChange] | None:
    """What `--recourse` says: names with signs, or a TOML file."""
    if not texts:
        return None
    files = [text for text in texts if text.endswith(".toml")]
    if not files:
        return usual_changes(explainer.frozen, explainer.background, listed(texts))
    if len(texts) > 1:
        raise ValueError(
            f"`--recourse {files[0]}` is a file, which must say all that may change; give it alone"
        )
    return read_changes(files[0], explainer.frozen)


def _print(explainer: Explainer, found: ExplainedRows, explaining: Explaining) -> None:
    say(explainer.method)
    shown = columns("column", f"mean size{' in points' * bool(explaining.points)}", "declared")
    sizes = found.sizes / max(found.n_explained, 1)
    inputs = explainer.frozen.inputs
    for number in (-sizes).argsort(kind="stable")[:_MOST_SHOWN].tolist():
        declared = explainer.frozen.direction(inputs.places[number])
        shown.add_row(printable(inputs.names[number]), f"{sizes[number]:.4g}", printable(declared))
    output.print(indented(shown))
    if strange := found.n_rows - found.n_explained:
        say(f"{strange:,} row{'s' * (strange != 1)} held values never seen in training")
    if explaining.changes:
        say(
            f"recourse: {found.n_needed:,} rows need it, {found.n_turned:,} can be turned, "
            f"{found.n_impossible:,} provably cannot within these limits"
        )
