"""The steps of a frozen network: dense, sort, pointwise, members. Checked numbers, read-only.

What is done with them, computing, bounding or writing them, is a `Language` of
`isotone.frozen.program`, which walks over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone import limits
from isotone.checks import check_choice, check_count
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.modelfile import Arrays
from isotone.rounding import MatrixNorms
from isotone.typing import Floats, Reals


@dataclass(frozen=True, eq=False)
class Dense:
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
        if {self.weight.dtype, self.bias.dtype} - {np.dtype("f4"), np.dtype("f8")}:
            raise ValueError(f"a dense step needs float32 or float64; got {self.weight.dtype}")
        if not (np.all(np.isfinite(self.weight)) and np.all(np.isfinite(self.bias))):
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

    @cached_property
    def norms(self) -> MatrixNorms:
        return MatrixNorms.of(self.weight)

    def width(self, n_in: int) -> int:
        """Number of units after the step, here and in the other steps."""
        if n_in != self.weight.shape[1]:
            raise ValueError(f"a dense step takes {self.weight.shape[1]} inputs but gets {n_in}")
        return len(self.weight)

    def work(self, n_in: int) -> int:
        """Operations for one row, here and in the other steps."""
        return self.weight.size


@dataclass(frozen=True)
class Sort:
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


@dataclass(frozen=True)
class Pointwise:
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
                f"the slope of {self.name!r} is {self.negative_slope}; it must be finite"
            )

    def __str__(self) -> str:
        return self.name

    def width(self, n_in: int) -> int:
        return n_in

    def work(self, n_in: int) -> int:
        return n_in

    @property
    def constant(self) -> float:
        """Lipschitz constant."""
        return max(ACTIVATIONS[self.name].constant, abs(self.negative_slope))


@dataclass(frozen=True, eq=False)
class Members:
    r"""A weighted sum of sequences of steps that start from the same units.

    .. math:: h \mapsto \sum_k w_k m_k(h)

    Products are rounded, then added in the order of the members. A member without steps is the
    identity: a residual block is a sum of that and of its branch.

    Parameters
    ----------
    weights : one per member, numbers of the network's precision
    members : at least one; all have as many outputs
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

    def __str__(self) -> str:
        chain = " · ".join(map(str, self.members[-1])) or "identity"
        if self.is_residual:
            return f"residual block with {chain}"
        if len(self.members) == 1:
            return f"one weighted member: {chain}"
        return f"sum of {len(self.members)} members such as {chain}"

    @property
    def is_residual(self) -> bool:
        """Whether it is the sum of its units and one branch."""
        return len(self.members) == 2 and not self.members[0]

    def width(self, n_in: int) -> int:
        n_out = [width_after(steps, n_in) for steps in self.members]
        if len(set(n_out)) > 1:
            raise ValueError(f"members need as many outputs as each other; got {n_out}")
        return n_out[0]

    def work(self, n_in: int) -> int:
        each = sum(work_of(steps, n_in) for steps in self.members)
        return n_in + each + len(self.members) * self.width(n_in)


Step = Dense | Sort | Pointwise | Members
Steps = tuple[Step, ...]
Array = TypeVar("Array", bound=NDArray[Any])


def residual_block(keep: float, add: float, branch: Sequence[Step]) -> Members:
    """keep · h + add · F(h), where F is a sequence of steps."""
    return Members((keep, add), ((), tuple(branch)))


def describe(steps: Steps, numbers: bool) -> list[dict[str, Any]]:
    """What steps are, as model files and JSON write it; with the weights if `numbers`."""
    return [{"kind": step.kind} | _content(step, numbers) for step in steps]


def _content(step: Step, numbers: bool) -> dict[str, Any]:
    if isinstance(step, Members):
        inside = [describe(steps, numbers) for steps in step.members]
        return {"weights": list(step.weights), "members": inside}
    if isinstance(step, Dense):
        arrays = {"weight": step.weight.tolist(), "bias": step.bias.tolist()}
        return arrays if numbers else {}
    return asdict(step)


