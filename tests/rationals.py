"""The real-number function of a frozen network, in rationals: what theorems are about."""

from __future__ import annotations

from fractions import Fraction

from isotone import FrozenNetwork
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step
from isotone.typing import Floats


def exact_score(frozen: FrozenNetwork, u: Floats) -> list[Fraction]:
    """The real-number function at one point, in rationals."""
    start = [Fraction(float(x)) for x in u]
    h = exact_steps(frozen.steps, start)
    residual = frozen.residual.tolist()
    return [
        y + sum((Fraction(r) * x for r, x in zip(row, start, strict=True)), Fraction(0))
        for y, row in zip(h, residual, strict=True)
    ]


def exact_step(step: Step, h: list[Fraction]) -> list[Fraction]:
    match step:
        case Dense(weight, bias):
            rows = [[Fraction(float(w)) for w in row] for row in weight]
            return [
                Fraction(float(b)) + sum(w * x for w, x in zip(row, h, strict=True))
                for row, b in zip(rows, bias, strict=True)
            ]
        case Sort(size):
            return [x for i in range(0, len(h), size) for x in sorted(h[i : i + size])]
        case Pointwise("relu"):
            return [max(x, Fraction(0)) for x in h]
        case Pointwise("leaky_relu", slope):
            return [x if x > 0 else Fraction(slope) * x for x in h]
        case Pointwise("abs"):
            return [abs(x) for x in h]
        case Pointwise("hardtanh"):
            return [min(max(x, Fraction(-1)), Fraction(1)) for x in h]
        case Members(weights, members):
            parts = [exact_steps(member, h) for member in members]
            exact = [Fraction(weight) for weight in weights]
            return [
                sum((w * x for w, x in zip(exact, units, strict=True)), Fraction(0))
                for units in zip(*parts, strict=True)
            ]
    raise AssertionError(step)


def exact_steps(steps: tuple[Step, ...], h: list[Fraction]) -> list[Fraction]:
    for step in steps:
        h = exact_step(step, h)
    return h
