"""Outcomes: what the outputs of a network are about, in the words of its user."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats, Reals

Kind = Literal["two classes", "classes", "values"]


@dataclass(frozen=True)
class Outcomes:
    """What is predicted, and how it becomes a decision.

    Parameters
    ----------
    kind : "values" if the network gives numbers without a threshold
    target : name of what is predicted, if known
    classes : names of the classes; empty for values
    outputs : names of the outputs
    threshold : of the score, for two classes
    has_probability : whether the outputs are logits
    named : whether the model knows names of the classes
    """

    kind: Kind
    target: str | None
    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    threshold: float | None
    has_probability: bool
    named: bool = True

    @classmethod
    def of(cls, frozen: FrozenNetwork, threshold: float | None, target: str | None) -> Outcomes:
        known = frozen.provenance.get("target")
        name = target if target is not None else known if isinstance(known, str) else None
        logits, named = frozen.outputs == "logits", frozen.classes is not None
        if frozen.of_classes:
            classes = tuple(frozen.output_names)
            return cls("classes", name, classes, classes, None, True, named)
        if logits or threshold is not None:
            classes = frozen.classes or ("0", "1")
            return cls("two classes", name, classes, ("score",), threshold, logits, named)
        outputs = ("score",) if frozen.n_outputs == 1 else tuple(frozen.output_names)
        return cls("values", name, (), outputs, None, False)

    def decide(self, scores: Reals) -> Floats | None:
        """Number of the class that is decided for every row, None if nothing is decided."""
        if self.kind == "classes":
            return np.asarray(scores.argmax(axis=1), float)
        return None if self.threshold is None else np.asarray(scores >= self.threshold, float)

    def name(self, k: int) -> str:
        """A class with what it is a class of."""
        if self.target is not None:
            return f"{self.target} = {self.classes[k]}"
        if not self.has_probability:
            return ("rejected", "accepted")[k]
        return self.classes[k] if self.named else f"class {k}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "target": self.target,
            "classes": [self.name(k) for k in range(len(self.classes))],
            "outputs": list(self.outputs),
            "threshold": self.threshold,
            "probability": self.has_probability,
        }


def threshold_of(frozen: FrozenNetwork, threshold: float | None) -> float | None:
    """The threshold of decisions, None if there are none or if the largest logit decides."""
    if threshold is None:
        return 0.0 if frozen.outputs == "logits" and frozen.n_outputs == 1 else None
    if not math.isfinite(threshold):
        raise ValueError(f"`threshold={threshold}` must be a finite number")
    if frozen.n_outputs > 1:
        raise ValueError(
            f"`threshold={threshold:g}` is for one output but the model has {frozen.n_outputs}; "
            "leave it out"
        )
    return threshold
