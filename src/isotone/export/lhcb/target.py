"""Allen and HLT2: one JSON file that LHCb's evaluators read, with the cut of a trigger line.

For networks that `isotone train --for allen` or `--for hlt2` makes: one member of dense layers
with pairs sorted between them, on numbers. What the evaluators cannot compute is refused.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from isotone.checks import check_choice
from isotone.export.claim import Arithmetic, Claim, SingleFile, claim
from isotone.export.lhcb.cut import Cut
from isotone.export.lhcb.decisions import compare_decisions
from isotone.export.lhcb.errors import Errors, find_errors
from isotone.export.lhcb.evaluator import evaluate
from isotone.export.lhcb.fold import Folded, Rescale, fold
from isotone.files.untrusted import read_json
from isotone.frozen.lhcb import Layout, SigmaNet, parse
from isotone.frozen.network import FrozenNetwork
from isotone.rounding import digits_up
from isotone.typing import Floats, Reals

_LARGEST = 2.0**126  # of a raw number that a clamp is tried with
_WORDS = (
    "float32, sums from 0 in the order of the inputs and then the bias, with or without "
    "contraction to fused multiply-add"
)


@dataclass(frozen=True)
class Written:
    """What is written: the folded network, its cut and what holds of it."""

    folded: Folded
    threshold: float
    cut: Cut
    errors: Errors

    @property
    def undecided(self) -> float:
        """How far from the threshold a score must be to have a decision that is certain."""
        window = max(self.cut.high - self.at, self.at - self.cut.low)
        return math.nextafter(self.errors.distance + window, math.inf)

    @property
    def at(self) -> float:
        """The threshold on the response in the file, 0 if scores are shifted."""
        return 0.0 if self.shifted else self.threshold

    shifted: bool = False


@dataclass(frozen=True)
class SigmaNetFile(SingleFile):
    """A JSON file for one of the evaluators.

    Parameters
    ----------
    threshold : a candidate passes if its score is at least this
    reach : the largest scaled input that is claimed about; by default the model's clip. The
        evaluator of HLT2 clamps there, and differs from a model that clamps farther out
    shift : whether the score is moved so that the cut is 0.5, where the sigmoid resolves it best
    bare : whether the claim and the names of the features are left out
    """

    threshold: float | None = None
    reach: float | None = None
    shift: bool = False
    bare: bool = False
    layout: ClassVar[Layout]

    def content(self, frozen: FrozenNetwork, found: Claim) -> bytes:
        made = self._make(frozen)
        data = self.arrays(made.folded.net) | {"nominal_cut": float(made.cut.value)}
        about = {} if self.bare else {"isotone": _about(made, found)}
        text = json.dumps(data | about, indent=1, allow_nan=False)
        return f"{text}\n".encode()

    @abstractmethod
    def arrays(self, net: SigmaNet) -> dict[str, Any]:
        """The numbers by the keys of the format."""

    @abstractmethod
    def fold(self, frozen: FrozenNetwork, reach: float, shift: float) -> Folded:
        """The network as the evaluator takes it."""

    def claim(self, frozen: FrozenNetwork) -> Claim:
        made, found = self._make(frozen), claim(self, frozen)
        if not found.holds:
            return found
        drop = 2.0 * made.errors.own
        directed = bool(found.certificate.verdicts)
        return replace(
            found,
            drop=drop if directed else None,
            guarantee=_guarantee(made, drop if directed else None),
        )

    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        """Responses by NumPy, moved back if they were moved."""
        back = self._threshold() if self.shift else 0.0
        response = evaluate(parse(read_json(path)), X).response
        return response.astype(np.float64) + back

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        return np.array([self._make(frozen).errors.distance])

    def admit(self, frozen: FrozenNetwork, X: Floats) -> Floats:
        """Float32 rows in the box; where the evaluator clamps as the model does, any."""
        folded = self._make(frozen).folded
        low, high = folded.low.astype(float), folded.high.astype(float)
        if self._clamps_as(frozen):
            low, high = np.full_like(low, -_LARGEST), np.full_like(high, _LARGEST)
        return np.clip(X, low, high).astype(np.float32).astype(np.float64)

    def check(self, frozen: FrozenNetwork, path: Path) -> str:
        made = self._make(frozen)
        return compare_decisions(
            frozen, path, made.threshold, made.undecided, lambda X: self.admit(frozen, X)
        )

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        inside = "" if self._clamps_as(frozen) else "raw inputs are in the box of the file, "
        provided = (
            f"{inside}features reach the evaluator as float32 numbers, its exponential is within "
            "2 + 1.2|r| units in the last place and its division within 2, and keys that the "
            "format does not name are ignored"
        )
        return Arithmetic(_WORDS, repeats=False, provided=provided)

    def _clamps_as(self, frozen: FrozenNetwork) -> bool:
        """Whether the evaluator clamps inputs, and where the model does."""
        return self.layout == "hlt2" and self._reach(frozen) == frozen.clip

    def _make(self, frozen: FrozenNetwork) -> Written:
        threshold, reach = self._threshold(), self._reach(frozen)
        cut = Cut.of(0.0 if self.shift else threshold)
        folded = self.fold(frozen, reach, threshold if self.shift else 0.0)
        errors = find_errors(frozen, folded, reach)
        return Written(folded, threshold, cut, errors, self.shift)

    def _reach(self, frozen: FrozenNetwork) -> float:
        reach = frozen.clip if self.reach is None else float(self.reach)
        if not 0 < reach <= frozen.clip:
            raise ValueError(
                f"`reach={reach:g}` must be positive and at most the clip of the model, "
                f"{frozen.clip:g}; choose such a number, or leave it out"
            )
        return reach

    def _threshold(self) -> float:
        if self.threshold is None:
            raise ValueError(
                f"the file for {self.layout} holds the cut of a trigger line; give the score that "
                "a candidate needs with `threshold` (`--threshold 3.2`, or `--point`)"
            )
        return float(self.threshold)


@dataclass(frozen=True)
class Allen(SigmaNetFile):
    """JSON for HLT1.

    Parameters
    ----------
    rescale : "none" folds the scaling into the first layer, for lines that do not rescale; "unit"
        writes `rescale_min` and `rescale_max` around the box, for lines that do, whether they
        then clip to [0, 1] or not; "auto" is "none" where one λ stands for all columns
    """

    rescale: Rescale = "auto"
    layout: ClassVar[Layout] = "allen"

    def fold(self, frozen: FrozenNetwork, reach: float, shift: float) -> Folded:
        check_choice("rescale", self.rescale, ("auto", "none", "unit"))
        return fold(frozen, self.layout, reach, self.rescale, shift)

    def arrays(self, net: SigmaNet) -> dict[str, Any]:
        data: dict[str, Any] = {"n_features": net.n_features}
        data |= {"sigmanet.sigma": [float(net.lipschitz)], "constraints": _signs(net)}
        if net.low is not None and net.high is not None:
            data |= {"rescale_min": net.low.tolist(), "rescale_max": net.high.tolist()}
        for k, (weight, bias) in enumerate(net.layers):
            data |= {f"sigmanet.nn.{k}.weight": weight.tolist()}
            data |= {f"sigmanet.nn.{k}.bias": bias.tolist()}
        return data


@dataclass(frozen=True)
class Hlt2(SigmaNetFile):
    """JSON for the topological lines of HLT2, which clamp their inputs."""

    layout: ClassVar[Layout] = "hlt2"

    def fold(self, frozen: FrozenNetwork, reach: float, shift: float) -> Folded:
        return fold(frozen, self.layout, reach, "none", shift)

    def arrays(self, net: SigmaNet) -> dict[str, Any]:
        assert net.low is not None
        assert net.high is not None
        ends = np.column_stack([net.low, net.high]).tolist()
        data: dict[str, Any] = {"variables_constraints": ends}  # some readers want it first
        for k, (weight, bias) in enumerate(net.layers):
            data |= {f"sigmanet.nn.{k:02d}.bias": bias.tolist()}
            data |= {f"sigmanet.nn.{k:02d}.parametrizations.weight.original": weight.tolist()}
        return data | {"sigmanet.sigma": [float(net.lipschitz)], "constraints": _signs(net)}


def _signs(net: SigmaNet) -> list[int]:
    assert net.monotonic_cst is not None
    signs: list[int] = net.monotonic_cst.tolist()
    return signs


def _guarantee(made: Written, drop: float | None) -> str:
    monotone = "" if drop is None else f"monotone up to {digits_up(drop)} and "
    return (
        f"computed responses are {monotone}within {digits_up(made.errors.distance)} of the "
        f"model's scores{' less the threshold' if made.shifted else ''}; decisions are those of "
        f"score >= {made.threshold:.9g} where the score is further than "
        f"{digits_up(made.undecided)} from that"
    )


def _about(made: Written, found: Claim) -> dict[str, Any]:
    """What the file says of itself."""
    folded = made.folded
    box = np.column_stack([folded.low, folded.high])
    return found.summary() | {
        "threshold": made.threshold,
        "shifted": made.shifted,
        "undecided": made.undecided,
        "rounding_error": made.errors.own,
        "box": box.tolist(),
        "reach": float(np.abs(box).max()),
    }
