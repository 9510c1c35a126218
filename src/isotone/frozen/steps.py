"""The steps of a frozen network: dense, sort, pointwise, members. Checked numbers, read-only.

What is done with them, computing, bounding or writing them, is a `Language` of
`isotone.frozen.program`, which walks over them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone import limits
from isotone.checks import check_choice
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.modelfile import Arrays
from isotone.rounding import MatrixNorms
from isotone.typing import Floats, Reals


@dataclass(frozen=True, eq=False)
class StepKind(ABC):
    """What every kind of step says of itself; one that lacks an answer cannot be made.

    Its fields are what files keep of it: arrays, sequences of steps, and what JSON can hold.
    """

    kind: ClassVar[str]

    @abstractmethod
    def __str__(self) -> str: ...

    @abstractmethod
    def width(self, n_in: int) -> int:
        """Number of units after the step; raises `ValueError` where it does not fit `n_in`."""

    @abstractmethod
    def work(self, n_in: int) -> int:
        """Operations for one row."""

    @abstractmethod
    def changed(self, dense: OfDense, weights: OfWeights, inside: OfSteps) -> Step:
        """The step with other numbers: its own, and those of the steps inside."""

    @property
    def inside(self) -> tuple[Steps, ...]:
        """The sequences of steps within it."""
        return ()

    @property
    def arrays(self) -> Arrays:
        """The arrays of its own, by name."""
        return {}

    def describe(self, numbers: bool) -> dict[str, Any]:
        """What it is, as model files and JSON write it; with the arrays if `numbers`."""
        left_out = {} if numbers else self.arrays
        own: tuple[str, ...] = self.__match_args__
        names = [name for name in own if name not in left_out]
        return {"kind": self.kind} | {name: _plain(getattr(self, name), numbers) for name in names}


@dataclass(frozen=True, eq=False)
class Dense(StepKind):
    """W h + b, summed from the bias on in the order of the inputs.

    Parameters
    ----------
    weight : (n_out, n_in)
    bias : (n_out,)
    """

    weight: Reals
    bias: Reals
    kind: ClassVar[str] = "dense"

    def __post_init__(self) -> None:
        shapes = self.weight.shape, self.bias.shape
        if self.weight.ndim != 2 or self.bias.shape != self.weight.shape[:1] or 0 in shapes[0]:
            raise ValueError(f"a dense step needs shapes (n_out, n_in) and (n_out,); got {shapes}")
        limits.WIDTH.check(max(self.weight.shape))
        limits.MATRIX.check(self.weight.size)
        if not {self.weight.dtype.char, self.bias.dtype.char} <= {"f", "d"}:
            raise ValueError(f"a dense step needs float32 or float64; got {self.weight.dtype}")
        if not (np.isfinite(self.weight).all() and np.isfinite(self.bias).all()):
            raise ValueError(
                "a weight or bias is NaN or infinite; a network must have finite numbers: look at "
                "the training loss, lower the learning rate and train again"
            )
        for name in ("weight", "bias"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __reduce__(self) -> tuple[type[Dense], tuple[Reals, Reals]]:
        return Dense, (self.weight, self.bias)  # so that copies are read-only too

    def __str__(self) -> str:
        return f"dense {self.weight.shape[1]}→{self.weight.shape[0]}"

    @property
    def arrays(self) -> Arrays:
        return {"weight": self.weight, "bias": self.bias}

    @cached_property
    def norms(self) -> MatrixNorms:
        return MatrixNorms.of(self.weight)

    def width(self, n_in: int) -> int:
        if n_in != self.weight.shape[1]:
            raise ValueError(f"a dense step takes {self.weight.shape[1]} inputs but gets {n_in}")
        return len(self.weight)

    def work(self, n_in: int) -> int:
        return self.weight.size

    def changed(self, dense: OfDense, weights: OfWeights, inside: OfSteps) -> Step:
        return dense(self)


@dataclass(frozen=True)
class Sort(StepKind):
    """GroupSort: every group of `group_size` consecutive units in ascending order."""

    group_size: int
    kind: ClassVar[str] = "sort"

    def __post_init__(self) -> None:
        limits.GROUP.check(self.group_size)

    def __str__(self) -> str:
        return f"sort in groups of {self.group_size}"

    def width(self, n_in: int) -> int:
        if self.group_size < 1 or n_in % self.group_size:
            raise ValueError(f"a sort in groups of {self.group_size} does not divide {n_in} units")
        return n_in

    def work(self, n_in: int) -> int:
        digits = self.group_size.bit_length()  # a network of n wires has n log²(n) / 4 comparators
        return n_in * digits * digits // 4

    def changed(self, dense: OfDense, weights: OfWeights, inside: OfSteps) -> Step:
        return self


@dataclass(frozen=True)
class Pointwise(StepKind):
    """An activation of every unit, one of `ACTIVATIONS`.

    Parameters
    ----------
    negative_slope : that of "leaky_relu" for negative arguments
    """

    name: str
    negative_slope: float = 0.0
    kind: ClassVar[str] = "pointwise"

    def __post_init__(self) -> None:
        check_choice("activation", self.name, sorted(ACTIVATIONS))
        if not np.isfinite(self.negative_slope):
            raise ValueError(
                f"the negative slope of {self.name!r} is {self.negative_slope}; it must be finite"
            )
        object.__setattr__(self, "negative_slope", float(self.negative_slope))

    def __str__(self) -> str:
        return self.name

    def width(self, n_in: int) -> int:
        return n_in

    def work(self, n_in: int) -> int:
        return n_in

    def changed(self, dense: OfDense, weights: OfWeights, inside: OfSteps) -> Step:
        return self

    @property
    def constant(self) -> float:
        """Lipschitz constant."""
        return max(ACTIVATIONS[self.name].constant, abs(self.negative_slope))


@dataclass(frozen=True, eq=False)
class Members(StepKind):
    r"""A weighted sum of sequences of steps that start from the same units.

    .. math:: h \mapsto \sum_k w_k m_k(h)

    Products are rounded, then added in the order of the members. A member without steps is the
    identity: a residual block is a sum of that and of its branch.

    Parameters
    ----------
    weights : one per member, numbers of the network's precision
    members : at least one; all have the same number of outputs
    """

    weights: tuple[float, ...]
    members: tuple[Steps, ...]
    kind: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        if not self.members or len(self.weights) != len(self.members):
            raise ValueError(
                "there must be at least one member, and one weight per member; got "
                f"{len(self.weights)} weights for {len(self.members)} members"
            )
        if not np.all(np.isfinite(self.weights)):
            raise ValueError(f"the weights of members must be finite; got {self.weights}")
        object.__setattr__(self, "weights", tuple(map(float, self.weights)))

    def __str__(self) -> str:
        chain = " · ".join(map(str, self.members[-1])) or "identity"
        if self.is_residual:
            return f"residual block with {chain}"
        if len(self.members) == 1:
            return f"one weighted member: {chain}"
        return f"sum of {len(self.members)} members such as {chain}"

    @property
    def inside(self) -> tuple[Steps, ...]:
        return self.members

    @property
    def is_residual(self) -> bool:
        """Whether it is the sum of its units and one branch."""
        return len(self.members) == 2 and not self.members[0]

    def width(self, n_in: int) -> int:
        n_out = [width_after(steps, n_in) for steps in self.members]
        if len(set(n_out)) > 1:
            raise ValueError(f"all members must have the same number of outputs; got {n_out}")
        return n_out.pop()

    def work(self, n_in: int) -> int:
        each = sum(work_of(steps, n_in) for steps in self.members)
        return n_in + each + len(self.members) * self.width(n_in)

    def changed(self, dense: OfDense, weights: OfWeights, inside: OfSteps) -> Step:
        found = weights(np.array(self.weights)).tolist()
        return Members(tuple(found), tuple(inside(member) for member in self.members))


Step = Dense | Sort | Pointwise | Members
Steps = tuple[Step, ...]
OfDense = Callable[[Dense], Dense]
OfWeights = Callable[[Floats], Reals]
OfSteps = Callable[[Steps], Steps]
Array = TypeVar("Array", bound=NDArray[Any])


def residual_block(keep: float, add: float, branch: Sequence[Step]) -> Members:
    """keep · h + add · F(h), where F is a sequence of steps."""
    return Members((keep, add), ((), tuple(branch)))


def average(members: Sequence[Sequence[Step]], shares: Sequence[float]) -> Members:
    """The weighted mean of networks; its bounds of slopes are the means of theirs.

    Weights that add up to more than 1 by rounding are rounded toward zero.
    """
    weights = tuple(float(share) for share in shares)
    while sum(map(Fraction, weights)) > 1:
        weights = tuple(math.nextafter(weight, 0.0) for weight in weights)
    return Members(weights, tuple(tuple(steps) for steps in members))


def describe(steps: Steps, numbers: bool) -> list[dict[str, Any]]:
    """What steps are, as model files and JSON write it; with the weights if `numbers`."""
    return [step.describe(numbers) for step in steps]


def _plain(value: Any, numbers: bool) -> Any:
    """The value of a field as JSON can hold it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(entry, numbers) for entry in value]
    return value.describe(numbers) if isinstance(value, StepKind) else value


