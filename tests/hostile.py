"""What must hold for any model file, whoever made it: refused in words, or all of it works."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import isotone
from isotone import Certificate, FrozenNetwork
from isotone.certificate.verdicts import kept_directions
from isotone.export.parity import check_rows
from isotone.frozen.engine import Engine
from isotone.inputs.columns import Number
from isotone.typing import Floats

N_ROWS = 48


def examine(raw: bytes) -> str:
    """Load, certify, score and export a file; raises if anything but a refusal goes wrong.

    Gives "holds" or "fails", as its certificate says, or why it is refused. If its certificate
    holds to the last bit, computed scores of rows in order are in order.
    """
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.isotone"
        path.write_bytes(raw)
        try:
            frozen = isotone.load(path)
        except ValueError as error:
            return f"refused: {error}".replace(repr(str(path)), "the file")
        certificate = isotone.certify(frozen)
        rows = check_rows(frozen, N_ROWS)
        scores = _scores(frozen, rows)
        if certificate.holds and frozen.grid is not None:
            _check_order(certificate, rows, scores)
        for target in ("json", "sql"):
            _export(frozen, target, Path(name))
    return "holds" if certificate.holds else "fails"


def _scores(frozen: FrozenNetwork, codes: Floats) -> Floats:
    """(n_rows, n_outputs), NaN for rows without a score."""
    found = Engine(frozen, on_unseen="skip")(frozen.inputs.decode(codes))
    return found.astype(np.float64).reshape(len(codes), -1)


def _check_order(certificate: Certificate, rows: Floats, scores: Floats) -> None:
    """Raise columns of numbers, one unit in the last place and far; no score may turn."""
    frozen = certificate.frozen
    directions = kept_directions(frozen, certificate.verdicts)
    for k, column in enumerate(frozen.inputs.columns):
        signs = directions[:, frozen.inputs.places[k]]
        if not isinstance(column, Number) or not signs.any():
            continue
        for step in (0.0, 1e-7, 1e-3, 10.0):
            raised = rows.copy()
            with np.errstate(over="ignore"):
                higher = np.nextafter(rows[:, k] + step * np.abs(rows[:, k]), np.inf)
            raised[:, k] = np.minimum(higher, np.finfo(np.float64).max)
            moved = signs * (_scores(frozen, raised) - scores)
            assert not np.any(moved < 0), f"{column.name!r} raised by {step} turned a score"


def _export(frozen: FrozenNetwork, target: str, folder: Path) -> None:
    try:
        isotone.export.write(frozen, target, folder / f"a.{target}", check=False)
    except ValueError:
        return  # says what it cannot write
