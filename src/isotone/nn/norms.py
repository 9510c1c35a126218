"""Norms: functions weight → weight that keep a layer within its bound (Sec. 2.2 of the paper).

`normalize_columns` (Eq. 8) constrains the least: use it. `normalize_matrix` is the second variant
of Eq. 7, `rescale_matrix` the first, which keeps g on the scale of the residual term.

What counts as the size of a weight depends on the chain of metrics and on the kind of layer, so
every function takes `sizes`: weight → the size of each constrained vector, in a shape that
broadcasts with the weight. The network chooses it; see `layers.Constraint`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Norm = Literal["columns", "matrix", "rescaled-matrix"]
Sizes = Callable[[Tensor], Tensor]


def column_sums(weight: Tensor) -> Tensor:
    """Absolute sums over the outputs, (1, n_in): the 1-norm chain."""
    return weight.abs().sum(dim=0, keepdim=True)


def row_norms(weight: Tensor, p: float = 1.0) -> Tensor:
    """p-norms over the inputs, (n_out, 1): the ∞ chain; p is dual to the metric of the inputs."""
    norms: Tensor = torch.linalg.vector_norm(weight, ord=p, dim=1, keepdim=True)
    return norms


def normalize_columns(weight: Tensor, bound: float, sizes: Sizes = column_sums) -> Tensor:
    r"""Shrink the columns of a weight matrix whose absolute sum exceeds `bound`.

    Eq. 8, with :math:`b` for :math:`\lambda^{1/m}`:

    .. math:: W'_{jk} = W_{jk} \,/\, \max\bigl(1, \tfrac{1}{b} \sum_j |W_{jk}|\bigr)

    The result maps the 1-norm to the 1-norm with constant at most `bound`, up to rounding;
    `freeze` removes the rounding.

    Parameters
    ----------
    weight : (n_out, n_in)
    bound : positive
    sizes : gives the sizes of the columns; of rows in the ∞ chain

    Examples
    --------
    >>> normalize_columns(torch.tensor([[3.0, 0.2], [-1.0, 0.3]]), bound=1.0)
    tensor([[ 0.7500,  0.2000],
            [-0.2500,  0.3000]])
    """
    return weight / (sizes(weight) / bound).clamp(min=1.0)


def normalize_matrix(weight: Tensor, bound: float, sizes: Sizes = column_sums) -> Tensor:
    r"""Shrink a whole weight matrix whose norm exceeds `bound`.

    Eq. 7, second variant: :math:`W' = W / \max(1, \|W\| / b)`.

    Examples
    --------
    >>> normalize_matrix(torch.tensor([[3.0, 0.2], [-1.0, 0.3]]), bound=1.0)
    tensor([[ 0.7500,  0.0500],
            [-0.2500,  0.0750]])
    """
    return weight / (sizes(weight).max() / bound).clamp(min=1.0)


def rescale_matrix(weight: Tensor, bound: float, sizes: Sizes = column_sums) -> Tensor:
    r"""Shrink a whole weight matrix to norm 1 at most, then multiply by `bound`.

    Eq. 7, first variant: :math:`W' = b\, W / \max(1, \|W\|)`.

    Examples
    --------
    >>> rescale_matrix(torch.tensor([[3.0, 0.2], [-1.0, 0.3]]), bound=2.0)
    tensor([[ 1.5000,  0.1000],
            [-0.5000,  0.1500]])
    """
    return bound * normalize_matrix(weight, 1.0, sizes)


def project(weight: Tensor, bound: float, sizes: Sizes, norm: Norm) -> Tensor:
    """The feasible parameter to put in place of `weight` after an optimizer step.

    Feasible means that normalizing changes nothing but, for `rescale_matrix`, the factor `bound`.
    Computed in float64 for a bound that is smaller by 2⁻²², so that the exact sums of the stored
    float32 numbers keep the bound.
    """
    slightly_less = 1.0 - 2.0**-22
    wide = weight.double()
    if norm == "rescaled-matrix":
        return normalize_matrix(wide, slightly_less, sizes).to(weight.dtype)
    return NORMS[norm](wide, bound * slightly_less, sizes).to(weight.dtype)


NORMS: dict[Norm, Callable[[Tensor, float, Sizes], Tensor]] = {
    "columns": normalize_columns,
    "matrix": normalize_matrix,
    "rescaled-matrix": rescale_matrix,
}
