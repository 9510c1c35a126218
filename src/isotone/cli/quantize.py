"""`isotone quantize`: a model in fixed point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import isotone
from isotone.certificate.widths import describe_widths, find_widths
from isotone.cli.options import listed
from isotone.cli.terminal import say
from isotone.data.several import open_tables
from isotone.files import refuse_overwriting
from isotone.freezing.bits import FixedPoint, choose_bits, judge_bits
from isotone.freezing.fixed import check_bits, to_fixed
from isotone.frozen.network import FrozenNetwork
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
        float | None, typer.Option(help="Scaled inputs are clamped to this; at most 16.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="What passes is score ≥ this.")] = 0.0,
    max_flips: Annotated[
        float, typer.Option(help="auto: largest share of decisions that may change.")
    ] = 0.05,
) -> None:
    """Turn a model into fixed point, in which no score is rounded, for cpp-int and verilog.

    With --bits auto the narrowest widths are taken by which provably no more than --max-flips of
    the decisions on the rows of a table change. With rows, the share that can change and the share
    that did are printed for any bits.
    """
    refuse_overwriting([out], [model])
    frozen = isotone.load(model)
    if tables:
        rows = pa.Table.from_batches(open_tables(tables).batches(list(frozen.inputs.names)))
        found = _on_rows(frozen, rows, bits, clip, threshold, max_flips)
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


def _on_rows(
    frozen: FrozenNetwork,
    rows: pa.Table,
    bits: str,
    clip: float | None,
    threshold: float,
    max_flips: float,
) -> FixedPoint:
    if bits == "auto":
        return choose_bits(frozen, rows, threshold=threshold, max_flips=max_flips, clip=clip)
    return judge_bits(frozen, check_bits(_numbers(bits)), rows, threshold=threshold, clip=clip)


def _say_flips(found: FixedPoint) -> None:
    say(f"bits: {found.bits[0]} of inputs, {found.bits[1]} of weights")
    say(f"no score within the clip moves by more than {digits_up(found.distance)}")
    say(f"decisions that can change: {found.flip_bound:.3%}; that did: {found.flips:.3%}")


def _numbers(text: str) -> object:
    """Whole numbers between commas; anything else as it is, to be refused."""
    parts = listed(text)
    if not all(part.isdigit() for part in parts):
        return text
    return int(parts[0]) if len(parts) == 1 else tuple(int(part) for part in parts)
