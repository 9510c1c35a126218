"""`isotone certify`: recompute from the stored numbers what a model guarantees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

import isotone
from isotone.certificate.along import JointVerdict
from isotone.certificate.certify import MOST_SHOWN, Certificate
from isotone.certificate.verdicts import Verdict
from isotone.cli.console import terminal
from isotone.cli.console.options import rates_of
from isotone.cli.console.terminal import indented, output, printable, say, warn
from isotone.export.lhcb.proof import Evaluation, certify_evaluation
from isotone.files.untrusted import open_regular
from isotone.frozen.notebook import DIRECTIONS, quoted
from isotone.rounding import digits_up
from isotone.signature import SUFFIX, PublicKey, verify

_YES, _NO = Text("yes", style="green"), Text("NO", style="bold red")


def certify(
    model: Annotated[Path, typer.Argument(help="An .isotone file, or JSON for Allen or HLT2.")],
    along: Annotated[
        list[str] | None,
        typer.Option(help="Columns that move together: a=1,b=-1; repeat for more."),
    ] = None,
    selftest: Annotated[
        bool, typer.Option("--selftest", help="Also compute scores again on this machine.")
    ] = False,
    signed_by: Annotated[
        str | None,
        typer.Option(help="A public key of minisign, or its file: check MODEL.minisig, too."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Prove from the stored numbers what a model guarantees.

    With --along income=1,debt=-1 also whether the score never falls when income rises by as much
    as debt falls, whether the model declares it or not.

    Of a JSON file for Allen or HLT2 it says what holds for the evaluator's own float32
    arithmetic, and for the scores that isotone computes from the file.

    With --selftest also whether this machine, with each of its instruction sets, computes the
    scores that the file states for some rows, and those of the reference for others.

    With --signed-by also whether the file is the one that the owner of a key signed.

    Exit code 0 if every constraint holds, declared or asked for, and every score is right, 1 if
    one is not, 2 if the file is unreadable or not signed as asked.
    """
    key = None if signed_by is None else PublicKey.read(signed_by)
    with _as_signed(model, key) as (file, signed):
        certificate = isotone.certify(isotone.load(file))
        theirs = certify_evaluation(file, certificate)
    asked = [
        verdict for text in along or () for verdict in certificate.along(rates_of(text, "along"))
    ]
    kept = certificate.holds and all(verdict.real for verdict in asked)
    tested = isotone.selftest.check(certificate.frozen) if selftest else None
    if json:
        more: dict[str, Any] = {} if theirs is None else {"evaluator": theirs.to_dict()}
        more |= {} if signed is None else {"signed_by": str(key), "comment": signed}
        more |= {} if tested is None else {"selftest": asdict(tested)}
        typer.echo(certificate.to_json(asked=asked, **more))
    else:
        _print(certificate, model, asked, theirs)
    if signed is not None and not json:
        say(f"signature: by {key}, {signed}")
    if tested is not None:
        if not json:
            say(f"selftest: {tested}")
        kept = kept and not tested.failures
    for note in _contradictions(certificate):
        warn(note)
    raise typer.Exit(0 if kept else 1)


@contextmanager
def _as_signed(model: Path, key: PublicKey | None) -> Iterator[tuple[Path, str | None]]:
    """The file to certify and the comment of its signature.

    With a key it is a copy: what is certified is what was signed, even if somebody replaces the
    file in between.
    """
    if key is None:
        yield model, None
        return
    verify(model, key)  # its complaints name the file
    with TemporaryDirectory() as folder:
        own = Path(folder) / model.name
        file, size = open_regular(model)
        with file:
            own.write_bytes(file.read(size))
        yield own, verify(own, key, f"{model}{SUFFIX}")


