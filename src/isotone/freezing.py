"""freeze: from a trained network to a `FrozenNetwork` whose stored numbers keep every bound.

Weights are normalized once, in float64, and rounded inward: the exact sums of the stored numbers
respect the bounds. A little of the slope of g is then given up along constrained features, so
that also the *computed* score is monotone. With inputs on a grid of spacing q, E a bound of the
rounding error and L the slope of g, it suffices that (λ − L) q ≥ 2E: inputs in one cell give the
same bits, inputs in different cells give exact scores at least 2E apart.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

import isotone
from isotone import bounds
from isotone.averaging import average
from isotone.certificate import certify
from isotone.elementary import Floats, Reals
from isotone.frozen import FrozenNetwork, Precision
from isotone.layers import (
    BoundedLayer,
    Center,
    Constraint,
    GroupSort,
    LipschitzConv,
    Residual,
    pointwise,
)
from isotone.network import LipschitzNetwork
from isotone.norms import NORMS
from isotone.rounding import divide, multiply, root, totals
from isotone.scaling import Scaling
from isotone.steps import Blend, Dense, Sort, Step

MAX_DENSE = 2**24  # entries of the matrix that a convolution is unrolled into
FINEST_GRID = 2.0**-20
COARSEST_GRID = 2.0**-6
MARGIN = 2.0**-10  # share of λ that a grid may cost before a coarser one is taken
_TRUNCATE = 1.0 - 2.0**-50  # more than the rounding of the products it is applied to

Grid = float | Literal["auto"] | None


def freeze(
    network: LipschitzNetwork | FrozenNetwork | Sequence[LipschitzNetwork],
    *,
    scaling: Scaling | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    precision: Precision = "float64",
    clip: float = 1024.0,
    grid: Grid = "auto",
    provenance: Mapping[str, Any] | None = None,
) -> FrozenNetwork:
    """Fix the numbers of a network so that `certify` holds for them.

    Parameters
    ----------
    network : trained; left as it is. A frozen one is returned unchanged. Several networks of one
        architecture are frozen into one, their average, which is as monotone as each of them
    scaling : from raw to the scaled inputs that the network was trained on; identity if None
    features, classes : names
    precision : "float64", monotone to the last bit; "float32" is faster and monotone up to 2E
    clip : scaled inputs are clamped to ±clip
    grid : spacing of the scaled inputs, a power of two; "auto" is 2⁻²⁰, or coarser where that
        would cost more than a thousandth of λ, and None for float32; None promises nothing
        about computed scores
    """
    if isinstance(network, FrozenNetwork):
        return network
    members = [network] if isinstance(network, LipschitzNetwork) else network
    if (
        not isinstance(members, Sequence)
        or not members
        or not all(isinstance(member, LipschitzNetwork) for member in members)
    ):
        raise TypeError(
            f"`freeze` takes a LipschitzNetwork or MonotonicNetwork, or several; got "
            f"{type(network).__name__}"
        )
    if not isinstance(scaling, Scaling | None):
        raise TypeError(
            f"`scaling={scaling!r}` must be a fitted Scaling: Scaling.fit(X_train, 'standard')"
        )
    if isinstance(grid, str) and grid != "auto":
        raise ValueError(f"`grid={grid!r}` must be a power of two, 'auto' or None")
    first = members[0]
    n = first.n_features
    spacing = (FINEST_GRID if precision == "float64" else None) if grid == "auto" else grid
    frozen = FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n)) if features is None else tuple(features),
        scaling=Scaling.identity(n) if scaling is None else scaling,
        steps=tuple(_store(step, precision) for step in _average(members)),
        residual=_toward_zero(np.mean([m.residual() for m in members], axis=0), precision).astype(
            np.float64
        ),
        lipschitz=np.mean([m.lipschitz for m in members], axis=0),
        monotonic_cst=first.directions().astype(np.int8),
        outputs=first.outputs,
        classes=None if classes is None else tuple(classes),
        metric=first.metric,
        precision=precision,
        clip=clip,
        grid=spacing,
        provenance={"isotone": isotone.__version__} | dict(provenance or {}),
    )
    _compare(members, frozen)
    frozen = _leave_margin(_coarsen(frozen) if grid == "auto" else frozen)
    certificate = certify(frozen)
    if not certificate.holds:
        raise RuntimeError(f"the frozen network fails its certificate: {certificate.to_json()}")
    return replace(frozen, certificate=certificate.to_dict())


@torch.no_grad()
def _compare(members: Sequence[LipschitzNetwork], frozen: FrozenNetwork) -> None:
    """Make sure that the steps compute what the networks do, before a margin is taken."""
    x = np.random.default_rng(0).uniform(-1, 1, (16, frozen.n_features))
    rows = torch.as_tensor(x)
    each = [copy.deepcopy(member).cpu().double().eval()(rows).numpy() for member in members]
    expected = np.mean(each, axis=0)
    plain = replace(frozen, scaling=Scaling.identity(frozen.n_features), grid=None)
    size = np.abs(expected) + frozen.lipschitz.sum()
    if not np.all(np.abs(plain.score(x).reshape(expected.shape) - expected) <= 1e-3 * size):
        raise RuntimeError("the frozen steps do not compute what the network does; report a bug")


def _leave_margin(frozen: FrozenNetwork) -> FrozenNetwork:
    """Shrink the columns of the first step until every slope of g leaves the margin it must."""
    margin = _margin(frozen)
    constrained = np.any(frozen.monotonic_cst != 0, axis=0)
    # the residual is what must be left room for; float32 may have rounded it below λ
    room = np.where(constrained, _least_residual(frozen), frozen.lipschitz)
    allowed = room * _TRUNCATE - np.where(constrained, margin, 0.0)
    if np.any(allowed <= 0):
        worst = int(np.argmin(allowed))
        raise ValueError(
            f"along feature {frozen.features[worst]!r} the rounding margin {margin:.3g} uses up "
            f"λ = {frozen.lipschitz[worst]:.3g}; choose a coarser `grid` or a smaller `clip`"
            + (", or precision='float64'" if frozen.precision == "float32" else "")
        )
    for _ in range(8):  # one or two suffice: what is shrunk rounds inward
        factors = _shrink_factors(frozen, allowed)
        if np.all(factors == 1.0):
            return frozen
        frozen = replace(
            frozen, steps=(_shrink(frozen.steps[0], factors, frozen), *frozen.steps[1:])
        )
    raise RuntimeError("the slopes of the network could not be brought below their bounds")


def _shrink_factors(frozen: FrozenNetwork, allowed: Floats) -> Floats:
    slopes = bounds.slopes(frozen.steps, frozen.n_features).max(axis=0)
    with np.errstate(divide="ignore"):
        if frozen.metric == "1":
            factors: Floats = np.minimum(1.0, allowed / slopes)
            return factors
        constants = bounds.constants(frozen.steps, frozen.lipschitz, frozen.metric)
        return np.full(len(allowed), np.minimum(1.0, 1.0 / constants).min())


def _shrink(step: Step, factors: Floats, frozen: FrozenNetwork) -> Dense:
    assert isinstance(step, Dense)  # `_steps` begins with one
    inward = np.where(factors < 1.0, factors * _TRUNCATE, 1.0)
    return Dense(_toward_zero(step.weight * inward, frozen.precision), step.bias)


def _least_residual(frozen: FrozenNetwork) -> Floats:
    """λᵢ as the residual really has it: half of it where it serves probabilities."""
    share = 0.5 if frozen.of_classes else 1.0
    size = np.where(frozen.monotonic_cst != 0, np.abs(frozen.residual), math.inf)
    least: Floats = np.minimum(share * size.min(axis=0), frozen.lipschitz)
    return least


def _margin(frozen: FrozenNetwork) -> float:
    """2E / q, or nothing where no promise is made about computed scores."""
    if frozen.grid is None or not np.any(frozen.monotonic_cst):
        return 0.0
    return float(divide(multiply(2.0, bounds.rounding_errors(frozen).max()), frozen.grid))


def _coarsen(frozen: FrozenNetwork) -> FrozenNetwork:
    """Take the finest grid whose margin is a small share of λ."""
    constrained = np.any(frozen.monotonic_cst != 0, axis=0)
    if frozen.grid is None or not np.any(constrained):
        return frozen
    least = MARGIN * float(frozen.lipschitz[constrained].min())
    while _margin(frozen) > least and frozen.grid is not None and frozen.grid < COARSEST_GRID:
        frozen = replace(frozen, grid=2.0 * frozen.grid)
    return frozen


def _store(step: Step, precision: Precision) -> Step:
    """The step with its numbers in the given precision, weights rounded toward zero."""
    if isinstance(step, Blend):
        return replace(step, steps=tuple(_store(inner, precision) for inner in step.steps))
    if isinstance(step, Dense):
        return Dense(_toward_zero(step.weight, precision), step.bias.astype(precision))
    return step


def _toward_zero(values: Floats | Reals, precision: Precision) -> Reals:
    rounded = values.astype(precision)
    too_large = np.abs(rounded.astype(np.float64)) > np.abs(values)
    return np.where(too_large, np.nextafter(rounded, rounded.dtype.type(0)), rounded)


@dataclass
class _Unrolled:
    """Steps made so far, and how their units stand to those of the torch modules.

    `shape` is that of the torch units; `order[p]` is the flat torch position of unit p. After a
    convolution channels come last, so that the groups of a sort are neighbors.
    """

    steps: list[Step]
    shape: tuple[int, ...]
    order: np.ndarray[Any, np.dtype[np.intp]]

    def dense(self, weight: Floats, bias: Floats, shape: tuple[int, ...]) -> None:
        """Append a dense step given for units in torch's order."""
        after = _channels_last(shape)
        self.steps.append(Dense(weight[np.ix_(after, self.order)], bias[after]))
        self.shape, self.order = shape, after

    def reorder(self, order: np.ndarray[Any, np.dtype[np.intp]]) -> None:
        """Append a permutation if the units are not in the given order."""
        if len(order) != len(self.order):
            raise ValueError(f"{len(self.order)} units cannot be put into {len(order)} places")
        if not np.array_equal(order, self.order):
            eye = np.eye(len(order))
            self.steps.append(Dense(eye[np.ix_(order, self.order)], np.zeros(len(order))))
            self.order = order


