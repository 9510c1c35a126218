"""`isotone report`: one HTML file to look at a model and to push on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

import isotone
from isotone import report as reports
from isotone.cli.console.terminal import say, warn
from isotone.data.table import split_tree
from isotone.files import refuse_overwriting
from isotone.inputs.chain import Rule
from isotone.report.history import beside, read_history


def report(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    table: Annotated[
        str | None, typer.Argument(help="Rows to show: CSV, Parquet or ROOT (file.root:tree).")
    ] = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    target: Annotated[
        str | None, typer.Option(help="Column that is predicted; default: that of training.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Accept if score ≥ this; default: 0 for two classes.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column of row weights.")] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    embed_rows: Annotated[
        int, typer.Option(min=0, help="Rows to put into the file; statistics use all rows.")
    ] = 0,
    shift: Annotated[
        list[str] | None,
        typer.Option(help="How far a column may be off: NAME=δ, in raw units; may be repeated."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Another model on the same sliders: a model file, or a column of scores."
        ),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(help="A challenger to compare with, given in the same way.")
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            help="Show scores in points too: points at odds, and to double: 600@50:1,20."
        ),
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="TOML file with sentences for reasons, by column.")
    ] = None,
    on_unseen: Annotated[
        str, typer.Option(help="Rows unlike any in training: error, missing, or skip.")
    ] = "error",
    history: Annotated[
        Path | None, typer.Option(help="history.json of `isotone train`; default: next to MODEL.")
    ] = None,
) -> None:
    """Write a report about a model: one HTML file in which the model itself runs.

    What is guaranteed comes first; then sliders, response curves and a heat map. With a TABLE,
    preferably of rows that the model was not trained on, it also shows how good and how robust the
    model is there. The file needs no network access and can be sent by e-mail: it holds no row of
    the table, unless you ask with --embed-rows.

    For example:

    isotone report model.isotone table.csv --target paid --out report.html
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"`--out {out}` must end in .html, so that browsers open it; rename it")
    refuse_overwriting([out], [model, *([split_tree(table)[0]] if table else [])])
    frozen = isotone.load(model)
    found = history or beside(model, frozen.fingerprint)
    refuse_overwriting([out], [found] if found else [])
    size = reports.write(
        frozen,
        out,
        table,
        target=target,
        threshold=threshold,
        weights=weights,
        title=title or f"Report of {model.name}",
        embed_rows=embed_rows,
        shifts=_shifts(shift),
        against=against,
        compare=compare,
        points=points,
        texts=texts,
        history=None if found is None else read_history(found),
        on_unseen=cast(Rule, on_unseen),
    )
    say(f"wrote {out}, {size / 1e3:,.0f} kB: open it in a browser")
    if not isotone.certify(frozen).holds:
        warn("a declared constraint of this model does not hold; see the verdict")


def _shifts(words: list[str] | None) -> dict[str, float] | None:
    """Shifts by column, from texts such as income=500."""
    if not words:
        return None
    found = {}
    for word in words:
        name, mark, number = word.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            mark = ""
        if not mark or not name:
            raise ValueError(f"`--shift {word}` must be a column and a number, as in income=500")
    return found
