"""JSON: every number of a network as text, and back to the same bits.

Floats are written with the shortest decimal that reads back to the same float64. The layout is in
docs/exports.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.export.claim import Arithmetic, Claim, SingleFile
from isotone.export.exactness import exact
from isotone.files.untrusted import read_json
from isotone.frozen.engine import Engine
from isotone.frozen.loading import assemble, build, describing
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import describe
from isotone.typing import Floats, Reals

FORMAT = "isotone-json"
VERSION = 3


@dataclass(frozen=True)
class Json(SingleFile):
    """One JSON object; `isotone.export.json.read` makes it a `FrozenNetwork` again."""

    def content(self, frozen: FrozenNetwork, found: Claim) -> bytes:
        text = json.dumps(to_dict(frozen, found), indent=1, allow_nan=False)
        return f"{text}\n".encode()

    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        return Engine(read(path), on_unseen="skip")(frozen.inputs.decode(X))

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        return exact(frozen)

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        words = f"{frozen.precision}, in the order of the model"
        return Arithmetic(words, repeats=True, provided="isotone.export.json.read reads the file")


def to_dict(frozen: FrozenNetwork, found: Claim) -> dict[str, Any]:
    """The content of the file."""
    return {
        "format": FORMAT,
        "version": VERSION,
        **found.summary(),
        "lipschitz": frozen.lipschitz.tolist(),
        "metric": frozen.metric,
        "precision": frozen.precision,
        "scaling": frozen.scaling.to_dict(),
        "clip": frozen.clip,
        "grid": frozen.grid,
        "steps": describe(frozen.steps, numbers=True),
        "residual": frozen.residual.tolist(),
        "joint_cst": [dict(one) for one in frozen.joint_cst],
        "provenance": dict(frozen.provenance),
    }


@ieee_arithmetic()
def read(path: str | Path) -> FrozenNetwork:
    """The network in a JSON export; its fingerprint must be the one that the file states."""
    complaint = f"{str(path)!r} is not a JSON export of a network"
    with describing(complaint, "; export it again"):
        return _build(read_json(path))


def _build(data: Any) -> FrozenNetwork:
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (
        FORMAT,
        VERSION,
    ):
        raise ValueError(f"`format` must be {FORMAT!r} and `version` {VERSION}")
    names = [field.name for field in fields(FrozenNetwork) if field.name != "certificate"]
    content = {name: data[name] for name in names if name in data or name != "joint_cst"}
    steps = assemble(data["steps"], partial(_array, data["precision"]))
    frozen = build(content, steps, np.array(data["residual"], np.float64))
    if frozen.fingerprint != data["fingerprint"]:
        raise ValueError(
            f"its numbers have the fingerprint {frozen.fingerprint[:12]}… but the file states "
            f"{str(data['fingerprint'])[:12]}…: it was altered"
        )
    return frozen


def _array(precision: str, entry: dict[str, Any], name: str) -> Reals:
    array: Reals = np.array(entry[name.rpartition(".")[2]], precision)
    return array
