r"""Claim: what holds for the scores that an exported file computes, in its own arithmetic.

The certificate is about `FrozenNetwork.score`. Its verdict carries over to a file that repeats
that computation: the same snapped row, numbers and precision, and an order of operations that is
the same for every row, so that rows in one cell of the grid get the same bits. A file that only
stays within T of the score is monotone up to 2T: its scores are within T of the exact function of
the snapped row, which is monotone. Where neither is known, nothing is claimed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import isotone
from isotone.certificate.certify import Certificate, certify
from isotone.certificate.missing import promise_nothing
from isotone.files import write_whole
from isotone.frozen.network import FrozenNetwork
from isotone.rounding import digits_up
from isotone.typing import Floats, Reals

_KEPT = (
    *("precision", "metric", "clip", "grid", "lipschitz"),
    *("lipschitz_holds", "constants", "rounding_errors", "about_joint", "about_interactions"),
)


@dataclass(frozen=True)
class Arithmetic:
    """How a target computes.

    Parameters
    ----------
    words : precision and order of the sums
    repeats : whether it repeats the computation of the model, see above
    provided : what must be true of the program that runs the file
    """

    words: str
    repeats: bool
    provided: str


@dataclass(frozen=True)
class Claim:
    """What is claimed of an exported file.

    Parameters
    ----------
    holds : whether every declared direction holds up to `drop`
    guarantee : all of it in words
    to_the_last_bit : whether no computed score ever moves against a declared direction
    drop : how far a computed score, or a difference of logits, may move against a declared
        direction; None if nothing is claimed or no direction is declared
    distance : for every output, how far a score may be from that of the model; 0 is the same
        number and None means that no bound is known
    about_missing : what is and is not promised for missing values, in words
    arithmetic, provided : as in `Arithmetic`
    certificate : of the model
    checked : what the check after the export compared beside scores, in words
    """

    holds: bool
    guarantee: str
    to_the_last_bit: bool
    drop: float | None
    distance: tuple[float | None, ...]
    about_missing: str
    arithmetic: str
    provided: str
    certificate: Certificate = field(repr=False, compare=False)
    checked: str = field(default="", compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON content, without that of the model."""
        left_out = ("certificate", "checked")  # the latter is not known when a file is written
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def summary(self) -> dict[str, Any]:
        """What a file says of itself, as plain JSON: what holds, and of which model it is."""
        frozen, certificate = self.certificate.frozen, self.certificate.to_dict(in_short=True)
        return {
            "isotone": isotone.__version__,
            "fingerprint": frozen.fingerprint,
            "inputs": frozen.inputs.to_dict(),
            "features": list(frozen.features),
            "outputs": frozen.outputs,
            "classes": None if frozen.classes is None else list(frozen.classes),
            "monotonic_cst": frozen.monotonic_cst.tolist(),
            "certificate": self.to_dict(),
            "model": {name: certificate[name] for name in _KEPT},
        }


class Target(ABC):
    """A dataclass whose fields are the options of the target."""

    @abstractmethod
    def write(self, frozen: FrozenNetwork, path: Path) -> Claim:
        """Write what scores, and gives what it claims."""

    @abstractmethod
    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        """Score rows with what was written: (n_rows,) or (n_rows, n_outputs).

        Parameters
        ----------
        X : (n_rows, n_columns), codes of raw rows, see `isotone.inputs.columns`
        """

    @abstractmethod
    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        """How far every output may be from `FrozenNetwork.score`; 0 promises the same number."""

    def largest(self, frozen: FrozenNetwork) -> float:
        """The largest absolute raw number that the promise is about."""
        return math.inf

    def admit(self, frozen: FrozenNetwork, X: Floats) -> Floats:
        """Rows like `X` that the promise is about."""
        largest = self.largest(frozen)
        return np.clip(X, -largest, largest)

    def claim(self, frozen: FrozenNetwork) -> Claim:
        """What holds of the file."""
        return claim(self, frozen)

    def check(self, frozen: FrozenNetwork, path: Path) -> str:
        """Compare more than scores; what was compared, in words. Raises `ValueError`."""
        return ""

    @abstractmethod
    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        """How it computes, and what must be true of the program that runs the file."""


class SingleFile(Target):
    """A target that is one file."""

    def write(self, frozen: FrozenNetwork, path: Path) -> Claim:
        found = self.claim(frozen)
        content = self.content(frozen, found)
        write_whole(path, content)
        return found

    @abstractmethod
    def content(self, frozen: FrozenNetwork, found: Claim) -> bytes:
        """All of the file, with what is claimed of it."""


def claim(target: Target, frozen: FrozenNetwork) -> Claim:
    """What holds of a file that `target` writes."""
    certificate = certify(frozen)
    arithmetic, tolerance = target.arithmetic(frozen), target.tolerance(frozen)
    drop = _drop(certificate, arithmetic, float(max(tolerance)))
    return Claim(
        holds=certificate.holds and math.isfinite(drop),
        guarantee=_guarantee(certificate, arithmetic, tolerance, drop),
        to_the_last_bit=bool(certificate.verdicts) and drop == 0.0,
        drop=drop if certificate.verdicts and math.isfinite(drop) else None,
        distance=tuple(float(t) if math.isfinite(t) else None for t in tolerance),
        about_missing=(
            certificate.about_missing if math.isfinite(drop) else promise_nothing(frozen)
        ),
        arithmetic=arithmetic.words,
        provided=arithmetic.provided,
        certificate=certificate,
    )


def _drop(certificate: Certificate, arithmetic: Arithmetic, tolerance: float) -> float:
    """Infinite if nothing holds; of a difference of logits both may be off."""
    if not certificate.holds:
        return math.inf
    if arithmetic.repeats:
        return certificate.drop
    return (4.0 if certificate.frozen.of_classes else 2.0) * tolerance  # exact


def _guarantee(
    certificate: Certificate, arithmetic: Arithmetic, tolerance: Floats, drop: float
) -> str:
    if not certificate.holds:
        return "not claimed: a declared constraint of the model does not hold"
    if math.isinf(drop):
        return "not claimed: no bound on the rounding error is known in this arithmetic"
    distance = float(max(tolerance))
    scores = (
        f"computed scores are within {digits_up(distance)} of those of the model"
        if distance
        else "computed scores are those of the model"
    )
    if not certificate.verdicts:
        return f"{scores}; no direction is declared"
    what = "differences of logits" if certificate.frozen.of_classes else "scores"
    if drop == 0.0:
        return f"computed {what} are monotone to the last bit"
    if arithmetic.repeats:
        return f"computed {what} are monotone up to {digits_up(drop)}"
    whose = f", their differences are monotone up to {digits_up(drop)}"
    hence = whose if certificate.frozen.of_classes else f", monotone up to {digits_up(drop)}"
    return f"{scores}{hence}; no stronger claim is made"
