"""`isotone card`: a model card, written from the model's own facts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import isotone
from isotone.cli.console.terminal import say
from isotone.files import refuse_overwriting, replacing
from isotone.integrations.model_card import describe_model


def card(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    out: Annotated[Path, typer.Option(help="The Markdown file to write, such as README.md.")],
    title: Annotated[str, typer.Option(help="Its first line.")] = "An isotone model",
) -> None:
    """Write a model card: what the model is and what is proved of it, in Markdown.

    Hugging Face reads its front matter. The certificate in it is computed anew. Intended use and
    limits are for you to add.
    """
    refuse_overwriting([out], [model])
    text = describe_model(isotone.load(model), title)
    with replacing(out) as temporary:
        temporary.write_text(text)
    say(f"wrote {out}")