def _contradictions(certificate: Certificate) -> Iterator[str]:
    """Where the certificate that the file carries differs from what was found."""
    stored = certificate.frozen.certificate
    if stored is None:
        return
    if stored.get("fingerprint") != certificate.fingerprint:
        yield (
            "the certificate that the file carries is about another network, with fingerprint "
            f"{quoted(stored.get('fingerprint'), most=70)}; only what was recomputed here counts"
        )
    if stored.get("holds") and not certificate.holds:
        yield "the file claims that its constraints hold, but its numbers do not; do not use it"


def _print(
    certificate: Certificate, model: Path, asked: list[JointVerdict], theirs: Evaluation | None
) -> None:
    verdict = terminal.verdict(certificate.holds)
    if certificate.holds and not all(found.real for found in asked):
        verdict = Text("HOLDS, BUT NOT WHAT WAS ASKED", style="bold red")
    answer = {"asked": "; ".join(map(str, asked))} if asked else {}
    output.print(Text.assemble(verdict, "  ", printable(model)), soft_wrap=True)
    output.print()
    output.print(
        terminal.facts(
            **_guarantees(certificate, theirs),
            **answer,
            **certificate.asides,
            **terminal.describe_directions(certificate.frozen),
            Lipschitz=_describe_constant(certificate),
            rounding=_describe_rounding(certificate, theirs),
            arithmetic=_where(theirs) + terminal.describe_arithmetic(certificate.frozen),
            fingerprint=certificate.fingerprint,
        )
    )
    n_shown = max(1, MOST_SHOWN // certificate.frozen.n_features)
    for k in range(min(n_shown, len(certificate.constants))):
        _print_features(certificate, k)
    _print_rest(certificate, n_shown)
    output.print()
    output.print(indented(_layer_table(certificate)))
    output.print()
    output.print(_describe_limits(certificate, theirs), style="dim")


def _guarantees(certificate: Certificate, theirs: Evaluation | None) -> dict[str, str]:
    """What is promised: of a file for an evaluator, first as that computes, then as isotone."""
    if theirs is None:
        return {"guaranteed": certificate.guarantee}
    if not certificate.holds:
        return {"guaranteed": certificate.guarantee, "evaluator": theirs.guarantee}
    if theirs.excess:
        return {"evaluator": theirs.guarantee, "in isotone": certificate.guarantee}
    return {"guaranteed": theirs.guarantee, "in isotone": certificate.guarantee}


def _describe_constant(certificate: Certificate) -> str:
    bound = digits_up(max(certificate.constants))
    norm = f"{certificate.metric}-norm".replace("inf", "∞")
    if certificate.lipschitz_holds:
        return f"{norm} slope limit respected (proven: at most {bound} × λ)"
    return f"{norm} slope limit EXCEEDED (proven only: at most {bound} × λ)"


def _describe_rounding(certificate: Certificate, theirs: Evaluation | None) -> str:
    """E of isotone's arithmetic, and of a file for an evaluator also that of its own."""
    error, own = max(certificate.rounding_errors), ""
    if theirs is not None and theirs.rounding_error is not None:
        own = f"; in the evaluator of {theirs.layout} E = {digits_up(theirs.rounding_error)}"
    if math.isinf(error):
        return f"{_where(theirs)}no bound on the rounding error was found{own}"
    return f"{_where(theirs)}a computed score is off by at most E = {digits_up(error)}{own}"


def _where(theirs: Evaluation | None) -> str:
    """Of which arithmetic a statement is, where there are two."""
    return "" if theirs is None else "in isotone "


def _describe_limits(certificate: Certificate, theirs: Evaluation | None) -> str:
    joint = ", but for joint directions" if certificate.joint else ""
    clip = f"{certificate.clip:g}"
    return (
        "Not guaranteed: that scores are accurate, on these or other data. A direction is about "
        f"one feature that changes while all others stay the same{joint}. "
        f"{_where(theirs).capitalize()}{'a' if theirs else 'A'} feature whose scaled value is "
        f"beyond ±{clip} is taken as ±{clip}{_knots(certificate)}{_beyond(theirs)}. "
        "Slopes are those of the exact function within that range; computed scores "
        f"{_describe_steps(certificate)}{', each arithmetic by its own' if theirs else ''}."
    )


def _beyond(theirs: Evaluation | None) -> str:
    """What another evaluator does with inputs that isotone clamps."""
    if theirs is None or theirs.clamps:
        return ""
    return f", which the evaluator of {theirs.layout} does not do: nothing is claimed of it there"


def _knots(certificate: Certificate) -> str:
    several = np.any(certificate.frozen.inputs.counts > 1)
    return ", one with knots beyond them as at the last knot" if several else ""


def _describe_steps(certificate: Certificate) -> str:
    """How computed scores differ from the function whose slopes are bounded."""
    rounded = []
    if certificate.frozen.scaling.log.any():
        rounded.append("arguments of logarithms are rounded to 24 bits")
    if certificate.grid is not None:
        rounded.append(f"scaled inputs are rounded to 2^{math.log2(certificate.grid):.0f}")
    why = f"change in steps because {' and '.join(rounded)}, and " if rounded else ""
    return f"{why}are off by up to E"


def _print_features(certificate: Certificate, k: int) -> None:
    output.print()
    if len(certificate.constants) > 1:
        about = (
            "; directions are those of its probability" if certificate.frozen.of_classes else ""
        )
        name = certificate.frozen.output_names[k]
        output.print(printable(f"output {name}{about}"), style="bold")
    output.print(indented(_feature_table(certificate, k)))


def _print_rest(certificate: Certificate, n_shown: int) -> None:
    """What tables of many outputs or features leave out, and what fails in it."""
    n = len(certificate.frozen.inputs.encoded)
    left_out = len(certificate.slopes) - n_shown * min(n, MOST_SHOWN)
    if left_out <= 0:
        return
    output.print()
    output.print(f"{left_out} more slopes are not shown; --json prints all of them", style="dim")
    failing = [v for v in certificate.verdicts if not v.real or v.computed is False]
    for verdict in failing[:1]:
        name = certificate.frozen.output_names[verdict.output]
        text = f"{len(failing)} directions do not hold, first that of {name} in {verdict.feature}"
        output.print(printable(text), style="bold red")


def _feature_table(certificate: Certificate, k: int) -> Table:
    """Slopes of output `k`, and whether its directions hold; what was promised comes first."""
    heads = "feature", "declared", "λ", "slope, scaled", "slope, raw", "real", "computed"
    table = terminal.columns(*heads)
    verdicts = {v.feature: v for v in certificate.verdicts if v.output == k}
    inputs, slopes = certificate.frozen.inputs, [s for s in certificate.slopes if s.output == k]
    sources = np.array(inputs.sources)
    largest = [np.array(certificate.lipschitz)[sources == i].max() for i in range(len(slopes))]
    promised_first = sorted(
        zip(slopes, largest, strict=True), key=lambda each: each[0].feature not in verdicts
    )
    for slope, lipschitz in promised_first[:MOST_SHOWN]:
        declared, real, computed = _judgement(verdicts.get(slope.feature))
        table.add_row(
            printable(slope.feature),
            declared,
            f"{lipschitz:.4g}",
            printable(slope.scaled),
            printable(slope.raw),
            real,
            computed,
        )
    return table


def _judgement(verdict: Verdict | None) -> tuple[str, Text, Text]:
    """The declared direction, whether it holds for real numbers, and whether as computed."""
    if verdict is None:
        return DIRECTIONS[0], Text("–"), Text("–")
    computed = Text("to 2E") if verdict.computed is None else _YES if verdict.computed else _NO
    return DIRECTIONS[verdict.direction], _YES if verdict.real else _NO, computed


def _layer_table(certificate: Certificate) -> Table:
    table = terminal.columns("step", "bound, 1-norm", "bound, ∞-norm")
    for layer in certificate.layers:
        table.add_row(printable(layer.name), digits_up(layer.one), digits_up(layer.inf))
    return table
