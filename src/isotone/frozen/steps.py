"""The steps of a frozen network: dense, sort, pointwise, blend, members, as NumPy.

They describe what `cpp/runtime` computes, and calling them computes the same bits, slowly. A
batch is held with one row per unit and one column per event. Every number is computed by the
same sequence of elementwise operations whatever the batch, so the score of an event never depends
on its neighbors; a matrix product of a library would not give that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone import limits
from isotone.checks import check_count
from isotone.elementary import EXP_ERROR, exp, horner
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

    @cached_property
    def norms(self) -> MatrixNorms:
        return MatrixNorms.of(self.weight)

    def width(self, n_in: int) -> int:
        if n_in != self.weight.shape[1]:
            raise ValueError(f"a dense step takes {self.weight.shape[1]} inputs but gets {n_in}")
        return len(self.weight)

    def work(self, n_in: int) -> int:
        """Operations for one row, here and in the other steps."""
        return self.weight.size

    def __call__(self, h: Reals) -> Reals:
        result = np.repeat(self.bias[:, None], h.shape[1], axis=1)
        return accumulate(result, self.weight, h)


@dataclass(frozen=True)
class Sort:
    """GroupSort: every group of `group_size` consecutive units in ascending order."""

    group_size: int

    def __post_init__(self) -> None:
        limits.GROUP.check(self.group_size)

    def width(self, n_in: int) -> int:
        if self.group_size < 1 or n_in % self.group_size:
            raise ValueError(f"a sort in groups of {self.group_size} does not divide {n_in} units")
        return n_in

    def work(self, n_in: int) -> int:
        digits = self.group_size.bit_length()  # a network of n wires has n log²(n) / 4 comparators
        return n_in * digits * digits // 4

    def __call__(self, h: Reals) -> Reals:
        groups = h.reshape(-1, self.group_size, h.shape[1])
        return np.sort(groups, axis=1).reshape(h.shape)


@dataclass(frozen=True)
class Pointwise:
    """An activation of every unit: one of `ACTIVATIONS`; `slope` is for negative arguments."""

    name: str
    slope: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in ACTIVATIONS:
            raise ValueError(
                f"activation {self.name!r} is unknown; choose from {sorted(ACTIVATIONS)}"
            )
        if not np.isfinite(self.slope):
            raise ValueError(f"the slope of {self.name!r} is {self.slope}; it must be finite")

    def width(self, n_in: int) -> int:
        return n_in

    def work(self, n_in: int) -> int:
        return n_in

    @property
    def constant(self) -> float:
        """Lipschitz constant."""
        return max(ACTIVATIONS[self.name].constant, abs(self.slope))

    def __call__(self, h: Reals) -> Reals:
        wide = h.astype(np.float64)
        return ACTIVATIONS[self.name].function(wide, self.slope).astype(h.dtype)


@dataclass(frozen=True)
class Blend:
    """keep · h + add · F(h), where F is a sequence of steps: a residual block."""

    keep: float
    add: float
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.keep) and np.isfinite(self.add)):
            raise ValueError(f"a blend needs finite numbers; got {self.keep} and {self.add}")
        if any(float(np.float32(number)) != number for number in (self.keep, self.add)):
            # so that every precision computes with the same two numbers
            raise ValueError(f"a blend needs float32 numbers; got {self.keep} and {self.add}")

    def width(self, n_in: int) -> int:
        n_out = width_after(self.steps, n_in)
        if n_out != n_in:
            raise ValueError(f"a blend needs a branch that keeps the width; got {n_in} to {n_out}")
        return n_in

    def work(self, n_in: int) -> int:
        return n_in + work_of(self.steps, n_in)

    def __call__(self, h: Reals) -> Reals:
        branch = np.multiply(self.add, run(self.steps, h), dtype=h.dtype)
        return np.multiply(self.keep, h, dtype=h.dtype) + branch


@dataclass(frozen=True, eq=False)
class Members:
    r"""A weighted sum of sequences of steps that start from the same units.

    .. math:: h \mapsto \sum_k w_k m_k(h)

    Products are rounded, then added in the order of the members.

    Parameters
    ----------
    weights : one per member, numbers of the network's precision
    members : at least one; each has at least one step, and all have as many outputs
    """

    weights: tuple[float, ...]
    members: tuple[tuple[Step, ...], ...]

    def __post_init__(self) -> None:
        if not self.members or not all(self.members) or len(self.weights) != len(self.members):
            raise ValueError(
                f"members need a weight and at least one step each; got {len(self.weights)} "
                f"weights for members of {[len(steps) for steps in self.members]} steps"
            )
        if not np.all(np.isfinite(self.weights)):
            raise ValueError(f"the weights of members must be finite; got {self.weights}")

    def width(self, n_in: int) -> int:
        n_out = [width_after(steps, n_in) for steps in self.members]
        if len(set(n_out)) > 1:
            raise ValueError(f"members need as many outputs as each other; got {n_out}")
        return n_out[0]

    def work(self, n_in: int) -> int:
        each = sum(work_of(steps, n_in) for steps in self.members)
        return n_in + each + len(self.members) * self.width(n_in)

    def __call__(self, h: Reals) -> Reals:
        parts = (
            np.multiply(weight, run(steps, h), dtype=h.dtype)
            for weight, steps in zip(self.weights, self.members, strict=True)
        )
        return reduce(np.add, parts)


Array = TypeVar("Array", bound=NDArray[Any])
Step = Dense | Sort | Pointwise | Blend | Members
Steps = tuple[Step, ...]


@dataclass(frozen=True)
class Activation:
    """A pointwise function with what a certificate must know of it.

    Parameters
    ----------
    function : of a float64 array and the slope for negative arguments
    constant : its Lipschitz constant at slope 0
    at_zero : bound of its absolute value at 0
    error : absolute error of the float64 computation
    """

    function: Callable[[Floats, float], Floats]
    constant: float
    at_zero: float = 0.0
    error: float = 0.0


# The formulas lose a few times the error of `exp`: every one has slope at most 1 in e^h.
_EXP_FORMULA = 16 * EXP_ERROR
LOG1P_SERIES = [2.0 / (2 * k + 1) for k in range(17)]


def _softplus(h: Floats) -> Floats:
    # log(1 + e^h) = max(h, 0) + log(1 + t) with t = e^-|h|, and s = t / (2 + t) is at most 1/3
    t = exp(-np.abs(h))
    s = t / (2.0 + t)
    return np.maximum(h, 0.0) + s * horner(LOG1P_SERIES, s * s)


ACTIVATIONS = {
    "relu": Activation(lambda h, _: np.maximum(h, 0.0), 1.0),
    "leaky_relu": Activation(lambda h, slope: np.where(h < 0, slope * h, h), 1.0),
    "abs": Activation(lambda h, _: np.abs(h), 1.0),
    "hardtanh": Activation(lambda h, _: np.clip(h, -1.0, 1.0), 1.0),
    "tanh": Activation(lambda h, _: 1.0 - 2.0 / (1.0 + exp(2.0 * h)), 1.0, error=_EXP_FORMULA),
    "sigmoid": Activation(lambda h, _: 1.0 / (1.0 + exp(-h)), 0.25, 0.5, _EXP_FORMULA),
    "softplus": Activation(lambda h, _: _softplus(h), 1.0, 0.7, _EXP_FORMULA),
}


def accumulate(result: Reals, weight: Reals, h: Reals) -> Reals:
    """Add W h to `result` in place, input after input: one order of summation for every event."""
    product = np.empty_like(result)
    for k in range(weight.shape[1]):
        np.multiply(weight[:, k, None], h[k], out=product)
        result += product
    return result


def describe(step: Step, numbers: bool) -> dict[str, Any]:
    """What a step is, as model files and JSON write it; with the weights if `numbers`."""
    match step:
        case Dense(weight, bias):
            inside = {"weight": weight.tolist(), "bias": bias.tolist()} if numbers else {}
            return {"kind": "dense", **inside}
        case Sort(group_size):
            return {"kind": "sort", "group_size": group_size}
        case Pointwise(name, slope):
            return {"kind": "pointwise", "name": name, "slope": slope}
        case Blend(keep, add, steps):
            inner = [describe(step, numbers) for step in steps]
            return {"kind": "blend", "keep": keep, "add": add, "steps": inner}
        case Members(weights, members):
            described = [[describe(step, numbers) for step in steps] for steps in members]
            return {"kind": "members", "weights": list(weights), "members": described}


def arrays_of(steps: tuple[Step, ...], prefix: str = "") -> Arrays:
    """The numbers of `steps` by the names that model files give them."""
    arrays: Arrays = {}
    for i, step in enumerate(steps):
        if isinstance(step, Dense):
            arrays |= {f"{prefix}{i}.weight": step.weight, f"{prefix}{i}.bias": step.bias}
        elif isinstance(step, Blend):
            arrays |= arrays_of(step.steps, f"{prefix}{i}.")
        elif isinstance(step, Members):
            for k, steps in enumerate(step.members):
                arrays |= arrays_of(steps, f"{prefix}{i}.{k}.")
    return arrays


def chains(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The sequences of steps inside a step."""
    match step:
        case Blend(steps=steps):
            return (steps,)
        case Members(members=members):
            return members
    return ()


