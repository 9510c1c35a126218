"""Decisions by themselves: gaps, flips and unsafe thresholds, at their very edges."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotone import FrozenNetwork, Scaling, certify
from isotone.certificate.along import copies_of
from isotone.certificate.robustness import Decisions, shift_ranges
from isotone.frozen.steps import Dense
from isotone.inputs.columns import Number
from networks import by_hand, small

CLOSE = 1 + 1e-8


def decisions(fall: float = 1.0, rise: float = 1.0, error: float = 0.0) -> Decisions:
    """Of a score of one feature within ±2, without a grid."""
    copies = copies_of(by_hand(0.5, clip=2.0, grid=None))
    ends = np.array([fall]), np.array([rise])
    return Decisions(copies, 0.25, *ends, exact=np.array([False]), error=error)


def array(*numbers: float) -> Any:
    return np.array(numbers)[:, None]


@pytest.mark.parametrize("error", [0.0, 0.1, 2.0**-60])
def test_a_gap_is_the_distance_from_the_threshold_less_twice_the_error(error: float) -> None:
    score = np.array([-3.0, -0.5, 0.25, 0.5, 7.0])
    accepted, gap = decisions(error=error).gap(score)
    assert accepted.tolist() == [False, False, True, True, True]
    for s, g in zip(score.tolist(), gap.tolist(), strict=True):
        exact = max(abs(Fraction(s) - Fraction(0.25)) - 2 * Fraction(error), Fraction(0))
        assert Fraction(g) <= exact <= Fraction(g) * Fraction(CLOSE)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_flips_are_counted_from_the_gap_on(side: float) -> None:
    """With slope 1 a score that is 1 off flips by a move of 1, and of hardly less."""
    for accepted in (False, True):
        score = np.array([1.25 if accepted else -0.75])
        for move, flips in ((1.0, True), (1.0 - 1.5 * 2.0**-30, True), (1.0 - 1e-7, False)):
            ends = sorted([0.0, side * move])
            found = decisions().can_flip(array(0.0), score, array(ends[0]), array(ends[1]))
            assert found.tolist() == [flips]


def test_only_moves_against_a_decision_flip_it() -> None:
    """A score that can only rise is refused after a fall at most, and accepted after a rise."""
    rising = decisions(fall=0.0)
    x, near = array(0.0, 0.0), np.array([0.26, 0.24])
    assert rising.can_flip(x, near, x - 1.0, x).tolist() == [True, False]
    assert rising.can_flip(x, near, x, x + 1.0).tolist() == [False, True]


def test_what_does_not_move_does_not_flip() -> None:
    x, at = array(0.5, 0.5), np.array([0.25, 0.25])
    assert decisions(error=1.0).can_flip(x, at, x, x).tolist() == [False, False]
    assert decisions(error=1.0).can_flip(x, at, x, x + 1e-9).tolist() == [True, True]
    frozen = by_hand(0.5)
    score = float(frozen.score(np.array([[0.5]]))[0])
    assert certify(frozen).flip_bound([[0.5]], [0.0], threshold=score) == 0.0
    assert certify(frozen).flip_bound([[0.5]], [(-0.1, 0.0)], threshold=score) == 1.0


def test_changes_are_the_slopes_times_the_moves() -> None:
    x = array(0.0, 0.5, -0.5, 1.0)
    fall, rise = decisions(fall=3.0, rise=0.5).changes(x, x - 0.25, x + 0.125)
    # down by 1/4 it falls by the rise over that, or up by 1/8 by the fall over that
    assert np.all(fall >= 0.375)
    assert np.all(rise >= 0.75)
    np.testing.assert_allclose(fall, 0.375, rtol=1e-9)
    np.testing.assert_allclose(rise, 0.75, rtol=1e-9)
    still = decisions(fall=3.0, rise=0.5).changes(x, x, x)
    assert not np.any(still)
    down, up = decisions(fall=3.0, rise=0.5).changes(x, x - 0.25, x)
    assert (down.max() < 0.126, up.min() >= 0.75) == (True, True)
    down, up = decisions(fall=3.0, rise=0.5).changes(x, x, x + 0.25)
    assert (down.min() >= 0.75, up.max() < 0.126) == (True, True)


def test_thresholds_outside_are_safe() -> None:
    """Rounded outward, and no more than the changes and twice the error away."""
    score, fall, rise = (np.array(x) for x in ([1.0, -2.0], [0.25, 0.0], [0.5, 1.0]))
    low, high = decisions(error=0.125).unsafe(score, fall, rise)
    ends = zip(score, fall, rise, low, high, strict=True)
    for s, f, r, down, up in ends:
        below, above = Fraction(s) - Fraction(f) - Fraction(1, 4), s + r + 0.25
        assert Fraction(down) < below <= Fraction(down) + Fraction(1e-8)
        assert Fraction(up) > Fraction(above) >= Fraction(up) - Fraction(1e-8)
    nothing = decisions(error=math.inf).unsafe(score, fall, rise)
    assert np.all(nothing[0] == -np.inf)
    assert np.all(nothing[1] == np.inf)
    unknown = decisions().unsafe(np.array([math.inf]), np.array([math.inf]), np.array([0.0]))
    assert (unknown[0][0], unknown[1][0]) == (-math.inf, math.inf)


class TestExactness:
    """Whether a move that only helps may go on for ever, even from a score at the threshold."""

    def frozen(self, times: float) -> FrozenNetwork:
        """A slope of so many errors per cell of the grid in its declared direction."""
        steps = (Dense(np.array([[1 / 3]]), np.array([1.0])),)
        signs, x = np.ones((1, 1), np.int8), ("x",)
        options: dict[str, Any] = {"grid": 2.0**-20, "clip": 16.0}
        rough = FrozenNetwork(
            x, Scaling.identity(1), steps, np.array([[1 / 3]]), np.ones(1), signs, **options
        )
        error = certify(rough).rounding_errors[0]
        residual = 1 / 3 + times * error / 2.0**-20
        return replace(rough, residual=np.array([[residual]]))

    @pytest.mark.parametrize(
        ("times", "exact"), [(0.0, False), (1.5, False), (1.9, False), (2.1, True), (2.9, True)]
    )
    def test_from_twice_the_error_on(self, times: float, exact: bool) -> None:
        frozen = self.frozen(times)
        certificate = certify(frozen)
        (verdict,) = certificate.verdicts
        assert verdict.computed == exact
        X = np.array([[0.5]])
        at = float(frozen.score(X)[0])
        radius = certificate.certified_radius(X, threshold=at)
        assert (radius.up[0, 0] == math.inf) == exact
        assert radius.down[0, 0] == 0.0

    def test_never_without_a_grid(self) -> None:
        frozen = replace(self.frozen(100.0), grid=None)
        X = np.array([[0.5]])
        at = float(frozen.score(X)[0])
        assert certify(frozen).certified_radius(X, threshold=at).up[0, 0] == 0.0


class TestCertificate:
    def test_a_joint_direction_that_fails_fails_the_certificate(self) -> None:
        """a + b rises, and a - b need not."""
        frozen = small((1, 1, 0))
        a, b, _ = frozen.features
        assert certify(frozen).holds
        assert certify(replace(frozen, joint_cst=({a: 1.0, b: 1.0},))).holds
        wrong = certify(replace(frozen, joint_cst=({a: 1.0, b: -1.0},)))
        assert not wrong.holds
        assert [verdict.real for verdict in wrong.joint] == [False]

    def test_every_output_must_keep_lambda(self) -> None:
        steps = (Dense(np.array([[1.0], [0.25]]), np.zeros(2)),)
        zero = np.zeros((2, 1))
        frozen = FrozenNetwork(
            ("x",), Scaling.identity(1), steps, zero, np.ones(1), zero.astype(np.int8)
        )
        for λ, holds in ((2.0, True), (1.0, True), (0.99, False), (0.1, False)):
            certificate = certify(replace(frozen, lipschitz=np.array([λ])))
            assert certificate.constants == (pytest.approx(1 / λ), pytest.approx(0.25 / λ))
            assert (certificate.lipschitz_holds, certificate.holds) == (holds, holds)

    @pytest.mark.parametrize(("outputs", "pairs"), [("values", 2), ("logits", 4)])
    def test_without_a_grid_scores_may_drop_by_the_largest_errors(
        self, outputs: Any, pairs: int
    ) -> None:
        steps = (Dense(np.array([[1 / 3], [1 / 7], [1 / 9]]), np.array([0.0, 8000.0, 1.0])),)
        zero = np.zeros((3, 1))
        frozen = FrozenNetwork(
            *(("x",), Scaling.identity(1), steps, zero, np.ones(1), zero.astype(np.int8)),
            grid=None,
            outputs=outputs,
        )
        certificate = certify(frozen)
        assert certificate.rounding_errors[0] < certificate.rounding_errors[1]
        assert certificate.drop == pairs * certificate.rounding_errors[1]
        assert certify(replace(frozen, grid=2.0**-20)).drop == 0.0

    def test_a_certificate_in_short_leaves_out_only_what_is_long(self) -> None:
        certificate = certify(by_hand(0.5))
        data = json.loads(certificate.to_json())
        assert data == json.loads(json.dumps(certificate.to_dict(in_short=True)))
        assert {"slopes", "verdicts", "interactions", "constants"} <= set(data)
        assert data["constants"] == [0.5]
        assert data["rounding_errors"] == list(certificate.rounding_errors)
        assert "\n" in certificate.to_json()
        assert "asked" not in data
        asked = certificate.along({"x": 1.0})
        said = json.loads(certificate.to_json(asked=asked, more=3))
        assert [entry["real"] for entry in said["asked"]] == [True]
        assert said["more"] == 3
        infinite = replace(certificate, rounding_errors=(math.inf,))
        assert infinite.to_dict()["rounding_errors"] == [None]


class TestShifts:
    COLUMNS = (Number("a"), Number("b"), Number("c"))

    def test_staying_is_always_among_them(self) -> None:
        low, high = shift_ranges([(0.5, 1.0), (-2.0, -1.0), 3.0], self.COLUMNS)
        assert low.tolist() == [0.0, -2.0, -3.0]
        assert high.tolist() == [1.0, 0.0, 3.0]

    def test_arrays_and_series_without_names_go_by_place(self) -> None:
        expected = shift_ranges([1.0, 2.0, 3.0], self.COLUMNS)
        for shifts in (
            np.array([1.0, 2.0, 3.0]),
            (1.0, 2.0, 3.0),
            pd.Series([1.0, 2.0, 3.0], index=["b", 1, "a"]),
        ):
            found = shift_ranges(shifts, self.COLUMNS)
            assert [x.tolist() for x in found] == [x.tolist() for x in expected]
        named = shift_ranges(pd.Series([2.0, 1.0], index=["b", "a"]), self.COLUMNS)
        assert named[1].tolist() == [1.0, 2.0, 0.0]
