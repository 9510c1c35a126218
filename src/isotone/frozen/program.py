"""Program: the one walk over the steps of a network.

Whatever is done with steps is a `Language`: it says what one step of each kind makes of the units,
and `run` goes through them. What it knows of the units, H, is its own: numbers, bounds on their
changes, their names in a text. To add a kind of step, give `Language` a method for it; no language
can be made that lacks it.

`flatten` writes the steps as the list of instructions that the compiled runtime executes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, assert_never

from isotone.frozen.lookup import Copies
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Steps
from isotone.typing import Reals

H = TypeVar("H")


class Language(ABC, Generic[H]):
    """What is done with a step of each kind."""

    @abstractmethod
    def dense(self, step: Dense, h: H) -> H: ...

    def look_up(self, step: Dense, h: H) -> H:
        """A dense step on copies of columns, by default as on any other units."""
        return self.dense(step, h)

    @abstractmethod
    def sort(self, step: Sort, h: H) -> H: ...

    @abstractmethod
    def pointwise(self, step: Pointwise, h: H) -> H: ...

    @abstractmethod
    def members(self, step: Members, h: H, copies: bool) -> H:
        """Usually a weighted sum of the `parts`."""

    def parts(self, step: Members, h: H, copies: bool) -> list[H]:
        """What every member makes of the units."""
        return [self.run(steps, h, copies) for steps in step.members]

    def run(self, steps: Steps, h: H, copies: bool = False) -> H:
        """One step after the other; `copies` if the units are copies of columns."""
        for step in steps:
            match step:
                case Dense() if copies:
                    h = self.look_up(step, h)
                case Dense():
                    h = self.dense(step, h)
                case Sort():
                    h = self.sort(step, h)
                case Pointwise():
                    h = self.pointwise(step, h)
                case Members():
                    h = self.members(step, h, copies)
                case _:
                    assert_never(step)
            copies = False
        return h


Kind = Literal["dense", "look_up", "sort", "pointwise", "save", "merge", "fork", "part", "join"]


@dataclass(frozen=True, eq=False)
class Instruction:
    """One entry of the list that `cpp/runtime/steps.hpp` describes.

    Parameters
    ----------
    n_in, n_out : units before and after
    weight : of dense (n_in, n_out), of look_up the tables of `Copies.interleaved`
    keep, add : factors of what was kept, and of the units, in a sum
    """

    kind: Kind
    n_in: int
    n_out: int
    weight: Reals | None = None
    bias: Reals | None = None
    group_size: int = 0
    activation: str = "relu"
    negative_slope: float = 0.0
    keep: float = 0.0
    add: float = 0.0


def flatten(steps: Steps, n_features: int, copies: Copies | None) -> list[Instruction]:
    """The instructions of steps; blocks are saved and merged, members forked and joined."""
    flat = _Flat(copies)
    flat.run(steps, n_features, copies is not None)
    return flat.instructions


class _Flat(Language[int]):
    """What is known of the units is how many they are."""

    def __init__(self, copies: Copies | None) -> None:
        self.copies = copies
        self.instructions: list[Instruction] = []

    def dense(self, step: Dense, h: int) -> int:
        return self._add(Instruction("dense", h, len(step.bias), step.weight.T, step.bias))

    def look_up(self, step: Dense, h: int) -> int:
        assert self.copies is not None
        tables = self.copies.interleaved(step.weight)
        return self._add(Instruction("look_up", h, len(step.bias), tables, step.bias))

    def sort(self, step: Sort, h: int) -> int:
        return self._add(Instruction("sort", h, h, group_size=step.group_size))

    def pointwise(self, step: Pointwise, h: int) -> int:
        name, slope = step.name, step.negative_slope
        return self._add(Instruction("pointwise", h, h, activation=name, negative_slope=slope))

    def members(self, step: Members, h: int, copies: bool) -> int:
        if step.is_residual:
            self._add(Instruction("save", h, h))
            self.run(step.members[1], h)
            return self._add(Instruction("merge", h, h, keep=step.weights[0], add=step.weights[1]))
        return self._fork(step, h, copies)

    def _fork(self, step: Members, h: int, copies: bool) -> int:
        """Members one after the other; between them the units are what they were before."""
        self._add(Instruction("fork", h, h))
        last = len(step.members) - 1
        for k, (weight, steps) in enumerate(zip(step.weights, step.members, strict=True)):
            n_out = self.run(steps, h, copies)
            kind: Kind = "join" if k == last else "part"
            after = n_out if k == last else h
            self._add(Instruction(kind, n_out, after, keep=float(k > 0), add=weight))
        return n_out

    def _add(self, instruction: Instruction) -> int:
        self.instructions.append(instruction)
        return instruction.n_out
