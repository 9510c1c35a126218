"""Sketches bound their own error, and distances of sketches those of the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from isotone.monitoring.sketch import (
    EMPTY,
    EXACT,
    SIZE,
    Sketch,
    Sketcher,
    kolmogorov_smirnov,
    wasserstein,
)
from isotone.monitoring.stability import counts_in, quantile_bins, stability
from isotone.typing import Floats

NUMBERS = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=60)
SOME = [
    lambda rng, n: rng.normal(size=n),
    lambda rng, n: rng.standard_cauchy(size=n),
    lambda rng, n: rng.integers(0, 7, n).astype(float),
    lambda rng, n: np.where(rng.random(n) < 0.9, 0.0, rng.exponential(size=n)),
]


@given(NUMBERS, NUMBERS)
def test_distances_are_those_of_their_definitions(p: list[float], q: list[float]) -> None:
    P, Q = Sketch.of(np.array(p)), Sketch.of(np.array(q))
    assert wasserstein(P, Q) == pytest.approx(wasserstein_distance(p, q), abs=1e-12)
    assert wasserstein(P, Q) == wasserstein(Q, P)
    shares = [[np.mean(np.array(each) <= x) for x in (*p, *q)] for each in (p, q)]
    largest = np.abs(np.subtract(*shares)).max()
    assert kolmogorov_smirnov(P, Q) == pytest.approx(largest, abs=1e-12)


@pytest.mark.parametrize("draw", SOME)
@pytest.mark.parametrize("size", [1, 7, 64, SIZE])
def test_a_compressed_sketch_is_no_farther_than_it_says(draw: Any, size: int) -> None:
    whole = Sketch.of(draw(np.random.default_rng(0), 20_000))
    small = whole.compressed(size)
    again = small.compressed(max(1, size // 3))
    for each in (small, again):
        assert wasserstein(whole, each) <= each.moved
        assert kolmogorov_smirnov(whole, each) <= each.jump + 1e-12
        assert each.n == whole.n
        assert each.mean == pytest.approx(whole.mean, rel=1e-9, abs=1e-12)
    assert len(small.values) <= size + 1
    assert small.to_dict()["moved"] >= small.moved


@pytest.mark.parametrize("draw", SOME)
def test_a_stream_is_bounded_in_size_and_error(draw: Any) -> None:
    rng, stream, parts = np.random.default_rng(1), Sketcher(), []
    for n in (10, 0, EXACT, 3, *[20_000] * 12, 1):
        parts.append(draw(rng, n))
        stream.add(parts[-1])
    whole, found = Sketch.of(np.concatenate(parts)), stream.sketch()
    assert found.n == whole.n
    assert len(found.values) <= SIZE + 1
    assert wasserstein(whole, found) <= found.moved * (1 + 1e-9) + 1e-15
    assert kolmogorov_smirnov(whole, found) <= found.jump + 1e-12
    assert found.jump < 0.01


def test_a_short_stream_is_exact() -> None:
    numbers, stream = np.random.default_rng(2).normal(size=EXACT), Sketcher()
    for part in np.split(numbers, 16):
        stream.add(part)
    found = stream.sketch()
    assert (found.moved, found.jump) == (0.0, 0.0)
    assert np.array_equal(found.values, np.sort(numbers))
    assert Sketcher().sketch().n == 0


@given(NUMBERS, st.floats(0.001, 1.0))
def test_quantiles_are_the_smallest_values_with_their_share(p: list[float], share: float) -> None:
    sketch = Sketch.of(np.array(p))
    value = float(sketch.quantile(np.array([share]))[0])
    assert np.mean(np.array(p) <= value) >= share * (1 - 1e-9)
    assert np.mean(np.array(p) < value) <= share + 1e-9


def test_sketches_survive_a_file() -> None:
    sketch = Sketch.of(np.random.default_rng(3).normal(size=100))
    again = Sketch.from_dict(sketch.to_dict())
    assert np.array_equal(again.values, sketch.values)
    assert np.array_equal(again.counts, sketch.counts)
    for change, message in (
        ({"values": [1.0, 1.0]}, "ascending values, and a positive count"),
        ({"counts": [1.0]}, "ascending values, and a positive count"),
        ({"counts": [0.0, 1.0]}, "ascending values, and a positive count"),
        ({"moved": -1.0}, "bounds that are not negative"),
    ):
        good = {"values": [1.0, 2.0], "counts": [1.0, 2.0], "moved": 0.0, "jump": 0.0}
        with pytest.raises(ValueError, match=message):
            Sketch.from_dict(good | change)


def test_the_stability_index_is_zero_for_equal_shares_and_symmetric() -> None:
    p, q = np.array([10.0, 20.0, 70.0]), np.array([30.0, 30.0, 40.0])
    assert stability(p, p).psi == 0.0
    assert stability(p, q).psi == pytest.approx(stability(q, p).psi)
    assert stability(p, np.array([0.0, 0.0, 100.0])).psi < 100  # and not infinite
    assert stability(p, np.zeros(3)).psi == 0.0
    assert stability(np.array([5.0]), np.array([9.0])).psi == 0.0


def test_chance_rarely_exceeds_what_is_said_of_it() -> None:
    rng, found = np.random.default_rng(4), []
    for _ in range(300):
        P, Q = Sketch.of(rng.normal(size=1000)), Sketch.of(rng.normal(size=400))
        ends = quantile_bins(P)
        found.append(stability(counts_in(P, ends), counts_in(Q, ends)))
    excess = np.mean([each.psi > each.chance for each in found])
    assert excess < 0.02
    ratio = np.mean([each.psi for each in found]) / (9 * (1 / 1000 + 1 / 400))
    assert ratio == pytest.approx(1.0, abs=0.15)


@given(NUMBERS, NUMBERS)
def test_bins_hold_every_number_once(p: list[float], q: list[float]) -> None:
    P, Q = Sketch.of(np.array(p)), Sketch.of(np.array(q))
    ends = quantile_bins(P)
    for sketch in (P, Q):
        assert counts_in(sketch, ends).sum() == pytest.approx(sketch.n)
    assert len(ends) <= 10
    assert quantile_bins(EMPTY).tolist() == [np.inf]


def test_columns_of_one_value_have_no_distance() -> None:
    same: Floats = np.full(10, 3.0)
    assert wasserstein(Sketch.of(same), Sketch.of(same)) == 0.0
    assert wasserstein(EMPTY, EMPTY) == kolmogorov_smirnov(EMPTY, EMPTY) == 0.0
