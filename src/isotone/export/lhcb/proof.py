"""Proof: what is certain of a file for Allen or HLT2 as its own evaluator computes it.

`isotone.certify` of a network that was read from such a file is about isotone's arithmetic, which
centers the inputs of a box first. The evaluator adds up the numbers of the file as they are.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isotone import limits
from isotone.certificate.certify import Certificate
from isotone.export.lhcb.errors import evaluation_error
from isotone.files.untrusted import begins_as_json, open_regular, parse_json
from isotone.frozen.lhcb import SigmaNet, Singles, parse
from isotone.rounding import digits_up

_CLAMPED = "for all inputs, which it clamps"


@dataclass(frozen=True)
class Evaluation:
    """What an evaluator computes.

    Parameters
    ----------
    layout : "allen" or "hlt2"
    rounding_error : E of its float32 arithmetic, for every order of sums, with or without
        contraction to fused multiply-add; None if no bound was found
    drop : how far a response may move against a declared direction, 2E; None if nothing is claimed
    inputs : for which raw inputs this holds, in words
    excess : what the evaluator has no room for, in words, so that it cannot compute the network
        unless its buffers are enlarged; None if it can
    """

    layout: str
    rounding_error: float | None
    drop: float | None
    inputs: str
    excess: str | None = None

    @property
    def clamps(self) -> bool:
        """Whether it clamps its inputs, so that the claim is about all of them."""
        return self.inputs == _CLAMPED

    @property
    def guarantee(self) -> str:
        """What is promised about computed responses, in words."""
        if self.excess:
            larger = replace(self, excess=None).guarantee
            return f"nothing: the network has {self.excess}. With larger buffers {larger}"
        who = f"the evaluator of {self.layout}"
        if self.rounding_error is None:
            return f"{who} may be off by any amount: no bound on its rounding error was found"
        error = f"E = {digits_up(self.rounding_error)}"
        monotone = "" if self.drop is None else f", monotone up to {digits_up(self.drop)}"
        return f"{who} computes responses within {error} of the exact ones{monotone} {self.inputs}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"guarantee": self.guarantee}


def certify_evaluation(path: str | Path, certificate: Certificate) -> Evaluation | None:
    """What the evaluator guarantees of a JSON file; None if the file is of another kind.

    Parameters
    ----------
    certificate : of the network that was read from it; its directions in real numbers are proved
        for the numbers of the file
    """
    file, size = open_regular(path)
    with file:
        if not begins_as_json(file.peek(64)):
            return None
        limits.SIGMA_NET.check(size)
        net = parse(parse_json(file.read(size)))
    low, high, inputs = _box(net, certificate.clip)
    error = evaluation_error(net, low, high)
    if math.isinf(error):
        return Evaluation(net.layout, None, None, inputs, net.excess)
    claims = certificate.holds and certificate.verdicts
    return Evaluation(net.layout, error, 2.0 * error if claims else None, inputs, net.excess)


def _box(net: SigmaNet, clip: float) -> tuple[Singles, Singles, str]:
    """The raw inputs that are claimed about, and what to call them."""
    if net.low is not None and net.high is not None:
        if net.layout == "hlt2":
            return net.low, net.high, _CLAMPED
        return net.low, net.high, "for inputs from rescale_min to rescale_max"
    ends = np.full(net.n_features, clip, np.float32)
    return -ends, ends, f"for inputs within ±{clip:g}, to which it does not clamp"
