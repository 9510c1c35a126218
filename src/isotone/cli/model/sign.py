"""`isotone sign`: the signature of a file, in minisign's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import isotone
from isotone import signature
from isotone.cli.console.terminal import say


def sign(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    key: Annotated[Path, typer.Option(help="A file with a secret key, made by minisign -G.")],
    comment: Annotated[
        str | None, typer.Option(help="Signed, too; default: the fingerprint of the model.")
    ] = None,
) -> None:
    """Sign a model file: write MODEL.minisig beside it.

    Whoever has your public key checks it with isotone certify MODEL --signed-by KEY, or with
    minisign itself.
    """
    about = f"isotone model, fingerprint {isotone.load(model).fingerprint}"
    encrypted = signature.is_encrypted(key)
    password = typer.prompt("password of the key", hide_input=True, err=True) if encrypted else ""
    say(f"wrote {signature.sign(model, key, comment=comment or about, password=password)}")
