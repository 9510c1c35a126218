"""Interactions: `interaction_cst` of an estimator as groups of columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from isotone.estimators.columns import position
from isotone.frozen.joint import JointDirection
from isotone.losses import Loss, Quantile
from isotone.nn.interactions import (
    Groups,
    Interactions,
    check_groups,
    list_groups,
    simplify,
)


def groups_of(
    value: Interactions, labels: Sequence[Any] | None, features: Sequence[str]
) -> Groups:
    """Groups of columns by position, none within another; one of all columns for None.

    Parameters
    ----------
    labels : of the columns of a frame; None for an array, whose columns have positions only
    """
    if value is not None and not isinstance(value, str):
        value = [
            [position("interaction_cst", entry, labels, features) for entry in group]
            for group in list_groups(value)
        ]
    return simplify(check_groups(value, len(features)))


def refuse_sorted_sums(groups: Groups, loss: Loss) -> None:
    """Raise `ValueError` for quantiles whose order would make columns interact."""
    levels = loss.level if isinstance(loss, Quantile) else ()
    if len(groups) > 1 and isinstance(levels, tuple) and len(levels) > 1:
        raise ValueError(
            f"`interaction_cst` asks for a sum of functions of columns but {len(levels)} "
            "quantiles that never cross are sorted, which would mix them; fit one level at a time"
        )


def refuse_apart(
    groups: Groups, joint_cst: Sequence[JointDirection], features: Sequence[str]
) -> None:
    """Raise `ValueError` for joint directions of columns that may not interact."""
    for joined, group in product(_connected(joint_cst), groups):
        own = {features.index(name) for name in joined}
        if own & set(group) and not own <= set(group):
            raise ValueError(
                f"`joint_cst` joins the columns {', '.join(sorted(joined))}, but "
                "`interaction_cst` has a group with only some of them; each group must have all "
                "of them or none: add the others"
            )


def _connected(joint_cst: Sequence[JointDirection]) -> list[set[str]]:
    """Columns that directions join, also by way of others."""
    found: list[set[str]] = []
    for direction in joint_cst:
        touched = [names for names in found if names & set(direction)]
        found = [names for names in found if names not in touched]
        found.append(set(direction).union(*touched))
    return found
