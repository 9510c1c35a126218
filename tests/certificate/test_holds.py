"""A certificate holds if every single condition does; here all but one of them do."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling, certify
from isotone.certificate import bounds
from isotone.certificate.along import _combine, _up
from isotone.certificate.slopes import _raw_intervals
from isotone.frozen.steps import Dense, Pointwise, Steps
from isotone.rounding import digits_up

THOUSAND = 1000
LARGEST = 2.0**126  # from here on an overflow of float32 is near


def network(weight: Any, bias: Any = 0.0, residual: Any = 0.0, **options: Any) -> FrozenNetwork:
    """W x + b + r·x, or other `steps`."""
    w = np.atleast_2d(np.asarray(weight, float))
    n_out, n = w.shape
    steps: Steps = (Dense(w, np.broadcast_to(np.asarray(bias, float), n_out).copy()),)
    fixed: dict[str, Any] = {"steps": steps, "monotonic_cst": np.zeros(w.shape, np.int8)} | options
    fixed["monotonic_cst"] = np.asarray(fixed["monotonic_cst"], np.int8)
    return FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n)),
        scaling=Scaling.identity(n),
        residual=np.broadcast_to(np.asarray(residual, float), w.shape).copy(),
        lipschitz=np.full(n, fixed.pop("lipschitz", 1.0)),
        **fixed,
    )


def test_a_direction_that_real_numbers_break_fails_without_a_grid() -> None:
    certificate = certify(network([[-0.5]], monotonic_cst=[[1]], grid=None))
    assert [verdict.computed for verdict in certificate.verdicts] == [None]
    assert not certificate.holds
    assert certify(network([[0.5]], residual=1.0, monotonic_cst=[[1]], grid=None)).holds


def test_a_joint_direction_that_fails_is_enough() -> None:
    for rate, holds in ((0.5, True), (6.0, False)):
        frozen = network(
            [[0.5, 0.5]], residual=[[2.0, 0.0]], joint_cst=({"x0": 1.0, "x1": -rate},)
        )
        assert certify(frozen).holds == holds, rate


def test_constants_are_those_of_the_metric() -> None:
    frozen = network([[0.5, 0.5]])
    assert certify(frozen).constants == (0.5,)
    (other,) = certify(replace(frozen, metric="inf")).constants
    assert 1.0 <= other < 1.0 + 1e-12


def test_an_activation_that_overflows_is_noticed() -> None:
    """Leaky ReLU makes three times as much of what float32 just holds; the next step hides it."""
    w = np.array([[LARGEST / 2]], np.float32)
    steps = (
        Dense(w, np.zeros(1, np.float32)),
        Pointwise("leaky_relu", -3.0),
        Dense(np.array([[2.0**-120]], np.float32), np.zeros(1, np.float32)),
    )
    frozen = network([[1.0]], steps=steps, precision="float32", clip=1.0, lipschitz=2.0**20)
    assert bounds.rounding_errors(frozen).tolist() == [math.inf]
    milder = (steps[0], Pointwise("leaky_relu", -1.0), steps[2])
    assert np.isfinite(bounds.rounding_errors(replace(frozen, steps=milder))).all()


def test_margins_of_classes_are_the_sums_of_the_two_largest_errors_or_more() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        frozen = network(
            rng.uniform(0.1, 0.2, (3, 2)),
            bias=rng.uniform(0, 9, 3),
            residual=rng.uniform(1, 2, (3, 1)) * np.array([[1.0], [0.0], [0.0]]),
            outputs="logits",
            monotonic_cst=[[1, 1], [0, 0], [0, 0]],
        )
        found = certify(frozen)
        errors = [Fraction(error) for error in found.rounding_errors]
        assert frozen.grid is not None
        for verdict in found.verdicts:
            others = max(errors[: verdict.output] + errors[verdict.output + 1 :])
            needed = 2 * (errors[verdict.output] + others) / Fraction(frozen.grid)
            assert verdict.margin is not None
            assert needed <= Fraction(verdict.margin) <= needed * (1 + Fraction(1, 2**50))
        for k in range(3):
            for other, decisions in found.rivals(k).items():
                assert Fraction(decisions.error) >= errors[k] + errors[other]


def test_raw_slopes_are_rounded_outward_though_the_scaling_is_off_by_half_a_unit() -> None:
    rng = np.random.default_rng(0)
    low, high = -rng.uniform(0.1, 3, 200), rng.uniform(0.1, 3, 200)
    steep = rng.uniform(0.1, 3, 200)
    bottom, top = _raw_intervals(low, high, steep / 2, steep)
    half = 1 + Fraction(1, 2**54)
    for a, b, s, least, most in zip(
        *(x.tolist() for x in (low, high, steep, bottom, top)), strict=True
    ):
        assert Fraction(least) <= Fraction(a) * Fraction(s) * half
        assert Fraction(most) >= Fraction(b) * Fraction(s) * half
        above = Fraction(math.nextafter(s, math.inf))
        assert Fraction(least) <= Fraction(a) * above
        assert Fraction(most) >= Fraction(b) * above


def test_fractions_are_rounded_up() -> None:
    for numerator in range(-30, 30):
        exact = Fraction(numerator, 7)
        assert exact <= Fraction(_up(exact)) <= exact + Fraction(1, 2**50)
    assert _up(Fraction(10) ** 400) == math.inf
    assert _up(-(Fraction(10) ** 400)) == -float(np.finfo(np.float64).max)


def test_combined_weights_are_not_below_the_exact_ones() -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(200, 3))
    moves = {i: Fraction(int(k), 7) for i, k in enumerate(rng.integers(-9, 9, 3))}
    found = _combine(weight, moves)[:, 0].tolist()
    for row, bound in zip(weight.tolist(), found, strict=True):
        exact = abs(sum(Fraction(w) * moves[i] for i, w in enumerate(row)))
        size = sum(abs(Fraction(w) * moves[i]) for i, w in enumerate(row))
        assert exact <= Fraction(bound) <= exact + size / 2**48


def test_a_guarantee_states_the_largest_error() -> None:
    found = certify(network([[0.3], [0.3]], bias=[0.0, 1e6], outputs="values"))
    assert digits_up(max(found.rounding_errors)) in found.guarantee
    assert len(set(found.rounding_errors)) == 2


def test_many_slopes_and_groups_are_left_out_of_a_short_certificate_alone() -> None:
    found = certify(network([[0.5]], residual=1.0, monotonic_cst=[[1]], grid=None))
    many = replace(found, slopes=found.slopes * (THOUSAND + 1))
    groups = replace(found, interactions=((("x0",),) * (THOUSAND + 1)))
    every = set(found.to_dict())
    assert "frozen" not in every
    assert {"slopes", "verdicts", "interactions"} <= every
    assert set(many.to_dict(in_short=True)) == every - {"slopes", "verdicts"}
    assert set(groups.to_dict(in_short=True)) == every - {"interactions"}
    assert set(many.to_dict()) == set(groups.to_dict()) == every
    assert set(found.to_dict(in_short=True)) == every
    exactly = replace(found, slopes=found.slopes * THOUSAND, interactions=groups.interactions[1:])
    assert set(exactly.to_dict(in_short=True)) == every
    assert "the first" not in exactly._repr_html_()
    assert f"the first {THOUSAND} of {THOUSAND + 1}" in many._repr_html_()
    assert "\n" in exactly.to_json()
    assert "\n" not in many.to_json()


def test_json_has_no_numbers_that_are_none() -> None:
    found = certify(network([[0.5]], grid=None))
    assert json.loads(found.to_json(note="mine"))["note"] == "mine"
    with pytest.raises(ValueError, match="not JSON compliant"):
        found.to_json(note=math.nan)
