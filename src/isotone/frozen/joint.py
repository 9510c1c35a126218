"""Joint directions: several columns of raw rows that move together, each at its own rate.

``{"income": 1, "debt": -1}`` is the direction in which income rises by as much as debt falls.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from isotone import limits
from isotone.checks import is_number, suggest
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category
from isotone.inputs.scaling import Scaling

JointDirection = Mapping[str, float]

_LARGEST = sys.float_info.max


def check_joint_cst(
    value: Any, inputs: Inputs, scaling: Scaling, n_outputs: int, of_classes: bool
) -> tuple[dict[str, float], ...]:
    """Directions that a network may declare, or `ValueError`."""
    if not isinstance(value, tuple | list):
        raise ValueError(
            f"`joint_cst` is {value!r:.100}; it must be a list of directions, each of them a "
            "dictionary of rates"
        )
    directions = tuple(value)
    limits.JOINT.check(len(directions))
    limits.JOINT_VERDICTS.check(len(directions) * n_outputs)
    if directions and of_classes:
        raise ValueError(
            f"`joint_cst` is about single outputs, and there are {n_outputs} classes; leave it out"
        )
    return tuple(check_joint(direction, inputs, scaling) for direction in directions)


def check_joint(value: Any, inputs: Inputs, scaling: Scaling) -> dict[str, float]:
    """A direction of columns that enter a network on a straight line, or `ValueError`."""
    direction = check_rates(value)
    for name in direction:
        if name not in inputs.names:
            hint = suggest(name, inputs.names, "use one of the columns of the model")
            raise ValueError(
                f"a joint direction names {name!r:.100}, but the model has no such column: {hint}"
            )
        place = inputs.places[inputs.names.index(name)]
        is_category = isinstance(inputs.column(name), Category)
        if is_category or inputs.counts[place] > 1 or scaling.log[inputs.firsts[place]]:
            raise ValueError(
                f"a joint direction names {name!r:.100}, which is a category, has knots or is "
                "taken as a logarithm; its columns must enter the network on a straight line"
            )
    return direction


def check_rates(value: Any) -> dict[str, float]:
    """Rates by name that are not zero, or `ValueError`."""
    rates = dict(value) if isinstance(value, Mapping) else {}
    is_sound = all(
        isinstance(name, str) and is_number(rate) and abs(rate) <= _LARGEST
        for name, rate in rates.items()
    )
    moving = {  # not those that stand still
        name: float(rate) for name, rate in rates.items() if is_sound and rate
    }
    if not moving:
        raise ValueError(
            f"a joint direction is {value!r:.100}; it must give columns finite numbers, not all "
            'of them zero: such as {"income": 1, "debt": -1}'
        )
    limits.JOINT_COLUMNS.check(len(moving))
    return moving


def describe_joint(direction: JointDirection) -> str:
    """In words, with every digit: income + 1, debt - 0.5."""
    return ", ".join(
        f"{name:.100} {'+' if rate > 0 else '-'} {_short(abs(rate))}"
        for name, rate in direction.items()
    )


def _short(number: float) -> str:
    return repr(number).removesuffix(".0")