def arrays_of(steps: Steps, prefix: str = "") -> Arrays:
    """The numbers of `steps` by the names that model files give them."""
    arrays: Arrays = {}
    for i, step in enumerate(steps):
        arrays |= {f"{prefix}{i}.{name}": array for name, array in step.arrays.items()}
        for k, inside in enumerate(step.inside):
            arrays |= arrays_of(inside, f"{prefix}{i}.{k}.")
    return arrays


def width_after(steps: Steps, n_in: int) -> int:
    """Number of units after `steps`; raises `ValueError` where two steps do not fit."""
    for step in steps:
        n_in = step.width(n_in)
    return n_in


def work_of(steps: Steps, n_in: int) -> int:
    """Operations that `steps` take for one row."""
    total = 0
    for step in steps:
        total, n_in = total + step.work(n_in), step.width(n_in)
    return total


def check_nesting(steps: Steps) -> None:
    """Refuse too many and too deeply nested steps, before anything descends into them."""
    layer, count, depth = list(steps), 0, 0
    while layer:
        inside = [steps for step in layer for steps in step.inside]
        count, depth = count + len(layer) + len(inside), depth + 1
        limits.STEPS.check(count)
        if inside:
            limits.DEPTH.check(depth)
        layer = [inner for steps in inside for inner in steps]


