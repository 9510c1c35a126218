"""Layers with a known Lipschitz constant, for use inside a network.

`LipschitzLinear`, `LipschitzConv1d` and `LipschitzConv2d` carry weights within a bound.
`GroupSort` is the activation to use: it keeps the norm of every gradient, so that no slope is
lost (Sec. 2.2, "preserving expressive power"). `Center` stands in for batch normalization.
`Residual` helps in deep networks. Which norm bounds which layer is decided by the network
(`constrain`), never layer by layer: bounds of two different kinds do not multiply to a third.
"""

from __future__ import annotations

import math
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from isotone import limits
from isotone.checks import check_count
from isotone.frozen.steps import Pointwise
from isotone.nn.group_sort import group_sort
from isotone.nn.norms import NORMS, Norm, Sizes, column_sums, project, row_norms
from isotone.typing import Chain

Apply = Literal["direct", "project"]


@dataclass(frozen=True)
class Constraint:
    """How the weights of one layer are bounded.

    Parameters
    ----------
    bound : λ^(1/m)
    chain : "one" measures units by the 1-norm, "inf" by the ∞-norm
    dual : in the ∞ chain, the norm of the rows: dual to the norm of this layer's inputs
    norm : which function of `isotone.nn.norms`
    apply : "direct" in every forward pass (Algorithm 1), "project" after every optimizer step
    """

    bound: float = 1.0
    chain: Chain = "one"
    dual: float = 1.0
    norm: Norm = "columns"
    apply: Apply = "direct"


class BoundedLayer(nn.Module, ABC):
    """A layer whose weight is normalized before use.

    Where it has a mask, weights outside of it count as zeros and have no gradient.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    mask: Tensor | None
    constraint: Constraint

    def __init__(self, weight: Tensor, bias: bool, mask: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.register_buffer("mask", mask, persistent=False)
        self.bias = nn.Parameter(torch.zeros(weight.shape[0])) if bias else None
        self.constraint = Constraint()
        self._in_network = False
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """PyTorch's own default: uniform within 1/√(number of inputs)."""
        limit = 1.0 / math.sqrt(self.weight[0].numel())
        parameters = [p for p in (self.weight, self.bias) if p is not None]
        for parameter in parameters:
            nn.init.uniform_(parameter, -limit, limit)
        if self.mask is not None:
            larger = 1.0 / (limit * self.mask.sum(dim=1).sqrt())  # units have fewer inputs
            with torch.no_grad():
                self.weight.mul_(self.mask)
                for parameter in parameters:
                    parameter.mul_(larger.reshape(-1, *[1] * (parameter.ndim - 1)))

    def constrain(self, constraint: Constraint) -> None:
        """Called once, by the network that the layer is part of."""
        if self._in_network:
            raise ValueError(
                f"{self} is already part of another network, whose bound would change; make a new "
                "layer, or copy.deepcopy the network"
            )
        self.constraint, self._in_network = constraint, True
        self._enlist()

    def _enlist(self) -> None:
        if self.constraint.apply == "project":
            _PROJECTED.add(self)

    @abstractmethod
    def sizes(self) -> Sizes:
        """What the constraint measures of this layer's weight."""

    def masked(self) -> Tensor:
        """The weight with zeros outside of the mask."""
        return self.weight if self.mask is None else self.weight * self.mask

    def normalized(self) -> Tensor:
        """The weight that is used."""
        c, weight = self.constraint, self.masked()
        used = NORMS[c.norm](weight, c.bound, self.sizes())
        if c.apply == "direct":
            return used
        # The value is the normalized one in any case; gradients pass as if it were the parameter,
        # which after an optimizer step it is, but for the factor of the rescaled norm.
        scale = c.bound if c.norm == "rescaled-matrix" else 1.0
        return used.detach() + scale * (weight - weight.detach())

    @torch.no_grad()
    def project_(self) -> None:
        """Put an infeasible weight back into the feasible set."""
        c = self.constraint
        self.weight.copy_(project(self.masked(), c.bound, self.sizes(), c.norm))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._enlist()  # a copy is projected too


_PROJECTED: weakref.WeakSet[BoundedLayer] = weakref.WeakSet()