def assemble(
    described: list[dict[str, Any]], arrays: Arrays, prefix: str = "", depth: int = 0
) -> tuple[Step, ...]:
    """The steps that `describe` wrote without numbers; those are taken out of `arrays`."""
    limits.STEPS.check(len(described))
    limits.DEPTH.check(depth)
    steps: list[Step] = []
    for i, entry in enumerate(described):
        match entry["kind"]:
            case "dense":
                names = f"{prefix}{i}.weight", f"{prefix}{i}.bias"
                steps.append(Dense(*(arrays.pop(name) for name in names)))
            case "sort":
                steps.append(Sort(check_count("group_size", entry["group_size"])))
            case "pointwise":
                steps.append(Pointwise(entry["name"], float(entry["slope"])))
            case "blend":
                inner = assemble(entry["steps"], arrays, f"{prefix}{i}.", depth + 1)
                steps.append(Blend(float(entry["keep"]), float(entry["add"]), inner))
            case "members":
                limits.STEPS.check(len(entry["members"]))
                members = tuple(
                    assemble(inner, arrays, f"{prefix}{i}.{k}.", depth + 1)
                    for k, inner in enumerate(entry["members"])
                )
                steps.append(Members(tuple(float(w) for w in entry["weights"]), members))
            case other:
                raise ValueError(f"a step of kind {other!r} is unknown")
    return tuple(steps)


