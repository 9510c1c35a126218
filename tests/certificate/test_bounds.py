"""Bounds hold against exact rational evaluation and against sampled slopes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling
from isotone.certificate import bounds
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, residual_block
from networks import by_hand
from rationals import exact_score


def dense(rng: np.random.Generator, n_out: int, n_in: int, dtype: str = "float64") -> Dense:
    weight = rng.normal(size=(n_out, n_in)).astype(dtype)
    return Dense(weight, rng.normal(size=n_out).astype(dtype))


def network(steps: tuple[Step, ...], n: int, m: int, **options: Any) -> FrozenNetwork:
    rng = np.random.default_rng(5)
    residual = rng.normal(size=(m, n)).astype("float32").astype(float)
    names = tuple(f"x{i}" for i in range(n))
    zero = np.zeros((m, n), dtype=np.int8)
    return FrozenNetwork(names, Scaling.identity(n), steps, residual, np.ones(n), zero, **options)


def chains(rng: np.random.Generator, dtype: str) -> list[tuple[Step, ...]]:
    def layer(n_out: int, n_in: int) -> Dense:
        return dense(rng, n_out, n_in, dtype)

    block = residual_block(0.25, 0.75, (layer(6, 6), Sort(3), layer(6, 6)))
    return [
        (layer(2, 3),),
        (layer(6, 3), Sort(6), layer(6, 6), Sort(2), layer(2, 6)),
        (layer(6, 3), Pointwise("leaky_relu", 0.3), block, Pointwise("abs"), layer(2, 6)),
        (layer(6, 3), Pointwise("relu"), layer(2, 6), Sort(2)),
        (Members((0.25, -0.75), ((layer(6, 3), Sort(6), layer(2, 6)), (layer(2, 3),))),),
        (
            Members((0.5, 0.375), ((layer(6, 3), Sort(2)), (layer(6, 3), block))),
            Sort(3),
            Members((0.125, 1.0), ((layer(2, 6), Sort(2)), (layer(4, 6), Sort(4), layer(2, 4)))),
        ),
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("chain", range(6))
def test_computed_score_errs_by_less_than_the_bound(chain: int, dtype: Any) -> None:
    rng = np.random.default_rng(chain)
    frozen = network(chains(rng, dtype)[chain], 3, 2, precision=dtype, grid=None, clip=16.0)
    error = bounds.rounding_errors(frozen)
    X = frozen.snap(rng.uniform(-16, 16, (200, 3)))
    worst = np.zeros(2)
    for u, score in zip(X, frozen.score(X), strict=True):
        exact = exact_score(frozen, u)
        gap = [abs(Fraction(float(s)) - e) for s, e in zip(score, exact, strict=True)]
        assert all(g <= Fraction(e) for g, e in zip(gap, error.tolist(), strict=True))
        worst = np.maximum(worst, [float(g) for g in gap])
    assert np.all(error < 2000 * worst)  # rigorous, but not absurd


@pytest.mark.parametrize("chain", range(6))
def test_slopes_hold_against_sampled_ones_and_for_every_metric(chain: int) -> None:
    rng = np.random.default_rng(chain)
    steps = chains(rng, "float64")[chain]
    frozen = network(steps, 3, 2, grid=None)
    slopes = bounds.slopes(steps, 3)
    x, y = rng.uniform(-2, 2, (2, 5000, 3))
    for i in range(3):
        other = x.copy()
        other[:, i] = y[:, i]
        change = frozen.score(other) - frozen.score(x) - (other - x) @ frozen.residual.T
        assert np.all(np.abs(change) <= slopes[:, i] * np.abs(other - x)[:, i, None] + 1e-12)
    change = np.abs(frozen.score(y) - frozen.score(x) - (y - x) @ frozen.residual.T)
    scale = np.array([1.0, 2.0, 0.5])
    for metric, p in (("1", 1), ("2", 2), ("inf", np.inf)):
        length = np.linalg.norm(scale * (y - x), ord=p, axis=1)
        constants = bounds.constants(steps, scale, metric)
        assert np.all(change <= constants * length[:, None] + 1e-12)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_errors_and_slopes_of_every_activation(name: str) -> None:
    rng = np.random.default_rng(0)
    steps = (dense(rng, 4, 2), Pointwise(name), dense(rng, 1, 4))
    wide = network(steps, 2, 1, grid=None, clip=16.0)
    x, y = rng.uniform(-16, 16, (2, 2000, 2))
    assert bounds.rounding_errors(wide)[0] < 1e-10
    gap = wide.score(y) - wide.score(x) - (y - x) @ wide.residual[0]
    assert np.all(np.abs(gap) <= np.abs(y - x) @ bounds.slopes(steps, 2)[0] + 1e-9)


def test_the_bound_of_a_single_dense_step_is_its_weight() -> None:
    step = dense(np.random.default_rng(0), 2, 3)
    assert np.array_equal(bounds.slopes((step,), 3), np.abs(step.weight))


def test_overflow_gives_an_infinite_error() -> None:
    big = Dense(np.full((1, 1), 1e200), np.zeros(1))
    frozen = network((big, big), 1, 1)
    assert bounds.rounding_errors(frozen)[0] == math.inf
    big32 = Dense(np.full((1, 1), 1e37, "float32"), np.zeros(1, "float32"))
    assert bounds.rounding_errors(network((big32,), 1, 1, precision="float32"))[0] == math.inf


def test_layer_bounds_are_named() -> None:
    names = [layer.name for layer in bounds.layer_bounds(by_hand(0.5).steps)]
    assert names == ["dense 1→2", "sort in groups of 2", "dense 2→1"]
    one = Dense(np.ones((1, 1)), np.zeros(1))
    (two,) = bounds.layer_bounds((Members((0.5, -0.25), ((one,), (one, one))),))
    assert two.name == "sum of 2 members such as dense 1→1 · dense 1→1"
    (single,) = bounds.layer_bounds((Members((0.5,), ((one,),)),))
    assert single.name == "one weighted member: dense 1→1"
    assert (two.one, two.inf) == (0.75, 0.75)


def test_the_layer_bound_of_a_blend_is_that_of_its_matrix() -> None:
    mean = Dense(np.full((4, 4), 0.25), np.zeros(4))
    (layer,) = bounds.layer_bounds((residual_block(0.0, 1.0, (mean,)),))
    assert layer == bounds.Layer("residual block with dense 4→4", 1.0, 1.0)


@pytest.mark.parametrize("metric", ["1", "2", "inf"])
def test_the_bound_of_a_mean_is_the_mean_of_the_bounds(metric: Any) -> None:
    rng = np.random.default_rng(1)
    members = chains(rng, "float64")[:3]
    mean = (Members((0.5, 0.25, 0.25), tuple(members)),)
    scale = np.array([1.0, 2.0, 0.5])
    bound = bounds.constants(mean, scale, metric)
    of_each = [bounds.constants(member, scale, metric) for member in members]
    expected = np.average(of_each, axis=0, weights=mean[0].weights)
    if metric == "1":  # the steepest feature of a mean is no steeper than each one's steepest
        assert np.all(bound <= expected * (1 + 1e-15))
        expected = np.average(
            [bounds.slopes(member, 3) for member in members], axis=0, weights=mean[0].weights
        )
        bound = bounds.slopes(mean, 3)
    assert bound == pytest.approx(expected, rel=1e-14)


def test_outputs_of_members_differ_by_less_than_their_slopes() -> None:
    rng = np.random.default_rng(2)
    row, member = rng.normal(size=6), chains(rng, "float64")[1]
    alike = (*member[:-1], Dense(np.array([row, row]), np.zeros(2)))
    steps = (Members((0.5, 0.5), (alike, alike)),)
    assert np.all(bounds.rival_slopes(steps, 3, 0) == 0)
    ends_sorted = (Members((1.0,), ((*alike, Sort(2)),)),)
    slopes = bounds.slopes(ends_sorted, 3)
    assert bounds.rival_slopes(ends_sorted, 3, 0) == pytest.approx(slopes + slopes[0])


@pytest.mark.parametrize(("metric", "constant"), [("1", 0.5), ("2", 0.5), ("inf", 0.75)])
def test_features_may_enter_any_step(metric: Any, constant: float) -> None:
    """A sort of x and y with λ = 2 and 4 moves by at most the larger of 1/λ, or by both."""
    found = bounds.constants((Sort(2),), np.array([2.0, 4.0]), metric)
    assert np.all(found >= 0.5)
    assert np.all(found <= constant * (1 + 1e-9))
