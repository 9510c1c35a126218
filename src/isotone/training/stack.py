"""What the members of a stack have in common, checked: layers, groups, fields, masks and loss."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone import limits
from isotone.checks import check_choice, check_count, check_divides
from isotone.compiled import engine
from isotone.training.fields import Field
from isotone.typing import Bools, Floats

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


def why_too_large(layers: Sequence[int]) -> str | None:
    """Why the fused backend cannot train networks of these widths, or None."""
    n_layers = len(layers) - 1
    n_parameters = sum((n_in + 1) * n_out for n_in, n_out in pairwise(layers))
    if n_layers > engine.MAX_LAYERS or n_parameters > engine.MAX_PARAMETERS:
        return f"it is for small networks, not for {n_layers} layers of {n_parameters} numbers"
    return None


def flat_mask(
    masks: Sequence[ArrayLike | None], layers: list[int], by_feature: bool
) -> NDArray[np.uint8] | None:
    """0 where a parameter of the layers is zero and stays so, or None if there is no mask.

    Parameters
    ----------
    by_feature : whether the first weights are stored so, as those are that are looked up
    """
    if all(mask is None for mask in masks):
        return None
    parts = []
    for k, mask in enumerate(_check_masks(masks, layers)):
        weights = mask.T if by_feature and k == 0 else mask
        parts += [weights.ravel(), np.ones(len(mask), bool)]
    return np.concatenate(parts).astype(np.uint8)


def _check_masks(masks: Sequence[ArrayLike | None], layers: list[int]) -> list[Bools]:
    """Per layer the weights that it may have, (n_out, n_in)."""
    shapes = [(n_out, n_in) for n_in, n_out in pairwise(layers)]
    found = [
        np.ones(shape, bool) if mask is None else np.asarray(mask, bool)
        for mask, shape in zip(masks, shapes, strict=False)
    ]
    if [mask.shape for mask in found] != shapes or len(masks) != len(shapes):
        raise ValueError(
            f"`masks` have shapes {[mask.shape for mask in found]}; layers {layers} need one for "
            f"each of the weights {shapes}, or None"
        )
    return found


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


def adam_schedule(
    steps: range, learning_rates: float | ArrayLike, betas: tuple[float, float], decay: float
) -> Floats:
    """What Adam needs at every step: its size, its correction and the decay, (n_steps, 3)."""
    rates = np.asarray(learning_rates, dtype=np.float64)
    if rates.shape not in ((), (len(steps),)):
        raise ValueError(
            f"`learning_rates` has shape {rates.shape} but the epoch has {len(steps)} steps; "
            "give one number, or one per step"
        )
    if not np.all((rates >= 0) & np.isfinite(rates)):
        raise ValueError("`learning_rates` must be finite and not negative")
    rates = np.broadcast_to(rates, (len(steps),))
    first, second = ([1.0 - beta**step for step in steps] for beta in betas)
    return np.stack([rates / first, np.sqrt(second), 1 - rates * decay], axis=1)
