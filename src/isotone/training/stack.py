"""What the members of a stack have in common, checked: layers, groups, fields and loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from isotone import limits
from isotone.checks import check_choice, check_count, check_divides
from isotone.compiled import engine
from isotone.training.fields import Field

FusedLoss = Literal["cross_entropy", "squared_error", "absolute_error", "hinge", "quantile"]

_SCALAR_LOSSES = ("hinge",)
LABEL_LOSSES = ("cross_entropy", "hinge")


def check_fields(fields: Sequence[int | Field], n_features: int) -> tuple[Field, ...]:
    """Fields of all features, or none if each of them is of one feature."""
    own = [field if isinstance(field, Field) else Field(field) for field in fields]
    n_own = sum(check_count("fields", field.n_features) for field in own)
    if own and n_own != n_features:
        raise ValueError(
            f"`fields` have {n_own} features in all but the networks have {n_features}; "
            "they must agree"
        )
    return tuple(own) if any(field.n_features > 1 for field in own) else ()


def check_layers(layers: Sequence[int]) -> list[int]:
    if not 2 <= len(layers) <= engine.MAX_LAYERS + 1:
        raise ValueError(
            f"`layers={list(layers)}` must name the numbers of features, of hidden units and of "
            f"outputs, for between 1 and {engine.MAX_LAYERS} layers"
        )
    counts = [check_count("layers", width) for width in layers]
    n_parameters = sum((n_in + 1) * n_out for n_in, n_out in pairwise(counts))
    if n_parameters > engine.MAX_PARAMETERS:
        raise ValueError(
            f"`layers={counts}` make {n_parameters} parameters but at most "
            f"{engine.MAX_PARAMETERS} are possible here; train large networks with torch"
        )
    return counts


def group_sizes_of(layers: list[int], group_size: int | None) -> list[int]:
    """Per layer the size of the groups that are sorted after it; 1 after the last."""
    for width in layers[1:-1]:
        if group_size is not None:
            check_divides(check_count("group_size", group_size), width)
        limits.GROUP.check(group_size or width)
    return [*(group_size or width for width in layers[1:-1]), 1]


def check_loss(loss: FusedLoss, n_outputs: int) -> FusedLoss:
    check_choice("loss", loss, get_args(FusedLoss))
    if loss in _SCALAR_LOSSES and n_outputs != 1:
        raise ValueError(
            f"`loss={loss!r}` is for one output but the network has {n_outputs}; let `layers` end "
            "in 1, or take another loss"
        )
    return loss


def check_within(name: str, value: float, below: float = np.inf) -> float:
    if not 0.0 <= value < below:
        raise ValueError(f"`{name}` holds {value!r}; it must be at least 0 and below {below}")
    return float(value)
