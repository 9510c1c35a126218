"""The certificate charges no less than what `proofs/` proves, and hardly more.

The formulas of `proofs/Growth.v`, `Network.v` and `Score.v` again, under their names there, in
exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from isotone import FrozenNetwork, MonotonicNetwork, Scaling, certify, freeze
from isotone.certificate import bounds
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Steps, average, residual_block
from isotone.typing import Precision
from networks import copied

ARITHMETIC = {  # unit and tiny of proofs/Arithmetic.v
    "float64": (Fraction(1, 2**53), Fraction(1, 2**1022)),
    "float32": (Fraction(1, 2**24), Fraction(1, 2**126)),
}


@dataclass(frozen=True)
class Change:
    one: Fraction
    inf: Fraction
    each: list[Fraction]

    @property
    def alike(self) -> Change:
        return Change(self.one, self.inf, [self.inf] * len(self.each))

    def times(self, factor: Fraction) -> Change:
        return Change(self.one * factor, self.inf * factor, [e * factor for e in self.each])

    def raised(self, extra: Fraction, extras: Sequence[Fraction]) -> Change:
        each = [a + b for a, b in zip(self.each, extras, strict=True)]
        return Change(self.one + extra, max(each), each)

    def through(self, weight: list[list[Fraction]]) -> Change:
        rows = [
            min(max(row) * self.one, sum(row) * self.inf, _dot(row, self.each)) for row in weight
        ]
        columns = max(map(sum, zip(*weight, strict=True)))
        one = min(columns * self.one, sum(map(sum, weight)) * self.inf, sum(rows))
        return Change(Fraction(one), max(rows), rows)


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _sizes(numbers: np.ndarray) -> list[Fraction]:
    return [abs(Fraction(number)) for number in numbers.astype(np.float64).tolist()]


def _weigh(weights: Sequence[float], parts: list[Change]) -> Change:
    w = [abs(Fraction(weight)) for weight in weights]
    each = [_dot(w, row) for row in zip(*(part.each for part in parts), strict=True)]
    return Change(_dot(w, [p.one for p in parts]), _dot(w, [p.inf for p in parts]), each)


class Growth(Language[Change]):
    def dense(self, step: Dense, h: Change) -> Change:
        return h.through([_sizes(row) for row in step.weight])

    def sort(self, step: Sort, h: Change) -> Change:
        return h.alike

    def pointwise(self, step: Pointwise, h: Change) -> Change:
        return h.alike.times(Fraction(step.constant))

    def members(self, step: Members, h: Change, copies: bool) -> Change:
        return _weigh(step.weights, self.parts(step, h, copies))


Numbers = tuple[Change, Change]  # size, error


class Follow(Language[Numbers]):
    def __init__(self, precision: Precision) -> None:
        self.unit, self.tiny = ARITHMETIC[precision]

    def fresh(self, n: int, size: Fraction, times: int = 1) -> Fraction:
        gamma = n * self.unit / (1 - n * self.unit)
        return gamma * size + times * n * self.tiny

    def rounded(self, n: int, size: Change, error: Change) -> Numbers:
        extra = self.fresh(n, size.one, len(size.each))
        extras = [self.fresh(n, one) for one in size.each]
        return size.raised(extra, extras), error.raised(extra, extras)

    def dense(self, step: Dense, h: Numbers, more: int = 1) -> Numbers:
        weight, bias = [_sizes(row) for row in step.weight], _sizes(step.bias)
        size = h[0].through(weight).raised(sum(bias, Fraction(0)), bias)
        return self.rounded(step.weight.shape[1] + more, size, h[1].through(weight))

    def look_up(self, step: Dense, h: Numbers) -> Numbers:
        """The sums of the copies that stand still were rounded before."""
        return self.dense(step, h, more=2)

    def sort(self, step: Sort, h: Numbers) -> Numbers:
        return h[0].alike, h[1].alike

    def pointwise(self, step: Pointwise, h: Numbers) -> Numbers:
        """Not in `proofs/`: |φ(x)| ≤ |φ(0)| + c|x|, and a product and a result are rounded."""
        activation, n = ACTIVATIONS[step.name], len(h[0].each)
        at_zero, own = (Fraction(x) for x in (activation.at_zero, activation.error))
        size, error = (each.alike.times(Fraction(step.constant)) for each in h)
        size = size.raised(n * at_zero, [at_zero] * n)
        lost = own + 4 * self.tiny
        extra = 2 * self.unit * size.one + n * lost
        extras = [2 * self.unit * each + lost for each in size.each]
        return size.raised(extra, extras), error.raised(extra, extras)

    def members(self, step: Members, h: Numbers, copies: bool) -> Numbers:
        sizes, errors = zip(*self.parts(step, h, copies), strict=True)
        size, error = _weigh(step.weights, list(sizes)), _weigh(step.weights, list(errors))
        return self.rounded(len(step.members) + 1, size, error)


def slope(steps: Steps, n: int, i: int) -> list[Fraction]:
    one = Fraction(1)
    single = Change(one, one, [Fraction(k == i) for k in range(n)])
    return Growth().run(steps, single).each


def rounding_error(frozen: FrozenNetwork) -> list[Fraction]:
    n, copies, zero = frozen.n_features, frozen.copies, Fraction(0)
    reach = _sizes(np.full(n, frozen.clip) if copies is None else copies.reach)
    follow = Follow(frozen.precision)
    inputs = Change(sum(reach, zero), max(reach), reach), Change(zero, zero, [zero] * n)
    size, error = follow.run(frozen.steps, inputs, copies is not None)
    residual = [_dot(_sizes(row), reach) for row in frozen.residual]
    every = zip(size.each, residual, error.each, strict=True)
    more = 1 if copies is None else 2
    return [follow.fresh(n + more, s + r) + e for s, r, e in every]


def _plain(seed: int, precision: Precision) -> FrozenNetwork:
    torch.manual_seed(seed)
    network = MonotonicNetwork([3, 8, 6, 1], monotonic_cst=[1, -1, 0], lipschitz=2.0)
    return freeze(network, precision=precision, grid=2.0**-8 if precision == "float64" else None)


def _nested(change: Callable[[Steps], Steps]) -> FrozenNetwork:
    frozen = _plain(5, "float64")
    return replace(frozen, steps=change(frozen.steps))


def _mean(steps: Steps) -> Steps:
    return (average([steps, _plain(6, "float64").steps], [0.25, 0.75]),)


def _block(steps: Steps) -> Steps:
    square = Dense(np.eye(8) / 4, np.full(8, 0.125))
    return (*steps[:2], residual_block(0.5, 0.5, (square, Sort(2))), *steps[2:])


def _full(seed: int, change: Callable[[list[Steps]], Steps]) -> FrozenNetwork:
    """All numbers have 53 bits, so that every sum and product on the way to a bound is rounded."""
    rng = np.random.default_rng(seed)

    def dense(n_out: int, n_in: int) -> Dense:
        return Dense(rng.normal(size=(n_out, n_in)) / n_in, rng.normal(size=n_out))

    chains: list[Steps] = [
        (dense(6, 3), Sort(2), dense(6, 6), Sort(3), dense(2, 6)) for _ in range(3)
    ]
    residual, zero = rng.normal(size=(2, 3)), np.zeros((2, 3), np.int8)
    names, scaling = ("a", "b", "c"), Scaling.identity(3)
    options: dict[str, Any] = {"clip": 10 / 3, "grid": None}
    return FrozenNetwork(
        names, scaling, change(chains), residual, rng.uniform(1, 9, 3), zero, **options
    )


def _zeros(precision: Precision) -> FrozenNetwork:
    """Nothing but underflow is charged."""
    first = Dense(np.zeros((4, 2), precision), np.zeros(4, precision))
    steps = (first, Pointwise("relu"), Sort(2))
    last = Dense(np.ones((1, 4), precision), np.zeros(1, precision))
    residual, zero = np.zeros((1, 2)), np.zeros((1, 2), np.int8)
    options: dict[str, Any] = {"precision": precision, "clip": 1.0, "grid": None}
    twice = (Members((1.0, 1.0), ((*steps, last), (*steps, last))),)
    return FrozenNetwork(
        ("a", "b"), Scaling.identity(2), twice, residual, np.ones(2), zero, **options
    )


def _unlike(chains: list[Steps]) -> Steps:
    first, second, third = chains
    return (Members((0.1, -0.7, 1 / 3), (first, (*second, Sort(2)), third)),)


FULL = {
    "chain": lambda chains: chains[0],
    "members": lambda chains: (Members((0.1, -0.7, 1 / 3), tuple(chains)),),
    "unlike members": _unlike,
    "a sort first": lambda chains: (Sort(3), *chains[0]),
    "sorted members": lambda chains: (
        Members((0.1, -0.7, 1 / 3), tuple((*steps, Sort(2)) for steps in chains)),
    ),
    "short members": lambda chains: (
        Members((0.1, -0.7, 1 / 3), tuple((steps[0], Sort(2)) for steps in chains)),
        chains[0][-1],
    ),
    "leaky": lambda chains: (chains[0][0], Pointwise("leaky_relu", 1.7), chains[0][-1]),
    "softplus": lambda chains: (chains[0][0], Pointwise("softplus"), chains[0][-1]),
    "ends in tanh": lambda chains: (*chains[0], Pointwise("tanh")),
}
NETWORKS = {
    **{
        f"53 bits: {kind}, {seed}": partial(_full, seed, change)
        for kind, change in FULL.items()
        for seed in range(3)
    },
    "copies": lambda: copied(n_outputs=2),
    "copies, float32": lambda: copied(precision="float32"),
    "copies of members": lambda: copied(n_outputs=2, n_members=3),
    "zeros": lambda: _zeros("float64"),
    "zeros, float32": lambda: _zeros("float32"),
    "float64": lambda: _plain(1, "float64"),
    "float32": lambda: _plain(2, "float32"),
    "members": lambda: _nested(_mean),
    "residual block": lambda: _nested(_block),
}


CLOSE = ("float64", "float32", "members", "residual block")


@pytest.mark.parametrize("kind", NETWORKS)
def test_errors_are_at_least_those_proved(kind: str) -> None:
    frozen = NETWORKS[kind]()
    for found, proved in zip(
        bounds.rounding_errors(frozen).tolist(), rounding_error(frozen), strict=True
    ):
        assert proved <= Fraction(found) <= proved * Fraction(1 + 2.0**-40)


@pytest.mark.parametrize("kind", NETWORKS)
def test_slopes_are_at_least_those_proved(kind: str) -> None:
    frozen = NETWORKS[kind]()
    found = bounds.slopes(frozen.steps, frozen.n_features)
    for i in range(frozen.n_features):
        for j, proved in enumerate(slope(frozen.steps, frozen.n_features, i)):
            # the proof takes the best bound of every unit, the code that of all together
            much = 1.05 if kind in CLOSE else 4
            assert proved <= Fraction(found[j, i]) <= proved * Fraction(much)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_certificate_that_holds_satisfies_the_hypothesis_of_the_theorem(kind: str) -> None:
    frozen = NETWORKS[kind]()
    error, *_ = rounding_error(frozen)
    computed = [v for v in certify(frozen).verdicts if v.computed]
    assert bool(computed) == (frozen.grid is not None and bool(frozen.monotonic_cst.any()))
    for verdict in computed:
        i = frozen.features.index(verdict.feature)
        (steep,) = slope(frozen.steps, frozen.n_features, i)
        gain = verdict.direction * Fraction(frozen.residual[0, i]) - steep
        assert verdict.margin is not None
        assert frozen.grid is not None
        assert Fraction(verdict.margin) * Fraction(frozen.grid) >= 2 * error
        assert 2 * error <= gain * Fraction(frozen.grid)
        assert Fraction(verdict.slope) <= gain


@pytest.mark.parametrize("seed", range(5))
def test_slopes_of_differences_are_at_least_the_exact_ones(seed: int) -> None:
    """Of the last step the exact |w_k - w_l|; or the sum of both slopes if that is less."""
    frozen = _full(seed, FULL["chain"])
    *steps, last = frozen.steps
    assert isinstance(last, Dense)
    sizes = [abs(Fraction(a) - Fraction(b)) for a, b in zip(*last.weight.tolist(), strict=True)]
    found = bounds.rival_slopes(frozen.steps, 3, 0)
    assert np.all(found[0] == 0)
    for i in range(3):
        one = Fraction(1)
        single = Change(one, one, [Fraction(k == i) for k in range(3)])
        before = Growth().run(tuple(steps), single).alike
        (joint,) = before.through([sizes]).each
        apart = sum(slope(frozen.steps, 3, i), Fraction(0))
        assert min(joint, apart) <= Fraction(found[1, i]) <= 2 * joint


def test_constants_are_at_least_the_exact_ones() -> None:
    for seed in range(5):
        frozen = _full(seed, FULL["chain"])
        units = [Fraction(each) for each in frozen.lipschitz.tolist()]
        slopes = [slope(frozen.steps, 3, i) for i in range(3)]
        found = bounds.constants(frozen.steps, frozen.lipschitz, "1")
        for j in range(2):
            most = max(s[j] / unit for s, unit in zip(slopes, units, strict=True))
            assert most <= Fraction(found[j])
        first = frozen.steps[0]
        assert isinstance(first, Dense)
        rows = [[s / u for s, u in zip(_sizes(row), units, strict=True)] for row in first.weight]
        found = bounds.constants((first,), frozen.lipschitz, "inf")
        for row, constant in zip(rows, found.tolist(), strict=True):
            assert sum(row, Fraction(0)) <= Fraction(constant)
        found = bounds.constants((first,), frozen.lipschitz, "2")
        for row, constant in zip(rows, found.tolist(), strict=True):
            assert sum((s * s for s in row), Fraction(0)) <= Fraction(constant) ** 2
            assert constant < 1.0001 * float(sum((s * s for s in row), Fraction(0))) ** 0.5


@pytest.mark.parametrize("seed", range(3))
def test_errors_within_a_reach_of_each_input_are_at_least_the_exact_ones(seed: int) -> None:
    frozen, reach = _full(seed, FULL["chain"]), np.array([0.1, 3.3, 1 / 7])
    sizes, zero, follow = _sizes(reach), Fraction(0), Follow("float64")
    inputs = Change(sum(sizes, zero), max(sizes), sizes), Change(zero, zero, [zero] * 3)
    size, error = follow.run(frozen.steps, inputs)
    found = bounds.rounding_errors_within(frozen.steps, frozen.residual, reach, "float64")
    for j, row in enumerate(frozen.residual):
        exact = follow.fresh(4, size.each[j] + _dot(_sizes(row), sizes)) + error.each[j]
        assert exact <= Fraction(found[j]) <= exact * Fraction(1 + 2.0**-40)


def _few(n: int, rng: np.random.Generator, kind: str) -> FrozenNetwork:
    """One sum of n terms and zeros elsewhere, so that few roundings hide one another."""
    weight, bias, residual = np.zeros((1, n)), np.zeros(1), np.zeros((1, n))
    if kind == "residual":
        residual = rng.uniform(1.0, 1.2, (1, n))
    if kind in ("dense", "both"):
        weight, bias = rng.uniform(1.0, 1.2, (1, n)), rng.uniform(0.0, 1.0, 1)
    if kind in ("bias", "both", "members"):
        bias, residual[0, 0] = rng.uniform(1.0, 1.2, 1), rng.uniform()
    step: Steps = (Dense(weight, bias),)
    if kind == "members":
        step = (Members(tuple(rng.uniform(1.0, 1.2, n).tolist()), (step,) * n),)
    names, zero = tuple(f"x{i}" for i in range(n)), np.zeros((1, n), np.int8)
    options: dict[str, Any] = {"clip": float(rng.uniform(1.0, 1.2)), "grid": None}
    return FrozenNetwork(names, Scaling.identity(n), step, residual, np.ones(n), zero, **options)


@pytest.mark.parametrize("kind", ["residual", "dense", "bias", "both", "members"])
def test_errors_of_one_sum_are_at_least_those_proved(kind: str) -> None:
    rng = np.random.default_rng(0)
    for n in [*range(1, 30), *range(1, 10), *range(1, 10)]:
        frozen = _few(n, rng, kind)
        (found,), (proved,) = bounds.rounding_errors(frozen).tolist(), rounding_error(frozen)
        assert proved <= Fraction(found) <= proved * Fraction(1 + 2.0**-40)