def _project_after_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Project the layers whose weights `optimizer` has just changed."""
    if not _PROJECTED:
        return
    changed = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for layer in list(_PROJECTED):
        if layer.constraint.apply == "project" and id(layer.weight) in changed:
            layer.project_()


# For every optimizer of the process, so that nobody can forget it; without layers that are
# projected it costs one comparison a step.
register_optimizer_step_post_hook(_project_after_step)


class LipschitzLinear(BoundedLayer):
    """W' x + b with a normalized weight.

    Parameters
    ----------
    mask : (n_out, n_in), true where there may be weights; None is everywhere

    Examples
    --------
    >>> layer = LipschitzLinear(2, 3)
    >>> bool(layer.normalized().abs().sum(dim=0).max() <= 1.000001)
    True
    """

    def __init__(
        self, n_in: int, n_out: int, bias: bool = True, mask: Tensor | None = None
    ) -> None:
        limits.WIDTH.check(check_count("n_in", n_in))
        limits.WIDTH.check(check_count("n_out", n_out))
        limits.MATRIX.check(int(n_in) * int(n_out))
        if mask is not None and tuple(mask.shape) != (n_out, n_in):
            raise ValueError(
                f"`mask` has shape {tuple(mask.shape)}; a weight of {n_in} inputs and {n_out} "
                f"outputs needs {(n_out, n_in)}"
            )
        super().__init__(torch.empty(n_out, n_in), bias, None if mask is None else mask.bool())

    def sizes(self) -> Sizes:
        if self.constraint.chain == "one":
            return column_sums
        return partial(row_norms, p=self.constraint.dual)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 2:
            raise ValueError(
                f"LipschitzLinear takes rows (n, {self.weight.shape[1]}) but got shape "
                f"{tuple(x.shape)}; put nn.Flatten() before it"
            )
        return nn.functional.linear(x, self.normalized(), self.bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, {self.constraint}"


class LipschitzConv(BoundedLayer):
    r"""A convolution, zero padded, whose matrix has normalized columns (or rows).

    A column of the convolution's matrix belongs to one input position. With stride s and dilation
    d the taps t that reach it are those with equal :math:`t d \bmod s`, so the taps fall into
    classes, and Eq. 8 normalizes each input channel and class by itself: the bound is that of the
    dense matrix, reached away from the borders. (The paper says that Eq. 8 does not work for
    convolutions; written for the dense matrix, it does.) In the ∞ chain a row is one output
    channel.
    """

    _axes: ClassVar[int]
    _function: ClassVar[Callable[..., Tensor]]
    _classes: Tensor

    def __init__(
        self,
        n_in: int,
        n_out: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        bias: bool = True,
    ) -> None:
        check_count("n_in", n_in)
        check_count("n_out", n_out)
        kernel = _per_axis(kernel_size, self._axes, "kernel_size")
        limits.MATRIX.check(int(n_in) * int(n_out) * math.prod(kernel))
        super().__init__(torch.empty(n_out, n_in, *kernel), bias)
        self.stride = _per_axis(stride, self._axes, "stride")
        self.padding = _per_axis(padding, self._axes, "padding", least=0)
        self.dilation = _per_axis(dilation, self._axes, "dilation")
        self.register_buffer("_classes", self._tap_classes(kernel), persistent=False)

    def sizes(self) -> Sizes:
        return self._class_sums if self.constraint.chain == "one" else self._channel_norms

    def forward(self, x: Tensor) -> Tensor:
        return self.convolve(x, self.normalized(), self.bias)

    def convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self._function(x, weight, bias, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        shape = tuple(self.weight.shape)
        return f"{shape}, stride={self.stride}, padding={self.padding}, {self.constraint}"

    def _tap_classes(self, kernel: tuple[int, ...]) -> Tensor:
        """Number of the class of every tap, flattened."""
        classes = torch.zeros(1, dtype=torch.long)
        for size, stride, dilation in zip(kernel, self.stride, self.dilation, strict=True):
            axis = torch.arange(size) * dilation % stride
            classes = (classes[:, None] * stride + axis).flatten()
        return classes

    def _class_sums(self, weight: Tensor) -> Tensor:
        sums = weight.abs().sum(dim=0).flatten(1)  # (n_in, taps)
        by_class = sums.new_zeros(len(sums), math.prod(self.stride))
        classes = self._classes.to(weight.device)
        by_class = by_class.index_add(1, classes, sums)
        return by_class[:, classes].reshape(1, *weight.shape[1:])

    def _channel_norms(self, weight: Tensor) -> Tensor:
        norms = row_norms(weight.flatten(1), self.constraint.dual)
        return norms.reshape(-1, *[1] * (weight.ndim - 1))


class LipschitzConv1d(LipschitzConv):
    """`LipschitzConv` along one axis: (n, channels, length)."""

    _axes = 1
    _function = staticmethod(nn.functional.conv1d)


class LipschitzConv2d(LipschitzConv):
    """`LipschitzConv` along two axes: (n, channels, height, width)."""

    _axes = 2
    _function = staticmethod(nn.functional.conv2d)


class GroupSort(nn.Module):
    """Sort the units in groups of `group_size` (Eq. 9): a nonlinearity with gradient 1.

    None sorts all units at once, as the paper's trigger network does; 2 is MaxMin. Units of images
    are their channels.

    Examples
    --------
    >>> GroupSort(group_size=2)(torch.tensor([[3.0, 1.0, 2.0, 5.0]]))
    tensor([[1., 3., 2., 5.]])
    """

    def __init__(self, *, group_size: int | None) -> None:
        super().__init__()
        if group_size is not None:
            limits.GROUP.check(check_count("group_size", group_size))
        self.group_size = group_size

    def forward(self, x: Tensor) -> Tensor:
        size = self.group_size or x.shape[1]
        limits.GROUP.check(size)
        if x.ndim == 2:
            return group_sort(x, size)
        return group_sort(x.movedim(1, -1), size).movedim(-1, 1)

    def extra_repr(self) -> str:
        return f"group_size={self.group_size}"


class Abs(nn.Module):
    """The absolute value, with gradient ±1."""

    def forward(self, x: Tensor) -> Tensor:
        return x.abs()


class Center(nn.Module):
    """Subtract a running mean of every unit (or channel): batch normalization without a division.

    Dividing by a spread would change the Lipschitz constant (Sec. 5 of the paper); subtracting a
    constant does not.
    """

    mean: Tensor

    def __init__(self, width: int, momentum: float = 0.1) -> None:
        super().__init__()
        check_count("width", width)
        if not 0 < momentum <= 1:
            raise ValueError(f"`momentum={momentum}` must lie in (0, 1]; 0.1 is usual")
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                batch = x.movedim(1, -1).reshape(-1, len(self.mean)).mean(dim=0)
                self.mean.lerp_(batch.to(self.mean.dtype), self.momentum)
        return x - self.mean.reshape(-1, *[1] * (x.ndim - 2)).clone()


class Residual(nn.Module):
    r"""A residual block that keeps the bound: :math:`(1 - a)\,x + a\,F(x)`, a learned.

    F is the given layers with bound 1, so the sum has bound 1 in every norm. Begins at a = 1/2.
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        if not layers:
            raise ValueError("`Residual` needs at least one layer; give the layers of its branch")
        self.branch = nn.Sequential(*layers)
        self.mix = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        branch = self.branch(x)
        if branch.shape != x.shape:
            raise ValueError(
                f"the branch of a Residual takes units of shape {tuple(x.shape[1:])} to "
                f"{tuple(branch.shape[1:])}; it must keep their shape"
            )
        return torch.lerp(x, branch, torch.sigmoid(self.mix))