def weights_of(steps: Steps) -> list[float]:
    """The weights of all members."""
    found: list[float] = []
    for step in steps:
        found += step.weights if isinstance(step, Members) else ()
        for inside in step.inside:
            found += weights_of(inside)
    return found


def starts_dense(steps: Steps) -> bool:
    """Whether the features enter dense steps only."""
    return _is_dense(steps, 0)


def ends_dense(steps: Steps) -> bool:
    """Whether the outputs come from dense steps only."""
    return _is_dense(steps, -1)


def _is_dense(steps: Steps, place: int) -> bool:
    step = steps[place] if steps else None
    if isinstance(step, Members):
        return all(_is_dense(member, place) for member in step.members)
    return isinstance(step, Dense)


def rebuild(steps: Steps, dense: OfDense, weights: OfWeights) -> Steps:
    """The steps with other numbers: functions of every dense step, and of all member weights."""
    inside = partial(rebuild, dense=dense, weights=weights)
    return tuple(step.changed(dense, weights, inside) for step in steps)


def change_first(steps: Steps, dense: OfDense) -> Steps:
    """The steps with another first one, which is dense, or of members that of each."""
    return _change(steps, 0, dense, partial(change_first, dense=dense))


def change_last(steps: Steps, dense: OfDense) -> Steps:
    """The steps with another last matrix, of members that of each."""
    places = [k for k, step in enumerate(steps) if isinstance(step, Dense | Members)]
    return _change(steps, places[-1] if places else -1, dense, partial(change_last, dense=dense))


def _change(steps: Steps, place: int, dense: OfDense, inside: OfSteps) -> Steps:
    step = steps[place] if steps else None
    if not isinstance(step, Dense | Members):
        raise ValueError(f"a dense step is needed at this end of the network; got {step}")
    changed = step.changed(dense, lambda weights: weights, inside)
    return (*steps[:place], changed, *steps[place + 1 :])


def describe_shape(steps: Steps) -> str:
    """Outputs of the dense steps outside residual blocks, as 20-20-1; members in parentheses."""
    parts = []
    for step in steps:
        if isinstance(step, Dense):
            parts.append(str(len(step.bias)))
        elif isinstance(step, Members) and not step.is_residual:
            count = Counter(describe_shape(member) for member in step.members)
            parts.append(f"({' + '.join(f'{n} × {shape}' for shape, n in count.items())})")
    return "-".join(parts)


def read_only(array: Array) -> Array:
    """A copy that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array
