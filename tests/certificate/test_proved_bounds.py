"""The certificate charges no less than what `proofs/` proves, and hardly more.

The formulas of `proofs/Growth.v`, `Network.v` and `Score.v` again, under their names there, in
exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from isotone import FrozenNetwork, MonotonicNetwork, certify, freeze
from isotone.certificate import bounds
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Steps, average, residual_block
from isotone.typing import Precision

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
        raise NotImplementedError

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

    def dense(self, step: Dense, h: Numbers) -> Numbers:
        weight, bias = [_sizes(row) for row in step.weight], _sizes(step.bias)
        size = h[0].through(weight).raised(sum(bias, Fraction(0)), bias)
        return self.rounded(step.weight.shape[1] + 1, size, h[1].through(weight))

    def sort(self, step: Sort, h: Numbers) -> Numbers:
        return h[0].alike, h[1].alike

    def pointwise(self, step: Pointwise, h: Numbers) -> Numbers:
        raise NotImplementedError

    def members(self, step: Members, h: Numbers, copies: bool) -> Numbers:
        sizes, errors = zip(*self.parts(step, h, copies), strict=True)
        size, error = _weigh(step.weights, list(sizes)), _weigh(step.weights, list(errors))
        return self.rounded(len(step.members) + 1, size, error)


def slope(steps: Steps, n: int, i: int) -> list[Fraction]:
    one = Fraction(1)
    single = Change(one, one, [Fraction(k == i) for k in range(n)])
    return Growth().run(steps, single).each


def rounding_error(frozen: FrozenNetwork) -> list[Fraction]:
    n, clip, zero = frozen.n_features, Fraction(frozen.clip), Fraction(0)
    follow = Follow(frozen.precision)
    inputs = Change(n * clip, clip, [clip] * n), Change(zero, zero, [zero] * n)
    size, error = follow.run(frozen.steps, inputs)
    residual = [sum(_sizes(row), zero) * clip for row in frozen.residual]
    every = zip(size.each, residual, error.each, strict=True)
    return [follow.fresh(n + 1, s + r) + e for s, r, e in every]


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


NETWORKS = {
    "float64": lambda: _plain(1, "float64"),
    "float32": lambda: _plain(2, "float32"),
    "members": lambda: _nested(_mean),
    "residual block": lambda: _nested(_block),
}


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
            assert proved <= Fraction(found[j, i]) <= proved * Fraction(1.05)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_certificate_that_holds_satisfies_the_hypothesis_of_the_theorem(kind: str) -> None:
    frozen = NETWORKS[kind]()
    (error,) = rounding_error(frozen)
    computed = [v for v in certify(frozen).verdicts if v.computed]
    assert bool(computed) == (frozen.grid is not None)
    for verdict in computed:
        i = frozen.features.index(verdict.feature)
        (steep,) = slope(frozen.steps, frozen.n_features, i)
        gain = verdict.direction * Fraction(frozen.residual[0, i]) - steep
        assert verdict.margin is not None
        assert frozen.grid is not None
        assert Fraction(verdict.margin) * Fraction(frozen.grid) >= 2 * error
        assert 2 * error <= gain * Fraction(frozen.grid)
        assert Fraction(verdict.slope) <= gain
