"""`isotone export`: a model as a file that other programs run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import isotone
from isotone import bundle as bundles
from isotone import export as exports
from isotone.bundle import Bundle
from isotone.cli.console.destination import check_directory
from isotone.cli.console.options import listed
from isotone.cli.console.terminal import say
from isotone.cli.console.threshold import threshold_of
from isotone.export.claim import Claim
from isotone.files import refuse_overwriting

_HEADERS = ("cpp", "cuda")
_CODE = (".hpp", ".cpp", ".cuh", ".cu", ".v")  # what is written into a directory
_DIRECTORIES = ("cpp", "cpp-int", "cuda", "verilog")


def export(
    model: Annotated[Path, typer.Argument(help="An .isotone file, or a bundle (.zip).")],
    to: Annotated[str, typer.Option(help=f"What to write: {', '.join(exports.TARGETS)}.")],
    out: Annotated[Path, typer.Option(help="The file to write; a directory for code.")],
    check: Annotated[bool, typer.Option(help="Compare it with the model.")] = True,
    name: Annotated[str | None, typer.Option(help="of code: namespace or module.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="allen, hlt2, cpp, cuda: what passes: score ≥ this.")
    ] = None,
    point: Annotated[
        Path | None, typer.Option(help="The threshold of a file of isotone trigger --out.")
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="verilog: most adders between registers; none: no clock.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="onnx: float32 or float64.")] = None,
    sort: Annotated[str | None, typer.Option(help="onnx: network or topk.")] = None,
    sums: Annotated[
        str | None, typer.Option(help="onnx: ordered (the same bits in float64) or matmul.")
    ] = None,
    categories: Annotated[
        str | None, typer.Option(help="onnx: categories as text or codes.")
    ] = None,
    dialect: Annotated[str | None, typer.Option(help="sql: sqlite, duckdb or postgresql.")] = None,
    table: Annotated[str | None, typer.Option(help="sql: name of the table.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="sql: columns to copy: a,b,...; repeatable.")
    ] = None,
    rescale: Annotated[
        str | None, typer.Option(help="allen: none, or unit (rescale_min and rescale_max).")
    ] = None,
    reach: Annotated[
        float | None, typer.Option(help="allen, hlt2: largest scaled input to claim about.")
    ] = None,
    shift: Annotated[
        bool, typer.Option("--shift", help="allen, hlt2: move the score; the cut is 0.5.")
    ] = False,
    bare: Annotated[
        bool, typer.Option("--bare", help="allen, hlt2: without claim and names of features.")
    ] = False,
) -> None:
    """Write a model for another runtime, from raw columns on, and check that its scores match.

    For the trigger of LHCb, a model that `isotone train --for allen` or --for hlt2 made:

    isotone export model.isotone --to allen --threshold 2.5 --out two_track.json
    """
    written = [p for p in out.iterdir() if p.suffix in _CODE] if out.is_dir() else [out]
    refuse_overwriting(written, [model])
    deployed = bundles.read(model) if model.suffix == ".zip" else None
    frozen = isotone.load(model) if deployed is None else deployed.frozen
    if to in _DIRECTORIES:
        check_directory(out)
    options: dict[str, Any] = {
        "name": name,
        "threshold": threshold_of(frozen, threshold, point),
        "depth": depth,
        "precision": precision,
        "sort": sort,
        "sums": sums,
        "categories": categories,
        "dialect": dialect,
        "table": table,
        "keep": tuple(name for text in keep for name in listed(text)) if keep else None,
        "rescale": rescale,
        "reach": reach,
        "shift": shift or None,
        "bare": bare or None,
    }
    if deployed is not None:
        options |= _deployed(deployed, options["threshold"], to)
    given = {name: value for name, value in options.items() if value is not None}
    claim = exports.write(frozen, to, out, check=check, **given)
    lines = {
        f"wrote {out}": _compared(claim) if check else "it was not compared with the model",
        "decisions": claim.checked,
        "guaranteed": claim.guarantee,
        "arithmetic": claim.arithmetic,
        "provided that": claim.provided,
        "missing values": claim.about_missing,
    }
    for what, text in lines.items():
        if text:
            say(f"{what}: {text}")


def _deployed(found: Bundle, threshold: float | None, to: str) -> dict[str, Any]:
    """What the export of a bundle has: its threshold, and headers its version."""
    if threshold is not None:
        raise ValueError(
            f"the bundle has the threshold {found.threshold!r}, and another was given; leave "
            "`--threshold` and `--point` out"
        )
    version = f"{found.name} {found.version} {found.identity}"
    return {"threshold": found.threshold} | ({"version": version} if to in _HEADERS else {})


def _compared(claim: Claim) -> str:
    if not any(claim.distance):
        return "its scores match the model's"
    return "its scores match the model's within the bounds of its arithmetic"
