"""`isotone card`: a model card, written from the model's own facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import isotone
from isotone.cli.console.terminal import say
from isotone.files import refuse_overwriting, write_whole
from isotone.integrations.model_card import describe_model


def card(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    out: Annotated[Path, typer.Option(help="The Markdown file to write, such as README.md.")],
    title: Annotated[str, typer.Option(help="Its first line.")] = "An isotone model",
) -> None:
    """Write a model card: what the model is and what is proved of it, in Markdown.

    Hugging Face reads its front matter. The certificate in it is recomputed. Intended use and
    limits are for you to add.
    """
    refuse_overwriting([out], [model])
    write_whole(out, describe_model(isotone.load(model), title))
    say(f"wrote {out}")
