"""Margins: what slopes give up for rounding errors, on which grid, and that it is not more."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from isotone import FrozenNetwork, MonotonicNetwork, Scaling, certify, freeze
from isotone.certificate import bounds
from isotone.freezing import margin
from isotone.freezing.margin import (
    Grid,
    certified,
    coarsen,
    dense_first,
    least_residual,
    round_again,
    rounding_error,
    shrink_factors,
    spacing,
    store,
    with_margin,
)
from isotone.frozen.steps import Dense, Members, Sort, residual_block
from networks import by_hand, small


def network(
    weight: Any, residual: Any, cst: Any, lipschitz: Any = None, **options: Any
) -> FrozenNetwork:
    w, r, signs = (np.atleast_2d(np.asarray(a, float)) for a in (weight, residual, cst))
    n = w.shape[1]
    dtype = options.get("precision", "float64")
    return FrozenNetwork(
        tuple(f"x{i}" for i in range(n)),
        Scaling.identity(n),
        (Dense(w.astype(dtype), np.zeros(len(w), dtype)),),
        r,
        np.ones(n) if lipschitz is None else np.asarray(lipschitz, float),
        signs,
        **options,
    )


@pytest.mark.parametrize(
    ("grid", "precision", "expected"),
    [
        *(("auto", "float64", 2.0**-20), ("auto", "float32", None), (None, "float64", None)),
        *((0.5, "float64", 0.5), (0.5, "float32", 0.5), (None, "float32", None)),
    ],
)
def test_the_finest_grid_is_that_of_float64_and_float32_has_none(
    grid: Grid, precision: Any, expected: Any
) -> None:
    assert spacing(grid, precision) == expected


def test_a_network_that_begins_with_a_sort_gets_a_step_that_changes_nothing() -> None:
    frozen = small()
    assert dense_first(frozen) is frozen.steps
    for precision in ("float64", "float32"):
        made = network([[1, 2, 3]], [[0, 0, 0]], [[0, 0, 0]], precision=precision, grid=None)
        steps = dense_first(replace(made, steps=(Sort(3), *made.steps)))
        assert isinstance(steps[0], Dense)
        assert steps[0].weight.dtype == steps[0].bias.dtype == precision
        assert (steps[0].weight.tolist(), steps[0].bias.tolist()) == (np.eye(3).tolist(), [0] * 3)
        assert steps[1:] == (Sort(3), *made.steps)


def test_errors_count_where_something_is_promised() -> None:
    frozen = network([[0.1, 0.2]], [[1, 0]], [[1, 0]])
    assert rounding_error(frozen) == bounds.rounding_errors(frozen).max() > 0
    assert rounding_error(replace(frozen, grid=None)) == 0.0
    assert rounding_error(replace(frozen, monotonic_cst=np.zeros((1, 2)))) == 0.0
    one = network([[0.1], [0.3]], [[1], [0]], [[1], [0]])
    assert rounding_error(one) == bounds.rounding_errors(one).max() > 0


def test_what_is_left_of_lambda_is_the_least_residual_along_each_feature() -> None:
    residual, cst = [[3, -2, 9, 9], [4, 1, 9, 0.5]], [[1, -1, 0, 1], [1, 1, 0, 0]]
    lipschitz = [10.0, 10.0, 7.0, 8.0]
    frozen = network(np.zeros((2, 4)), residual, cst, lipschitz)
    assert least_residual(frozen).tolist() == [3.0, 1.0, 7.0, 8.0]
    classes = replace(frozen, outputs="logits")
    assert least_residual(classes).tolist() == [1.5, 0.5, 7.0, 4.5]
    single = network([[0.0]], [[3]], [[1]], [10.0], outputs="logits")
    assert least_residual(single).tolist() == [3.0]


@pytest.mark.parametrize("steps", [0, 1, 5, 14])
def test_the_finest_grid_is_taken_whose_margin_is_a_thousandth(steps: int) -> None:
    """2E / q ≤ 2⁻¹⁰ λ."""
    cst = [[1, 0, 0], [0, 0, -1]]
    frozen = network(np.zeros((2, 3)), [[4, 1, 0], [0, 0, 8]], cst, [16.0, 1.0, 16.0])
    error = 0.5 * 2.0**-10 * 4.0 * 2.0 ** (steps - 20)
    assert coarsen(frozen, error).grid == 2.0 ** (steps - 20)
    more = math.nextafter(error, 1.0)
    assert coarsen(frozen, more).grid == 2.0 ** (min(steps + 1, 14) - 20)
    assert coarsen(frozen, 1e3).grid == 2.0**-6
    assert coarsen(frozen, math.nextafter(0.5 * 2.0**-30 * 4.0, 0)) is frozen
    for other in (replace(frozen, grid=None), replace(frozen, monotonic_cst=np.zeros((2, 3)))):
        assert coarsen(other, 1e3) is other


@pytest.mark.parametrize("grid", [2.0**-20, 2.0**-10, None])
def test_slopes_leave_the_margin_and_hardly_more(grid: float | None) -> None:
    """Along constrained features λ − 2E / q, along others λ; what is below it stays as it is."""
    weight, cst = [[-2.1, -2.1, 0.125, -2.1]], [[1, 0, 1, -1]]
    frozen = network(weight, [[1, 0, 1, -2]], cst, [1.0, 1.0, 1.0, 1.5], grid=grid)
    error = rounding_error(frozen)
    found = margin._leave_margin(frozen, error)
    slopes = bounds.slopes(found.steps, 4)[0]
    rest = 0.0 if grid is None else Fraction(2.0) * Fraction(error) / Fraction(grid)
    room = [Fraction(1) - rest, Fraction(1), Fraction(1, 8), Fraction(1.5) - rest]
    for slope, allowed in zip(slopes.tolist(), room, strict=True):
        assert allowed * (1 - Fraction(2.0**-47)) <= Fraction(slope) <= allowed
    assert found.steps[0].weight[0, 2] == 0.125  # type: ignore[union-attr]
    assert certify(found).holds
    assert margin._leave_margin(found, error) is found


def test_the_feature_whose_slope_is_used_up_is_named() -> None:
    frozen = network([[0.0, 0.0, 0.0]], [[1, 0.25, 1]], [[1, 1, 0]], [1.0, 2.0, 1e-9], clip=2.0)
    message = r"along feature 'x1' the rounding margin 0\.25 uses up λ = 2; choose a coarser"
    for grid in (1.0, 0.5):
        given = replace(frozen, grid=grid)
        error = 0.25 * grid / 2
        with pytest.raises(ValueError, match=message) as raised:
            margin._leave_margin(given, error)
        assert "float64" not in str(raised.value)
        assert margin._leave_margin(given, 0.999 * error) is given
    single = network([[0.0]], [[1]], [[1]], precision="float32", grid=0.5)
    with pytest.raises(ValueError, match="or a smaller `clip`, or precision='float64'"):
        margin._leave_margin(single, 1.0)
    exactly = network([[0.0]], [[1]], [[1]], grid=1.0, clip=2.0)
    with pytest.raises(ValueError, match="uses up"):  # nothing would be left
        margin._leave_margin(exactly, 0.5 * margin.TRUNCATE)


def test_factors_bring_slopes_to_what_is_allowed_and_never_enlarge() -> None:
    frozen = network([[-2.0, 0.5, 0.0], [1.0, 0.25, 0.0]], np.zeros((2, 3)), np.zeros((2, 3)))
    assert shrink_factors(frozen, np.array([1.0, 1.0, 1.0])).tolist() == [0.5, 1.0, 1.0]
    assert shrink_factors(frozen, np.array([0.5, 0.25, 1.0])).tolist() == [0.25, 0.5, 1.0]
    for metric in ("2", "inf"):
        other = replace(frozen, metric=metric)
        constants = bounds.constants(other.steps, other.lipschitz, other.metric)
        expected = min(1.0, 1.0 / constants.max())
        assert expected < 1.0
        assert shrink_factors(other, np.ones(3)).tolist() == [expected] * 3
        shallow = network([[0.25, 0.25]], [[0, 0]], [[0, 0]], metric=metric)
        assert shrink_factors(shallow, np.ones(2)).tolist() == [1.0, 1.0]


def test_columns_that_move_together_shrink_together() -> None:
    frozen = network([[-2.0, 0.5, -4.0, 1.0]], np.zeros((1, 4)), np.zeros((1, 4)))
    joint = replace(frozen, joint_cst=({"x0": 1.0, "x1": 1.0},))
    assert shrink_factors(frozen, np.ones(4)).tolist() == [0.5, 1.0, 0.25, 1.0]
    assert shrink_factors(joint, np.ones(4)).tolist() == [0.5, 0.5, 0.25, 1.0]


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_weights_are_stored_toward_zero_and_biases_to_the_nearest(precision: Any) -> None:
    weight, bias = np.array([[0.1, -0.1, 0.7, -0.7]]), np.array([0.1])
    inner = (Dense(weight, bias),)
    first, block = store((*inner, residual_block(0.1, -0.7, (Sort(1),))), precision)
    assert isinstance(first, Dense)
    assert isinstance(block, Members)
    assert first.weight.dtype == first.bias.dtype == precision
    assert first.bias[0] == np.dtype(precision).type(0.1)
    stored = [*first.weight[0].astype(float).tolist(), *block.weights]
    for found, given in zip(stored, [0.1, -0.1, 0.7, -0.7, 0.1, -0.7], strict=True):
        assert abs(found) <= abs(given)
        assert abs(found - given) <= (2.0**-24 if precision == "float32" else 0.0)
        assert found == float(np.dtype(precision).type(found))


def test_another_arithmetic_has_its_own_margin_and_certificate() -> None:
    frozen = small()
    for precision, grid in (("float32", None), ("float64", 2.0**-12), ("float32", 2.0**-6)):
        found = round_again(frozen, precision, 16.0, grid)  # type: ignore[arg-type]
        assert (found.precision, found.clip, found.grid) == (precision, 16.0, grid)
        assert found.certificate == certify(found).to_dict(in_short=True)
        assert certify(found).holds
    with pytest.raises(ValueError, match="fails its certificate"):
        round_again(by_hand(-3.0), "float32", 16.0, None)


def test_only_an_automatic_grid_becomes_coarser() -> None:
    frozen = network([[-0.9]], [[1.0]], [[1]], clip=2.0**28, grid=2.0**-20)
    grid, twice = with_margin(frozen, "auto").grid, 2.0 * rounding_error(frozen)
    assert grid is not None
    assert twice / grid <= 2.0**-10 < 2.0 * twice / grid
    with pytest.raises(ValueError, match="uses up"):
        with_margin(replace(frozen, clip=2.0**31), 2.0**-20)
    assert with_margin(replace(frozen, clip=2.0**20), 2.0**-20).grid == 2.0**-20


@pytest.mark.parametrize("cst", [[1, 1], [1, 0], [-1, 0]])
def test_whole_weights_that_are_as_steep_as_allowed_leave_a_margin(cst: list[int]) -> None:
    """As they are no sum is rounded and E is 0; once they are shrunk it is not."""
    trained = MonotonicNetwork([2, 1], monotonic_cst=cst)
    with torch.no_grad():
        for name, parameter in trained.named_parameters():
            parameter.fill_(-1.0 if name.endswith("weight") else 0.0)
    frozen = freeze(trained)
    assert certify(frozen).holds
    assert frozen.grid == 2.0**-20
    for grid in ("auto", 2.0**-10):
        exact = network([[-2.0, -2.0]], [cst], [cst], grid=2.0**-20 if grid == "auto" else grid)
        assert rounding_error(exact) == 0.0
        found = with_margin(exact, grid)  # type: ignore[arg-type]
        assert rounding_error(found) > 0.0
        assert certify(found).holds


def test_the_residual_is_rounded_toward_zero() -> None:
    frozen = network([[0.05, 0.05]], [[0.1, -0.7]], [[1, -1]], [0.1, 0.7], grid=None)
    found = round_again(frozen, "float32", 16.0, None)
    for number, given in zip(found.residual[0].tolist(), [0.1, -0.7], strict=True):
        assert abs(given) * (1 - 2.0**-23) < abs(number) <= abs(given)
        assert number == float(np.float32(number))


def test_joint_directions_survive_rounding_or_it_is_refused() -> None:
    """The slopes of g along three columns cancel, in float32 only if it holds the weights."""
    together = ({"x0": 1.0, "x1": 1.0, "x2": 1.0},)
    zero, plenty = np.zeros((1, 3)), np.full(3, 2.0)
    for small_one, survives in ((2.0**-20, True), (2.0**-30, False)):
        weight = [[1 + small_one, -small_one, -1]]
        frozen = network(weight, [[2.0**-40, 0, 0]], zero, plenty, joint_cst=together, grid=None)
        if survives:
            assert certify(round_again(frozen, "float32", 16.0, None)).holds
        else:
            with pytest.raises(ValueError, match=r"joint directions .* do not survive"):
                round_again(frozen, "float32", 16.0, None)


def test_what_fails_for_no_reason_of_its_own_is_no_fault_of_joint_directions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(margin, "with_margin", lambda frozen, grid: by_hand(-3.0))
    with pytest.raises(RuntimeError, match="the frozen network fails its certificate"):
        round_again(small(), "float32", 16.0, None)


def test_a_certificate_of_many_slopes_is_kept_in_short() -> None:
    zero = np.zeros((1, 1001))
    found, certificate = certified(network(zero, zero, zero))
    assert "slopes" not in (found.certificate or {})
    assert len(certificate.slopes) == 1001
