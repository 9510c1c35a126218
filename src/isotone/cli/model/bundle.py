"""`isotone bundle`: a model, its threshold and its certificate in one file, and its check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import isotone
from isotone import bundle as bundles
from isotone.bundle import Bundle
from isotone.cli.console import terminal
from isotone.cli.console.terminal import output, printable, say, warn
from isotone.cli.console.threshold import threshold_of
from isotone.files import refuse_overwriting


def bundle(
    path: Annotated[Path, typer.Argument(help="An .isotone file; with --check a bundle.")],
    out: Annotated[
        Path | None, typer.Option(help="The bundle to write, such as line.zip.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="A row passes if its score is at least this.")
    ] = None,
    point: Annotated[
        Path | None, typer.Option(help="The threshold of a file of isotone trigger --out.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Of the line or service; default: that of the file.")
    ] = None,
    version: Annotated[str, typer.Option(help="Of the bundle.")] = "1",
    check: Annotated[bool, typer.Option("--check", help="Verify a bundle.")] = False,
) -> None:
    """Bundle a model, its threshold and its certificate in one file, or verify such a file.

    The check recomputes every checksum and the certificate, and says which model and threshold the
    bundle is. Compare its identity with the one that was printed when it was made.

    Exit code 0 if every declared constraint holds, 1 if one does not, 2 if the file is unreadable
    or was altered.

    For example:

    isotone bundle model.isotone --point point.json --version 2026.1 --out two-track.zip

    isotone bundle two-track.zip --check
    """
    if check:
        _refuse_with_check(out=out, threshold=threshold, point=point, name=name)
        found = bundles.read(path)
    else:
        found = _write(path, out, threshold, point, name, version)
    _print(found)
    if found.claimed != found.holds:
        warn("the bundle claims otherwise; only what was recomputed here counts")
    if out:
        say(f"wrote {out}")
    raise typer.Exit(0 if found.holds else 1)


def _refuse_with_check(**options: object) -> None:
    for option, value in options.items():
        if value is not None:
            raise ValueError(f"`--{option} {value}` makes a bundle; leave it out with `--check`")


def _write(
    path: Path,
    out: Path | None,
    threshold: float | None,
    point: Path | None,
    name: str | None,
    version: str,
) -> Bundle:
    if out is None:
        raise ValueError("no bundle to write was named; add `--out line.zip`, or `--check`")
    refuse_overwriting([out], [path, *([point] if point else [])])
    frozen = isotone.load(path)
    limit = threshold_of(frozen, threshold, point)
    if limit is None:
        raise ValueError(
            "a bundle needs a threshold and none was given; add `--threshold T`, or `--point "
            "point.json` of `isotone trigger`"
        )
    named = out.name.split(".")[0] if name is None else name
    return bundles.write(frozen, out, threshold=limit, name=named, version=version)


def _print(found: Bundle) -> None:
    verdict = terminal.verdict(found.holds)
    output.print(
        terminal.facts(
            bundle=f"{found.name}, version {found.version}",
            decision=f"score >= {found.threshold!r}",
            certificate=Text.assemble(verdict, "; ", printable(found.certificate.guarantee)),
            model=found.frozen.fingerprint,
            identity=found.identity,
        )
    )
