"""`isotone show`: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import isotone
from isotone.certificate.interactions import describe_interactions, find_interactions
from isotone.certificate.widths import describe_widths, find_widths
from isotone.cli.console.terminal import (
    columns,
    describe_arithmetic,
    describe_directions,
    facts,
    indented,
    output,
    print_stated,
    printable,
)
from isotone.frozen.joint import describe_joint
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.reference import sums_in_parts
from isotone.selftest import KEY

_OLD = (
    "written in format 1: what an estimator or a script did to raw columns before this network "
    "is not in the file; retrain to include it"
)


def show(model: Annotated[Path, typer.Argument(help="An .isotone file.")]) -> None:
    """Show what a model is: shape, arithmetic, features, classes and provenance."""
    frozen = isotone.load(model)
    output.print(printable(model), style="bold", soft_wrap=True)
    output.print()
    output.print(
        facts(
            shape=f"{frozen.shape}, {frozen.n_parameters:,} parameters",
            outputs=_describe_outputs(frozen),
            **describe_directions(frozen),
            **_describe_several(frozen),
            arithmetic=describe_arithmetic(frozen),
            **_describe_preset(frozen),
            **_describe_widths(frozen),
            metric=f"{frozen.metric}-norm".replace("inf", "∞"),
            fingerprint=frozen.fingerprint,
        )
    )
    output.print()
    output.print(indented(_feature_table(frozen)))
    rest = dict(frozen.provenance)
    rest.pop(KEY, None)  # for machines: `isotone certify --selftest`
    if rest.pop("format", 2) == 1:
        output.print()
        output.print(_OLD, soft_wrap=True)
    _print_part("provenance, as the file states it; none of it was verified", rest)


def _print_part(title: str, content: object) -> None:
    if content:
        output.print()
        output.print(title, style="bold")
        print_stated(content if isinstance(content, dict) else {"stated": content})


def _describe_outputs(frozen: FrozenNetwork) -> str:
    kind = frozen.outputs if frozen.n_outputs > 1 else frozen.outputs.rstrip("s")
    classes = f"; classes {', '.join(frozen.classes)}" if frozen.classes else ""
    return f"{frozen.n_outputs} {kind}{classes}"


def _describe_several(frozen: FrozenNetwork) -> dict[str, str]:
    """Declared joint directions, and which columns do not interact by the stored numbers."""
    found = {
        "joint": "; ".join(f"never falls along {describe_joint(d)}" for d in frozen.joint_cst),
        "interactions": describe_interactions(frozen, find_interactions(frozen)),
    }
    return {topic: about for topic, about in found.items() if about}


def _describe_preset(frozen: FrozenNetwork) -> dict[str, str]:
    """How `freeze` makes such a network, and what is proved of it."""
    if not sums_in_parts(frozen):
        return {}
    return {"preset": f"precision='float32', exact=True: {isotone.certify(frozen).guarantee}"}


def _describe_widths(frozen: FrozenNetwork) -> dict[str, str]:
    about = describe_widths(find_widths(frozen))
    return {"exact": about} if about else {}


def _feature_table(frozen: FrozenNetwork) -> Table:
    """The way of every column to the network, in words."""
    table = columns("feature", "from", "declared", "λ", "scaled input")
    for k, feature in enumerate(frozen.inputs.encoded):
        column = frozen.inputs.owner(k)
        source = column.describe() if feature == column.features[0] else column.name
        table.add_row(*map(printable, (feature, source, *frozen.describe(k))))
    return table
