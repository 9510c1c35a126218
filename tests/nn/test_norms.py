"""Norms: feasible results, feasible weights left alone, gradients through the normalization."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isotone.nn.norms import (
    NORMS,
    Norm,
    column_sums,
    normalize_columns,
    normalize_matrix,
    project,
    rescale_matrix,
    row_norms,
)

SIZES: list[Any] = [
    column_sums,
    row_norms,
    partial(row_norms, p=2.0),
    partial(row_norms, p=np.inf),
]


def weight(seed: int, scale: float = 1.0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.as_tensor(rng.normal(size=(5, 4)) * scale)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("norm", sorted(NORMS))
@given(seed=st.integers(0, 10_000), exponent=st.integers(-30, 30), bound=st.floats(0.1, 10))
def test_no_vector_exceeds_the_bound(
    norm: Norm, sizes: Any, seed: int, exponent: int, bound: float
) -> None:
    result = NORMS[norm](weight(seed, 10.0**exponent), bound, sizes)
    assert sizes(result).max() <= bound * (1 + 1e-14)


@given(seed=st.integers(0, 10_000))
def test_feasible_weights_are_left_alone(seed: int) -> None:
    w = weight(seed, 0.01)
    assert torch.equal(normalize_columns(w, 1.0), w)
    assert torch.equal(normalize_matrix(w, 1.0), w)
    assert torch.equal(rescale_matrix(w, 3.0), 3.0 * w)


def test_columns_are_shrunk_one_by_one_and_a_matrix_as_a_whole() -> None:
    w = torch.tensor([[3.0, 0.2], [-1.0, 0.3]])
    assert torch.equal(normalize_columns(w, 1.0)[:, 1], w[:, 1])
    assert torch.allclose(normalize_matrix(w, 1.0), w / 4)


def test_zero_columns_stay_zero() -> None:
    assert torch.equal(normalize_columns(torch.zeros(3, 2), 1.0), torch.zeros(3, 2))


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_gradients_flow_through_the_normalization(norm: Norm) -> None:
    w = weight(0, 2.0).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: NORMS[norm](w, 1.3, column_sums), w)
    # along an infeasible column itself nothing changes: the gradient has no such component
    probe = torch.randn(5, 4, dtype=torch.float64)
    (NORMS["columns"](w, 1.3, column_sums) * probe).sum().backward()
    assert w.grad is not None
    assert torch.allclose((w.grad * w).sum(dim=0), torch.zeros(4, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize("norm", sorted(NORMS))
@pytest.mark.parametrize("sizes", SIZES)
def test_projected_float32_weights_are_feasible_in_exact_arithmetic(
    norm: Norm, sizes: Any
) -> None:
    bound = 1.7
    for seed in range(50):
        projected = project(weight(seed, 10.0).float(), bound, sizes, norm)
        limit = 1.0 if norm == "rescaled-matrix" else bound
        assert sizes(projected.double()).max() <= limit
