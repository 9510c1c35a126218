"""Architecture: the modules of a network, from widths or as given, all of known constant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, cast

import torch
from torch import Tensor, nn

from isotone import limits
from isotone.checks import check_divides
from isotone.nn.interactions import Interactions, check_groups, make_masks
from isotone.nn.layers import (
    BoundedLayer,
    Center,
    GroupSort,
    LipschitzConv1d,
    LipschitzConv2d,
    LipschitzLinear,
    Residual,
    pointwise,
)

Layers = Sequence[int] | Sequence[nn.Module]

_KNOWN = (LipschitzLinear, LipschitzConv1d, LipschitzConv2d, GroupSort, Center, nn.Identity)


def make_modules(
    layers: Layers, group_size: int | None, interaction_cst: Interactions = None
) -> list[nn.Module]:
    """Modules of a dense network of the given widths, or the given modules, checked."""
    if _are_widths(layers):
        return _dense(layers, group_size, interaction_cst)
    if interaction_cst is not None:
        raise ValueError(
            "`interaction_cst` is for a network that is given by its widths, such as [4, 20, 1]; "
            "give these, or `LipschitzLinear(..., mask=...)` among the modules"
        )
    return _checked(layers)


def _are_widths(layers: Layers) -> bool:
    if not isinstance(layers, Iterable):
        raise TypeError(f"`layers={layers!r}` must be a list of widths, such as [4, 20, 20, 1]")
    return all(isinstance(layer, Integral) for layer in layers)


def _dense(
    layers: Layers, group_size: int | None, interaction_cst: Interactions
) -> list[nn.Module]:
    widths = [int(cast(int, width)) for width in layers]
    if len(widths) < 2:
        raise ValueError(f"`layers={widths}` needs at least the numbers of inputs and of outputs")
    for width in widths[1:-1]:
        check_divides(group_size or width, width)
        limits.GROUP.check(group_size or width)
    masks = make_masks(check_groups(interaction_cst, widths[0]), widths, group_size)
    modules: list[nn.Module] = []
    for (n_in, n_out), mask in zip(pairwise(widths), masks, strict=True):
        modules += [LipschitzLinear(n_in, n_out, mask=mask), GroupSort(group_size=group_size)]
    return modules[:-1]


def _checked(layers: Layers) -> list[nn.Module]:
    """The modules, all of them of known Lipschitz constant."""
    for layer in layers:
        if not isinstance(layer, nn.Module):
            raise TypeError(
                f"`layers` holds {layer!r}; give only whole numbers, the widths, or only modules"
            )
        if type(layer) is Residual:
            _checked(list(layer.branch))
        elif not _is_known(layer):
            raise ValueError(
                f"{layer} cannot be part of a Lipschitz network: {_why_refused(layer)}"
            )
    modules = [cast(nn.Module, layer) for layer in layers]
    if len({id(m) for top in modules for m in top.modules()}) < sum(
        len(list(top.modules())) for top in modules
    ):
        raise ValueError("`layers` contains one module twice; make two modules")
    return modules


def _is_known(module: nn.Module) -> bool:
    """Whether the Lipschitz constant is known; subclasses are not, they may do anything."""
    if type(module) is nn.Flatten:
        return (module.start_dim, module.end_dim) == (1, -1)
    return type(module) in _KNOWN or pointwise(module) is not None


def _why_refused(module: nn.Module) -> str:
    """Why a module that is not known to be Lipschitz cannot be part of a network."""
    name = type(module).__name__
    if isinstance(module, nn.modules.batchnorm._NormBase) or "Norm" in name:
        return "it divides by a spread that may be arbitrarily small; use Center instead"
    if isinstance(module, nn.Linear | nn.modules.conv._ConvNd):
        return f"its weights have no bound; use Lipschitz{name}"
    if "Dropout" in name:
        return "it enlarges the units that it keeps; leave it out, the bound already regularizes"
    if isinstance(module, nn.Flatten):
        return "it flattens only some of the axes; use nn.Flatten()"
    if isinstance(module, nn.Sequential):
        return "it hides modules; give them one by one, as *sequential"
    if isinstance(module, nn.PReLU):
        return "its learned slope has no bound; use LeakyReLU or GroupSort"
    return "its Lipschitz constant is not known; use GroupSort, Abs, ReLU, LeakyReLU, Tanh, ..."


def find_input_shape(
    modules: list[nn.Module], declared: tuple[int, ...] | None
) -> tuple[int, ...]:
    if declared is not None:
        if isinstance(declared, int):
            raise ValueError(f"`input_shape={declared}` must be a tuple, such as ({declared},)")
        return tuple(declared)
    for module in modules:
        if isinstance(module, LipschitzLinear):
            return (module.weight.shape[1],)
        if isinstance(module, BoundedLayer | Residual | nn.Flatten):
            break
    raise ValueError(
        "`input_shape` is needed for a network that does not begin with a LipschitzLinear; give "
        "(n_features,), (channels, length) or (channels, height, width)"
    )


def activation_constant(modules: list[nn.Module]) -> float:
    """Product of the Lipschitz constants of the activations."""
    steps = [pointwise(module) for module in modules]
    return math.prod(step.constant for step in steps if step is not None)


@torch.no_grad()
def count_outputs(layers: nn.Sequential, shape: tuple[int, ...]) -> int:
    """Send one row of zeros through the layers to see that they fit, each other and the limits."""
    _check_sizes(layers, math.prod(shape))
    layers.eval()
    dtype = next((parameter.dtype for parameter in layers.parameters()), torch.float32)
    x = torch.zeros(1, *shape, dtype=dtype)
    meter = _Meter()
    hooks = [module.register_forward_hook(meter) for module in layers.modules()]
    try:
        x = _send(layers, x)
    finally:
        for hook in hooks:
            hook.remove()
        layers.train()
    if x.ndim != 2:
        raise ValueError(
            f"the layers end in units of shape {tuple(x.shape[1:])}; a network must end in a row "
            "of outputs: add nn.Flatten() and a LipschitzLinear"
        )
    limits.OUTPUTS.check(x.shape[1])
    limits.SLOPES.check(x.shape[1] * math.prod(shape))
    return x.shape[1]


def _send(layers: nn.Sequential, x: Tensor) -> Tensor:
    for i, layer in enumerate(layers):
        before = tuple(x.shape[1:])
        try:
            x = layer(x)
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"layer {i}, {layer}, cannot take units of shape {before}: {error}"
            ) from error
    return x


def _check_sizes(layers: nn.Sequential, n_features: int) -> None:
    """Refuse what could be trained but not be frozen."""
    limits.FEATURES.check(n_features)
    leaves = [m for m in layers.modules() if not isinstance(m, nn.Sequential)]
    n_blocks = sum(isinstance(m, Residual) for m in leaves)
    limits.STEPS.check(len(leaves) + n_blocks)
    limits.DEPTH.check(_depth(layers))
    weights = [m.weight for m in leaves if isinstance(m, BoundedLayer)]
    limits.TENSORS.check(2 * len(weights) + 1)


def _depth(layers: Iterable[nn.Module]) -> int:
    """How deep residual blocks are nested."""
    return max((1 + _depth(m.branch) for m in layers if isinstance(m, Residual)), default=0)


class _Meter:
    """A hook after every module: how many units it has, and numbers of all once unrolled."""

    n_numbers = 0

    def __call__(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        before, after = (x[0].numel() for x in (inputs[0], output))
        limits.WIDTH.check(after)
        if isinstance(module, BoundedLayer):
            limits.MATRIX.check(before * after)
            self.n_numbers += (before + 1) * after
            limits.BYTES.check(8 * self.n_numbers)
