"""Some network reaches more than 0.9 of every bound, and none exceeds it.

Random weights average errors out and never reach a slope, so that a bound which is too small by
a factor passes them. The networks here are made against the bounds: sums whose every addition
is rounded by half a unit in the last place, chains whose slopes multiply, rows at the full radius.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, certify
from isotone.certificate import bounds
from isotone.frozen import reference
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, Steps
from rationals import exact_score

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}


def network(steps: Steps, n: int, residual: Any = None, **options: Any) -> FrozenNetwork:
    r = np.zeros((1, n)) if residual is None else np.atleast_2d(np.asarray(residual, float))
    names = tuple(f"x{i}" for i in range(n))
    fixed: dict[str, Any] = {"clip": 1.0, "grid": None} | options
    signs = fixed.pop("monotonic_cst", np.zeros(r.shape, np.int8))
    lipschitz = np.full(n, fixed.pop("lipschitz", 1.0))
    return FrozenNetwork(names, Scaling.identity(n), steps, r, lipschitz, signs, **fixed)


def dense(weight: Any, bias: Any = None, dtype: str = "float64") -> Dense:
    w = np.atleast_2d(np.asarray(weight, dtype))
    return Dense(w, np.zeros(len(w), dtype) if bias is None else np.asarray(bias, dtype))


def first_of(n: int, dtype: str) -> Dense:
    return dense([[1e-300 if dtype == "float64" else 1e-30] + [0.0] * (n - 1)], None, dtype)


def half_a_unit(n: int, dtype: str) -> np.ndarray:
    """Weights that, added to a number in [1, 2), are all rounded up by nearly their own size."""
    return np.full(n, UNIT[dtype] * (1 + 2.0**-10), dtype)


def reached(frozen: FrozenNetwork, x: Any) -> list[float]:
    """The error of the computed score of a row, as a share of the bound."""
    row = np.asarray(x, float)[None]
    computed = np.atleast_1d(reference.score(frozen, row)[0]).astype(np.float64)
    errors, exact = bounds.rounding_errors(frozen), exact_score(frozen, row[0])
    each = zip(computed.tolist(), exact, errors.tolist(), strict=True)
    return [float(abs(Fraction(c) - e) / Fraction(error)) for c, e, error in each]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [50, 200])
class TestErrors:
    def test_a_dense_step_and_the_residual(self, n: int, dtype: Any) -> None:
        small = half_a_unit(n, dtype)
        frozen = network((dense(small, [1.0], dtype),), n, residual=small, precision=dtype)
        (share,) = reached(frozen, np.ones(n))
        assert 0.9 < share <= 1

    def test_a_dense_step_whose_error_grows_in_the_next(self, n: int, dtype: Any) -> None:
        small = half_a_unit(n, dtype)
        steps = (dense(small, [1.0], dtype), dense([[512.0]], None, dtype))
        (share,) = reached(network(steps, n, precision=dtype), np.ones(n))
        assert (n - 4) / (2 * n) < share <= 1  # the residual, all zeros, is charged as much
        one = (dense(small, [1.0], dtype),)
        errors = [bounds.rounding_errors(network(s, n, precision=dtype))[0] for s in (one, steps)]
        assert 500 * errors[0] < errors[1] < 530 * errors[0]

    def test_sums_of_members(self, n: int, dtype: Any) -> None:
        """The first member is one, and every other half a unit; one member for all of them."""
        values = [1.0, *half_a_unit(n - 1, dtype).tolist()]
        steps = (Members((1.0,) * n, tuple((dense([[0.0]], [v], dtype),) for v in values)),)
        (share,) = reached(network(steps, 1, precision=dtype), [1.0])
        assert 0.88 < share <= 1

    def test_sums_of_members_that_differ_in_their_steps(self, n: int, dtype: Any) -> None:
        small = half_a_unit(n - 1, dtype).tolist()
        first: tuple[Step, ...] = (dense([[0.0]], [1.0], dtype), Sort(1))
        others = tuple((dense([[0.0]], [v], dtype),) for v in small)
        steps = (Members((1.0,) * n, (first, *others)),)
        (share,) = reached(network(steps, 1, precision=dtype), [1.0])
        assert 0.88 < share <= 1

    def test_weights_of_members_may_be_negative(self, n: int, dtype: Any) -> None:
        values = [1.0, *half_a_unit(n - 1, dtype).tolist()]
        members = tuple((dense([[0.0]], [v], dtype),) for v in values)
        plus, minus = (
            network((Members((sign,) * n, members),), 1, precision=dtype) for sign in (1.0, -1.0)
        )
        assert reached(minus, [1.0]) == reached(plus, [1.0])
        assert bounds.rounding_errors(minus) == bounds.rounding_errors(plus)


def test_errors_of_inputs_grow_with_the_clip() -> None:
    small = half_a_unit(100, "float64") / 2.0**20
    for clip in (2.0**20, 2.0**30):
        frozen = network((dense(small * 2.0**20 / clip, [1.0]),), 100, clip=clip)
        (share,) = reached(frozen, np.full(100, clip))
        assert 0.45 < share <= 1  # the residual, all zeros, is charged as much


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_that_underflow_are_charged(dtype: Any) -> None:
    """Each loses all of itself: nearly half of the least positive number."""
    tiny = {"float64": 2.0**-537, "float32": 2.0**-75}[dtype]
    n = 20
    frozen = network((dense(np.full(n, tiny * 0.99), [0.0], dtype),), n, precision=dtype)
    (share,) = reached(frozen, np.full(n, tiny))
    assert 0 < share <= 1


CHAINS: dict[str, tuple[Steps, int, list[float]]] = {
    "dense": ((dense([[3.0, -2.0]]),), 2, [3.0, 2.0]),
    "negative weights": ((dense([[-2.0], [-2.0]]), dense([[-3.0, -3.0]])), 1, [12.0]),
    "sort": ((dense([[1.0], [2.0]]), Sort(2), dense([[0.0, 5.0]])), 1, [10.0]),
    "sort first": ((Sort(2), dense([[0.5, 0.5]])), 2, [0.5, 0.5]),
    "only a sort": ((Sort(2), Sort(2), dense([[0.0, 3.0]])), 2, [3.0, 3.0]),
    "leaky ReLU": ((dense([[2.0]]), Pointwise("leaky_relu", 3.0)), 1, [6.0]),
    "falling leaky ReLU": ((dense([[2.0]]), Pointwise("leaky_relu", -3.0)), 1, [6.0]),
    "leaky ReLU first": ((Pointwise("leaky_relu", -3.0), dense([[1.0]])), 1, [3.0]),
    "sigmoid": ((dense([[4.0]]), Pointwise("sigmoid")), 1, [1.0]),
    "members": ((Members((0.5, -2.0), ((dense([[2.0]]),), (dense([[-3.0]]),))),), 1, [7.0]),
    "nested": ((dense([[1.0]]), Members((-1.0, 2.0), ((), (dense([[-3.0]]),)))), 1, [7.0]),
    "members without dense": ((Members((-1.0, -2.0), ((), (Sort(1),))),), 1, [3.0]),
}


def steepest(frozen: FrozenNetwork, i: int) -> float:
    """The largest slope along a feature between neighbors of a grid, exactly."""
    n, ticks = frozen.n_features, np.linspace(-1.0, 1.0, 257)
    rows = np.full((len(ticks), n), 0.0)
    rows[:, i] = ticks
    scores = reference.score(frozen, rows).reshape(len(ticks), -1)
    return float(np.abs(np.diff(scores, axis=0)).max() / (ticks[1] - ticks[0]))


@pytest.mark.parametrize("name", CHAINS)
def test_slopes_are_reached(name: str) -> None:
    steps, n, expected = CHAINS[name]
    frozen = network(steps, n)
    found = bounds.slopes(steps, n)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    for i in range(n):
        assert 0.9 * found[i] < steepest(frozen, i) <= found[i] * (1 + 1e-9)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("direction", [-1, 1])
def test_a_direction_holds_exactly_from_the_slope_on(name: str, direction: int) -> None:
    """One part in a thousand below the steepest slope nothing holds, as much above all does."""
    steps, n, expected = CHAINS[name]
    signs = np.full((1, n), direction, np.int8)
    for factor, holds in ((1 - 1e-3, False), (1 + 1e-3, True)):
        residual = direction * factor * np.array(expected)
        frozen = network(
            steps, n, residual, monotonic_cst=signs, grid=2.0**-8, clip=16.0, lipschitz=100.0
        )
        verdicts = certify(frozen).verdicts
        assert [(v.real, v.computed) for v in verdicts] == [(holds, holds)] * n
        assert certify(frozen).holds == holds


@pytest.mark.parametrize("metric", ["1", "2", "inf"])
@pytest.mark.parametrize("name", CHAINS)
def test_constants_are_reached(name: str, metric: Any) -> None:
    """Of chains that are linear near some row the dual norm of the slopes; none is below."""
    steps, n, expected = CHAINS[name]
    dual = {"1": np.inf, "2": 2, "inf": 1}[metric]
    least = np.linalg.norm(np.array(expected) / 4.0, ord=dual)
    (found,) = bounds.constants(steps, np.full(n, 4.0), metric)
    if name in ("sort first", "only a sort"):  # one of the inputs at a time
        least = max(expected) / 4.0
    assert least * (1 - 1e-12) <= found
    if name not in ("sort first", "only a sort"):
        assert found <= least * (1 + 1e-12)


class TestOverflow:
    """Wherever a number on the way may be infinite, no error is bounded and nothing holds."""

    HUGE = 2.0**1023
    STEPS: dict[str, Steps] = {  # noqa: RUF012
        "dense": (dense([[0.5]], [HUGE]), dense([[0.0]])),
        "sums of a dense step": (dense([[0.5]] * 4, [HUGE / 2] * 4), dense([[2.0] * 4])),
        "activation": (dense([[0.5]], [-HUGE / 4]), Pointwise("leaky_relu", 16.0), dense([[0.0]])),
        "members": (
            Members((4.0, 4.0), ((dense([[0.5]], [HUGE / 4]),),) * 2),
            dense([[0.0]]),
        ),
        "different members": (
            Members((4.0, 4.0), ((dense([[0.5]], [HUGE / 4]),), (dense([[0.5]]), Sort(1)))),
            dense([[0.0]]),
        ),
        "score": (dense([[0.5]], [HUGE / 4]),),
    }

    @pytest.mark.parametrize("kind", STEPS)
    def test_in_a_step(self, kind: str) -> None:
        residual = [self.HUGE / 2] if kind == "score" else [0.0]
        clip = 4.0 if kind == "score" else 1.0
        options: dict[str, Any] = {"clip": clip, "grid": 2.0**-8, "lipschitz": 2.0**1000}
        frozen = network(self.STEPS[kind], 1, residual, **options)
        certificate = certify(frozen)
        assert np.all(np.isinf(bounds.rounding_errors(frozen)))
        assert certificate.rounding_errors == (math.inf,)
        assert not certificate.holds
        assert certificate.drop == math.inf

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("beside", [0.0, 1.0])
    def test_from_a_quarter_of_the_largest_number_on(self, dtype: Any, beside: float) -> None:
        """2^1022 in float64: 1.0 of that is refused, 0.99 is not; also of one among several."""
        near = {"float64": 2.0**1022, "float32": 2.0**126}[dtype]
        for size, holds in ((near, False), (0.99 * near, True)):
            first = dense([[0.0]] * 2, [size, beside], dtype)
            for steps in (
                (first, dense([[0.0] * 2], None, dtype)),
                (first, Sort(2), first_of(2, dtype)),
            ):
                frozen = network(steps, 1, precision=dtype)
                assert np.all(np.isfinite(bounds.rounding_errors(frozen))) == holds
                assert certify(frozen).holds == holds

    def test_of_a_score_whose_parts_do_not(self) -> None:
        """g and the residual sum are below 2^1022, and their sum is not."""
        for share, holds in ((0.49, True), (0.51, False)):
            part = share * 2.0**1022
            frozen = network((dense([[0.0]], [part]),), 1, [part], lipschitz=2.0**1020)
            assert np.isfinite(bounds.rounding_errors(frozen)[0]) == holds

    def test_of_differences_of_weights(self) -> None:
        """Rows whose difference float64 does not hold are bounded one by one."""
        most = 1.7e308
        steps = (dense([[1.0, 0.5], [-most, 0.25], [most, -0.5]]),)
        for k in (1, 2):
            each = bounds.slopes(steps, 2)
            with np.errstate(over="ignore"):
                expected = each[k] + each
            np.testing.assert_allclose(bounds.rival_slopes(steps, 2, k), expected)


def line(slope: float = 1.0, bias: float = 0.0, **options: Any) -> FrozenNetwork:
    """f(x) = slope · x + bias, of which g is a half."""
    return network((dense([[slope / 2]], [bias]),), 1, [slope / 2], **options)


class TestRadii:
    """At the full radius no decision changes; hardly beyond it, some does."""

    X = np.linspace(-3.0, 3.0, 100)[:, None]  # none on a threshold

    @pytest.mark.parametrize("slope", [1.0, -0.75, 2.0])
    @pytest.mark.parametrize("grid", [None, 2.0**-20, 2.0**-6])
    @pytest.mark.parametrize("threshold", [0.0, 0.4, -1.1])
    def test_of_one_feature(self, slope: float, grid: Any, threshold: float) -> None:
        frozen = line(slope, grid=grid, clip=16.0)
        radius = certify(frozen).certified_radius(self.X, threshold)
        accepted = frozen.score(self.X) >= threshold
        for sign, distance in ((-1, radius.down), (1, radius.up)):
            finite = np.isfinite(distance[:, 0])
            at = self.X + sign * np.where(np.isfinite(distance), distance, 8.0)
            assert np.array_equal(frozen.score(at) >= threshold, accepted)
            far = self.X + (at - self.X) * 1.01 + sign * (1e-9 + 2 * (grid or 0.0))
            turned = (frozen.score(far) >= threshold) != accepted
            assert np.array_equal(turned, finite)
            assert 20 < finite.sum() < 90

    @pytest.mark.parametrize("grid", [None, 2.0**-20, 2.0**-6])
    def test_of_all_together(self, grid: Any) -> None:
        frozen = network((dense([[0.5, -1.0]]),), 2, [0.5, -1.0], grid=grid, clip=16.0)
        X = np.random.default_rng(0).normal(size=(200, 2))
        radius = certify(frozen).certified_radius(X).scaled
        accepted = frozen.score(X) >= 0
        away = np.where(accepted, 1.0, -1.0)
        for factor, same in ((1.0, True), (1.01, False)):
            slack = 0.0 if same else 4 * (grid or 0.0)
            moved = X + np.array([0.0, 1.0]) * (away * (factor * radius + slack))[:, None]
            now = frozen.score(moved) >= 0
            assert np.array_equal(now, accepted) if same else np.all(now != accepted)

    @pytest.mark.parametrize("shift", [0.1, 0.5])
    def test_of_flips(self, shift: float) -> None:
        """As many flip as the bound says, for the worst shift of every row."""
        frozen = line(1.0, grid=2.0**-20, clip=16.0)
        bound = certify(frozen).flip_bound(self.X, [shift])
        one_way = certify(frozen).flip_bound(self.X, [(0.0, shift)])
        accepted = frozen.score(self.X) >= 0
        down, up = (frozen.score(self.X + s) >= 0 for s in (-shift, shift))
        assert np.mean((down != accepted) | (up != accepted)) <= bound
        assert np.mean(up != accepted) <= one_way
        more = shift * 1.001 + 2.0**-19
        down, up = (frozen.score(self.X + s) >= 0 for s in (-more, more))
        assert np.mean((down != accepted) | (up != accepted)) >= bound
        assert np.mean(up != accepted) >= one_way
        assert 0 < one_way < bound < 1

    def test_of_classes(self) -> None:
        """Three lines: the lead of a class is the difference of two slopes, exactly."""
        weight = np.array([[2.0, 1.0], [1.5, 2.0], [1.0, 1.25]])
        frozen = network((dense(weight / 2),), 2, weight / 2, clip=16.0, grid=2.0**-20)
        frozen = replace(frozen, outputs="logits", classes=("a", "b", "c"))
        X = np.random.default_rng(1).normal(size=(300, 2))
        radius, won = certify(frozen).certified_radius(X), frozen.score(X).argmax(axis=1)
        for i in range(2):
            for sign, distance in ((-1, radius.down[:, i]), (1, radius.up[:, i])):
                finite = np.isfinite(distance)
                move = sign * np.eye(2)[i] * np.where(finite, distance, 8.0)[:, None]
                assert np.array_equal(frozen.score(X + move).argmax(axis=1), won)
                further = move * 1.01 + sign * 2.0**-18 * np.eye(2)[i]
                inside = finite & (np.abs(X + further).max(axis=1) < 15)
                turned = frozen.score(X + further).argmax(axis=1) != won
                assert np.all(turned[inside])
                assert inside.sum() > 50
