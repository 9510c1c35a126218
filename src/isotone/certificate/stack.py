"""Stack: members of equal shape as one, so that bounds on all of them take the time of one.

A bound is a handful of numbers, and its time is the number of calls of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from weakref import WeakKeyDictionary

import numpy as np

from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step
from isotone.rounding import MatrixNorms


class Stack(Dense):
    """The same dense step of several members: its arrays have a leading axis for them."""

    def __init__(self, steps: Sequence[Dense]) -> None:
        for name in ("weight", "bias"):
            object.__setattr__(self, name, np.array([getattr(step, name) for step in steps]))
        object.__setattr__(self, "norms", MatrixNorms.stack([step.norms for step in steps]))


_found: WeakKeyDictionary[Members, Members | None] = WeakKeyDictionary()


def side_by_side(step: Members) -> Members:
    """One member for all of them, if they have the same steps and the first is dense."""
    if step not in _found:
        _found[step] = _stacked(step)
    return _found[step] or step


def _stacked(step: Members) -> Members | None:
    common = [_common(steps) for steps in zip_longest(*step.members)]
    found = tuple(step for step in common if step is not None)
    alike = len(found) == len(common) > 0 and isinstance(found[0], Dense)
    return Members((1.0,), (found,)) if alike else None


def _common(steps: Sequence[Step | None]) -> Step | None:
    """One step for all of these; None if they differ, or contain others."""
    dense = [step for step in steps if isinstance(step, Dense)]
    if len(dense) == len(steps) and len({step.weight.shape for step in dense}) == 1:
        return Stack(dense)
    first, *others = set(steps)
    return first if isinstance(first, Sort | Pointwise) and not others else None