def run(steps: tuple[Step, ...], h: Reals) -> Reals:
    """`h` taken through one step after the other."""
    for step in steps:
        h = step(h)
    return h


def width_after(steps: tuple[Step, ...], n_in: int) -> int:
    """Number of units after `steps`; raises `ValueError` where two steps do not fit."""
    for step in steps:
        n_in = step.width(n_in)
    return n_in


def work_of(steps: tuple[Step, ...], n_in: int) -> int:
    """Operations that `steps` take for one row."""
    total = 0
    for step in steps:
        total, n_in = total + step.work(n_in), step.width(n_in)
    return total


def check_nesting(steps: tuple[Step, ...]) -> None:
    """Refuse too many and too deeply nested steps, before anything descends into them."""
    layer, count, depth = list(steps), 0, 0
    while layer:
        inside = [steps for step in layer for steps in chains(step)]
        count, depth = count + len(layer) + len(inside), depth + 1
        limits.STEPS.check(count)
        limits.DEPTH.check(depth if inside else 0)
        layer = [inner for steps in inside for inner in steps]


def weights_of(steps: tuple[Step, ...]) -> list[float]:
    """The weights of all members."""
    found: list[float] = []
    for step in steps:
        found += step.weights if isinstance(step, Members) else ()
        for inner in chains(step):
            found += weights_of(inner)
    return found


def describe_shape(steps: tuple[Step, ...]) -> str:
    """Outputs of the dense steps outside blends, as 20-20-1; members are in parentheses."""
    parts = []
    for step in steps:
        match step:
            case Dense(bias=bias):
                parts.append(str(len(bias)))
            case Members(members=members):
                count = Counter(describe_shape(member) for member in members)
                parts.append(f"({' + '.join(f'{n} × {shape}' for shape, n in count.items())})")
    return "-".join(parts)


def read_only(array: Array) -> Array:
    """A copy that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array
