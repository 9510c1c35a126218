"""`isotone freeze`: a model in another arithmetic, with a new certificate inside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import isotone
from isotone.cli.console.terminal import describe_arithmetic, say
from isotone.files import refuse_overwriting
from isotone.freezing.margin import certified
from isotone.freezing.single import to_single


def freeze(
    model: Annotated[Path, typer.Argument(help="An .isotone file, in float64.")],
    out: Annotated[Path, typer.Option(help="The .isotone file to write.")],
    clip: Annotated[float | None, typer.Option(help="Clamp scaled inputs to ±this.")] = None,
    grid: Annotated[
        float | None, typer.Option(help="Spacing of scaled inputs; default: the finest proved.")
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option("--range", help="Where a feature lies, and typically: pt=0:24:2; for all."),
    ] = None,
) -> None:
    """Write a model in float32 whose computed scores are monotone to the last bit.

    With --range for every feature the model is centered within these ranges, which allows a finer
    grid; a number beyond its range is taken as one at its end, or a little beyond. A third number
    is a typical one, such as the median, for which scores change least.
    """
    refuse_overwriting([out], [model])
    frozen = isotone.load(model)
    ranges = ranges_of(range_, frozen.features) if range_ else None
    found, certificate = certified(to_single(frozen, clip, grid, ranges))
    found.save(out)
    say(f"wrote {out}: {describe_arithmetic(found)}")
    say(f"guaranteed: {certificate.guarantee}")


def ranges_of(texts: list[str], features: tuple[str, ...]) -> list[list[float]]:
    """What `--range` says, in the order of the features."""
    found: dict[str, list[float]] = {}
    for text in texts:
        name, _, ends = text.rpartition("=")
        try:
            found[name] = [float(end) for end in ends.split(":")]
        except ValueError as error:
            raise ValueError(
                f"`--range {text}` is not a range; write a name and two or three "
                "numbers, as pt=0:24:2"
            ) from error
    if sorted(found) != sorted(features):
        raise ValueError(
            f"`--range` names {', '.join(sorted(found))!r:.200}; it must name each feature of the "
            f"model once: {', '.join(features)!r:.200}"
        )
    return [found[name] for name in features]
