r"""The networks of LHCb's trigger: what its evaluators read from JSON, as a `FrozenNetwork`.

Allen (HLT1) and the topological lines of HLT2 evaluate in float32

.. math:: r(z) = g(z) + \lambda {\textstyle\sum_i} s_i z_i, \qquad
          \text{passes if } 1 / (1 + e^{-r}) > \text{cut},

where g has dense layers with GroupSort of pairs between them. A file for Allen may have
`rescale_min` and `rescale_max`, then z = (x − min) / (max − min); one for HLT2 has
`variables_constraints`, to which x is clamped first. `isotone.load` reads both.

The network that is read has the weights of the file, so that `isotone.certify` examines what the
evaluator computes; nothing that the file says of itself is believed. Where there is a box, that of
the rescaling or of the clamps, the scaled input is u = (x − middle) / (max − min), clamped to
±1/2; biases, and for HLT2 the columns of the first matrix and λ, are folded and rounded to float32
once more: weights outward and λ inward, so that what is proved holds for the numbers of the file.
The certificate's E is then about the folded numbers. The evaluator adds up those of the file, and
rounds more the farther the box is from zero: `isotone certify FILE` tells its own E.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone import limits
from isotone.checks import check_signs
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Sort, Steps
from isotone.inputs.scaling import Scaling, numbers
from isotone.rounding import away_from_zero, toward_zero
from isotone.typing import Floats, Signs

Layout = Literal["allen", "hlt2"]
Singles = NDArray[np.float32]

PASSES = "sigmoid of the score > nominal_cut"
_NUMBERS = r"(bias|weight|parametrizations\.weight\.original)"
_LAYER = re.compile(rf"(?:.*\.)?([0-9]{{1,6}})\.{_NUMBERS}", re.S)
_LIKE_LAYER = re.compile(rf"(?:.*\.)?{_NUMBERS}", re.S)
_HLT2 = "parametrizations.weight.original"
_TWO_TRACK = [1, 1, 0, 1]  # the constraints of a file for Allen that has none
WIDEST: dict[str, int] = {"allen": 32, "hlt2": 128}  # units of a layer, by the evaluator's buffers
DEEPEST: dict[str, int] = {"allen": 1024, "hlt2": 8}  # layers
_TO_CALLER = 5  # frames: `_warn`, `build`, `load`, its decorator, and that one
_CLIP = 1024.0  # where neither the file nor the caller says how large numbers are


@dataclass(frozen=True, eq=False)
class SigmaNet:
    """The numbers of a file, as an evaluator reads them.

    Parameters
    ----------
    layers : weight (n_out, n_in) and bias (n_out,) of every layer
    lipschitz : λ, the factor of the residual
    monotonic_cst : (n_features,), s above; None if the file does not say
    cut : on the sigmoid; None if the file does not say
    low, high : (n_features,), of the rescaling (Allen) or the clamps (HLT2), if there are any
    about : what isotone wrote beside the network, if it did
    """

    layout: Layout
    layers: tuple[tuple[Singles, Singles], ...]
    lipschitz: np.float32
    monotonic_cst: Signs | None
    cut: np.float32 | None
    low: Singles | None = None
    high: Singles | None = None
    about: Mapping[str, Any] | None = None

    @property
    def n_features(self) -> int:
        return int(self.layers[0][0].shape[1])

    @property
    def steps(self) -> Steps:
        """g on z: the layers, and pairs sorted between them."""
        return steps_of(self.layers)

    @property
    def residual(self) -> Floats:
        """λ s on z, (1, n_features)."""
        signs = np.zeros(self.n_features) if self.monotonic_cst is None else self.monotonic_cst
        residual: Floats = float(self.lipschitz) * np.asarray(signs, np.float64)[None, :]
        return residual

    @property
    def width(self) -> Singles:
        """high − low as the evaluator computes it, or 1."""
        if self.low is None or self.high is None:
            return np.ones(self.n_features, np.float32)
        return np.subtract(self.high, self.low, dtype=np.float32)

    @property
    def excess(self) -> str | None:
        """What the evaluator has no room for, in words; it would write beyond its buffers."""
        widest = max(self.n_features, *(len(bias) for _, bias in self.layers))
        for n, most, what in (
            (widest, WIDEST[self.layout], "units in a layer"),
            (len(self.layers), DEEPEST[self.layout], "layers"),
        ):
            if n > most:
                return f"{n} {what}, but the evaluator of {self.layout} has room for {most}"
        return None


def steps_of(layers: Sequence[tuple[Singles, Singles]]) -> Steps:
    """Dense steps with pairs sorted between them."""
    dense = [step for weight, bias in layers for step in (Dense(weight, bias), Sort(2))]
    return tuple(dense[:-1])


def parse(data: Any) -> SigmaNet:
    """The numbers in the content of a JSON file; `ValueError` for anything else."""
    if not isinstance(data, dict):
        raise ValueError(f"an object with layers was expected; got {data!r:.50}")
    if "format" in data:
        raise ValueError(
            f"its `format` is {data['format']!r:.50}; read it with isotone.export.json.read"
        )
    layout, layers = _layers(data)
    n, signs = layers[0][0].shape[1], data.get("constraints")
    low, high = _box(data, layout, n)
    if layout == "allen":
        _check_features(data, n)
        signs = _TWO_TRACK if signs is None else signs
    cut = data["nominal_cut"] if layout == "allen" else data.get("nominal_cut")
    about = data.get("isotone")
    return SigmaNet(
        layout=layout,
        layers=layers,
        lipschitz=_lipschitz(data["sigmanet.sigma"]),
        monotonic_cst=None if signs is None else _signs(signs, n),
        cut=None if cut is None else _singles("`nominal_cut`", [cut])[0],
        low=low,
        high=high,
        about=about if isinstance(about, dict) else None,
    )


def _layers(data: dict[str, Any]) -> tuple[Layout, tuple[tuple[Singles, Singles], ...]]:
    """Which evaluator a file is for, and its layers in the order of their numbers."""
    found: dict[tuple[int, str], Any] = {}
    for key, value in data.items():
        match = _LAYER.fullmatch(key)
        if match is None:
            _refuse_like_layer(key)
            continue
        place = int(match[1]), match[2]
        if place in found:
            raise ValueError(f"two layers have the number {place[0]}; each must have its own")
        found[place] = value
    limits.STEPS.check(len(found))
    kinds = {kind for _, kind in found}
    if not found or kinds >= {"weight", _HLT2}:
        raise ValueError(
            "it has no layers, or layers of both kinds; their keys must end in '.0.weight' and "
            "'.0.bias' for Allen, or in '.00.parametrizations.weight.original' for HLT2"
        )
    layout: Layout = "hlt2" if _HLT2 in kinds else "allen"
    kind = _HLT2 if layout == "hlt2" else "weight"
    layers = tuple(
        (_matrix(number, found.get((number, kind))), _bias(number, found.get((number, "bias"))))
        for number in sorted({number for number, _ in found})
    )
    if len(layers[-1][0]) != 1:
        raise ValueError(
            f"the last layer has {len(layers[-1][0])} outputs; the evaluator uses one: keep one"
        )
    return layout, layers


def _refuse_like_layer(key: str) -> None:
    """An evaluator might read what is left out here: another network would be certified."""
    if _LIKE_LAYER.fullmatch(key):
        raise ValueError(
            f"the key {key!r:.80} is like that of a layer, but has no number of at most 6 digits "
            "before its end; number the layers 0, 1, ..., and give other keys other names"
        )


def _matrix(number: int, rows: Any) -> Singles:
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], list) or not rows[0]:
        raise ValueError(f"layer {number} needs a weight, which is a list of rows of numbers")
    ragged = {len(row) if isinstance(row, list) else -1 for row in rows} != {len(rows[0])}
    if ragged:
        raise ValueError(f"the rows of the weight of layer {number} must have the same length")
    limits.MATRIX.check(len(rows) * len(rows[0]))
    return np.stack([_singles(f"the weight of layer {number}", row) for row in rows])


def _bias(number: int, values: Any) -> Singles:
    if not isinstance(values, list) or not values:
        raise ValueError(f"layer {number} needs a bias, which is a list of numbers")
    return _singles(f"the bias of layer {number}", values)


def _singles(what: str, values: Any) -> Singles:
    """A list as float32: read as float64, then rounded, as the evaluators do."""
    with np.errstate(over="ignore"):
        try:
            array = numbers(values).astype(np.float32)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from error
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{what} has a number that float32 cannot hold; all must be finite")
    return array


def _lipschitz(value: Any) -> np.float32:
    found = _singles("`sigmanet.sigma`", value if isinstance(value, list) else [value])
    if len(found) != 1 or not found[0] > 0:
        raise ValueError(
            f"`sigmanet.sigma` is {value!r:.50}; it must be a list of one positive number, λ"
        )
    single: np.float32 = found[0]
    return single


def _signs(values: Any, n: int) -> Signs:
    signs = _singles("`constraints`", values)
    if len(signs) != n or not np.all(np.isin(signs, (-1, 0, 1))):
        raise ValueError(
            f"`constraints` are {values!r:.100}; {n} features need {n} numbers that are -1, 0 or 1"
        )
    return signs.astype(np.int8)


def _check_features(data: dict[str, Any], n: int) -> None:
    stated = data.get("n_features", 4)
    if type(stated) is not int or stated != n:
        raise ValueError(
            f"`n_features` is {stated!r:.50}, 4 if it is left out, but the first layer takes {n}; "
            "they must agree"
        )


def _box(data: dict[str, Any], layout: Layout, n: int) -> tuple[Singles | None, Singles | None]:
    """Lower and upper ends of the rescaling or of the clamps."""
    if layout == "allen":
        names, ends = ("rescale_min", "rescale_max"), [data.get("rescale_min")]
        ends.append(data.get("rescale_max"))
    else:
        names, pairs = ("variables_constraints",) * 2, data.get("variables_constraints")
        if pairs is not None and not (
            isinstance(pairs, list) and all(isinstance(p, list) and len(p) == 2 for p in pairs)
        ):
            raise ValueError(
                "`variables_constraints` must be a list of [low, high], one per feature; got "
                f"{pairs!r:.100}"
            )
        ends = [None, None] if pairs is None else [[p[k] for p in pairs] for k in (0, 1)]
    if ends == [None, None]:
        return None, None
    low, high = (_singles(f"`{name}`", end) for name, end in zip(names, ends, strict=True))
    least = np.subtract(high, low, dtype=np.float32) if len(low) == len(high) == n else None
    if (
        least is None
        or not np.all(np.isfinite(least))
        or not np.all(least > 0 if layout == "allen" else least >= 0)
    ):
        raise ValueError(
            f"`{names[0]}` and `{names[1]}` must give every one of the {n} features a lower and a "
            "larger upper end, which float32 can subtract"
        )
    return low, high


def build(
    data: Any,
    features: Sequence[str] | None = None,
    monotonic_cst: ArrayLike | None = None,
    clip: float | None = None,
) -> FrozenNetwork:
    """The network in the content of a JSON file; see `isotone.load`."""
    net = parse(data)
    if net.excess:
        _warn(
            f"the file has {net.excess}: it cannot compute this network; train a smaller one "
            f"(`isotone train --for {net.layout}`), or enlarge its buffers"
        )
    if net.monotonic_cst is None and monotonic_cst is None:
        _warn(
            "the file has no `constraints`, which HLT2 takes from its configuration: read as if "
            "all were 0, without the residual; give `monotonic_cst`"
        )
    signs = _given_signs(net, monotonic_cst)
    net = SigmaNet(**(vars(net) | {"monotonic_cst": signs}))
    scaling, steps, residual = _fold(net)
    boxed = net.low is not None
    lipschitz = float(net.lipschitz) * (net.width if net.layout == "hlt2" else np.ones(1))
    return FrozenNetwork(
        features=_names(net, features),
        scaling=scaling,
        steps=steps,
        residual=residual,
        lipschitz=np.broadcast_to(np.where(lipschitz > 0, lipschitz, 1.0), net.n_features),
        monotonic_cst=signs[None, :],
        outputs="logits",
        precision="float32",
        clip=0.5 if boxed else _clip(net, clip),
        grid=None,
        provenance=_provenance(net, boxed),
    )


def _warn(text: str) -> None:
    """As from the line that calls `isotone.load`."""
    warnings.warn(text, stacklevel=_TO_CALLER)


def _given_signs(net: SigmaNet, given: ArrayLike | None) -> Signs:
    """Directions: those of the file, or else those that are given, or else none."""
    if given is not None:
        check_signs("monotonic_cst", given)
        signs: Signs = np.asarray(given, np.int8)
        if signs.shape != (net.n_features,):
            raise ValueError(
                f"`monotonic_cst` has shape {signs.shape}; {net.n_features} features need "
                f"({net.n_features},)"
            )
        if net.monotonic_cst is not None and not np.array_equal(signs, net.monotonic_cst):
            raise ValueError(
                f"`monotonic_cst={signs.tolist()}` is not what the file says, "
                f"{net.monotonic_cst.tolist()}; leave it out"
            )
        return signs
    return np.zeros(net.n_features, np.int8) if net.monotonic_cst is None else net.monotonic_cst


def _fold(net: SigmaNet) -> tuple[Scaling, Steps, Floats]:
    """Scaling to u, and the numbers of the network on u: z = k u + shift in every column."""
    n, width = net.n_features, net.width.astype(np.float64)
    nothing, one = np.zeros(n), np.ones(n)
    if net.low is None:
        return Scaling.identity(n), net.steps, _narrow(net.residual).astype(np.float64)
    center = net.low + width / 2.0
    scaling = Scaling(np.zeros(n, bool), nothing, one, center, 1.0 / np.where(width, width, 1.0))
    k, shift = (one, np.full(n, 0.5)) if net.layout == "allen" else (width, center)
    layers = list(net.layers)
    weight, bias = layers[0]
    first = _narrow(bias + weight.astype(np.float64) @ shift)
    layers[0] = _narrow(away_from_zero(weight * k, "float32")), first
    weight, bias = layers[-1]
    layers[-1] = weight, _narrow(bias.astype(np.float64) + net.residual @ shift)
    _narrow(net.residual * k)
    residual = toward_zero(net.residual * k, "float32").astype(np.float64)
    return scaling, steps_of(layers), residual


def _narrow(values: NDArray[Any]) -> Singles:
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    if not np.all(np.isfinite(found)):
        raise ValueError("a number times the width of its box is beyond float32; it must fit")
    return found


def _names(net: SigmaNet, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the features: given, or as isotone wrote them, or x0, x1, ..."""
    default = [f"x{i}" for i in range(net.n_features)]
    stated = (net.about or {}).get("features", default)
    fits = isinstance(stated, list) and all(isinstance(name, str) for name in stated)
    fits = fits and len(set(stated)) == len(stated) == net.n_features
    names = tuple((stated if fits else default) if given is None else given)
    if len(names) != net.n_features:
        raise ValueError(
            f"`features` has {len(names)} names; the file has {net.n_features} features: give one "
            "name for each, in their order"
        )
    return names


def _clip(net: SigmaNet, given: float | None) -> float:
    """Where inputs without a box are clamped; the evaluator does not clamp them."""
    if given is not None:
        return given
    stated = (net.about or {}).get("reach")
    usable = isinstance(stated, int | float) and 2.0**-64 <= stated <= 2.0**64
    return float(np.float32(stated)) if usable and stated is not None else _CLIP


def _provenance(net: SigmaNet, boxed: bool) -> dict[str, Any]:
    about: dict[str, Any] = {"read from": f"JSON for {net.layout}"}
    if net.cut is not None:
        about |= {"nominal_cut": float(net.cut), "passes": PASSES}
    if boxed:
        about["rounding"] = "E is that of isotone; `isotone certify FILE` tells the evaluator's"
    else:
        about["clip"] = "inputs are clamped here, but not by the evaluator"
    source = (net.about or {}).get("fingerprint")
    return about | ({"exported from": source} if isinstance(source, str) else {})
