"""Margin: numbers of a frozen network rounded inward, and the slope that rounding errors need.

`with_margin` gives up a little of the slope of g along constrained features, so that also the
*computed* score is monotone. With inputs on a grid of spacing q, E a bound of the rounding error
and L the slope of g, it suffices that (λ − L) q ≥ 2E: inputs in one cell give the same bits,
inputs in different cells give exact scores at least 2E apart. `round_again` takes a frozen network
to another arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from isotone.certificate import bounds
from isotone.certificate.certify import Certificate, certify
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Steps, change_first, rebuild, starts_dense
from isotone.rounding import toward_zero
from isotone.typing import Floats, Precision

FINEST_GRID = 2.0**-20
COARSEST_GRID = 2.0**-6
MARGIN = 2.0**-10  # share of λ that a grid may cost before a coarser one is taken
TRUNCATE = 1.0 - 2.0**-50  # more than the rounding of the products it is applied to

Grid = float | Literal["auto"] | None


def round_again(
    frozen: FrozenNetwork, precision: Precision, clip: float, grid: Grid
) -> FrozenNetwork:
    """Another arithmetic for the same function: weights rounded inward, and a new margin."""
    if not certify(frozen).holds:
        raise ValueError(
            "the frozen network fails its certificate, and another `precision`, `clip` or `grid` "
            "must not hide that; freeze the trained network instead"
        )
    rounded = replace(
        frozen,
        steps=store(dense_first(frozen), precision),
        residual=toward_zero(frozen.residual, precision).astype(np.float64),
        precision=precision,
        clip=clip,
        grid=spacing(grid, precision),
    )
    result = with_margin(rounded, grid)
    if frozen.joint_cst and not certify(result).holds:
        raise ValueError(
            "joint directions of the network do not survive this rounding; they must hold as the "
            "others do: keep float64, or choose a coarser `grid`"
        )
    return certified(result)[0]


def dense_first(frozen: FrozenNetwork) -> Steps:
    """The steps, after a dense one that changes nothing if they begin with another kind."""
    if starts_dense(frozen.steps):
        return frozen.steps
    n = frozen.n_features
    identity = Dense(np.eye(n, dtype=frozen.precision), np.zeros(n, frozen.precision))
    return (identity, *frozen.steps)


def with_margin(frozen: FrozenNetwork, grid: Grid) -> FrozenNetwork:
    """The network with the margin that its grid needs, and perhaps a coarser grid."""
    error = rounding_error(frozen)
    result = _leave_margin(coarsen(frozen, error) if grid == "auto" else frozen, error)
    if error == 0.0 < rounding_error(result):  # numbers that were shrunk may be rounded now
        return with_margin(result, grid)
    return result


def certified(frozen: FrozenNetwork) -> tuple[FrozenNetwork, Certificate]:
    """The network with its certificate inside, and that certificate."""
    certificate = certify(frozen)
    if not certificate.holds:
        raise RuntimeError(f"the frozen network fails its certificate: {certificate.to_json()}")
    return replace(frozen, certificate=certificate.to_dict(in_short=True)), certificate


def spacing(grid: Grid, precision: Precision) -> float | None:
    if grid != "auto":
        return grid
    return FINEST_GRID if precision == "float64" else None


def _leave_margin(frozen: FrozenNetwork, error: float) -> FrozenNetwork:
    """Shrink the columns of the first step until every slope of g leaves the margin it must."""
    margin = _margin(error, frozen.grid)
    constrained = np.any(frozen.monotonic_cst != 0, axis=0)
    # the residual is what must be left room for; float32 may have rounded it below λ
    room = np.where(constrained, least_residual(frozen), frozen.lipschitz)
    allowed = room * TRUNCATE - np.where(constrained, margin, 0.0)
    if np.any(allowed <= 0):
        worst = int(np.argmin(allowed))
        raise ValueError(
            f"along feature {frozen.features[worst]!r} the rounding margin {margin:.3g} uses up "
            f"λ = {frozen.lipschitz[worst]:.3g}; choose a coarser `grid` or a smaller `clip`"
            + (", or precision='float64'" if frozen.precision == "float32" else "")
        )
    for _ in range(8):  # one or two suffice: what is shrunk rounds inward
        factors = shrink_factors(frozen, allowed)
        if np.all(factors == 1.0):
            return frozen
        frozen = replace(frozen, steps=_shrink(frozen, factors))
    raise RuntimeError("the slopes of the network could not be brought below their bounds")


def shrink_factors(frozen: FrozenNetwork, allowed: Floats) -> Floats:
    """By what to multiply the columns of the first step, for slopes of g that are allowed."""
    return _together(frozen, _factors(frozen, allowed))


def _factors(frozen: FrozenNetwork, allowed: Floats) -> Floats:
    slopes = bounds.slopes(frozen.steps, frozen.n_features).max(axis=0)
    with np.errstate(divide="ignore"):
        if frozen.metric == "1":
            factors: Floats = np.minimum(1.0, allowed / slopes)
            return factors
        constants = bounds.constants(frozen.steps, frozen.lipschitz, frozen.metric)
        return np.full(len(allowed), np.minimum(1.0, 1.0 / constants).min())


def _together(frozen: FrozenNetwork, factors: Floats) -> Floats:
    """The same factor for all columns of joint directions, along which their slopes cancel."""
    joined = {name for direction in frozen.joint_cst for name in direction}
    is_joined = np.isin(frozen.features, list(joined))
    least = factors[is_joined].min(initial=1.0)
    return np.where(is_joined, least, factors)


def _shrink(frozen: FrozenNetwork, factors: Floats) -> Steps:
    """The steps with smaller columns where features enter."""
    inward = np.where(factors < 1.0, factors * TRUNCATE, 1.0)
    return change_first(
        frozen.steps,
        lambda step: Dense(toward_zero(step.weight * inward, frozen.precision), step.bias),
    )


def least_residual(frozen: FrozenNetwork) -> Floats:
    """λᵢ as the residual really has it: half of it where it serves probabilities."""
    share = 0.5 if frozen.of_classes else 1.0
    size = np.where(frozen.monotonic_cst != 0, np.abs(frozen.residual), math.inf)
    least: Floats = np.minimum(share * size.min(axis=0), frozen.lipschitz)
    return least


def rounding_error(frozen: FrozenNetwork) -> float:
    """E, or nothing where no promise is made about computed scores; that of any grid."""
    promised = frozen.grid is not None and np.any(frozen.monotonic_cst)
    return float(bounds.rounding_errors(frozen).max()) if promised else 0.0


def _margin(error: float, grid: float | None) -> float:
    """2E / q, exactly: q is a power of two."""
    return 0.0 if grid is None else 2.0 * error / grid


def coarsen(frozen: FrozenNetwork, error: float) -> FrozenNetwork:
    """Take the finest grid whose margin is a small share of λ, as the residual has it."""
    constrained = np.any(frozen.monotonic_cst != 0, axis=0)
    if frozen.grid is None or not np.any(constrained):
        return frozen
    least, grid = MARGIN * float(least_residual(frozen)[constrained].min()), frozen.grid
    while _margin(error, grid) > least and grid < COARSEST_GRID:
        grid *= 2.0
    return frozen if grid == frozen.grid else replace(frozen, grid=grid)


def store(steps: Steps, precision: Precision) -> Steps:
    """The steps with their numbers in the given precision, weights rounded toward zero."""
    return rebuild(
        steps,
        lambda step: Dense(toward_zero(step.weight, precision), step.bias.astype(precision)),
        lambda weights: toward_zero(weights, precision),
    )
