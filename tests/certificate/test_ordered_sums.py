"""Sharper bounds for the engine's order of sums hold against exact rational evaluation."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from bench.proofs.last_bit import adversarial
from isotone import Engine, FrozenNetwork, MonotonicNetwork, certify, freeze
from isotone.certificate import bounds, ordered
from isotone.certificate.bounds import Change
from isotone.certificate.ordered import Sums, find_errors
from isotone.frozen import reference
from isotone.frozen.reference import parts_of
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, residual_block
from isotone.typing import Floats
from rationals import exact_score


def dense(rng: np.random.Generator, n_out: int, n_in: int) -> Dense:
    weight = rng.normal(size=(n_out, n_in)).astype("f4")
    return Dense(weight, rng.normal(size=n_out).astype("f4"))


def networks() -> dict[str, FrozenNetwork]:
    """Float32 networks with a grid: of the paper's shape, adversarial, wide, of several parts."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    paper = MonotonicNetwork([4, 20, 20, 1], monotonic_cst=[1, 1, 0, -1], lipschitz=2.0)
    start = replace(freeze(paper, precision="float32"), clip=8.0, grid=2.0**-6)
    block = residual_block(0.25, 0.75, (dense(rng, 12, 12), Sort(3), dense(rng, 12, 12)))
    members = Members(
        (0.25, -0.5), ((dense(rng, 1, 12),), (dense(rng, 9, 12), Sort(9), dense(rng, 1, 9)))
    )
    return {
        "paper": start,
        "exact": freeze(paper, precision="float32", exact=True, clip=8.0),
        "adversarial": freeze(
            adversarial([4, 20, 20, 1], 0), precision="float32", exact=True, clip=8.0
        ),
        "blocks": replace(start, steps=(dense(rng, 12, 4), Sort(2), block, members)),
        "wide": replace(start, steps=(dense(rng, 40, 4), Sort(40), dense(rng, 1, 40))),
    }


def hostile_rows(frozen: FrozenNetwork, n: int) -> Floats:
    """Corners of the box and random cells, as scaled rows."""
    rng = np.random.default_rng(1)
    corners = np.array(list(product((-1.0, 1.0), repeat=4))) * frozen.clip
    return np.concatenate([corners, rng.uniform(-frozen.clip, frozen.clip, (n, 4))])


@pytest.mark.parametrize("name", networks())
def test_computed_scores_err_by_less_than_the_bound(name: str) -> None:
    """With and without fused multiply-add: in the reference and on every instruction set."""
    frozen = networks()[name]
    frozen = replace(
        frozen, scaling=freeze(MonotonicNetwork([4, 1], monotonic_cst=[1] * 4)).scaling
    )
    error, u = Fraction(float(find_errors(frozen).score[0])), hostile_rows(frozen, 50)
    exact = [exact_score(frozen, row)[0] for row in frozen.snap(u)]
    computed = [Engine(frozen, isa=isa)(u) for isa in Engine.instruction_sets()]
    for scores in [*computed, reference.score(frozen, u)]:
        gaps = [abs(Fraction(float(s)) - e) for s, e in zip(scores, exact, strict=True)]
        assert max(gaps) <= error
    assert error < 2000 * max(gaps)  # rigorous, but not absurd


def test_bounds_are_a_few_times_sharper_than_those_of_any_order() -> None:
    for frozen in networks().values():
        found, wide = find_errors(frozen), bounds.rounding_errors(frozen)
        assert np.all(found.order < found.score)
        assert np.all(found.score < 0.5 * wide)


def test_the_last_rounding_is_left_to_monotonicity() -> None:
    """Exact g and residual: scores are rounded, yet never change their order."""
    weight, bias = np.array([[0.5]], "f4"), np.array([2.0**17 - 8], "f4")
    frozen = freeze(MonotonicNetwork([1, 1], monotonic_cst=[1]), precision="float32")
    frozen = replace(frozen, steps=(Dense(weight, bias),), clip=8.0, grid=2.0**-6)
    found = find_errors(frozen)
    assert (found.order[0], found.score[0]) == (0.0, 2.0**-7)
    scores = frozen.score(np.linspace(-8, 8, 5000)[:, None])
    assert np.all(np.diff(scores) >= 0)


def test_sums_of_few_bits_are_exact_and_of_one_more_are_not() -> None:
    unit, half = np.array([2.0**-20]), np.array([8.0 - 2.0**-10])
    held = Sums(-half, half, unit, np.zeros(1))
    assert held.plus(held).rounded().fresh == 0.0  # below 2^4 = 2^24 units
    assert held.plus(held).plus(held).rounded().fresh == 2.0**-20
    assert held.times(np.array([3.0])).rounded().fresh == 2.0**-20
    assert held.times(np.array([0.0])).rounded().fresh == 0.0


def test_rounding_is_at_most_half_a_unit_in_the_last_place() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=10_000) * 10.0 ** rng.uniform(-44, 37, 10_000)
    error = np.abs(numbers.astype("f4").astype(float) - numbers)
    bound = Sums(numbers, numbers, np.zeros(10_000), np.zeros(10_000)).rounding()
    assert np.all(error <= bound)
    assert np.all(bound <= np.spacing(np.abs(numbers).astype("f4")))


def test_errors_fill_the_largest_weights_first() -> None:
    rng = np.random.default_rng(0)
    size = np.abs(rng.normal(size=(3, 7)))
    for one in (0.5, 1.0, 2.5, 6.5, 9.0):
        bound = ordered._fill(Change.of(one, 1.0), size)
        t = rng.random((20_000, 7)) ** 0.2
        t *= np.minimum(1.0, one / t.sum(axis=1))[:, None]
        assert np.all((t @ size.T).max(axis=0) <= bound)
        expected = np.sort(size, axis=1)[:, ::-1] @ np.clip(one - np.arange(7), 0, 1)
        np.testing.assert_allclose(bound, expected, rtol=1e-12)


def test_parts_cover_the_inputs_and_are_short() -> None:
    for n_in, n_out in product((1, 8, 9, 20, 33, 64, 276), (1, 20)):
        for in_parts in (False, True):
            parts = parts_of(n_in, n_out, in_parts)
            assert [k for part in parts for k in range(part.start, part.stop)] == list(range(n_in))
        most = max(part.stop - part.start for part in parts)
        assert most <= (8 if n_out == 1 or n_in <= 8 else min(32, -(-n_in // 2)))


@pytest.mark.parametrize("n_rows", [1, 5, 300])
@pytest.mark.parametrize("name", networks())
def test_the_engine_sums_in_the_order_of_the_reference(name: str, n_rows: int) -> None:
    """Bit by bit where neither fuses."""
    frozen, X = networks()[name], np.random.default_rng(0).normal(size=(n_rows, 4)) * 5
    assert np.array_equal(Engine(frozen, isa="baseline")(X), reference.score(frozen, X))


def test_what_is_not_followed_gets_the_bound_of_any_order() -> None:
    frozen = networks()["paper"]
    steps = tuple(Pointwise("relu") if isinstance(s, Sort) else s for s in frozen.steps)
    for other in (replace(frozen, steps=steps), replace(frozen, grid=None)):
        found: Any = find_errors(other)
        assert np.array_equal(found.order, bounds.rounding_errors(other))
        assert np.array_equal(found.score, bounds.rounding_errors(other))


def test_overflow_is_refused() -> None:
    frozen = networks()["paper"]
    huge = Dense(np.full((1, 4), 3e38, "f4"), np.zeros(1, "f4"))
    frozen = replace(frozen, steps=(huge,))
    assert np.all(np.isinf(find_errors(frozen).score))
    assert not certify(frozen).holds
