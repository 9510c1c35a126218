"""Selftest: rows with their exact scores, carried by a model file and checked on other hardware.

`carry` adds them, `check` computes them again with every instruction set of the machine, and
compares the engine with `isotone.frozen.reference` on rows where arithmetic goes wrong first. The
rows are made from the model's own columns; no row of a table is among them. They are kept in the
provenance, so that the fingerprint is about the model alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.certificate.certify import certify
from isotone.export.parity import check_rows
from isotone.frozen import reference
from isotone.frozen.engine import Engine
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.scaling import numbers
from isotone.typing import Floats

KEY = "selftest"
N_ROWS, _MOST_CELLS = 16, 4096
_N_DRAWN = 500


@dataclass(frozen=True)
class Selftest:
    """What computing scores again has shown.

    Parameters
    ----------
    n_stored : rows of the file, with the scores that it states
    n_drawn : further rows, on which the engine is compared with the reference
    instruction_sets : that were tried
    failures : what differed, in words; empty if nothing did
    """

    n_stored: int
    n_drawn: int
    instruction_sets: tuple[str, ...]
    failures: tuple[str, ...]

    def __str__(self) -> str:
        if self.failures:
            return f"FAILED: {'; '.join(self.failures)}"
        stored = f"{self.n_stored} stored and " if self.n_stored else "no stored and "
        sets = ", ".join(self.instruction_sets)
        return f"{stored}{self.n_drawn} drawn rows have their scores with {sets}"


@ieee_arithmetic()
def carry(frozen: FrozenNetwork, n_rows: int = N_ROWS) -> FrozenNetwork:
    """The same model with a few rows and their exact scores; of very many columns fewer rows.

    Examples
    --------
    >>> import isotone
    >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
    >>> frozen = isotone.freeze(network)
    >>> tested = carry(frozen)
    >>> tested.fingerprint == frozen.fingerprint, check(tested).n_stored
    (True, 16)
    """
    drawn = check_rows(frozen, n_rows)
    known = drawn[~np.isnan(_scores(frozen, drawn)).any(axis=1)]
    most = max(1, min(n_rows, _MOST_CELLS // drawn.shape[1]))
    rows = known[np.linspace(0, len(known) - 1, min(most, len(known))).astype(int)]
    stated = {"rows": _plain(rows), "scores": _plain(_scores(frozen, rows))}
    return replace(frozen, provenance={**frozen.provenance, KEY: stated})


@ieee_arithmetic()
def check(frozen: FrozenNetwork) -> Selftest:
    """Compute the stored scores again, and those of other rows, with every instruction set."""
    sets = tuple(Engine.instruction_sets())
    failures: list[str] = []
    try:
        rows, scores = _stored(frozen)
    except ValueError as error:
        rows, scores = np.empty((0, len(frozen.inputs.names))), np.empty((0, frozen.n_outputs))
        failures.append(str(error))
    drawn = check_rows(frozen, _N_DRAWN, seed=1)
    drawn = drawn[~np.isnan(_scores(frozen, drawn)).any(axis=1)]
    computed = reference.score(frozen, frozen.inputs.decode(drawn)).astype(np.float64)
    expected = computed.reshape(-1, frozen.n_outputs)
    allowed = _allowed(frozen)
    for isa in sets:
        failures += _differences("stored", _scores(frozen, rows, isa), scores, allowed, isa)
        failures += _differences("drawn", _scores(frozen, drawn, isa), expected, allowed, isa)
    return Selftest(len(rows), len(drawn), sets, tuple(failures))


def _scores(frozen: FrozenNetwork, codes: Floats, isa: str = "") -> Floats:
    """Scores of rows of codes, (n_rows, n_outputs), NaN for a row that has none."""
    scores = Engine(frozen, on_unseen="skip", isa=isa)(frozen.inputs.decode(codes))
    return scores.astype(np.float64).reshape(-1, frozen.n_outputs)


def _allowed(frozen: FrozenNetwork) -> Floats:
    """How far scores may differ: not at all, but in float32 by 2E, as products may be fused."""
    if frozen.precision == "float64":
        return np.zeros(frozen.n_outputs)
    return 2.0 * np.array(certify(frozen).rounding_errors)


def _differences(
    what: str, found: Floats, expected: Floats, allowed: Floats, isa: str
) -> Iterator[str]:
    wrong = ~(np.abs(found - expected) <= allowed)
    if wrong.any():
        row, output = np.argwhere(wrong)[0]
        yield (
            f"with {isa} {np.count_nonzero(wrong.any(axis=1))} of {len(wrong)} {what} rows have "
            f"another score, row {row} {found[row, output]!r} instead of {expected[row, output]!r}"
        )


def _stored(frozen: FrozenNetwork) -> tuple[Floats, Floats]:
    """The rows of codes and their scores that a file states; none if it has no selftest."""
    stated = frozen.provenance.get(KEY, {"rows": [], "scores": []})
    shapes = len(frozen.inputs.names), frozen.n_outputs
    try:
        rows, scores = (
            np.array([_numbers(row, n) for row in stated[name]]).reshape(-1, n)
            for name, n in zip(("rows", "scores"), shapes, strict=True)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the file's selftest is malformed ({error!s:.100})") from error
    if len(rows) != len(scores) or np.isnan(scores).any():
        raise ValueError(f"the file's selftest has {len(rows)} rows and {len(scores)} scores")
    return rows, scores


def _numbers(row: Any, n: int) -> Floats:
    """One row as numbers, NaN where it has none."""
    if not isinstance(row, list) or len(row) != n:
        raise ValueError(f"a row must be a list of {n} numbers; got {row!r:.50}")
    return numbers([math.nan if value is None else value for value in row])


def _plain(rows: Floats) -> list[list[float | None]]:
    return [[None if math.isnan(value) else value for value in row] for row in rows.tolist()]
