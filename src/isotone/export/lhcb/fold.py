r"""Fold: a frozen network as the numbers of LHCb's evaluators, which scale and clip otherwise.

With the model's scaled input u = a (x − c) and the evaluator's z, where x = w z + m,

.. math:: W u + b = (W a w)\, z + (b + W a (m - c)), \qquad
          {\textstyle\sum_i} r_i u_i = \lambda' \sum_i s_i z_i + \text{constant},

so that the scaling goes into the first layer, and what is constant into the last bias. The
evaluator has one λ': every directed column needs the same size of rᵢ aᵢ wᵢ. Without a rescaling,
w = 1 and m = 0, it must be so in raw units; with one, w is chosen so that it is.

Weights are rounded to float32 toward zero, and the columns of the first layer shrunk until the
slopes of the numbers in the file, bounded by the certificate's own bounds, are within λ'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from isotone.certificate import bounds
from isotone.frozen.lhcb import DEEPEST, WIDEST, Layout, SigmaNet, Singles, steps_of
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Sort
from isotone.rounding import away_from_zero, toward_zero
from isotone.typing import Floats

Rescale = Literal["auto", "none", "unit"]

_ALIKE = 2.0**-22  # relative difference of slopes that are the same in float32
_MARGIN = 1.0 - 2.0**-21  # of λ', so that numbers which are folded once more still keep it


@dataclass(frozen=True, eq=False)
class Folded:
    """A network for an evaluator, and the exact network that it was rounded from.

    Parameters
    ----------
    net : what the file holds
    layers : the folded layers in float64, weights up to a relative error of 2⁻⁴⁰
    doubts : bounds on the errors of their biases, beyond such a relative error
    residual : the folded residual, (n_features,)
    low, high : the raw box that is claimed about, (n_features,), float32
    """

    net: SigmaNet
    layers: tuple[tuple[Floats, Floats], ...]
    doubts: tuple[Floats, ...]
    residual: Floats
    low: Singles
    high: Singles


def fold(
    frozen: FrozenNetwork,
    layout: Layout,
    reach: float,
    rescale: Rescale = "auto",
    shift: float = 0.0,
) -> Folded:
    """The numbers of `frozen` less `shift` for an evaluator; `ValueError` if it has none.

    Parameters
    ----------
    reach : the largest scaled input that is claimed about, at most the clip
    """
    dense = check_shape(frozen, layout)
    a, c = frozen.scaling.factor, frozen.scaling.center
    low, high = (_single(c + sign * (reach / a)) for sign in (-1.0, 1.0))
    slopes = _slopes(frozen)
    plain = _same_everywhere(slopes, frozen.monotonic_cst[0])
    if layout == "hlt2" or rescale == "none" or (rescale == "auto" and plain):
        if not plain:
            _refuse_slopes(frozen, layout, slopes)
        m, w = np.zeros(len(a)), np.ones(len(a))
        ends: tuple[Singles, Singles] | None = (low, high) if layout == "hlt2" else None
    else:
        ends = _unit_box(frozen, reach)
        m = ends[0].astype(np.float64)
        w = np.subtract(ends[1], ends[0], dtype=np.float32).astype(np.float64)
    layers = _fold_layers(frozen, dense, a * w, a * (m - c), shift)
    doubts = _doubts(frozen, dense, a * (np.abs(m) + np.abs(c)), shift)
    residual = frozen.residual[0] * a * w
    lipschitz = _single_above(np.abs(slopes * w).max())
    rounded = _round_inward(layers, lipschitz)
    net = SigmaNet(
        layout=layout,
        layers=rounded,
        lipschitz=lipschitz,
        monotonic_cst=frozen.monotonic_cst[0],
        cut=None,
        low=None if ends is None else ends[0],
        high=None if ends is None else ends[1],
    )
    return Folded(net, layers, doubts, residual, low, high)


def _slopes(frozen: FrozenNetwork) -> Floats:
    """Per raw unit: |r| along directed columns, the declared λ along free ones."""
    free = frozen.monotonic_cst[0] == 0
    return np.where(free, frozen.lipschitz, np.abs(frozen.residual[0])) * frozen.scaling.factor


def _same_everywhere(slopes: Floats, signs: np.ndarray) -> bool:
    """Whether one λ' stands for all: equal along directed columns, not larger along free ones."""
    directed = slopes[signs != 0]
    largest, least = slopes.max(), directed.min() if len(directed) else slopes.max()
    return bool(largest <= least * (1.0 + _ALIKE))


def _unit_box(frozen: FrozenNetwork, reach: float) -> tuple[Singles, Singles]:
    """Ends of a rescaling to [0, 1] that holds the box, wide enough for one λ' everywhere."""
    a, c = frozen.scaling.factor, frozen.scaling.center
    own = _slopes(frozen) / a
    directed = frozen.monotonic_cst[0] != 0
    width = 2.0 * reach / a * np.where(directed, own.max() / np.where(directed, own, 1.0), 1.0)
    low = _single(c - width / 2.0)
    high = _single(low + width)
    computed = np.subtract(high, low, dtype=np.float32)
    if not np.all(np.isfinite(computed) & (computed > 0)):
        raise ValueError(
            f"the scaling of {frozen.features[int(np.argmin(computed))]!r} has a center of "
            f"{c[int(np.argmin(computed))]:.6g} for a width that float32 cannot tell from it; "
            "it must: subtract the center from the feature before training"
        )
    return low, high


