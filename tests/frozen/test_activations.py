"""Activations: their formulas err by less than certificates charge, and have the engine's bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from isotone import Engine
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.steps import Dense, Pointwise
from isotone.typing import Floats
from networks import by_hand


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with localcontext(prec=130):
        yield


def exactly(name: str, h: Decimal) -> Decimal:
    match name:
        case "tanh":
            return 1 - 2 / (1 + (2 * h).exp())
        case "sigmoid":
            return 1 / (1 + (-h).exp())
        case "softplus":
            return (1 + h.exp()).ln()
        case "relu":
            return max(h, Decimal(0))
        case "leaky_relu":
            return h if h > 0 else h / 4
        case "abs":
            return abs(h)
    return min(max(h, Decimal(-1)), Decimal(1))


def arguments(n: int) -> Floats:
    """Of all sizes, around 0, where the series has most to do, and beyond what is clamped."""
    rng = np.random.default_rng(0)
    sizes = rng.uniform(-1, 1, n) * 10.0 ** rng.uniform(-12, 3, n)
    return np.concatenate([sizes, rng.uniform(-2e-3, 2e-3, n), [0.0, 1.0, -1.0, 800.0, -800.0]])


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_formulas_err_by_less_than_a_quarter_of_what_is_charged(name: str) -> None:
    kind, h = ACTIVATIONS[name], arguments(400)
    found = kind.function(h, 0.25)
    pairs = zip(found.tolist(), h.tolist(), strict=True)
    worst = max(abs(Decimal(y) - exactly(name, Decimal(x))) for y, x in pairs)
    assert worst <= Decimal(kind.error) / 4
    assert kind.error <= 2.0**-44
    at_zero = abs(exactly(name, Decimal(0)))
    assert at_zero <= Decimal(kind.at_zero) <= at_zero + Decimal("0.01")


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_no_activation_is_steeper_than_its_constant(name: str) -> None:
    kind, h = ACTIVATIONS[name], np.linspace(-9.0, 9.0, 18001)
    rise = np.abs(np.diff(kind.function(h, 0.25))) / np.diff(h)
    assert 0.999 * kind.constant < rise.max() <= kind.constant * (1 + 1e-9)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_the_engine_has_the_same_bits(name: str) -> None:
    steps = Dense(np.ones((1, 1)), np.zeros(1)), Pointwise(name, 0.25)
    residual = np.zeros((1, 1))
    frozen = replace(by_hand(0.5), steps=steps, residual=residual, grid=None)
    h = arguments(50_000)
    expected = ACTIVATIONS[name].function(h, 0.25) + 0.0
    for isa in Engine.instruction_sets():
        assert np.array_equal(Engine(frozen, isa=isa)(h[:, None]), expected)
