"""What the C++ and CUDA exports share: a directory with a header of the model's name."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from isotone.export.claim import Arithmetic, Claim, Target, claim
from isotone.export.exactness import exact, within
from isotone.export.native import compiler, source
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats, Reals

_VERSION = """\
{keyword} char version[] = {version};

"""
_DECISION = """\
// The decision: an event passes if its score is at least the threshold, compared in double
// precision. An event without a score does not pass.
{keyword} double threshold = {number};
template <class Real>
{function}bool passes(const Real* x) {{
    return static_cast<double>(score(x)) >= threshold;
}}

"""


@dataclass(frozen=True)
class Header(Target):
    """A directory.

    Parameters
    ----------
    name : of the header and its namespace, by default the directory's
    threshold : the header gets it as a constant, and `passes`: whether score >= threshold
    version : of the decision, another constant; for a bundle its name, version and identity
    """

    name: str | None = None
    threshold: float | None = None
    version: str | None = None
    suffix: ClassVar[str]

    def write(self, frozen: FrozenNetwork, path: Path) -> Claim:
        self._check_threshold(frozen)
        name, found = source.identifier(self.name, path), claim(self, frozen)
        source.write_files(path, self.files(frozen, name, found))
        return found

    @abstractmethod
    def files(self, frozen: FrozenNetwork, name: str, found: Claim) -> dict[str, str]:
        """Texts by the names of their files; `name` is that of the namespace."""

    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        """By a program made of the header for the host, which needs no nvcc."""
        header = path / f"{source.identifier(self.name, path)}{self.suffix}"
        decides = self.threshold is not None
        return compiler.score(header, X, frozen.n_outputs, frozen.precision, decides=decides)

    def decision(self, keyword: str, function: str) -> str:
        """C++ of the threshold and of what passes; nothing if there is no threshold."""
        told = (
            ""
            if self.version is None
            else _VERSION.format(keyword=keyword, version=source.text(self.version))
        )
        if self.threshold is None:
            return told
        number = source.number(self.threshold)
        return told + _DECISION.format(keyword=keyword, number=number, function=function)

    def _check_threshold(self, frozen: FrozenNetwork) -> None:
        if self.threshold is None:
            return
        if not math.isfinite(self.threshold):
            raise ValueError(f"`threshold={self.threshold}` must be finite; give a number")
        if frozen.n_outputs != 1:
            raise ValueError(
                f"`threshold={self.threshold:g}` is for one output but the model has "
                f"{frozen.n_outputs}; leave it out"
            )

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        """In float32 one side may take fused multiply-add and the other not."""
        return exact(frozen) if frozen.precision == "float64" else within(frozen, "float32")

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        words = f"{frozen.precision}, in the order of the model"
        provided = "the compiler and the processor keep to IEEE arithmetic"
        if frozen.precision == "float32":
            provided += (
                ", and scores that are compared come from processors that all have fused "
                "multiply-add, or all lack it"
            )
        return Arithmetic(words, repeats=True, provided=provided)
