"""Steps: which are refused, how wide and how costly they are, and which of them are changed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import limits
from isotone.frozen.steps import (
    Dense,
    Members,
    Pointwise,
    Sort,
    Step,
    Steps,
    arrays_of,
    average,
    change_first,
    change_last,
    check_nesting,
    ends_dense,
    rebuild,
    residual_block,
    starts_dense,
    weights_of,
    width_after,
    work_of,
)
from networks import by_hand


def dense(n_out: int, n_in: int, number: float = 1.0) -> Dense:
    return Dense(np.full((n_out, n_in), number), np.zeros(n_out))


def shaped(weight: tuple[int, ...], bias: tuple[int, ...]) -> Dense:
    return Dense(np.zeros(weight), np.zeros(bias))


@pytest.mark.parametrize(
    ("weight", "bias"),
    [((2,), (2,)), ((2, 3, 1), (2,)), ((2, 3), (3,)), ((0, 3), (0,)), ((3, 0), (3,)), ((), ())],
)
def test_a_matrix_has_two_sides_of_at_least_one_and_a_bias_per_row(
    weight: tuple[int, ...], bias: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"needs shapes \(n_out, n_in\) and \(n_out,\); got"):
        shaped(weight, bias)
    for sides in ((1, 1), (1, 3), (3, 1)):
        assert shaped(sides, sides[:1]).weight.shape == sides


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_one_too_many(number: float) -> None:
    weight, bias = np.ones((3, 2)), np.ones(3)
    for array in (weight, bias):
        array.flat[1] = number
        with pytest.raises(ValueError, match="a weight or bias is NaN or infinite"):
            Dense(weight, bias)
        array.flat[1] = 1.0
    with pytest.raises(ValueError, match="the weights of members must be finite"):
        Members((1.0, number), ((), ()))
    with pytest.raises(ValueError, match=f"slope of 'leaky_relu' is {number}; it must be finite"):
        Pointwise("leaky_relu", number)


def test_numbers_of_two_precisions_are_refused_by_the_network_that_names_them() -> None:
    for one, two in (("f4", "f8"), ("f8", "f4")):
        mixed = Dense(np.ones((1, 1), one), np.zeros(1, two))
        with pytest.raises(ValueError, match=r"the array '0\.\w+' is float32 but"):
            replace(by_hand(0.5), steps=(mixed,))
    for kind in (np.float16, np.longdouble, np.complex128, int):
        with pytest.raises(ValueError, match="needs float32 or float64"):
            Dense(np.ones((1, 1)), np.zeros(1, kind))


def test_a_step_is_refused_one_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    makers = {
        "WIDTH": (lambda n: shaped((n, 1), (n,)), lambda n: shaped((1, n), (1,))),
        "MATRIX": (lambda n: shaped((n, 1), (n,)), lambda n: shaped((2, n // 2), (2,))),
        "GROUP": (Sort,),
    }
    for name, make in ((name, make) for name, each in makers.items() for make in each):
        with monkeypatch.context() as context:
            context.setattr(limits, name, replace(getattr(limits, name), largest=8))
            make(8)
            with pytest.raises(ValueError, match="the limit is 8"):
                make(10)


def test_groups_divide_the_units() -> None:
    assert [Sort(k).width(6) for k in (1, 2, 3, 6)] == [6] * 4
    for group_size in (0, -1, -2, 4, 12):
        with pytest.raises(ValueError, match=f"groups of {group_size} does not divide 6 units"):
            Sort(group_size).width(6)


def test_widths_go_through_members() -> None:
    step = Members((0.5, 2.0), ((dense(3, 4), Sort(3), dense(2, 3)), (dense(2, 4),)))
    assert width_after((dense(4, 5), step, dense(7, 2)), 5) == 7
    assert width_after((), 5) == 5
    with pytest.raises(ValueError, match="takes 4 inputs but gets 5"):
        step.width(5)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((dense(3, 5),), 15),
        ((Sort(1),), 5 // 4),
        ((dense(16, 5), Sort(8)), 80 + 16 * 4 * 4 // 4),  # log₂ 8 + 1 = 4 digits
        ((dense(12, 5), Sort(3)), 60 + 12 * 2 * 2 // 4),
        ((Pointwise("abs"), Pointwise("relu")), 10),
        # the units, the members, and one product and sum for each output of each
        ((Members((1.0,) * 3, ((dense(2, 5),),) * 3),), 5 + 3 * 10 + 3 * 2),
        ((residual_block(1.0, 0.5, [Pointwise("abs")]), dense(2, 5)), 5 + 5 + 2 * 5 + 10),
        ((), 0),
    ],
)
def test_work_counts_operations(steps: Steps, expected: int) -> None:
    assert work_of(steps, 5) == expected


def test_a_pointwise_step_is_as_steep_as_the_steeper_side() -> None:
    slopes = {-3.0: 3.0, 3.0: 3.0, 0.5: 1.0, -0.5: 1.0, 0.0: 1.0}
    assert {s: Pointwise("leaky_relu", s).constant for s in slopes} == slopes
    assert Pointwise("sigmoid").constant == 0.25
    assert type(Pointwise("leaky_relu", 1).negative_slope) is float


def test_a_residual_block_is_a_sum_of_the_units_and_one_branch() -> None:
    branch: Steps = (Sort(2),)
    assert residual_block(0.5, 0.5, branch).is_residual
    for members in ((branch, ()), ((), branch, branch), ((),), (branch,), (branch, branch)):
        assert not Members((1.0,) * len(members), members).is_residual
    for members, weights in (((), ()), ((branch,), ()), ((branch,), (1.0, 1.0))):
        with pytest.raises(ValueError, match="at least one member, and one weight per member"):
            Members(weights, members)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 49, 1000])
def test_shares_that_sum_to_more_than_one_by_rounding_lose_their_last_bits(n: int) -> None:
    shares = [1.0 / n] * n
    weights = average([(Sort(1),)] * n, shares).weights
    lost = {np.spacing(1.0 / n) * k for k in (0, 0.5, 1)}
    assert sum(map(Fraction, weights)) <= 1
    assert {share - weight for share, weight in zip(shares, weights, strict=True)} <= lost
    assert weights == tuple(shares) or sum(map(Fraction, shares)) > 1
    assert average([(Sort(1),)] * (n + 1), [*shares, 0.0]).weights == (*weights, 0.0)


def nested(depth: int) -> Steps:
    steps: Steps = (Sort(1),)
    for _ in range(depth):
        steps = (residual_block(1.0, 1.0, steps), Sort(1))
    return steps


@pytest.mark.parametrize(
    ("name", "steps", "size"),
    [
        ("DEPTH", nested(3), 3),
        ("DEPTH", nested(0), 0),
        ("DEPTH", (Sort(1), *nested(2)), 2),
        ("STEPS", (Sort(1),) * 5, 5),
        # its two members count as well, and what is in them
        ("STEPS", (Sort(1), residual_block(1.0, 1.0, [Sort(1), Sort(1)])), 6),
        ("STEPS", nested(2), 9),
    ],
)
def test_nesting_is_refused_one_beyond_its_limits(
    name: str, steps: Steps, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = getattr(limits, name)
    monkeypatch.setattr(limits, name, replace(limit, largest=size))
    check_nesting(steps)
    monkeypatch.setattr(limits, name, replace(limit, largest=size - 1))
    if size:
        with pytest.raises(ValueError, match=f"^{size} .*the limit is {size - 1}"):
            check_nesting(steps)


def test_all_numbers_of_members_are_found() -> None:
    inner = Members((3.0, 4.0), ((dense(1, 1, 5.0),), ()))
    steps: Steps = (dense(1, 1), Members((2.0, -1.0), ((), (Sort(1), inner))))
    assert weights_of(steps) == [2.0, -1.0, 3.0, 4.0]
    assert sorted(arrays_of(steps)) == [
        *("0.bias", "0.weight", "1.1.1.0.0.bias", "1.1.1.0.0.weight")
    ]
    assert arrays_of(steps)["1.1.1.0.0.weight"].tolist() == [[5.0]]


A, B, S = dense(2, 2, 1.0), dense(2, 2, 2.0), Sort(2)


def members(*each: Steps) -> Step:
    return Members((1.0,) * len(each), each)


@pytest.mark.parametrize(
    ("steps", "starts", "ends"),
    [
        ((A,), True, True),
        ((A, S), True, False),
        ((S, A), False, True),
        ((S, A, S), False, False),
        ((A, S, A), True, True),
        ((A, S, Pointwise("abs")), True, False),
        ((members((A, S), (B, S)),), True, False),
        ((members((A, S), (S, B)),), False, False),
        ((members((S, A), (S, B)), S, A), False, True),
        ((S, members((S, A), (B,))), False, True),
        ((residual_block(1.0, 1.0, [A]),), False, False),
        ((), False, False),
    ],
)
def test_a_network_starts_dense_if_all_of_its_members_do(
    steps: Steps, starts: bool, ends: bool
) -> None:
    assert (starts_dense(steps), ends_dense(steps)) == (starts, ends)


def numbers(steps: Steps) -> list[Any]:
    """The first weight of every dense step, by member; what else there is, as text."""
    return [
        step.weight[0, 0] if isinstance(step, Dense) else [numbers(m) for m in step.inside] or "S"
        for step in steps
    ]


def tenfold(step: Dense) -> Dense:
    return Dense(10.0 * step.weight, step.bias)


def test_the_first_or_last_matrix_of_every_member_is_changed_and_nothing_else() -> None:
    inside = (A, S, B), (S, A, S)
    steps = (A, S, members(*inside), S, S)
    assert numbers(change_first(steps, tenfold)) == [10, "S", [[1, "S", 2], ["S", 1, "S"]], *"SS"]
    last = [[1, "S", 20], ["S", 10, "S"]]
    assert numbers(change_last(steps, tenfold)) == [1, "S", last, *"SS"]
    assert numbers(change_last((A, B, S), tenfold)) == [1, 20, "S"]
    starts = (members((A, S, B), (B, A)), A)
    assert numbers(change_first(starts, tenfold)) == [[[10, "S", 2], [20, 1]], 1]
    half = rebuild(starts, tenfold, lambda weights: weights / 2)
    assert numbers(half) == [[[10, "S", 20], [20, 10]], 10]
    assert weights_of(half) == [0.5, 0.5]
    for change in (change_first, change_last):
        assert weights_of(change(starts, tenfold)) == [1.0, 1.0]


def test_where_no_matrix_is_the_step_at_that_end_is_named() -> None:
    sorts = tuple(Sort(k) for k in (1, 2, 3, 4))
    for change, named in ((change_first, "groups of 1$"), (change_last, "groups of 4$")):
        with pytest.raises(ValueError, match=f"a dense step is needed at this end .* {named}"):
            change(sorts, tenfold)
        with pytest.raises(ValueError, match="at this end of the network; got None"):
            change((), tenfold)
    with pytest.raises(ValueError, match="got sort in groups of 2"):
        change_first((S, A), tenfold)