def _fold_layers(
    frozen: FrozenNetwork, dense: list[Dense], k: Floats, shift: Floats, threshold: float
) -> tuple[tuple[Floats, Floats], ...]:
    """W a w and b + W a (m − c) of the first layer; the constant in the bias of the last."""
    layers = [(d.weight.astype(np.float64), d.bias.astype(np.float64)) for d in dense]
    weight, bias = layers[0]
    layers[0] = weight * k, bias + weight @ shift
    weight, bias = layers[-1]
    layers[-1] = weight, bias + frozen.residual[0] @ shift - threshold
    return tuple(layers)


def _doubts(
    frozen: FrozenNetwork, dense: list[Dense], size: Floats, threshold: float
) -> tuple[Floats, ...]:
    """Bounds on the rounding errors of the folded biases, far above what float64 needs."""
    doubts = [np.zeros(len(step.bias)) for step in dense]
    doubts[0] = doubts[0] + np.abs(dense[0].weight) @ size + np.abs(dense[0].bias)
    doubts[-1] = doubts[-1] + np.abs(frozen.residual[0]) @ size + abs(threshold)
    doubts[-1] = doubts[-1] + np.abs(dense[-1].bias)
    return tuple(2.0**-40 * doubt for doubt in doubts)


def _round_inward(
    layers: tuple[tuple[Floats, Floats], ...], lipschitz: np.float32
) -> tuple[tuple[Singles, Singles], ...]:
    """The layers in float32, with slopes that are within λ' by the bounds of the certificate."""
    rounded = [(_toward_zero(weight), _single(bias)) for weight, bias in layers]
    weight, bias = rounded[0]
    limit = float(lipschitz) * _MARGIN
    while np.any((found := bounds.slopes(steps_of(rounded), weight.shape[1])[0]) > limit):
        factor = np.minimum(1.0, limit / np.where(found > 0, found, limit) * (1.0 - 2.0**-23))
        weight = _toward_zero(weight.astype(np.float64) * np.where(found > limit, factor, 1.0))
        rounded[0] = weight, bias
    return tuple(rounded)


def _toward_zero(values: Floats) -> Singles:
    _single(values)
    return toward_zero(values, "float32").astype(np.float32)


def _single_above(value: float) -> np.float32:
    found = away_from_zero(np.array([value]), "float32").astype(np.float64)
    return np.float32(_single(found)[0])


def _single(values: Floats) -> Singles:
    with np.errstate(over="ignore", under="ignore"):
        found = np.asarray(values, np.float32)
    if not np.all(np.isfinite(found)):
        raise ValueError(
            "a folded weight, a bias or an end of the box is beyond float32, which the evaluator "
            "computes in; they must fit: scale the features to a similar size, or choose a "
            "smaller λ or reach"
        )
    return found


def check_shape(frozen: FrozenNetwork, layout: str) -> list[Dense]:
    """The dense steps of a network that the evaluator can compute; `ValueError` otherwise."""
    for fits, given, needed in _demands(frozen, layout):
        if not fits:
            raise ValueError(
                f"the network {given}; the evaluator of {layout} {needed}: train one that fits "
                f"with `isotone train --for {layout}`"
            )
    return [step for step in frozen.steps if isinstance(step, Dense)]


def _demands(frozen: FrozenNetwork, layout: str) -> list[tuple[bool, str, str]]:
    """What must hold, what was found if it does not, and what the evaluator does."""
    logs = [name for name, log in zip(frozen.features, frozen.scaling.log, strict=True) if log]
    signs, residual = frozen.monotonic_cst[0], frozen.residual[0]
    chain = _is_chain(frozen)
    dense = [step for step in frozen.steps if isinstance(step, Dense)]
    widest = max([frozen.n_features, *(len(step.bias) for step in dense)])
    most = WIDEST[layout]
    return [
        (
            frozen.inputs.is_plain and frozen.copies is None,
            "reads knots, categories or missing values",
            "takes numbers alone",
        ),
        (not logs, f"takes the logarithm of {logs[:1]}", "scales linearly"),
        (frozen.n_outputs == 1, f"has {frozen.n_outputs} outputs", "computes one"),
        (chain, f"is {_steps(frozen)}", "has dense layers with pairs sorted between them"),
        (widest <= most, f"has {widest} units in a layer", f"has room for {most}"),
        (
            len(dense) <= DEEPEST[layout],
            f"has {len(dense)} layers",
            f"has room for {DEEPEST[layout]}",
        ),
        (
            bool(np.array_equal(np.sign(residual), signs)),
            "has a residual along a column without a direction, or none along one with",
            "adds λ times the direction",
        ),
    ]


def _is_chain(frozen: FrozenNetwork) -> bool:
    """Whether the steps are dense ones with pairs sorted between them."""
    steps = frozen.steps
    return len(steps) % 2 == 1 and all(
        isinstance(step, Dense) if k % 2 == 0 else step == Sort(2) for k, step in enumerate(steps)
    )


def _steps(frozen: FrozenNetwork) -> str:
    return f"{', '.join(map(str, frozen.steps)):.120}"


def _refuse_slopes(frozen: FrozenNetwork, layout: Layout, slopes: Floats) -> None:
    """Raise `ValueError` about columns that one λ' cannot serve."""
    low, high = int(np.argmin(slopes)), int(np.argmax(slopes))
    rest = (
        "leave out `rescale`, or train with λ per raw unit"
        if layout == "allen"
        else "train without scaling (`isotone train --for hlt2`) on features of similar size"
    )
    raise ValueError(
        f"λ per raw unit is {slopes[low]:.4g} along {frozen.features[low]!r} and "
        f"{slopes[high]:.4g} along {frozen.features[high]!r}; without a rescaling the evaluator "
        f"of {layout} has one λ for all: {rest}"
    )