def arrays_of(steps: Steps, prefix: str = "") -> Arrays:
    """The numbers of `steps` by the names that model files give them."""
    arrays: Arrays = {}
    for i, step in enumerate(steps):
        if isinstance(step, Dense):
            arrays |= {f"{prefix}{i}.weight": step.weight, f"{prefix}{i}.bias": step.bias}
        for k, inside in enumerate(members_of(step)):
            arrays |= arrays_of(inside, f"{prefix}{i}.{k}.")
    return arrays


def members_of(step: Step) -> tuple[Steps, ...]:
    """The sequences of steps inside a step."""
    return step.members if isinstance(step, Members) else ()


# Finds an array of a described dense step, by the name that model files give it.
Find = Callable[[dict[str, Any], str], Any]


def assemble(
    described: list[dict[str, Any]], find: Find, prefix: str = "", depth: int = 0
) -> Steps:
    """The steps that `describe` wrote; `find` gives the numbers of the dense ones."""
    limits.STEPS.check(len(described))
    limits.DEPTH.check(depth)
    return tuple(_step(entry, find, f"{prefix}{i}.", depth) for i, entry in enumerate(described))


def _step(entry: dict[str, Any], find: Find, prefix: str, depth: int) -> Step:
    match entry["kind"]:
        case "dense":
            return Dense(*(find(entry, prefix + name) for name in ("weight", "bias")))
        case "sort":
            return Sort(check_count("group_size", entry["group_size"]))
        case "pointwise":
            # format version 1 called it the slope
            slope = entry["slope"] if "slope" in entry else entry["negative_slope"]
            return Pointwise(entry["name"], float(slope))
        case "members":
            limits.STEPS.check(len(entry["members"]))
            members = (
                assemble(inner, find, f"{prefix}{k}.", depth + 1)
                for k, inner in enumerate(entry["members"])
            )
            return Members(tuple(float(w) for w in entry["weights"]), tuple(members))
        case "blend":  # of format version 1
            branch = assemble(entry["steps"], find, prefix, depth + 1)
            return residual_block(float(entry["keep"]), float(entry["add"]), branch)
        case other:
            raise ValueError(f"a step of kind {other!r} is unknown")


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
        inside = [steps for step in layer for steps in members_of(step)]
        count, depth = count + len(layer) + len(inside), depth + 1
        limits.STEPS.check(count)
        limits.DEPTH.check(depth if inside else 0)
        layer = [inner for steps in inside for inner in steps]


def weights_of(steps: Steps) -> list[float]:
    """The weights of all members."""
    found: list[float] = []
    for step in steps:
        found += step.weights if isinstance(step, Members) else ()
        for inside in members_of(step):
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


def rebuild(
    steps: Steps, dense: Callable[[Dense], Dense], weights: Callable[[Floats], Reals]
) -> Steps:
    """The steps with other numbers: functions of every dense step, and of all member weights."""
    return tuple(_rebuilt(step, dense, weights) for step in steps)


def _rebuilt(
    step: Step, dense: Callable[[Dense], Dense], weights: Callable[[Floats], Reals]
) -> Step:
    if isinstance(step, Members):
        found = weights(np.array(step.weights)).tolist()
        return Members(tuple(found), tuple(rebuild(m, dense, weights) for m in step.members))
    return dense(step) if isinstance(step, Dense) else step


def change_first(steps: Steps, dense: Callable[[Dense], Dense]) -> Steps:
    """The steps with another first one, which is dense, or of members that of each."""
    return _change(steps, 0, change_first, dense)


def change_last(steps: Steps, dense: Callable[[Dense], Dense]) -> Steps:
    """The steps with another last matrix, of members that of each."""
    places = [k for k, step in enumerate(steps) if isinstance(step, Dense | Members)]
    return _change(steps, places[-1] if places else 0, change_last, dense)


def _change(
    steps: Steps,
    place: int,
    again: Callable[[Steps, Callable[[Dense], Dense]], Steps],
    dense: Callable[[Dense], Dense],
) -> Steps:
    step = steps[place] if steps else None
    if isinstance(step, Members):
        changed: Step = Members(step.weights, tuple(again(m, dense) for m in step.members))
    elif isinstance(step, Dense):
        changed = dense(step)
    else:
        raise ValueError(f"a dense step is needed at this end of the network; got {step}")
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