def pointwise(module: nn.Module) -> Pointwise | None:
    """The frozen form of an activation of known Lipschitz constant, or None for other modules."""
    if type(module) not in _ACTIVATIONS:  # a subclass may do anything
        return None
    match module:
        case nn.LeakyReLU(negative_slope=slope):
            return Pointwise("leaky_relu", float(slope))
        case nn.Hardtanh(min_val=low, max_val=high) if (low, high) != (-1.0, 1.0):
            return None
        case nn.Softplus(beta=beta, threshold=threshold) if (beta, threshold) != (1, 20):
            return None
    return Pointwise(_ACTIVATIONS[type(module)])


_ACTIVATIONS: dict[type[nn.Module], str] = {
    nn.ReLU: "relu",
    nn.LeakyReLU: "leaky_relu",
    Abs: "abs",
    nn.Hardtanh: "hardtanh",
    nn.Tanh: "tanh",
    nn.Sigmoid: "sigmoid",
    nn.Softplus: "softplus",
}


ACTIVATION_TYPES = tuple(_ACTIVATIONS)


def _per_axis(
    value: int | tuple[int, ...], axes: int, name: str, least: int = 1
) -> tuple[int, ...]:
    values = (value,) * axes if isinstance(value, int) else tuple(value)
    if len(values) != axes or any(not isinstance(v, int) or v < least for v in values):
        raise ValueError(
            f"`{name}={value!r}` must be a whole number of at least {least}, or {axes} of them"
        )
    return values