def _average(members: Sequence[LipschitzNetwork]) -> list[Step]:
    if len(members) == 1:
        return _steps(members[0])
    if len({_kind(member) for member in members}) > 1:
        raise ValueError(
            "networks that are averaged must have the same features, directions, outputs, chain "
            "and metric"
        )
    chain, metric = members[0].chain, members[0].metric
    return average([_steps(member) for member in members], chain, metric)


def _kind(network: LipschitzNetwork) -> tuple[object, ...]:
    """What networks must have in common for their average to keep their promises."""
    choices = network.chain, network.metric, network.outputs, network.n_features
    return *choices, network.directions().tobytes()


def _steps(network: LipschitzNetwork) -> list[Step]:
    """g as frozen steps in float64, the rescaling of the features included."""
    n = network.n_features
    state = _Unrolled([], network.input_shape, np.arange(n))
    scale = network.lipschitz / network.lipschitz.max()
    for module in network.layers:
        _unroll(module, state)
    if not state.steps or not isinstance(state.steps[0], Dense):
        state.steps.insert(0, Dense(np.eye(n), np.zeros(n)))
    first = state.steps[0]
    assert isinstance(first, Dense)
    state.steps[0] = Dense(first.weight * scale, first.bias)
    return state.steps


def _unroll(module: nn.Module, state: _Unrolled) -> None:
    activation = pointwise(module)
    if activation is not None:
        state.steps.append(activation)
    elif isinstance(module, LipschitzConv):
        _unroll_convolution(module, state)
    elif isinstance(module, BoundedLayer):
        weight = inward(_normalized(module), module.constraint)
        state.dense(weight, _array(module.bias, len(weight)), (len(weight),))
    elif isinstance(module, GroupSort):
        state.reorder(_channels_last(state.shape))
        state.steps.append(Sort(module.group_size or state.shape[0]))
    elif isinstance(module, Center):
        _unroll_center(module, state)
    elif isinstance(module, Residual):
        _unroll_residual(module, state)
    elif isinstance(module, nn.Flatten):
        state.shape = (math.prod(state.shape),)


