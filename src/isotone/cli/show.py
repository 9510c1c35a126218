"""`isotone show`: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

import isotone
from isotone.cli.terminal import (
    columns,
    describe_arithmetic,
    describe_directions,
    facts,
    indented,
    output,
    print_stated,
    printable,
)
from isotone.frozen.network import FrozenNetwork

_OLD = (
    "written in format 1: what an estimator or a script did to raw columns before this network "
    "is not in the file; train again to have it there"
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
            arithmetic=describe_arithmetic(frozen),
            metric=f"{frozen.metric}-norm".replace("inf", "∞"),
            fingerprint=frozen.fingerprint,
        )
    )
    output.print()
    output.print(indented(_feature_table(frozen)))
    rest = dict(frozen.provenance)
    if rest.pop("format", 2) == 1:
        output.print()
        output.print(_OLD, soft_wrap=True)
    _print_part("provenance, as the file states it; nothing of it was checked", rest)


def _print_part(title: str, content: object) -> None:
    if content:
        output.print()
        output.print(title, style="bold")
        print_stated(content if isinstance(content, dict) else {"stated": content})


def _describe_outputs(frozen: FrozenNetwork) -> str:
    kind = frozen.outputs if frozen.n_outputs > 1 else frozen.outputs.rstrip("s")
    classes = f"; classes {', '.join(frozen.classes)}" if frozen.classes else ""
    return f"{frozen.n_outputs} {kind}{classes}"


def _feature_table(frozen: FrozenNetwork) -> Table:
    """The way of every column to the network, in words."""
    table = columns("feature", "from", "declared", "λ", "scaled input")
    inputs = frozen.inputs
    sources = np.array(inputs.copies or range(frozen.n_features))
    for k, feature in enumerate(inputs.encoded):
        column, own = inputs.owner(k), np.flatnonzero(sources == k)
        first = feature == column.features[0]
        scaled = frozen.scaling.describe(own[0]) if len(own) == 1 else f"{len(own) + 1} knots"
        table.add_row(
            printable(feature),
            printable(column.describe() if first else column.name),
            printable(frozen.direction(own[0])),
            f"{frozen.lipschitz[own].max():.4g}",
            scaled,
        )
    return table
