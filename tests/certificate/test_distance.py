"""Distances of networks in fixed point: pairs reach them to the last bits, and none exceeds them.

Of every pair the scores at one point are as far apart as can be, in rational arithmetic. Sums and
products there are of numbers such as 1 and 2⁻⁶⁰, which float64 cannot add without rounding.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fixed_points import knotted
from isotone import FrozenNetwork, Scaling
from isotone.certificate import distance
from isotone.certificate.distance import distances
from isotone.freezing.fixed import to_fixed
from isotone.frozen import reference
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Steps
from networks import copied
from rationals import exact_score, exact_steps

E, P = 2.0**-60, 1.0 + 2.0**-30  # 1 + E and P * P are no float64


def dense(weight: Any, bias: Any = None) -> Dense:
    w = np.atleast_2d(np.asarray(weight, float))
    return Dense(w, np.zeros(len(w)) if bias is None else np.asarray(bias, float))


def leaky(slope: float) -> Pointwise:
    return Pointwise("leaky_relu", slope)


def network(steps: Steps, n: int = 1, **options: Any) -> FrozenNetwork:
    given: dict[str, Any] = {"clip": 1.0, "grid": 2.0**-30, "residual": np.zeros((1, n))} | options
    names, zero = tuple(f"x{i}" for i in range(n)), np.zeros((1, n), np.int8)
    fixed = {"lipschitz": np.ones(n), "monotonic_cst": zero}
    return FrozenNetwork(names, Scaling.identity(n), steps, **(fixed | given))


def together(*steps: Any) -> Any:
    """Two units of which only the sum of sizes is known after they are sorted; here their sum."""
    return (*steps, Sort(2), dense([[1, 1]]))


FIRST = dense([[1], [0]])  # x and 0
PAIRS: dict[str, tuple[Any, Any, Any]] = {  # steps, those in fixed point, where they are apart
    "a bias that is larger": ([dense([[0]], [E])], [dense([[0]], [1])], [0]),
    "a bias that is smaller": ([dense([[0]], [1])], [dense([[0]], [-E])], [0]),
    "a weight": ([dense([[P]])], [dense([[0]])], [P]),
    "weights of either sign": ([dense([[2, -3]])], [dense([[3, 1]])], [1, 1]),
    "a weight and a bias": ([dense([[1]], [E])], [dense([[0]])], [1]),
    "a weight, and what was apart": (
        [dense([[1]], [E]), dense([[1]])],
        [dense([[1]]), dense([[0]])],
        [1],
    ),
    "what was apart, and a bias": (
        [dense([[1]], [1]), dense([[1]], [E])],
        [dense([[1]]), dense([[1]])],
        [1],
    ),
    "what was apart, times a weight": (
        [dense([[0]], [P]), dense([[-P]])],
        [dense([[0]]), dense([[-P]])],
        [0],
    ),
    "only the unit that is apart": (
        [FIRST, dense([[1, 0], [0, 1]], [1, 0]), dense([[0.125, 1]])],
        [FIRST, dense([[1, 0], [0, 1]]), dense([[0.125, 1]])],
        [0],
    ),
    "only the unit with another weight": (
        [dense([[1], [1]]), dense([[1, 0], [0, 1]]), dense([[1, 0]])],
        [dense([[1], [1]]), dense([[0, 0], [0, 0]]), dense([[1, 0]])],
        [1],
    ),
    "only one of two units that are apart": (
        [dense([[1], [1]], [1, 1]), dense([[1, 0], [0, 1]]), dense([[1, 0]])],
        [dense([[1], [1]]), dense([[1, 0], [0, 1]]), dense([[1, 0]])],
        [0],
    ),
    "the second of a sorted group": (
        [dense(np.zeros((4, 1)), [0, 0, 1, 0]), Sort(2), dense([[0, 0, 0, 1]])],
        [dense(np.zeros((4, 1))), Sort(2), dense([[0, 0, 0, 1]])],
        [0],
    ),
    "sorted, a weight": (together(dense([[P], [0]])), together(dense([[0], [0]])), [P]),
    "sorted, a weight and a bias": (
        together(dense([[1], [0]], [E, 0])),
        together(dense([[0], [0]])),
        [1],
    ),
    "sorted, a weight, and what was apart": (
        together(dense([[1], [0]], [E, 0]), dense([[1, 0], [0, 0]])),
        together(FIRST, dense([[0, 0], [0, 0]])),
        [1],
    ),
    "sorted, only the unit that is apart": (
        together(dense([[1], [0]], [1, 0]), dense([[0.125, 1], [0, 1]])),
        together(FIRST, dense([[0.125, 1], [0, 1]])),
        [0],
    ),
    "sorted twice": (
        together(dense([[1], [0]], [1, 0]), Sort(2), dense([[1, 0], [0, 1]])),
        together(FIRST, Sort(2), dense([[1, 0], [0, 1]])),
        [0],
    ),
    "sorted, and weights": (
        together(FIRST, Sort(2), dense([[2, 0], [0, 2]])),
        together(FIRST, Sort(2), dense([[1, 0], [0, 1]])),
        [1],
    ),
    "one of two columns": (
        together(dense([[1, 0], [0, 0]])),
        together(dense([[0, 0], [0, 0]])),
        [1, 1],
    ),
    "a slope": ([leaky(P)], [leaky(0)], [-P]),
    "a slope that is negative": ([leaky(-P)], [leaky(0)], [-P]),
    "a slope, and what was apart": (
        [dense([[1]], [-E]), leaky(1)],
        [dense([[1]]), leaky(0)],
        [-1],
    ),
    "what was apart, times a slope": (
        [dense([[0]], [-P]), leaky(P)],
        [dense([[0]]), leaky(P)],
        [0],
    ),
    "sorted, a slope": (together(leaky(2)), together(leaky(1)), [-1, -1]),
    "sorted, a slope, and what was apart": (
        together(dense([[1], [0]], [-E, 0]), leaky(1)),
        together(FIRST, leaky(0)),
        [-1],
    ),
    "sorted, what was apart, times a slope": (
        together(dense([[0], [0]], [-P, 0]), leaky(P)),
        together(dense([[0], [0]]), leaky(P)),
        [0],
    ),
    "a member's weight": (
        [Members((P, 1.0), ((dense([[1]]),), ()))],
        [Members((0.0, 1.0), ((dense([[1]]),), ()))],
        [P],
    ),
    "a member's weight, and what was apart": (
        [Members((1.0,), ((dense([[1]], [E]),),))],
        [Members((0.0,), ((dense([[1]]),),))],
        [1],
    ),
    "what was apart, times a negative weight": (
        [Members((0.0, -P), ((), (dense([[0]], [P]), leaky(0))))],
        [Members((0.0, -P), ((), (dense([[0]]), leaky(0))))],
        [0],
    ),
    "members one after the other": (
        [Members((1.0, 1.0), ((dense([[1]], [1]),), (dense([[2]]), leaky(0)))), dense([[3]])],
        [Members((1.0, 1.0), ((dense([[1]]),), (dense([[1]]), leaky(0)))), dense([[3]])],
        [1],
    ),
    "sorted members": (
        together(Members((1.0, 1.0), ((dense([[1], [0]], [1, 0]),), (FIRST,)))),
        together(Members((1.0, 1.0), ((FIRST,), (FIRST,)))),
        [0],
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_steps_are_as_far_apart_as_the_bound_says(name: str) -> None:
    steps, others, x = PAIRS[name]
    u = [Fraction(float(each)) for each in x]
    clip = P if P in np.abs(x) else 1.0
    grid = 2.0**-30 if P in np.abs(x) else 1.0
    fixed = network(tuple(others), len(x), clip=clip, grid=grid)
    start = distance._Apart(distance.inputs_of(fixed), np.zeros(len(x)), 0.0)
    (bound,) = distance._Apartness(tuple(steps)).run(fixed.steps, start).each.tolist()
    (moved,) = (
        abs(a - b)
        for a, b in zip(exact_steps(tuple(steps), u), exact_steps(fixed.steps, u), strict=True)
    )
    assert moved > 0
    assert moved <= Fraction(bound) <= moved * (1 + Fraction(2.0**-50))


@pytest.fixture
def without_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distance.bounds, "rounding_errors", lambda frozen: np.zeros(1))


def at(frozen: FrozenNetwork, x: float) -> Fraction:
    u = np.array([x]) if frozen.grid is None else np.rint([x / frozen.grid]) * frozen.grid
    (score,) = exact_score(frozen, u)
    return score


ZERO = (dense([[0]]),)


@pytest.mark.usefixtures("without_rounding")
@pytest.mark.parametrize(
    ("frozen", "fixed", "x"),
    [
        # residuals that differ, beside steps that do
        (network(ZERO, clip=P), network(ZERO, clip=P, residual=[[-P]]), P),
        (network(ZERO), network((dense([[1]]),), residual=[[E]]), 1.0),
        # the inputs themselves are not apart
        (network((leaky(0.0), dense([[0]])), 1), network((leaky(1.0), dense([[1]])), 1), -1.0),
        (
            network((leaky(E),), grid=2.0**-51),
            network((leaky(1.0),), grid=2.0**-51),
            -1.0,
        ),
        # half a cell of the coarser grid along what is steep: the steps, the residual, both
        (network((dense([[1]]),), grid=None), network((dense([[1]]),), grid=0.5), 0.25),
        (network((dense([[1]]),), grid=0.5), network((dense([[1]]),), grid=2.0**-9), 0.25),
        (
            network(ZERO, grid=None, residual=[[-3]]),
            network(ZERO, grid=0.5, residual=[[-3]]),
            0.25,
        ),
        (
            network((dense([[1]]),), grid=None, residual=[[E]]),
            network((dense([[1]]),), grid=0.5, residual=[[E]]),
            0.25,
        ),
    ],
)
def test_scores_are_as_far_apart_as_the_distance(
    frozen: FrozenNetwork, fixed: FrozenNetwork, x: float
) -> None:
    (bound,) = distances(frozen, frozen.steps, fixed).tolist()
    moved = abs(at(frozen, x) - at(fixed, x))
    assert moved <= Fraction(bound) <= moved * (1 + Fraction(2.0**-50))


def test_no_number_is_farther_from_itself_on_another_grid_than_half_a_cell() -> None:
    x = np.random.default_rng(0).uniform(-4, 4, 10_000)
    x[:200] = np.arange(200) / 64 - 1.5  # ties
    for grids in ((0.5, 0.25), (2.0**-4, 1.0), (0.5, 0.5), (None, 0.25), (0.125, None)):
        on = [x if grid is None else np.rint(x / grid) * grid for grid in grids]
        most = distance._half_a_cell(*grids)
        assert np.abs(on[0] - on[1]).max() <= most == max(grid or 0.0 for grid in grids) / 2


@pytest.mark.parametrize("part", ["steps", "residual", "cells"])
def test_rounding_errors_of_the_other_network_are_added(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distance.bounds, "rounding_errors", lambda frozen: np.array([E]))
    other = {
        "steps": network((dense([[0]], [1]),)),
        "residual": network(ZERO, residual=[[1]]),
        "cells": network(ZERO),
    }[part]
    steep = network((dense([[0]]),), grid=None, residual=[[2]]) if part == "cells" else other
    frozen = network(ZERO) if part != "cells" else steep
    fixed = other if part != "cells" else network(ZERO, grid=1.0, residual=[[2]])
    (bound,) = distances(frozen, frozen.steps, fixed).tolist()
    assert bound == np.nextafter(1.0, 2.0)


def test_copies_between_knots_are_no_farther_apart() -> None:
    drawn = copied(n_outputs=2)
    frozen = replace(drawn, lipschitz=np.full(drawn.n_features, 1e4))
    fixed = to_fixed(frozen, (10, 8))
    assert fixed.fingerprint == knotted().fingerprint
    x = np.random.default_rng(0).uniform(0.1, 3.0, (2000, 4))
    moved = np.abs(frozen.score(x) - fixed.score(x)).max(axis=0)
    bound = distances(frozen, frozen.steps, fixed)
    assert np.all((moved > 0) & (moved <= bound))


@pytest.mark.usefixtures("without_rounding")
@pytest.mark.parametrize("seed", range(20))
def test_inputs_of_a_float32_network_move_by_half_a_unit(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slope, clip = np.random.default_rng(seed).uniform(1, 2, 2).tolist()
    clip = float(np.float32(clip))
    monkeypatch.setattr(distance.bounds, "slopes", lambda steps, n: np.array([[slope]]))
    zero = (Dense(np.zeros((1, 1), np.float32), np.zeros(1, np.float32)),)
    frozen = network(zero, precision="float32", grid=None, clip=clip)
    (bound,) = distances(frozen, zero, network(ZERO, clip=clip, grid=2.0**-50)).tolist()
    expected = Fraction(slope) * (Fraction(1, 2**51) + Fraction(clip) / 2**24)
    assert expected <= Fraction(bound) <= expected * (1 + Fraction(2.0**-50))


def test_inputs_rounded_to_float32_are_part_of_the_distance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = (Dense(np.zeros((1, 1), np.float32), np.array([2.0**-21], np.float32)),)
    clip, residual = 8.00390625, np.array([[1.0013270378112793]])
    options: dict[str, Any] = {"clip": clip, "grid": None, "residual": residual}
    single = network(steps, precision="float32", **options)
    fixed = to_fixed(single, (30, 24), clip)
    x = np.random.default_rng(0).uniform(8.0, clip, (100_000, 1))
    moved = np.abs(reference.score(single, x).astype(float) - fixed.score(x)).max()
    (bound,) = distances(single, single.steps, fixed)
    assert moved <= bound
    monkeypatch.setattr(distance, "_by_cast", lambda frozen, sizes: np.zeros(1))
    assert moved > distances(single, single.steps, fixed)
