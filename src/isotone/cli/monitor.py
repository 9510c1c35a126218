"""`isotone monitor`: whether new rows are still like those of a reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, cast

import typer
from rich.table import Table
from rich.text import Text

import isotone
from isotone.cli.console import terminal
from isotone.cli.console.terminal import indented, output, printable, say
from isotone.cli.console.threshold import threshold_of
from isotone.data.table import split_tree
from isotone.files import refuse_overwriting, write_whole
from isotone.monitoring import page
from isotone.monitoring.columns import ColumnDrift
from isotone.monitoring.drift import Drift, compare
from isotone.monitoring.levels import Levels, Share
from isotone.monitoring.summary import read_summary, summarize

_STYLES = {"fine": "green", "warning": "yellow", "alarm": "bold red"}
_WORDS = {"fine": "FINE", "warning": "WARNING", "alarm": "ALARM"}


def monitor(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    reference: Annotated[
        str, typer.Argument(help="A table, or the .json file of --save-reference.")
    ],
    new: Annotated[
        str | None, typer.Argument(help="The table to judge: CSV, Parquet or ROOT.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Accept if score ≥ this; default: 0 for two classes.")
    ] = None,
    point: Annotated[
        Path | None, typer.Option(help="The threshold of a file of isotone trigger --out.")
    ] = None,
    save_reference: Annotated[
        Path | None, typer.Option(help="Write a small file that stands in for REFERENCE.")
    ] = None,
    psi: Annotated[
        float, typer.Option(help="Alarm at this population stability index.")
    ] = Levels.psi,
    decisions: Annotated[
        float, typer.Option(help="Alarm if the share of decisions changes by this much of it.")
    ] = Levels.decisions,
    missing: Annotated[
        float, typer.Option(help="Alarm if the share of missing or unseen values rises by this.")
    ] = Levels.missing,
    on_unseen: Annotated[
        str, typer.Option(help="Rows unlike any in training: skip, or missing.")
    ] = "skip",
    page_file: Annotated[
        Path | None, typer.Option("--page", help="HTML file with numbers and histograms.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Compare new rows with a reference, column by column and by the score, and raise an alarm.

    Both are read once, in memory that does not grow with them. Save the reference to judge new
    rows every hour without its table.

    Exit code 0 if all is fine or there are only warnings (from 0.4 of a level on), 1 if there is
    an alarm, 2 if something cannot be read. A difference that chance explains counts for nothing.

    For example:

    isotone monitor model.isotone reference.parquet --save-reference reference.json

    isotone monitor model.isotone reference.json today.parquet --page drift.html
    """
    outputs = [path for path in (save_reference, page_file, out) if path]
    inputs = [model, *(split_tree(table)[0] for table in (reference, new) if table)]
    refuse_overwriting(outputs, inputs)
    _check_words(new, save_reference, page_file or out, on_unseen)
    levels, frozen = Levels(psi, decisions, missing), isotone.load(model)
    known = read_summary(reference, frozen) if reference.endswith(".json") else None
    limit = threshold_of(frozen, threshold, point)
    if known is not None and limit is None:
        limit = known.threshold
    rule = cast(Literal["missing", "skip"], on_unseen)
    before = known or summarize(frozen, reference, threshold=limit, on_unseen=rule)
    if save_reference:
        before.save(save_reference)
        say(f"wrote {save_reference}, {save_reference.stat().st_size / 1e3:,.0f} kB")
    if new is None:
        return
    after = summarize(frozen, new, threshold=limit, on_unseen=rule)
    found = compare(frozen, before, after, levels)
    _print(found, new)
    if page_file:
        size = page.write(frozen, page_file, found, before, after, f"Drift of {Path(new).name}")
        say(f"wrote {page_file}, {size / 1e3:,.0f} kB: open it in a browser")
    if out:
        write_whole(out, json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n")
        say(f"wrote {out}")
    raise typer.Exit(1 if found.level == "alarm" else 0)


def _check_words(
    new: str | None, save_reference: Path | None, written: Path | None, on_unseen: str
) -> None:
    if on_unseen not in ("skip", "missing"):
        raise ValueError(f"`--on-unseen {on_unseen}` is unknown; choose skip or missing")
    if new is None and (save_reference is None or written is not None):
        raise ValueError(
            "no table to judge was given; give one after the reference, or only "
            "`--save-reference FILE.json`"
        )


def _print(found: Drift, new: str) -> None:
    head = (_WORDS[found.level], _STYLES[found.level])
    output.print(Text.assemble(head, "  ", printable(new)), soft_wrap=True)
    for reason in found.reasons:
        output.print(indented(printable(reason)))
    output.print()
    output.print(terminal.facts(**_facts(found)))
    output.print()
    output.print(indented(_table(found)))


def _facts(found: Drift) -> dict[str, str]:
    facts = {"rows": f"{found.n_reference:,} of the reference, {found.n_new:,} new"}
    for name, share in found.decisions.items():
        facts[name] = (
            f"{100 * share.reference:.4g} % before, {100 * share.new:.4g} % now: "
            f"{100 * share.change:+.3g} ± {100 * share.error:.2g} percentage points"
        )
    shift = found.scores[0].distances
    if found.shift_bound is None or found.transport is None or shift is None:
        return facts
    facts["scores"] = (
        f"{shift.wasserstein:.4g} apart, means by {shift.mean_change:+.4g}; a drift of single "
        f"columns allows at most {found.shift_bound:.4g}"
    )
    facts["transport"] = f"at least {found.transport:.4g}, in changes of the score"
    if found.additive:
        facts["additive"] = "proved, so that means cannot differ by more than the above at all"
    return facts


def _table(found: Drift) -> Table:
    table = terminal.columns("", "verdict", "PSI", "KS", "Wasserstein", "missing", "moves score")
    for column in (*found.scores, *found.columns):
        table.add_row(*_row(column))
    return table


def _row(column: ColumnDrift) -> list[Text]:
    far = column.distances
    ks = "–" if column.variation is None else f"TV {column.variation:.3g}"
    ks = ks if far is None else _within(far.ks, far.ks_within)
    texts = [
        f"{column.psi:.3f}",
        ks,
        "–" if far is None else _within(far.wasserstein, far.within),
        _change(column.missing, column.unseen),
        "–" if column.could_move is None else f"≤ {column.could_move:.3g}",
    ]
    level = Text(column.level, style=_STYLES[column.level])
    return [printable(column.name), level, *(Text(text) for text in texts)]


def _within(value: float, bound: float) -> str:
    return f"{value:.2g} ± {bound:.1g}" if bound else f"{value:.3g}"


def _change(missing: Share, unseen: Share) -> str:
    """Shares of missing and unseen values together."""
    before, now = (100 * (getattr(missing, k) + getattr(unseen, k)) for k in ("reference", "new"))
    return f"{now:.3g} %" if before == now else f"{before:.3g} → {now:.3g} %"
