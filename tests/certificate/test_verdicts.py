"""Verdicts along columns that enter a network as several copies: the weakest copy decides."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, certify
from isotone.certificate import bounds
from isotone.certificate.slopes import slope_range
from isotone.certificate.verdicts import kept_directions
from isotone.frozen.steps import Dense
from networks import copied, mixed

FIRST = range(4)  # copies of the first column; the next two columns are one copy each


def directed(
    shares: dict[int, float], signs: dict[int, int] | None = None, **options: Any
) -> FrozenNetwork:
    """A network whose copies have a residual of a share of their slope bound, 1.5 by default."""
    frozen = copied(**options)
    slopes = bounds.slopes(frozen.steps, frozen.n_features)
    cst = np.zeros(slopes.shape, np.int8)
    for copy, sign in (signs or dict.fromkeys(FIRST, 1)).items():
        cst[:, copy] = sign
    share = np.full(slopes.shape[1], 1.5)
    for copy, value in shares.items():
        share[copy] = value
    residual = np.where(cst, cst, 1) * share * slopes
    big = np.full(slopes.shape[1], 1e6)
    return replace(frozen, residual=residual, monotonic_cst=cst, lipschitz=big)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_direction_of_all_copies_is_one_of_the_column(sign: int) -> None:
    frozen = directed({2: 1.25}, dict.fromkeys(FIRST, sign))
    certificate = certify(frozen)
    (verdict,) = certificate.verdicts
    slopes = bounds.slopes(frozen.steps, frozen.n_features)[0]
    assert (verdict.feature, verdict.direction) == ("x0", sign)
    assert verdict.real
    assert verdict.computed
    least = min(0.25 * slopes[2], *(0.5 * slopes[k] for k in FIRST))
    assert verdict.slope == pytest.approx(least, rel=1e-9)
    assert certificate.holds
    assert kept_directions(frozen, certificate.verdicts).tolist() == [[sign, 0, 0, 0]]


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("weak", FIRST)
def test_one_copy_that_may_go_the_other_way_is_enough_to_fail(weak: int, sign: int) -> None:
    frozen = directed({weak: 0.9}, dict.fromkeys(FIRST, sign))
    certificate = certify(frozen)
    (verdict,) = certificate.verdicts
    assert not verdict.real
    assert verdict.computed is False
    assert verdict.slope < 0
    assert not certificate.holds
    assert kept_directions(frozen, certificate.verdicts).tolist() == [[0, 0, 0, 0]]


def test_a_slope_that_rounding_can_undo_holds_for_real_numbers_only() -> None:
    """Between 0 and the margin 2E / q."""
    frozen = directed({3: 1.0 + 2.0**-40})
    certificate = certify(frozen)
    (verdict,) = certificate.verdicts
    assert verdict.margin is not None
    assert 0 < verdict.slope < verdict.margin
    assert verdict.real
    assert verdict.computed is False
    assert not certificate.holds
    assert kept_directions(frozen, certificate.verdicts).tolist() == [[0, 0, 0, 0]]
    exact = replace(frozen, grid=None)
    (verdict,) = certify(exact).verdicts
    assert (verdict.real, verdict.computed, verdict.margin) == (True, None, None)
    assert kept_directions(exact, certify(exact).verdicts).tolist() == [[1, 0, 0, 0]]


def test_copies_of_which_only_some_have_a_direction_stand_for_themselves() -> None:
    """Although another column has one as a whole."""
    frozen = directed({}, {0: 1, 1: 1, 4: -1})
    certificate = certify(frozen)
    names = [frozen.features[k] for k in (0, 1, 4)]
    assert [v.feature for v in certificate.verdicts] == names
    assert [v.direction for v in certificate.verdicts] == [1, 1, -1]
    assert certificate.holds
    weak = directed({1: 0.5}, {0: 1, 1: 1, 4: -1})
    assert [v.real for v in certify(weak).verdicts] == [True, False, True]
    assert not certify(weak).holds


def test_columns_and_outputs_are_judged_one_by_one() -> None:
    frozen = directed({5: 0.5}, dict.fromkeys(FIRST, 1) | {4: -1, 5: 1}, n_outputs=2)
    verdicts = certify(frozen).verdicts
    assert [(v.output, v.feature, v.direction) for v in verdicts] == [
        *((0, "x0", 1), (0, "x1", -1), (0, "x2", 1)),
        *((1, "x0", 1), (1, "x1", -1), (1, "x2", 1)),
    ]
    assert [v.real for v in verdicts] == [True, True, False] * 2
    kept = kept_directions(frozen, verdicts)
    assert kept.tolist() == [[1, -1, 0, 0]] * 2


def test_margins_of_classes_count_the_largest_error_of_a_rival() -> None:
    """A difference of logits errs by E_k + E_l, for the rival with the largest E_l."""
    bias = np.array([1.0, 64000.0, 8000.0])
    steps = (Dense(np.full((3, 1), 1 / 3), bias),)
    signs, residual = np.array([[1], [0], [-1]], np.int8), np.array([[3.0], [0.0], [-3.0]])
    frozen = FrozenNetwork(
        ("x",), Scaling.identity(1), steps, residual, np.ones(1), signs, outputs="logits"
    )
    certificate = certify(frozen)
    errors = certificate.rounding_errors
    assert errors[0] < errors[2] < errors[1]
    assert frozen.grid is not None
    for direction in (signs, -signs, np.array([[0], [1], [0]], np.int8)):
        turned = replace(frozen, monotonic_cst=direction)
        verdicts = certify(turned).verdicts
        assert [v.output for v in verdicts] == np.flatnonzero(direction).tolist()
        for verdict in verdicts:
            rivals = [errors[k] for k in range(3) if k != verdict.output]
            expected = 2 * (errors[verdict.output] + max(rivals)) / frozen.grid
            assert verdict.margin == pytest.approx(expected, rel=1e-12)


def test_slopes_of_classes_are_those_of_the_strongest_rival() -> None:
    """z_k - z_l has slope r_k - r_l - L_k - L_l at least: all pairs, in exact numbers."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        weight, residual = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
        signs = rng.integers(-1, 2, (4, 3)).astype(np.int8)
        steps = (Dense(weight, np.zeros(4)),)
        names, scale = ("a", "b", "c"), np.full(3, 10.0)
        frozen = FrozenNetwork(
            names, Scaling.identity(3), steps, residual, scale, signs, outputs="logits"
        )
        for v in certify(frozen).verdicts:
            k, i = v.output, frozen.features.index(v.feature)
            gains = [
                Fraction(v.direction) * (Fraction(residual[k, i]) - Fraction(residual[j, i]))
                - abs(Fraction(weight[k, i]))
                - abs(Fraction(weight[j, i]))
                for j in range(4)
                if j != k
            ]
            assert Fraction(v.slope) <= min(gains)
            assert v.slope == pytest.approx(float(min(gains)), rel=1e-12)
            assert v.real == (min(gains) >= 0)


