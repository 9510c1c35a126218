"""GroupSort: the activation that sorts its inputs in groups.

`group_sort` is the only function to use. On the CPU it runs sorting networks of the compiled
engine, many groups at a time; elsewhere it runs `torch.sort`. Both give the same bits, forward and
backward: equal values keep their order, 0.0 and -0.0 are equal, NaN comes last. (Unless denormal
numbers are flushed to zero, `torch.set_flush_denormal`: then the engine flushes them too.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function, forward_ad

from isotone import limits
from isotone.checks import check_divides
from isotone.compiled import engine

_Kernel = Callable[[Any, Any, Any], None]
_ENGINE_DTYPES = (torch.float32, torch.float64)


def group_sort(x: Tensor, group_size: int) -> Tensor:
    r"""Sort each run of `group_size` values along the last axis, in ascending order.

    A permutation at every point, so it keeps all norms and its gradient has entries 0 and 1 only:
    it is 1-Lipschitz and non-decreasing in each input.

    Parameters
    ----------
    x : (..., width)
    group_size : divides `width`

    Returns
    -------
    (..., width)

    Examples
    --------
    >>> group_sort(torch.tensor([3.0, 1.0, 2.0, -1.0]), group_size=2)
    tensor([ 1.,  3., -1.,  2.])
    """
    check_divides(group_size, x.shape[-1])
    if not _runs_on_engine(x, group_size):
        return _sort_with_torch(x, group_size)
    if x.requires_grad and torch.is_grad_enabled():
        return _sort_for_gradient(x.contiguous(), group_size)
    return _sort_values(x.contiguous(), group_size)


def _runs_on_engine(x: Tensor, group_size: int) -> bool:
    return (
        x.is_cpu
        and x.dtype in _ENGINE_DTYPES
        and group_size <= limits.GROUP.largest
        and not _is_traced(x)
    )


def _is_traced(x: Tensor) -> bool:
    """Tell whether torch follows `x` in a way that the engine cannot see.

    That is under torch.compile and torch.jit.trace, in the transforms of torch.func and in
    forward-mode differentiation.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._functorch.is_functorch_wrapped_tensor(x)
        or forward_ad._current_level >= 0
    )


def _sort_with_torch(x: Tensor, group_size: int) -> Tensor:
    groups = x.reshape(*x.shape[:-1], x.shape[-1] // group_size, group_size)
    return groups.sort(dim=-1, stable=True).values.reshape(x.shape)


def _rows(x: Tensor, group_size: int) -> np.ndarray[Any, Any]:
    """View the memory of `x`, one group per row; NumPy's views cost less than torch's."""
    return x.detach().numpy().reshape(-1, group_size)


def _sort_values(x: Tensor, group_size: int) -> Tensor:
    values = torch.empty_like(x)
    engine.group_sort(_rows(x, group_size), _rows(values, group_size))
    return values


class _GroupSort(Function):
    """The sort, which remembers its permutation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group_size: int) -> Tensor:
        values, index = torch.empty_like(x), torch.empty_like(x, dtype=torch.int16)
        engine.group_sort_index(
            _rows(x, group_size), _rows(values, group_size), _rows(index, group_size)
        )
        ctx.save_for_backward(index)
        ctx.group_size = group_size
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return _move(grad, index, ctx.group_size, engine.scatter, engine.gather), None


def _move(
    grad: Tensor, index: Tensor, group_size: int, kernel: _Kernel, inverse: _Kernel
) -> Tensor:
    """Permute each group with `kernel`; derivatives of the result move back with `inverse`."""
    if grad.requires_grad and torch.is_grad_enabled():
        return _move_for_gradient(grad, index, group_size, kernel, inverse)
    grad = grad.contiguous()
    out = torch.empty_like(grad)
    kernel(_rows(grad, group_size), _rows(index, group_size), _rows(out, group_size))
    return out


class _Move(Function):
    """`_move`, which remembers how to move back."""

    @staticmethod
    def forward(
        ctx: Any, grad: Tensor, index: Tensor, group_size: int, kernel: _Kernel, inverse: _Kernel
    ) -> Tensor:
        ctx.save_for_backward(index)
        ctx.back = group_size, inverse, kernel
        return _move(grad, index, group_size, kernel, inverse)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        (index,) = ctx.saved_tensors
        return _move(grad, index, *ctx.back), None, None, None, None


_sort_for_gradient: Callable[[Tensor, int], Tensor] = _GroupSort.apply
_move_for_gradient: Callable[[Tensor, Tensor, int, _Kernel, _Kernel], Tensor] = _Move.apply
