"""freeze: from a trained network to a `FrozenNetwork` whose stored numbers keep every bound.

Weights are normalized once, in float64, and rounded inward: the exact sums of the stored numbers
respect the bounds. A little of the slope of g is then given up along constrained features, so
that also the *computed* score is monotone: see `isotone.freezing.margin`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

import isotone
from isotone.arithmetic import ieee_arithmetic
from isotone.certificate.certify import certify
from isotone.checks import check_choice
from isotone.freezing.bits import choose_bits, judge_bits
from isotone.freezing.fixed import Bits, check_bits, to_fixed
from isotone.freezing.margin import (
    Grid,
    certified,
    round_again,
    spacing,
    store,
    with_margin,
)
from isotone.freezing.single import to_single
from isotone.freezing.unroll import unroll
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.reference import Units
from isotone.frozen.steps import Step, average
from isotone.inputs.chain import Inputs
from isotone.inputs.knots import Knots
from isotone.inputs.scaling import Scaling
from isotone.nn.network import LipschitzNetwork
from isotone.rounding import toward_zero
from isotone.typing import Precision

_KEPT: Any = "as it is"  # the default of `grid`: "auto" for a network, its own for a frozen one


@ieee_arithmetic()
def freeze(
    network: LipschitzNetwork | FrozenNetwork | Sequence[LipschitzNetwork],
    *,
    scaling: Scaling | None = None,
    inputs: Inputs | None = None,
    knots: Knots | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    precision: Precision | Literal["fixed"] | None = None,
    bits: Bits | Literal["auto"] | None = None,
    rows: Any = None,
    threshold: float = 0.0,
    max_flips: float = 0.05,
    exact: bool = False,
    ranges: ArrayLike | None = None,
    clip: float | None = None,
    grid: Grid = _KEPT,
    shares: Sequence[float] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> FrozenNetwork:
    """Fix the numbers of a network so that `certify` holds for them.

    Parameters
    ----------
    network : trained; left as it is. Several networks are frozen into one, their average, which is
        as monotone as each of them; they may differ in shape. A frozen one keeps what is not given
        here, its grid as long as it keeps its precision; another `precision`, `clip` or `grid`
        rounds its numbers inward once more
    scaling : from features to the scaled inputs that the network was trained on; identity if None
    inputs : from a raw row to the features; by default columns of numbers
    knots : if the network was trained on copies of the features, where these run; then no
        `scaling` is given, and `clip` is 1 by default
    features, classes : names; those of the features are needed only without `inputs`
    precision : "float64" (default), monotone to the last bit; "float32" is faster and monotone up
        to 2E; "fixed" is fixed point, in which no score is rounded: a float64 network of numbers
        with few `bits`, see `isotone.freezing.fixed`
    bits : for "fixed", those of every input and of every weight, such as (12, 10); "auto" takes
        the narrowest by which at most a share `max_flips` of the decisions score ≥ `threshold` on
        rows like the raw `rows` changes, with 99 % confidence, see `isotone.freezing.bits`. With
        `rows` the provenance tells under "fixed" how many can change, and how many did
    exact : float32 that is monotone to the last bit, on the finest grid that can be proved, see
        `isotone.freezing.single`
    ranges : with `exact`, smallest and largest raw number of every feature and, if you like, a
        typical one, (n_features, 2 or 3): the network is centered within them, which makes the
        clip smaller and the grid finer
    clip : scaled inputs are clamped to ±clip, 1024 by default, 16 for "fixed" and 32, or what
        holds the `ranges`, with `exact`
    grid : spacing of the scaled inputs, a power of two; "auto" (default) is 2⁻²⁰, or coarser where
        that would cost more than a thousandth of λ, and None for float32; None promises nothing
        about computed scores
    shares : of several networks in their average, positive and with sum 1; equal by default
    provenance : anything worth keeping that JSON can hold
    """
    _check_options(scaling, precision, grid)
    _check_bits(precision, bits, rows, grid)
    _check_exact(exact, precision, ranges)
    names: dict[str, Any] = {"scaling": scaling, "features": features, "classes": classes}
    if precision == "fixed" or exact:
        trained = {"inputs": inputs, "knots": knots, "shares": shares}
        given: dict[str, Any] = names | trained | {"provenance": provenance}
        frozen = freeze(network, **given)
        if exact:
            return to_single(frozen, clip, None if isinstance(grid, str) else grid, ranges)
        if isinstance(bits, str):
            decisions: dict[str, Any] = {"threshold": threshold, "max_flips": max_flips}
            return choose_bits(frozen, rows, **decisions, clip=clip).frozen
        if rows is not None:
            return judge_bits(
                frozen, check_bits(bits), rows, threshold=threshold, clip=clip
            ).frozen
        return to_fixed(frozen, check_bits(bits), clip)
    if isinstance(network, FrozenNetwork):
        if inputs is not None or knots is not None or shares is not None:
            raise ValueError(
                "`inputs`, `knots` and `shares` belong to networks that were trained; this one is "
                "frozen already: freeze the trained networks with them"
            )
        return _freeze_again(network, names, precision, clip, grid, provenance)
    if inputs is not None and features is not None and tuple(features) != inputs.encoded:
        raise ValueError(
            f"`features` are {', '.join(features)!r:.100} but `inputs` give "
            f"{', '.join(inputs.encoded)!r:.100}; leave `features` out"
        )
    if knots is not None:
        scaling, clip = _scaling_of(knots, scaling), 1.0 if clip is None else clip
        inputs = _with_copies(inputs, knots, features)
    uncertified = freeze_uncertified(
        network,
        scaling=scaling,
        inputs=inputs,
        features=features if inputs is None else inputs.features,
        classes=classes,
        precision=precision or "float64",
        clip=1024.0 if clip is None else clip,
        grid="auto" if grid is _KEPT else grid,
        shares=shares,
        provenance=provenance,
    )
    return certified(uncertified)[0]


@ieee_arithmetic()
def freeze_uncertified(
    network: LipschitzNetwork | Sequence[LipschitzNetwork],
    *,
    scaling: Scaling | None = None,
    inputs: Inputs | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    precision: Precision = "float64",
    clip: float = 1024.0,
    grid: Grid = "auto",
    shares: Sequence[float] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> FrozenNetwork:
    """What `freeze` gives, for a caller that changes it exactly and then has it certified."""
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
    first, n, weights = members[0], members[0].n_features, _check_shares(shares, len(members))
    frozen = FrozenNetwork(
        inputs=inputs or Inputs(),
        features=tuple(f"x{i}" for i in range(n)) if features is None else tuple(features),
        scaling=Scaling.identity(n) if scaling is None else scaling,
        steps=store(tuple(_average(members, weights)), precision),
        residual=toward_zero(
            np.average([m.residual() for m in members], axis=0, weights=weights), precision
        ).astype(np.float64),
        lipschitz=np.average([m.lipschitz for m in members], axis=0, weights=weights),
        monotonic_cst=first.directions().astype(np.int8),
        outputs=first.outputs,
        classes=None if classes is None else tuple(classes),
        metric=first.metric,
        precision=precision,
        clip=clip,
        grid=spacing(grid, precision),
        provenance={"isotone": isotone.__version__} | dict(provenance or {}),
    )
    _compare(members, weights, frozen)
    return with_margin(frozen, grid)


def _check_options(scaling: object, precision: object, grid: object) -> None:
    if not isinstance(scaling, Scaling | None):
        raise TypeError(
            f"`scaling={scaling!r}` must be a fitted Scaling: Scaling.fit(X_train, 'standard')"
        )
    check_choice("precision", precision or "float64", ("float64", "float32", "fixed"))
    if isinstance(grid, str) and grid != "auto" and grid is not _KEPT:
        raise ValueError(f"`grid={grid!r}` must be a power of two, 'auto' or None")


def _check_bits(precision: object, bits: object, rows: object, grid: object) -> None:
    if (precision == "fixed") != (bits is not None):
        raise ValueError(
            f"`precision={precision!r}` and `bits={bits!r}` do not fit: bits are those of "
            "precision='fixed', which needs them, such as bits=(12, 10)"
        )
    if isinstance(bits, str) and (bits != "auto" or rows is None):
        raise ValueError(
            f"`bits={bits!r}` must be whole numbers, such as (12, 10), or 'auto', which needs "
            "`rows`"
        )
    if precision == "fixed" and grid is not _KEPT:
        raise ValueError(
            f"`grid={grid!r}` is given with precision='fixed', whose grid follows from `clip` and "
            "the `bits` of inputs: leave `grid` out"
        )


def _check_exact(exact: bool, precision: object, ranges: object) -> None:
    if exact and precision != "float32":
        raise ValueError(
            f"`exact=True` goes with precision='float32'; got {precision!r}: float64 is monotone "
            "to the last bit without it"
        )
    if ranges is not None and not exact:
        raise ValueError("`ranges` are used with `exact=True` only; give both, or neither")


def _scaling_of(knots: Knots, scaling: Scaling | None) -> Scaling:
    if scaling is not None:
        raise ValueError(
            "`scaling` and `knots` both say what the network saw; copies have their own scaling: "
            "leave `scaling` out"
        )
    return knots.scaling


def _with_copies(inputs: Inputs | None, knots: Knots, features: Sequence[str] | None) -> Inputs:
    """The inputs with the copies that knots make of their features."""
    default = tuple(f"x{i}" for i in range(knots.n_features))
    known = inputs or Inputs.numbers(default if features is None else features)
    if len(known.encoded) != knots.n_features:
        raise ValueError(
            f"`knots` are those of {knots.n_features} features but there are "
            f"{len(known.encoded)} names; the numbers must agree"
        )
    return replace(known, copies=tuple(knots.columns.tolist()))


def _freeze_again(
    frozen: FrozenNetwork,
    names: Mapping[str, Any],
    precision: Precision | None,
    clip: float | None,
    grid: Grid,
    provenance: Mapping[str, Any] | None,
) -> FrozenNetwork:
    """A frozen network with what is given, and everything else as it is."""
    changes: dict[str, Any] = {
        name: value if name == "scaling" else tuple(value)
        for name, value in names.items()
        if value is not None
    }
    if provenance is not None:
        changes["provenance"] = dict(frozen.provenance) | dict(provenance)
    if changes:
        frozen = replace(frozen, **changes)
        frozen = replace(frozen, certificate=certify(frozen).to_dict(in_short=True))
    precision, clip = precision or frozen.precision, frozen.clip if clip is None else clip
    if grid is _KEPT:
        grid = frozen.grid if precision == frozen.precision else "auto"
    if (precision, clip, grid) == (frozen.precision, frozen.clip, frozen.grid):
        return frozen
    return round_again(frozen, precision, clip, grid)


@torch.no_grad()
def _compare(
    members: Sequence[LipschitzNetwork], shares: Sequence[float], frozen: FrozenNetwork
) -> None:
    """Make sure that the steps compute what the networks do, before a margin is taken."""
    x = np.random.default_rng(0).uniform(-1, 1, (16, frozen.n_features))
    u, rows = x.T.astype(frozen.precision), torch.as_tensor(x)
    each = [copy.deepcopy(member).cpu().double().eval()(rows).numpy() for member in members]
    expected = np.average(each, axis=0, weights=shares)
    found = (Units().run(frozen.steps, u) + frozen.residual @ u).T.reshape(expected.shape)
    size = np.abs(expected) + frozen.lipschitz.sum()
    if not np.all(np.abs(found - expected) <= 1e-3 * size):
        raise RuntimeError("the frozen steps do not compute what the network does; report a bug")


def _average(members: Sequence[LipschitzNetwork], shares: Sequence[float]) -> list[Step]:
    if len(members) == 1:
        return unroll(members[0])
    if len({_kind(member) for member in members}) > 1:
        raise ValueError(
            "networks that are averaged must have the same features, directions, outputs and "
            "metric"
        )
    return [average([unroll(member) for member in members], shares)]


def _check_shares(shares: Sequence[float] | None, n_members: int) -> list[float]:
    """The shares of members in their average, equal by default."""
    if shares is None:
        return [1.0 / n_members] * n_members
    numbers = [float(share) for share in shares]
    sound = all(share > 0 for share in numbers) and math.isclose(sum(numbers), 1.0, rel_tol=1e-9)
    if len(numbers) != n_members or not sound:
        raise ValueError(
            f"`shares` are {numbers!r:.100}; there must be one positive number for each of "
            f"{n_members} networks, with sum 1: divide them by their sum"
        )
    return [share / sum(numbers) for share in numbers]


def _kind(network: LipschitzNetwork) -> tuple[object, ...]:
    """What networks must have in common for their average to keep their promises."""
    choices = network.metric, network.outputs, network.n_features, network.n_outputs
    return *choices, network.directions().tobytes()
