"""Every single operation on the way to a bound is rounded outward, on numbers of 53 bits.

A bound that was rounded up several times hides one that was rounded down, so that each is looked
at alone, against exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.certificate import bounds
from isotone.certificate.bounds import Change
from isotone.certificate.slopes import slope_range
from isotone.frozen.steps import Dense, Members, Sort
from isotone.typing import Floats

SEEDS = range(20)


def fractions(numbers: Any) -> list[Fraction]:
    return [Fraction(x) for x in np.ravel(numbers).tolist()]


def at_least(found: Any, exact: list[Fraction]) -> bool:
    """No number is below the exact one, and none more than a few units above."""
    pairs = list(zip(fractions(found), exact, strict=True))
    return all(e <= f <= e * (1 + Fraction(1, 2**49)) for f, e in pairs)


def drawn(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).uniform(0.5, 4.0, shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_changes_are_added_multiplied_and_spread(seed: int) -> None:
    a, b, factor = drawn(seed, 2, 5), drawn(seed + 100, 2, 5), float(drawn(seed, 1)[0])
    x, y = fractions(a), fractions(b)
    assert at_least((Change(a) + Change(b)).both, [p + q for p, q in zip(x, y, strict=True)])
    assert at_least((Change(a) * factor).both, [Fraction(factor) * p for p in x])
    spread = bounds._each(factor, 7).both
    assert at_least(spread, [7 * Fraction(factor), Fraction(factor)])


@pytest.mark.parametrize("seed", SEEDS)
def test_constants_in_units_of_lambda(seed: int) -> None:
    slopes, scale = drawn(seed, 3, 1), drawn(seed + 1, 1)
    unit = Fraction(float(scale[0]))
    assert at_least(bounds.steepest(slopes, scale), [s / unit for s in fractions(slopes)])
    for metric in ("2", "inf"):
        found = bounds.constants((Sort(1),), scale, metric)  # type: ignore[arg-type]
        assert at_least(found, [1 / unit])


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_of_members(seed: int) -> None:
    weights, numbers = drawn(seed, 2).tolist(), drawn(seed + 7, 2).tolist()
    members = tuple((Dense(np.array([[x]]), np.zeros(1)),) for x in numbers)
    (layer,) = bounds.layer_bounds((Members(tuple(weights), members),))
    pairs = zip(fractions(weights), fractions(numbers), strict=True)
    exact = sum((w * x for w, x in pairs), Fraction(0))
    assert at_least([layer.one, layer.inf], [exact, exact])
    (alone,) = bounds.layer_bounds((Members((weights[0],), members[:1]),))
    assert at_least([alone.one], [Fraction(weights[0]) * Fraction(numbers[0])])


@pytest.mark.parametrize("seed", SEEDS)
def test_slopes_of_differences_of_rows(seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=(3, 4))
    step = Dense(weight, np.zeros(3))
    for k in range(3):
        rows = [fractions(row) for row in weight]
        exact = [abs(a - b) for row in rows for a, b in zip(rows[k], row, strict=True)]
        assert at_least(bounds.rival_slopes((step,), 4, k), exact)


@pytest.mark.parametrize("seed", SEEDS)
def test_slopes_with_the_residual(seed: int) -> None:
    rng = np.random.default_rng(seed)
    residual, slopes = rng.normal(size=(2, 3)), rng.uniform(size=(2, 3))
    low, high = slope_range(residual, slopes)
    pairs = list(zip(fractions(residual), fractions(slopes), strict=True))
    assert all(f <= r - s for f, (r, s) in zip(fractions(low), pairs, strict=True))
    assert all(f >= r + s for f, (r, s) in zip(fractions(high), pairs, strict=True))
    np.testing.assert_allclose(low, residual - slopes, rtol=1e-13)
    np.testing.assert_allclose(high, residual + slopes, rtol=1e-13)
