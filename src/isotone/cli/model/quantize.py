"""`isotone quantize`: a model in fixed point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

import isotone
from isotone.certificate.widths import describe_widths, find_widths
from isotone.checks import check_choice
from isotone.cli.console.options import listed
from isotone.cli.console.terminal import say
from isotone.data.several import open_tables
from isotone.files import refuse_overwriting
from isotone.freezing.bits import CONFIDENCE, FixedPoint, Rule, choose_bits, judge_bits
from isotone.freezing.fixed import check_bits, to_fixed
from isotone.rounding import digits_up


def quantize(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    out: Annotated[Path, typer.Option(help="The .isotone file to write.")],
    tables: Annotated[
        list[str] | None, typer.Argument(help="Rows to decide on; auto needs them.")
    ] = None,
    bits: Annotated[
        str, typer.Option(help="Bits of inputs and weights, as 12,10; or auto.")
    ] = "auto",
    clip: Annotated[
        float | None,
        typer.Option(
            help="Largest scaled input; larger ones are clamped to it. A smaller clip spends the "
            "bits of inputs on a finer grid. Default: with tables the power of two above every "
            "scaled input in them, otherwise 16, and never beyond the model's own clip."
        ),
    ] = None,
    threshold: Annotated[float, typer.Option(help="What passes is score ≥ this.")] = 0.0,
    max_flips: Annotated[
        float, typer.Option(help="auto: largest share of decisions that may change.")
    ] = 0.05,
    confidence: Annotated[
        float, typer.Option(help="Confidence that no more decisions change on rows like these.")
    ] = CONFIDENCE,
    rule: Annotated[
        str, typer.Option(help="auto: what to limit: rows, or box (a worst case).")
    ] = "rows",
) -> None:
    """Turn a model into fixed point, in which no score is rounded, for cpp-int and verilog.

    With --bits auto the narrowest widths are taken by which no more than --max-flips of all
    decisions on rows like those of the tables change, with --confidence. With --rule box no more
    than that of the rows have a score that any rounding could carry over the threshold, which
    needs many more bits. With tables, these shares are printed for any bits.
    """
    refuse_overwriting([out], [model])
    frozen = isotone.load(model)
    if tables:
        rows = pa.Table.from_batches(open_tables(tables).batches(list(frozen.inputs.names)))
        how: dict[str, Any] = {"threshold": threshold, "clip": clip, "confidence": confidence}
        if bits == "auto":
            found = choose_bits(frozen, rows, **how, max_flips=max_flips, rule=_rule(rule))
        else:
            found = judge_bits(frozen, check_bits(_numbers(bits)), rows, **how)
        _say_flips(found)
        frozen = found.frozen
    elif bits == "auto":
        raise ValueError(
            "`--bits auto` needs a table of rows to decide on; name one, or give --bits 12,10"
        )
    else:
        frozen = to_fixed(frozen, check_bits(_numbers(bits)), clip)
    frozen.save(out)
    say(f"wrote {out}: {describe_widths(find_widths(frozen))}")


def _rule(text: str) -> Rule:
    check_choice("rule", text, ("rows", "box"))
    return "rows" if text == "rows" else "box"


def _say_flips(found: FixedPoint) -> None:
    say(f"bits: {found.bits[0]} of inputs, {found.bits[1]} of weights")
    say(f"no score within the clip moves by more than {digits_up(found.distance)}")
    say(f"decisions that changed: {found.flips:.3%}; so close are {found.flip_bound:.3%}")
    say(
        f"of other such rows at most {digits_up(100 * found.flip_limit, 3)} % change, with "
        f"{100 * found.confidence:g} % confidence"
    )


def _numbers(text: str) -> object:
    """Whole numbers between commas; anything else as it is, to be refused."""
    parts = listed(text)
    if not all(part.isdigit() for part in parts):
        return text
    return int(parts[0]) if len(parts) == 1 else tuple(int(part) for part in parts)