def _unroll_convolution(layer: LipschitzConv, state: _Unrolled) -> None:
    """The dense matrix of a convolution: its response to every unit vector."""
    n_in = math.prod(state.shape)
    kernel = torch.as_tensor(_normalized(layer))
    probe = layer.convolve(torch.zeros(1, *state.shape, dtype=torch.float64), kernel, None)
    shape = tuple(probe.shape[1:])
    if n_in * probe.numel() > MAX_DENSE:
        raise ValueError(
            f"a convolution from {state.shape} to {shape} would unroll into "
            f"{n_in * probe.numel()} numbers; at most {MAX_DENSE} are frozen: use a smaller "
            "input, a stride or fewer channels"
        )
    basis = torch.eye(n_in, dtype=torch.float64).reshape(n_in, *state.shape)
    matrix = layer.convolve(basis, kernel, None).reshape(n_in, -1).T.contiguous().numpy()
    bias = np.repeat(_array(layer.bias, shape[0]), math.prod(shape[1:]))
    state.dense(inward(matrix, layer.constraint), bias, shape)


def _unroll_center(module: Center, state: _Unrolled) -> None:
    """Subtract the mean in the bias of the step before, or in a step of its own."""
    mean = np.repeat(_array(module.mean, len(module.mean)), math.prod(state.shape[1:]))[
        state.order
    ]
    last = state.steps[-1] if state.steps else None
    if isinstance(last, Dense):
        state.steps[-1] = Dense(last.weight, last.bias - mean)
    else:
        state.steps.append(Dense(np.eye(len(mean)), -mean))


