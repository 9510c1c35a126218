"""LipschitzNetwork is g (Eq. 2, 5), MonotonicNetwork is f = g + Σ sᵢ λᵢ xᵢ (Eq. 3).

Networks take scaled inputs. The network decides how every layer is bounded, so that no composition
can be built whose layers are each within a bound but whose product is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import takewhile
from typing import Literal, TypedDict, Unpack, cast

import numpy as np
import torch
from torch import Tensor, nn

from isotone.checks import check_choice, check_directions, refuse_rivals
from isotone.nn.architecture import (
    Layers,
    activation_constant,
    count_outputs,
    find_input_shape,
    make_modules,
)
from isotone.nn.initialization import Init, initialize
from isotone.nn.interactions import Interactions
from isotone.nn.layers import (
    ACTIVATION_TYPES,
    Apply,
    BoundedLayer,
    Center,
    Constraint,
    GroupSort,
    Residual,
)
from isotone.nn.norms import NORMS, Norm
from isotone.typing import Chain, Floats, Metric, Outputs

MetricOrder = Literal[1, 2] | float

_METRICS: dict[float, Metric] = {1: "1", 2: "2", math.inf: "inf"}
_LEAST = 1e-20  # smallest λ
_START = 0.1  # of a λ that is learned: small, or it does not find the features that need little
_LOG_RANGE = 4.6  # a λ that is learned is at least a hundredth of where it starts
_DUAL = {"1": math.inf, "2": 2.0, "inf": 1.0}


class Options(TypedDict, total=False):
    """The choices that both kinds of network share; see `LipschitzNetwork`."""

    lipschitz: float | Sequence[float] | Floats | Literal["learned"]
    lipschitz_max: float | Sequence[float] | Floats
    chain: Chain | None
    norm: Norm
    apply: Apply
    group_size: int | None
    interaction_cst: Interactions
    init: Init
    outputs: Outputs
    input_shape: tuple[int, ...] | None


class LipschitzNetwork(nn.Module):
    r"""g with :math:`|g_j(x) - g_j(y)| \le \|\Lambda(x - y)\|_p`, Eq. 2 with one λ per feature.

    The per-layer bound is λ^(1/m) for m weight matrices (the paper's product starts at i = 0, but
    g has m matrices: we count m), λ being the largest λᵢ; the others come from rescaled inputs.

    With ``lipschitz="learned"`` every λᵢ = exp θᵢ is a parameter: a feature that needs a steep
    slope gets one, the others become flat, and the network is as robust as its task allows.

    Parameters
    ----------
    layers : widths of a dense network with GroupSort between its layers, such as [4, 20, 20, 1];
        or modules of `isotone.nn.layers` and activations of known constant, whose weights are
        initialized again
    lipschitz : λ, or one λᵢ per feature, for scaled inputs; "learned" begins small
    lipschitz_max : the largest λ that may be learned, or one per feature
    metric : p, one of 1, 2 and infinity
    chain : "one" or "inf"; by default "one" (the paper's) for one output and metric 1, otherwise
        "inf", which bounds every output by itself
    norm : "columns" (Eq. 8), "matrix" or "rescaled-matrix" (Eq. 7)
    apply : "direct" (Algorithm 1) or "project"
    group_size : for widths: size of the groups that are sorted; None sorts all
    interaction_cst : for widths: groups of features that may interact, by position; g is a sum of
        functions of each, see `isotone.nn.interactions`
    init : how weights are initialized; see `isotone.nn.initialization`
    outputs : "values", or "logits" of two classes (one output) or of several
    input_shape : for modules that begin with a convolution: (channels, length) or
        (channels, height, width); rows are such arrays, flattened

    Examples
    --------
    >>> network = LipschitzNetwork([2, 8, 1], lipschitz=[1.0, 3.0])
    >>> network(torch.zeros(5, 2)).shape
    torch.Size([5, 1])
    """

    _scale: Tensor
    log_lipschitz: nn.Parameter | None

    def __init__(
        self,
        layers: Layers,
        *,
        lipschitz: float | Sequence[float] | Floats | Literal["learned"] = 1.0,
        lipschitz_max: float | Sequence[float] | Floats = 8.0,
        metric: MetricOrder = 1,
        chain: Chain | None = None,
        norm: Norm = "columns",
        apply: Apply = "direct",
        group_size: int | None = None,
        interaction_cst: Interactions = None,
        init: Init = "orthogonal",
        outputs: Outputs = "values",
        input_shape: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        modules = make_modules(layers, group_size, interaction_cst)
        self.layers = nn.Sequential(*modules)
        self.input_shape = find_input_shape(modules, input_shape)
        self.n_features = math.prod(self.input_shape)
        self.n_outputs = count_outputs(self.layers, self.input_shape)
        self.outputs: Outputs = check_choice("outputs", outputs, ("values", "logits"))
        self.metric = _metric(metric)
        self.chain = self._choose_chain(chain)
        is_learned = isinstance(lipschitz, str) and lipschitz == "learned"
        fixed = 1.0 if is_learned else cast(Floats, lipschitz)
        self._lipschitz = _per_feature("lipschitz", fixed, self.n_features)
        self.lipschitz_max = _per_feature("lipschitz_max", lipschitz_max, self.n_features)
        self.constant = float(self._lipschitz.max())  # of the layers
        scale = torch.as_tensor(self._lipschitz / self.constant)
        self.register_buffer("_scale", scale, persistent=False)
        start = torch.as_tensor(np.log(np.minimum(_START, self.lipschitz_max)))
        self.log_lipschitz = (
            nn.Parameter(start.to(torch.get_default_dtype())) if is_learned else None
        )
        self._constrain(
            check_choice("norm", norm, tuple(NORMS)),
            check_choice("apply", apply, ("direct", "project")),
        )
        initialize(self.layers, init)
        if apply == "project":
            for layer in self.layers.modules():
                if isinstance(layer, BoundedLayer):
                    layer.project_()

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        return next(self.layers.parameters()).dtype

    @property
    def lipschitz(self) -> Floats:
        """λ of every feature, as it is now."""
        if self.log_lipschitz is None:
            return self._lipschitz
        logarithm = self.log_lipschitz.detach().cpu().double().numpy()
        learned: Floats = np.minimum(np.exp(logarithm), self.lipschitz_max)
        return learned

    @property
    def feature_scale(self) -> Tensor:
        """λ of every feature over the constant of the layers, (n_features,)."""
        if self.log_lipschitz is None:
            return self._scale
        _, highest = log_limits(self.lipschitz_max, self.log_lipschitz)
        return self.log_lipschitz.clamp(max=highest).exp()

    def g(self, x: Tensor) -> Tensor:
        """The Lipschitz part, (n_rows, n_outputs), for scaled rows."""
        scaled = x * self.feature_scale.to(x.dtype)
        return cast(Tensor, self.layers(scaled.reshape(-1, *self.input_shape)))

    def forward(self, x: Tensor) -> Tensor:
        """Scores (n_rows, n_outputs) of scaled rows (n_rows, n_features)."""
        return self.g(self._rows(x))

    def residual(self) -> Floats:
        """Coefficients of the linear term, (n_outputs, n_features)."""
        return np.zeros((self.n_outputs, self.n_features))

    def residual_per_lipschitz(self) -> Floats:
        """The coefficients where every λ is 1."""
        return np.zeros((self.n_outputs, self.n_features))

    def directions(self) -> Floats:
        """-1, 0 or +1 for every output and feature."""
        return np.zeros((self.n_outputs, self.n_features))

    def describe_lipschitz(self) -> str:
        """What λ are, or what bounds them if they are learned: the same before and after."""
        is_learned = self.log_lipschitz is not None
        return f"learned {self.lipschitz_max.tolist()}" if is_learned else f"{self.lipschitz}"

    @torch.no_grad()
    def limit_lipschitz(self) -> None:
        """Take λ that are learned back to between their limits."""
        if self.log_lipschitz is not None:
            self.log_lipschitz.clamp_(*log_limits(self.lipschitz_max, self.log_lipschitz))

    def _rows(self, x: Tensor) -> Tensor:
        if x.ndim > 1 and math.prod(x.shape[1:]) == self.n_features:
            return x.reshape(len(x), self.n_features)
        raise ValueError(
            f"the network takes rows of {self.n_features} features but got shape "
            f"{tuple(x.shape)}; give (n_rows, {self.n_features})"
        )

    def _choose_chain(self, chain: Chain | None) -> Chain:
        if chain is None:
            return "one" if self.metric == "1" and self.n_outputs == 1 else "inf"
        check_choice("chain", chain, ("one", "inf"))
        if chain == "one" and self.metric != "1":
            raise ValueError(
                f"`chain='one'` bounds 1-norms and cannot give a constant in metric "
                f"{self.metric}; leave `chain` out, or use metric=1"
            )
        return chain

    def _constrain(self, norm: Norm, apply: Apply) -> None:
        modules = list(self.layers)
        bounded = [m for m in modules if isinstance(m, BoundedLayer)]
        if not bounded:
            raise ValueError(
                "a network needs at least one layer with weights, such as LipschitzLinear"
            )
        first_norm = 1.0 if self.chain == "one" else _DUAL[self.metric]
        self._refuse_before_weights(modules)
        bound = _root(self.constant / activation_constant(modules), len(bounded))
        for i, layer in enumerate(bounded):
            dual = first_norm if i == 0 else 1.0
            layer.constrain(Constraint(bound, self.chain, dual, norm, apply))
        for block in modules:
            if isinstance(block, Residual):
                self._constrain_branch(block, norm, apply)

    def _constrain_branch(self, block: Residual, norm: Norm, apply: Apply) -> None:
        modules = list(block.branch)
        bounded = [m for m in modules if isinstance(m, BoundedLayer)]
        if not bounded:
            raise ValueError("a `Residual` needs a layer with weights; give it a LipschitzLinear")
        bound = _root(1.0 / activation_constant(modules), len(bounded))
        for layer in bounded:
            layer.constrain(Constraint(bound, self.chain, 1.0, norm, apply))
        for inner in modules:
            if isinstance(inner, Residual):
                self._constrain_branch(inner, norm, apply)

    def _refuse_before_weights(self, modules: list[nn.Module]) -> None:
        """Nothing may come before the first weights that they do not measure in the same norm."""
        early = list(takewhile(lambda module: not isinstance(module, BoundedLayer), modules))
        if self.chain == "one" or self.metric == "inf":
            return
        refused: tuple[type[nn.Module], ...] = (Residual,)
        if self.metric == "2":
            refused = (Residual, GroupSort, Center, *ACTIVATION_TYPES)
        for module in early:
            if isinstance(module, refused):
                raise ValueError(
                    f"{type(module).__name__} before the first weights would be measured in the "
                    f"{self.metric}-norm of the inputs and in the ∞-norm of the units; put a "
                    "LipschitzLinear before it"
                )


class MonotonicNetwork(LipschitzNetwork):
    r"""f = g + Σ r x: increasing, decreasing or free in every feature, as you say.

    Eq. 3 and 4. Along a feature with direction s the residual has slope s λᵢ, so that the slope
    of f lies in [0, 2λᵢ] for s = 1, in [-2λᵢ, 0] for s = -1, and in [-λᵢ, λᵢ] for s = 0.

    With least slopes e the residual is s (λᵢ + eᵢ): along a feature with a direction f goes that
    way by at least eᵢ per unit. A promise about several inputs at once needs that, such
    as that a missing value is never better than any value.

    **Several classes.** A direction for class k is about its *probability*. The residual is then
    2 s λᵢ xᵢ in logit k alone. Proof: :math:`P_k = 1/\sum_l \exp(z_l - z_k)` rises with xᵢ if no
    :math:`z_k - z_l` falls. Each g has slope at least -λᵢ and at most λᵢ, so :math:`g_k - g_l` has
    slope at least -2λᵢ, and the residual of class k adds 2λᵢ to it; a falling class l adds 2λᵢ
    more. If two classes had to rise, their difference would have to be constant: refused.

    Parameters
    ----------
    monotonic_cst : one of -1, 0, +1 per feature, or (n_outputs, n_features)
    least_slopes : e, not negative: one number, or one per feature; for several classes the
        differences of logits go by at least 2e. Features without a direction ignore it
    layers, ... : as for `LipschitzNetwork`; `metric` must be 1

    Examples
    --------
    >>> network = MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 0], lipschitz=2.0)
    >>> low, high = network(torch.tensor([[0.0, 0.5], [1.0, 0.5]])).flatten().tolist()
    >>> low <= high
    True
    """

    _residual: Tensor

    def __init__(
        self,
        layers: Layers,
        *,
        monotonic_cst: Sequence[int] | Sequence[Sequence[int]] | Floats,
        least_slopes: float | Sequence[float] | Floats = 0.0,
        metric: MetricOrder = 1,
        **options: Unpack[Options],
    ) -> None:
        if metric != 1:
            raise ValueError(
                f"`metric={metric}` cannot be combined with monotonicity: only the 1-norm bounds "
                "every partial derivative by itself, in the others they share one bound and the "
                "residual would have to be larger; use metric=1, or a LipschitzNetwork"
            )
        super().__init__(layers, metric=metric, **options)
        shape = self.n_outputs, self.n_features
        directions = check_directions("monotonic_cst", monotonic_cst, *shape)
        if self._of_classes:
            refuse_rivals(directions)
        self._directions = directions.astype(np.float64)
        self._least_slopes = _least_per_feature(least_slopes, self.n_features)
        if self._least_slopes.any() and self.log_lipschitz is not None:
            raise ValueError(
                "`least_slopes` are for λ that are known; with lipschitz='learned' leave them out"
            )
        self.register_buffer("_residual", torch.as_tensor(self.residual()), persistent=False)

    @property
    def _of_classes(self) -> bool:
        return self.outputs == "logits" and self.n_outputs > 1

    def residual(self) -> Floats:
        return self.residual_per_lipschitz() * (self.lipschitz + self._least_slopes)

    def residual_per_lipschitz(self) -> Floats:
        return (2.0 if self._of_classes else 1.0) * self._directions

    def directions(self) -> Floats:
        return self._directions

    def forward(self, x: Tensor) -> Tensor:
        rows, residual = self._rows(x), self._residual
        if self.log_lipschitz is not None:
            residual = torch.as_tensor(self.residual_per_lipschitz()).to(x) * self.feature_scale
        return self.g(rows) + rows @ residual.T.to(x.dtype)


def log_limits(lipschitz_max: Floats, like: Tensor) -> tuple[Tensor, Tensor]:
    """The lowest and the highest logarithm of λ that are learned."""
    highest = torch.as_tensor(np.log(lipschitz_max)).to(like)
    return highest.clamp(max=math.log(_START)) - _LOG_RANGE, highest


def _metric(metric: MetricOrder) -> Metric:
    if not isinstance(metric, int | float) or metric not in _METRICS:
        raise ValueError(f"`metric={metric!r}` must be 1, 2 or infinity (math.inf)")
    return _METRICS[metric]


def _per_feature(
    name: str, lipschitz: float | Sequence[float] | Floats, n_features: int
) -> Floats:
    if isinstance(lipschitz, str):
        raise TypeError(
            f"`{name}={lipschitz!r}` is text; give one number, one per feature, or "
            "lipschitz='learned'"
        )
    values = np.asarray(lipschitz, dtype=np.float64)
    if values.ndim and values.shape != (n_features,):
        raise ValueError(
            f"`{name}` has shape {values.shape} but the network has {n_features} features; "
            "give one number, or one per feature"
        )
    if not np.all((values >= _LEAST) & (values <= 1.0 / _LEAST)):
        raise ValueError(
            f"`{name}={lipschitz}` must be positive, and between {_LEAST:g} and {1 / _LEAST:g} "
            "so that float32 can hold the weights; choose other units"
        )
    return np.broadcast_to(values, (n_features,)).copy()


def _least_per_feature(values: float | Sequence[float] | Floats, n_features: int) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    fits = numbers.shape in ((), (n_features,))
    if not fits or not np.all((numbers >= 0) & (numbers <= 1.0 / _LEAST)):
        raise ValueError(
            f"`least_slopes={values}` must be between 0 and {1 / _LEAST:g}, one number or one for "
            f"each of {n_features} features; leave it out for none"
        )
    return np.broadcast_to(numbers, (n_features,)).copy()


def _root(bound: float, m: int) -> float:
    """The largest float near bound^(1/m) whose m-th power does not exceed `bound`."""
    root = math.pow(bound, 1.0 / m)
    while Fraction(root) ** m > Fraction(bound):
        root = math.nextafter(root, 0.0)
    return root
