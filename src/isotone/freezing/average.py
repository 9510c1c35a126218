"""Averaging: one sequence of steps that computes the mean of several, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.linalg import block_diag

from isotone.frozen.steps import Dense, Pointwise, Sort, Step
from isotone.typing import Metric

_ORDER: dict[str, float] = {"1": np.inf, "2": 2.0, "inf": 1.0}  # dual to the metric
_HOMOGENEOUS = ("relu", "leaky_relu", "abs")


def average(
    members: Sequence[Sequence[Step]], chain: Literal["one", "inf"], metric: Metric
) -> list[Step]:
    """The mean of networks of one shape as one network, whose slope bound is the mean of theirs.

    Every member works on units of its own: the first matrices stand above each other, the last
    ones beside each other, those in between on the diagonal. A bound in the 1-norm then adds up
    the first matrices and takes the largest of the others, so all of a member's size is put into
    its first matrix; a bound in the ∞-norm adds up the last ones, so it is put there.
    """
    heavy = 0 if chain == "one" else -1
    balanced = [_balance(list(steps), heavy, metric) for steps in members]
    n_steps = len(balanced[0])
    if any(len(steps) != n_steps for steps in balanced):
        raise ValueError("networks that are averaged must be alike; these have different depths")
    return [
        _side_by_side([steps[k] for steps in balanced], k == 0, k == n_steps - 1)
        for k in range(n_steps)
    ]


def _balance(steps: list[Step], heavy: int, metric: Metric) -> list[Step]:
    """The same function with all matrices but one of size 1; sorting is homogeneous."""
    dense = [k for k, step in enumerate(steps) if isinstance(step, Dense)]
    sizes = {k: _size(steps[k], _ORDER[metric if k == dense[0] else "inf"]) for k in dense}
    if heavy == 0:
        sizes = {k: _size(steps[k], None) for k in dense}
    if any(size == 0 for size in sizes.values()):
        return steps
    factors = {k: 1.0 / size for k, size in sizes.items()}
    factors[dense[heavy]] = float(np.prod([sizes[k] for k in dense if k != dense[heavy]]))
    grown, result = 1.0, list(steps)
    for k, step in enumerate(steps):
        if isinstance(step, Dense):
            grown *= factors[k]
            result[k] = Dense(step.weight * factors[k], step.bias * grown)
        elif isinstance(step, Pointwise) and step.name not in _HOMOGENEOUS:
            raise ValueError(
                f"networks with {step.name} cannot be averaged into one; use GroupSort"
            )
    return result


def _size(step: Step, order: float | None) -> float:
    """Largest norm of a row, of the given order; or largest column sum."""
    assert isinstance(step, Dense)
    if order is None:
        return float(np.abs(step.weight).sum(axis=0).max())
    return float(np.linalg.norm(step.weight, ord=order, axis=1).max())


def _side_by_side(steps: list[Step], first: bool, last: bool) -> Step:
    if all(isinstance(step, Sort | Pointwise) and step == steps[0] for step in steps):
        return steps[0]
    dense = [step for step in steps if isinstance(step, Dense)]
    if len(dense) < len(steps) or len({step.weight.shape for step in dense}) > 1:
        raise ValueError("networks that are averaged must be alike, and have no residual blocks")
    weights = [step.weight for step in dense]
    biases = [step.bias for step in dense]
    if first and last:
        return Dense(np.mean(weights, axis=0), np.mean(biases, axis=0))
    if first:
        return Dense(np.concatenate(weights), np.concatenate(biases))
    if last:
        return Dense(np.concatenate(weights, axis=1) / len(steps), np.mean(biases, axis=0))
    return Dense(block_diag(*weights), np.concatenate(biases))