def _unroll_residual(module: Residual, state: _Unrolled) -> None:
    branch = _Unrolled([], state.shape, state.order)
    for inner in module.branch:
        _unroll(inner, branch)
    branch.reorder(state.order)
    mix = float(torch.sigmoid(module.mix.detach().double()))
    weight = float(_toward_zero(np.array([mix]), "float32")[0])
    keep = float(_toward_zero(np.array([1.0 - weight]), "float32")[0])
    state.steps.append(Blend(keep, weight, tuple(branch.steps)))


def _normalized(layer: BoundedLayer) -> Floats:
    """The weight in use, normalized in float64."""
    c = layer.constraint
    weight = NORMS[c.norm](layer.weight.detach().double().cpu(), c.bound, layer.sizes())
    return weight.numpy()


def inward(weight: Floats, constraint: Constraint) -> Floats:
    """Shrink every column (row in the ∞ chain) until its exact size is within the bound."""
    size = np.abs(weight)
    if constraint.chain == "one":
        sizes = totals(size.T)[None, :]
    elif constraint.dual == math.inf:
        sizes = size.max(axis=1, keepdims=True)
    elif constraint.dual == 2.0:
        sizes = root(totals(multiply(size, size)))[:, None]
    else:
        sizes = totals(size)[:, None]
    over = sizes > constraint.bound
    factor = np.where(over, constraint.bound / np.where(over, sizes, 1.0) * _TRUNCATE, 1.0)
    return weight * factor


def _channels_last(shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Flat positions of units of `shape`, with the first axis, the channels, running fastest."""
    positions = np.arange(math.prod(shape)).reshape(shape)
    return np.moveaxis(positions, 0, -1).ravel()


def _array(values: Tensor | None, length: int) -> Floats:
    if values is None:
        return np.zeros(length)
    return values.detach().double().cpu().numpy()
