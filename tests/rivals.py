"""Two certifiers, `isotone.certify` and `verifier/`, asked about the same files."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import isotone
from isotone import Certificate

VERIFIER = Path(__file__).parents[1] / "verifier" / "bin" / "isotone-verify.mjs"
_AT_ONCE = 500  # files per process
_CLOSE = 1e-12  # isotone rounds every bound up, the verifier does not


def is_available() -> bool:
    return shutil.which("node") is not None


def verify(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """What the verifier says of files, in their order."""
    found: list[dict[str, Any]] = []
    for start in range(0, len(paths), _AT_ONCE):
        names = [str(path) for path in paths[start : start + _AT_ONCE]]
        run = subprocess.run(["node", VERIFIER, "--json", *names], capture_output=True, text=True)
        if run.stderr:
            raise RuntimeError(f"the verifier crashed: {run.stderr[-2000:]}")
        found += [json.loads(line) for line in run.stdout.splitlines()]
    if len(found) != len(paths):
        raise RuntimeError(f"the verifier answered for {len(found)} of {len(paths)} files")
    return found


@dataclass
class Pair:
    """What both say of one file.

    Parameters
    ----------
    path : of the file
    theirs : what the verifier printed
    """

    path: Path
    theirs: dict[str, Any]

    @cached_property
    def ours(self) -> Certificate | None:
        """None if the file is refused."""
        try:
            return isotone.certify(isotone.load(self.path))
        except ValueError as error:
            self.refusal = str(error)
            return None

    @property
    def our_verdict(self) -> str:
        return "BAD FILE" if self.ours is None else "HOLDS" if self.ours.holds else "FAILS"

    def disagreements(self) -> Iterator[str]:
        """In words, each beginning with its kind."""
        ours, theirs = self.our_verdict, self.theirs["verdict"]
        if theirs == "CANNOT JUDGE":
            return
        if ours != theirs and not self.is_sharper:
            yield f"verdict: isotone says {ours}, the verifier {theirs}: {self._reason()}"
        if self.ours is None or theirs == "BAD FILE":
            return
        if self.ours.fingerprint != self.theirs["fingerprint"]:
            yield "fingerprint: they differ"
        yield from self._bounds(self.ours)

    @property
    def is_sharper(self) -> bool:
        """Whether the verifier accepts what isotone refuses only because its E is smaller.

        It follows every output, and inputs with knots, by themselves, in float32 with a grid also
        through activations and knots, counts no rounding of members twice, and calls only numbers
        infinite that are. Or isotone rounds slopes more.
        """
        if self.our_verdict != "FAILS" or self.theirs["verdict"] != "HOLDS":
            return False
        ours = self.ours
        assert ours is not None
        if not all(np.isfinite(ours.rounding_errors)):
            return True
        steep = max(abs(slope.scaled.high) + abs(slope.scaled.low) for slope in ours.slopes)
        lost = max(ours.constants) <= 1 + _CLOSE
        kept = all(v.slope >= -_CLOSE * steep for v in ours.verdicts)
        return lost and kept and (self.ratio < 1 - _CLOSE or not ours.lipschitz_holds)

    def _reason(self) -> str:
        return getattr(self, "refusal", None) or str(self.theirs["reason"])

    def _bounds(self, ours: Certificate) -> Iterator[str]:
        n = len(ours.constants)
        errors = self.theirs["rounding_errors"] or [np.inf] * n
        for name, mine, other in (
            ("E", ours.rounding_errors, errors),
            ("constant", ours.constants, self.theirs["constants"]),
        ):
            ratio = _ratio(other, mine)
            if ratio.max() > 1 + _CLOSE:
                yield f"{name}: the verifier's is larger, {ratio.max():.17g} times"
        found = {(v["output"], v["feature"]): v for v in self.theirs["verdicts"]}
        for verdict in ours.verdicts:
            other = found.get((verdict.output, verdict.feature))
            slope = -np.inf if other is None or other["slope"] is None else other["slope"]
            if other is not None and slope < verdict.slope - _CLOSE * abs(verdict.slope):
                yield f"slope: {slope} along {verdict.feature}, isotone {verdict.slope}"

    @property
    def ratio(self) -> float:
        """The verifier's largest E over isotone's, at most 1 unless they disagree."""
        if self.ours is None or "rounding_errors" not in self.theirs:
            return 1.0
        errors = self.theirs["rounding_errors"] or [np.inf] * len(self.ours.constants)
        return float(_ratio(errors, self.ours.rounding_errors).max())


def _ratio(a: Sequence[float], b: Sequence[float]) -> Any:
    x, y = np.array(a, float), np.array(b, float)
    with np.errstate(all="ignore"):
        return np.where((x == y) | (np.maximum(x, y) < 1e-290), 1.0, x / y)