class TestSlopes:
    def test_a_column_of_several_copies_stands_still_beyond_its_knots(self) -> None:
        """One of two copies and one of many: 0 is among their slopes, and the steepest copy's."""
        frozen = mixed(directions=(1, 1, -1, 1))
        low, high = slope_range(frozen.residual, bounds.slopes(frozen.steps, frozen.n_features))
        counts, firsts = frozen.inputs.counts.tolist(), frozen.inputs.firsts.tolist()
        assert {1, 2, 4} <= set(counts)
        slopes = certify(frozen).slopes
        assert [s.feature for s in slopes] == list(frozen.inputs.encoded)
        for slope, count, first in zip(slopes, counts, firsts, strict=True):
            own = slice(first, first + count)
            ends = [low[0, own].min(), high[0, own].max()]
            if count > 1:
                ends = [min(ends[0], 0.0), max(ends[1], 0.0)]
            assert [slope.scaled.low, slope.scaled.high] == ends
            assert count == 1 or slope.raw.low <= 0.0 <= slope.raw.high

    @pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
    @pytest.mark.parametrize("residual", [-3.0, -0.5, 0.0, 0.5, 3.0])
    def test_raw_slopes_are_the_scaled_ones_times_the_factor(
        self, residual: float, factor: float
    ) -> None:
        scaling = Scaling(*(np.array([v]) for v in (False, 0.0, 1.0, 0.0, factor)))
        steps = (Dense(np.array([[0.25]]), np.zeros(1)),)
        frozen = FrozenNetwork(
            *(("x",), scaling, steps, np.array([[residual]]), np.ones(1)),
            np.zeros((1, 1), np.int8),
        )
        (slope,) = certify(frozen).slopes
        assert (slope.scaled.low, slope.scaled.high) == (residual - 0.25, residual + 0.25)
        assert slope.raw.low <= slope.scaled.low * factor
        assert slope.raw.high >= slope.scaled.high * factor
        assert slope.raw.low == pytest.approx(slope.scaled.low * factor, rel=1e-14)
        assert slope.raw.high == pytest.approx(slope.scaled.high * factor, rel=1e-14)


def test_without_a_grid_a_direction_that_fails_is_not_kept() -> None:
    frozen = replace(directed({2: 0.9}), grid=None)
    verdicts = certify(frozen).verdicts
    assert [(v.real, v.computed) for v in verdicts] == [(False, None)]
    assert kept_directions(frozen, verdicts).tolist() == [[0, 0, 0, 0]]
