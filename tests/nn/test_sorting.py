"""Theorems about sorting networks and about `group_sort`, its values and its gradients."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from isotone import _engine
from isotone.nn.group_sort import group_sort

SIZES = [1, 2, 3, 4, 5, 7, 8, 10, 16, 20, 32, 33, 64, 100, 256, 1024]
ROWS = [0, 1, 7, 8, 9, 31, 1000]
DTYPES = [torch.float32, torch.float64]
Wires = list[NDArray[Any]]
ISAS = _engine.instruction_sets()
BITS = {torch.float32: torch.int32, torch.float64: torch.int64, torch.int16: torch.int16}


def assert_same_bits(actual: Tensor, expected: Tensor) -> None:
    assert actual.dtype == expected.dtype
    kind = BITS[actual.dtype]
    assert torch.equal(actual.detach().view(kind), expected.detach().view(kind))


def draw(kind: str, n_rows: int, size: int, dtype: torch.dtype) -> Tensor:
    """Draw rows that are easy, tied, or made of all that is special about floats."""
    generator = torch.Generator().manual_seed(1000 * n_rows + size)
    if kind == "normal":
        return torch.randn(n_rows, size, dtype=dtype, generator=generator)
    if kind == "ties":
        return torch.randint(-3, 4, (n_rows, size), generator=generator).to(dtype)
    tiny, inf, nan = torch.finfo(dtype).smallest_normal / 4, float("inf"), float("nan")
    special = torch.tensor([0.0, -0.0, inf, -inf, nan, -nan, tiny, -tiny, 1.0, -1.0], dtype=dtype)
    special.view(BITS[dtype])[4] += 1  # two NaN that differ in sign and payload
    return special[torch.randint(len(special), (n_rows, size), generator=generator)]


def assert_engine_is_torch_sort(x: Tensor, isa: str) -> None:
    expected = torch.sort(x, dim=-1, stable=True)
    alone, values, index = sort_with_engine(x, isa)
    assert_same_bits(alone, expected.values)
    assert_same_bits(values, expected.values)
    assert_same_bits(index, expected.indices.to(torch.int16))


def sort_with_engine(x: Tensor, isa: str) -> tuple[Tensor, Tensor, Tensor]:
    """Sort without and with the permutation."""
    alone, values = torch.empty_like(x), torch.empty_like(x)
    index = torch.empty_like(x, dtype=torch.int16)
    _engine.group_sort(x, alone, isa)
    _engine.group_sort_index(x, values, index, isa)
    return alone, values, index


# ---- networks -------------------------------------------------------------------------------
# Zeros and ones are enough: a network that sorts all of them sorts everything (0-1 principle).


def run_network(wires: Wires, comparators: list[tuple[int, int]]) -> Wires:
    for low, high in comparators:
        a, b = wires[low], wires[high]
        wires[low], wires[high] = a & b, a | b
    return wires


def is_sorted(wires: Wires) -> bool:
    return all(not np.any(a & ~b) for a, b in pairwise(wires))


@pytest.mark.parametrize("n", range(1, 23))
def test_network_sorts_all_zeros_and_ones(n: int) -> None:
    numbers = np.arange(2**n)
    wires = [np.packbits(numbers >> j & 1) for j in range(n)]
    assert is_sorted(run_network(wires, _engine.comparators(n)))


@pytest.mark.parametrize(
    "n", [*range(2, 10), *range(11, 65), 100, 125, 127, 128, 250, 255, 256, 500, 512, 1000, 1024]
)
def test_network_sorts_by_induction(n: int) -> None:
    """Both halves are sorted by their own networks, then merged; all but ten wires.

    A merge is right if it is so for every number of zeros in the first and in the second half.
    """
    network, m = _engine.comparators(n), n - n // 2
    halves = _engine.comparators(m)
    halves += [(m + low, m + high) for low, high in _engine.comparators(n - m)]
    assert network[: len(halves)] == halves

    n_zeros = np.ogrid[: m + 1, : n - m + 1]
    shape = (m + 1, n - m + 1)
    wires = [np.packbits(np.broadcast_to(j >= n_zeros[0], shape)) for j in range(m)]
    wires += [np.packbits(np.broadcast_to(j >= n_zeros[1], shape)) for j in range(n - m)]
    assert is_sorted(run_network(wires, network[len(halves) :]))


@pytest.mark.parametrize(("n", "fewest"), [(2, 1), (3, 3), (4, 5), (5, 9), (6, 12), (10, 29)])
def test_networks_of_few_wires_have_as_few_comparators_as_possible(n: int, fewest: int) -> None:
    assert len(_engine.comparators(n)) == fewest


@pytest.mark.parametrize("n", range(1, 65))
def test_comparators_point_up(n: int) -> None:
    assert all(0 <= low < high < n for low, high in _engine.comparators(n))


# ---- the engine against torch.sort ----------------------------------------------------------


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["normal", "ties", "special"])
@pytest.mark.parametrize("size", [*SIZES, *range(11, 31)])
def test_engine_is_torch_sort_bit_for_bit(
    size: int, kind: str, dtype: torch.dtype, isa: str
) -> None:
    for n_rows in ROWS if size <= 256 else [0, 1, 31]:
        assert_engine_is_torch_sort(draw(kind, n_rows, size, dtype), isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("special", [float("nan"), -0.0, float("inf")])
def test_a_single_special_value_is_never_lost(special: float, isa: str) -> None:
    for n in range(1, 40):
        x = torch.arange(n, dtype=torch.float32).flip(0).repeat(n, 1)
        assert_engine_is_torch_sort(x.fill_diagonal_(special), isa)


def test_engine_takes_numpy_arrays_and_sorts_in_place() -> None:
    x = np.random.default_rng(0).random((100, 20))
    expected = np.sort(x, axis=-1)
    _engine.group_sort(x, x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_undoes_scatter(dtype: torch.dtype) -> None:
    x = draw("special", 100, 20, dtype)
    _, values, index = sort_with_engine(x, "")
    there, back = torch.empty_like(x), torch.empty_like(x)
    _engine.scatter(values, index, there)
    _engine.gather(there, index, back)
    assert_same_bits(there, x)
    assert_same_bits(back, values)


# ---- group_sort -----------------------------------------------------------------------------


def reference(x: Tensor, group_size: int) -> Tensor:
    groups = x.reshape(*x.shape[:-1], x.shape[-1] // group_size, group_size)
    return groups.sort(dim=-1, stable=True).values.reshape(x.shape)


def gradient(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    return torch.autograd.grad(y, x, weight)[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["normal", "ties", "special"])
@pytest.mark.parametrize("size", SIZES)
def test_gradient_is_that_of_torch_sort_bit_for_bit(
    size: int, kind: str, dtype: torch.dtype
) -> None:
    x = draw(kind, 31, 2 * size, dtype).requires_grad_()
    weight = draw("normal", 31, 2 * size, dtype)
    actual, expected = group_sort(x, size), reference(x, size)
    assert_same_bits(actual, expected)
    assert_same_bits(gradient(x, actual, weight), gradient(x, expected, weight))


@pytest.mark.parametrize("group_size", [1, 2, 3, 6, 12])
def test_first_and_second_derivatives(group_size: int) -> None:
    x = draw("normal", 3, 12, torch.float64).requires_grad_()
    assert gradcheck(lambda x: group_sort(x, group_size), x)
    assert gradgradcheck(lambda x: group_sort(x, group_size) ** 3, x)


@pytest.mark.parametrize("shape", [(6,), (0, 6), (4, 0), (2, 0, 6), (2, 3, 6), (2, 3, 4, 6)])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_any_leading_axes(shape: tuple[int, ...], requires_grad: bool) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    y = group_sort(x.requires_grad_(requires_grad), 3)
    assert y.shape == shape
    assert y.requires_grad == requires_grad
    assert_same_bits(y, reference(x, 3))


def test_strided_input_and_gradient() -> None:
    x = draw("normal", 20, 50, torch.float32).T.requires_grad_()
    weight = draw("ties", 20, 50, torch.float32).T
    expected = reference(x, 5)
    assert_same_bits(group_sort(x.detach(), 5), expected)
    assert_same_bits(gradient(x, group_sort(x, 5), weight), gradient(x, expected, weight))


def test_sorting_twice_is_sorting_once() -> None:
    once = group_sort(draw("special", 100, 20, torch.float32), 10)
    assert_same_bits(group_sort(once, 10), once)


def test_no_gradient_where_gradients_are_off() -> None:
    x = torch.randn(4, 6, requires_grad=True)
    with torch.no_grad():
        assert not group_sort(x, 3).requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_other_dtypes_go_through_torch(dtype: torch.dtype) -> None:
    x = draw("ties", 9, 20, torch.float32).to(dtype)
    assert torch.equal(group_sort(x, 5), reference(x, 5))


def test_groups_beyond_the_engine_go_through_torch() -> None:
    x = draw("normal", 3, 2 * (_engine.MAX_GROUP_SIZE + 1), torch.float32)
    assert_same_bits(group_sort(x, x.shape[-1] // 2), reference(x, x.shape[-1] // 2))


def test_torch_func_sees_the_gradient() -> None:
    x = draw("normal", 3, 12, torch.float64)
    jacobian = torch.func.vmap(torch.func.jacrev(lambda row: group_sort(row, 4)))(x)
    assert torch.equal((jacobian @ x.unsqueeze(-1)).squeeze(-1), reference(x, 4))


# Torch's own forward mode still uses what torch deprecates.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_forward_mode_sees_the_gradient() -> None:
    x = draw("normal", 3, 12, torch.float64)
    with forward_ad.dual_level():
        y = group_sort(forward_ad.make_dual(x, x), 4)
        tangent = forward_ad.unpack_dual(y).tangent
    assert torch.equal(tangent, reference(x, 4))


# ---- messages -------------------------------------------------------------------------------


@pytest.mark.parametrize("group_size", [3, 0, -2, 40])
def test_group_size_must_divide_the_width(group_size: int) -> None:
    message = f"`group_size={group_size}` does not divide `width=20`; choose 1, 2, 4, 5, 10 or 20."
    with pytest.raises(ValueError, match=message):
        group_sort(torch.zeros(2, 20), group_size)


X = torch.zeros(4, 6)


@pytest.mark.parametrize(
    ("x", "values", "message"),
    [
        (X, torch.zeros(4, 5), r"`values` has shape \(4, 5\); it must be .* \(4, 6\)"),
        (X.T, torch.zeros(6, 4), "`x` is not C-contiguous; .* copy it first"),
        (X, torch.zeros(6, 4).T, "`values` is not C-contiguous"),
        (X[0], X[0], r"`x` has shape \(6\); it must be \(n_groups, group_size\): reshape it"),
        (torch.zeros(1, 1025), torch.zeros(1, 1025), "`group_size=1025` is out of range"),
        (torch.zeros(3, 0), torch.zeros(3, 0), "`group_size=0` .* between 1 and 1024"),
    ],
)
def test_engine_rejects_wrong_shapes(x: Tensor, values: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _engine.group_sort(x, values)


def test_engine_rejects_wrong_dtypes() -> None:
    with pytest.raises(TypeError, match="`x` has another dtype than the float32 or float64"):
        _engine.group_sort(X.half(), X.half())
    with pytest.raises(TypeError, match="`values` has another dtype than the float32"):
        _engine.group_sort(X, X.double())
    with pytest.raises(TypeError, match="`index` has another dtype than the int16"):
        _engine.group_sort_index(X, X, X.long())


@pytest.mark.parametrize("move", [_engine.gather, _engine.scatter])
def test_engine_rejects_wrong_moves(move: Callable[[Any, Any, Any], None]) -> None:
    with pytest.raises(ValueError, match="`index` has shape"):
        move(X, X[:2].short(), X)
    with pytest.raises(TypeError, match="`index` has another dtype"):
        move(X, X, X)


def test_engine_rejects_unknown_instruction_sets() -> None:
    with pytest.raises(ValueError, match='`isa="mmx"` does not run here; choose one of baseline'):
        _engine.group_sort(X, X, "mmx")


def test_engine_rejects_networks_out_of_range() -> None:
    with pytest.raises(ValueError, match="`group_size=1025` is out of range"):
        _engine.comparators(1025)
