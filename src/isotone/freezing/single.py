r"""Single precision, monotone to the last bit: the finest grid that can be proved.

The condition is :math:`(\lambda - L)\,q \ge 2E`, where E does not contain the final rounding, see
`isotone.certificate.ordered`. What is done here makes E small:

- the residual gets few bits, so that :math:`\sum_i r_i u_i` is exact;
- so does the first dense step, rounded toward zero, if that costs little;
- features can be centered within their `ranges`, so that a small clip holds them all.

Grids are tried from the finest on, until the margin 2E / q is a small share of λ.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from isotone.certificate.certify import certify
from isotone.certificate.ordered import find_errors
from isotone.elementary import divides
from isotone.freezing.margin import (
    TRUNCATE,
    certified,
    dense_first,
    shrink_factors,
    store,
)
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Members, Steps, change_first, change_last, ends_dense
from isotone.rounding import divide, multiples_toward_zero, multiply, toward_zero
from isotone.typing import Floats

CLIP = 32.0  # scaled units
MARGIN = 2.0**-6  # share of λ that the grid may cost
TRUNCATED = 2.0**-7  # share of the sums of a first step that few bits may cost
FINEST, COARSEST = -20, 0  # exponents of grids
_DIGITS = 24


def to_single(
    frozen: FrozenNetwork,
    clip: float | None = None,
    grid: float | None = None,
    ranges: ArrayLike | None = None,
) -> FrozenNetwork:
    """The network in float32, with its certificate inside.

    Parameters
    ----------
    frozen : certified, best in float64
    clip : scaled inputs are clamped to this; by default to what holds the `ranges`, or to that of
        the network, but at most 32
    grid : the finest that can be proved by default
    ranges : (n_features, 2), smallest and largest raw number of every feature; or (n_features, 3),
        also a typical one, such as the median: what the margin takes from the slope of g hardly
        moves scores there. Without ranges scaled inputs of zero are taken as typical
    """
    if not certify(frozen).holds:
        raise ValueError(
            "the network fails its certificate, and float32 must not hide that; freeze the "
            "trained network again"
        )
    steps = store(dense_first(frozen), "float64")
    frozen = replace(frozen, steps=steps, precision="float64")
    typical = np.zeros(frozen.n_features)
    if ranges is not None:
        frozen, typical, reach = center(frozen, ranges)
        clip = reach if clip is None else clip
    clip = min(CLIP, frozen.clip) if clip is None else clip
    for candidate in _grids(replace(frozen, clip=clip, grid=None)) if grid is None else [grid]:
        on_grid = replace(frozen, clip=clip, grid=candidate)
        found = _leave_margin(on_grid, typical, math.inf if grid else MARGIN)
        if found is not None:
            return certified(found)[0]
    raise ValueError(
        f"no grid up to {2.0**COARSEST:g} gives a proof in float32 with inputs clamped to "
        f"±{clip:g}; choose a smaller clip, give the ranges of all features, or keep float64"
    )


def center(frozen: FrozenNetwork, ranges: ArrayLike) -> tuple[FrozenNetwork, Floats, float]:
    """The same function of raw rows with every range around zero.

    Also gives the typical scaled inputs, by default the middle, and the clip that holds them all.
    """
    ends = np.array(ranges, np.float64)
    shapes = [(frozen.n_features, 2), (frozen.n_features, 3)]
    if ends.shape not in shapes or not np.all(ends[:, 0] < ends[:, 1]):
        raise ValueError(
            f"`ranges` has shape {ends.shape}; it needs a smaller and a larger number for each of "
            f"{frozen.n_features} features: np.stack([X.min(axis=0), X.max(axis=0)], axis=1)"
        )
    if not _ends_in_sum(frozen.steps) or frozen.copies is not None:
        raise ValueError(
            "`ranges` need a network that ends with a dense step and has no knots; leave them out"
        )
    scaled = frozen.scaling.transform(ends.T)
    shift = np.rint((scaled[0] + scaled[1]) / 2)
    reach = float(np.ceil(np.abs(scaled[:2] - shift).max()))
    typical = scaled[2] - shift if len(scaled) == 3 else np.zeros(frozen.n_features)
    return _move(frozen, shift), typical, reach


def _ends_in_sum(steps: Steps) -> bool:
    """Whether a number can be added to the last bias, or to that of every averaged member."""
    last = steps[-1]
    return ends_dense(steps) and (
        isinstance(last, Dense)
        or (isinstance(last, Members) and abs(sum(last.weights) - 1) < 1e-9)
    )


def _move(frozen: FrozenNetwork, shift: Floats) -> FrozenNetwork:
    """The same function with scaled inputs that are less by `shift`."""
    scaling, after = frozen.scaling, frozen.residual @ shift
    moved = replace(scaling, center=scaling.center + shift / scaling.factor)
    steps = change_first(
        frozen.steps, lambda step: Dense(step.weight, step.bias + step.weight @ shift)
    )
    steps = change_last(steps, lambda step: Dense(step.weight, step.bias + after))
    return replace(frozen, scaling=moved, steps=steps)


def _grids(frozen: FrozenNetwork) -> list[float]:
    """Those that divide the clip, from the finest on whose margin may be small enough.

    Errors on the coarsest grid are the least ones: more sums are exact there.
    """
    grids = [2.0**k for k in range(FINEST, COARSEST + 1) if divides(2.0**k, frozen.clip)]
    if not grids or not np.any(frozen.monotonic_cst):
        return grids
    coarse = _rounded(replace(frozen, grid=grids[-1]), np.ones(len(frozen.lipschitz)))
    room = _least_residual(coarse)[np.any(frozen.monotonic_cst != 0, axis=0)].min()
    least = 2.0 * float(find_errors(coarse).order.max()) / (MARGIN * room)
    return [grid for grid in grids if grid >= 0.5 * least]


def _leave_margin(frozen: FrozenNetwork, typical: Floats, most: float) -> FrozenNetwork | None:
    """The network in float32 with the margin that it needs, or nothing where it is too large.

    Columns of the first step are shrunk until slopes of what is stored leave the margin.
    """
    grid = frozen.grid
    assert grid is not None
    constrained, shares = np.any(frozen.monotonic_cst != 0, axis=0), np.ones(frozen.n_features)
    for _ in range(16):
        found = _rounded(frozen, shares, typical)
        room = np.where(constrained, _least_residual(found), frozen.lipschitz)
        error = float(find_errors(found).order.max()) if np.any(constrained) else 0.0
        margin = np.where(constrained, divide(multiply(2.0, error), grid), 0.0)
        if np.any(margin > most * room) or np.any(margin >= room):
            return None
        allowed = np.minimum(room * TRUNCATE - margin, frozen.lipschitz)
        factors = shrink_factors(found, allowed)
        if np.all(factors == 1.0):
            return found
        shares = shares * np.where(factors < 1.0, factors * (1.0 - 2.0**-20), 1.0)
    return None


def _least_residual(frozen: FrozenNetwork) -> Floats:
    """The least residual along every feature; half of it where it serves probabilities.

    It is more than λ if the network was trained with `least_slopes`, which is a margin for free.
    """
    size: Floats = np.where(frozen.monotonic_cst != 0, np.abs(frozen.residual), math.inf).min(
        axis=0
    )
    return 0.5 * size if frozen.of_classes else size


def _rounded(
    frozen: FrozenNetwork, shares: Floats, typical: Floats | float = 0.0
) -> FrozenNetwork:
    """In float32, residual and first step with few bits, columns of the latter times `shares`."""
    steps = change_first(frozen.steps, lambda step: _short(step, frozen, shares, typical))
    return replace(
        frozen,
        residual=_short_residual(frozen),
        steps=store(steps, "float32"),
        precision="float32",
    )


def _short_residual(frozen: FrozenNetwork) -> Floats:
    """λ with so few bits that the residual sum is exact, rounded toward zero."""
    assert frozen.grid is not None
    size = float(np.abs(frozen.residual).sum(axis=1).max()) * frozen.clip
    short = multiples_toward_zero(frozen.residual, _exponent_for(size, frozen.grid))
    return toward_zero(short, "float32").astype(np.float64)


def _short(step: Dense, frozen: FrozenNetwork, shares: Floats, typical: Floats | float) -> Dense:
    """A dense step on inputs of the grid, rounded toward zero: its sums are exact, if cheap.

    For typical inputs it gives what it gave.
    """
    assert frozen.grid is not None
    weight = step.weight * shares
    bias = step.bias + (step.weight - weight) @ np.broadcast_to(typical, len(shares))
    sizes = np.abs(bias) + np.abs(weight).sum(axis=1) * frozen.clip
    exponents = np.array([_exponent_for(size, frozen.grid) for size in sizes.tolist()])
    short = multiples_toward_zero(weight, exponents[:, None])
    if np.any(np.abs(weight - short).sum(axis=0) > TRUNCATED * np.abs(weight).sum(axis=0)):
        return Dense(weight, bias)
    cells = np.ldexp(frozen.grid, exponents)
    return Dense(short, np.rint(bias / cells) * cells)


def _exponent_for(size: float, grid: float) -> int:
    """The k such that multiples of grid · 2^k up to `size`, and a bit, fit float32."""
    return math.frexp(1.001 * size / grid)[1] - _DIGITS if size else 0
