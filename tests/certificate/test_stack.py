"""Members side by side have the bounds that they have one after the other, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from draws import draw_frozen
from isotone import FrozenNetwork, Scaling
from isotone.certificate import bounds
from isotone.certificate.stack import Stack, side_by_side
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, residual_block
from networks import copied


def dense(n_out: int, n_in: int, dtype: str) -> Dense:
    rng = np.random.default_rng(n_out * n_in)
    return Dense(
        rng.normal(size=(n_out, n_in)).astype(dtype), rng.normal(size=n_out).astype(dtype)
    )


def average(dtype: Any, *between: Step) -> FrozenNetwork:
    """Three members of equal shape."""
    rng = np.random.default_rng(3)
    members = []
    for _ in range(3):
        first, last = (
            Dense(rng.normal(size=shape).astype(dtype), rng.normal(size=shape[0]).astype(dtype))
            for shape in ((6, 4), (2, 6))
        )
        members.append((first, *between, last))
    steps = (Members((0.25, 0.5, -0.125), tuple(members)), Sort(2), dense(2, 2, dtype))
    names, zero = tuple("abcd"), np.zeros((2, 4), np.int8)
    identity = Scaling.identity(4)
    return FrozenNetwork(
        names, identity, steps, np.ones((2, 4)), np.ones(4), zero, precision=dtype
    )


def found(frozen: FrozenNetwork) -> list[Any]:
    steps, n = frozen.steps, frozen.n_features
    λ = np.linspace(0.5, 2.0, n)
    return [
        bounds.slopes(steps, n).tolist(),
        bounds.rounding_errors(frozen).tolist(),
        bounds.layer_bounds(steps),
        *(bounds.constants(steps, λ, metric).tolist() for metric in ("1", "2", "inf")),
    ]


def sorted_members(n_out: int, *more: Step) -> FrozenNetwork:
    """Members that end in a sort, so that their units are only known together."""
    rng = np.random.default_rng(4)
    members = tuple(
        (Dense(rng.normal(size=(n_out, 4)), rng.normal(size=n_out)), Sort(2)) for _ in range(3)
    )
    steps = (Members((0.25, 0.5, -0.125), members), *more)
    n_outputs = 1 if more else n_out
    names, zero = tuple("abcd"), np.zeros((n_outputs, 4), np.int8)
    residual = np.ones((n_outputs, 4))
    return FrozenNetwork(names, Scaling.identity(4), steps, residual, np.ones(4), zero)


NETWORKS = {
    "ends in a sort": lambda: sorted_members(2),
    "ends in a sort of four": lambda: sorted_members(4),
    "a sort, then a sum": lambda: sorted_members(6, dense(1, 6, "float64")),
    "sort": lambda: average("float64", Sort(3)),
    "sort, float32": lambda: average("float32", Sort(2)),
    "leaky": lambda: average("float64", Pointwise("leaky_relu", 0.3)),
    "copies": lambda: copied(n_outputs=2, n_members=3),
    **{f"drawn {seed}": lambda seed=seed: draw_frozen(seed) for seed in range(20)},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_bounds_of_members_side_by_side_are_those_of_each(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = NETWORKS[name]()
    at_once = found(frozen)
    monkeypatch.setattr(bounds, "side_by_side", lambda step: step)
    assert at_once == found(frozen)


def test_only_members_of_the_same_steps_are_put_side_by_side() -> None:
    a, b, wide = dense(6, 4, "float64"), dense(6, 4, "float64"), dense(8, 4, "float64")
    alike = side_by_side(Members((0.5, 0.5), ((a, Sort(2)), (b, Sort(2)))))
    assert [type(step) for step in alike.members[0]] == [Stack, Sort]
    assert alike.members[0][0].weight.shape == (2, 6, 4)  # type: ignore[union-attr]
    alone = side_by_side(Members((0.5, 0.5), ((a,), (b,))))
    assert [type(step) for step in alone.members[0]] == [Stack]
    square = dense(6, 6, "float64")
    shared = residual_block(0.5, 0.5, [square])
    for first, second in (
        ((a,), (wide,)),
        ((a, Sort(2)), (b, Sort(3))),
        ((a, Pointwise("leaky_relu", 0.1)), (b, Pointwise("leaky_relu", 0.2))),
        ((a, Sort(2)), (b,)),
        ((Sort(2), a), (Sort(2), b)),
        ((a, residual_block(0.5, 0.5, [square])), (b, residual_block(0.5, 0.5, [square]))),
        ((a, shared), (b, shared)),
        ((), ()),
    ):
        step = Members((0.5, 0.5), (first, second))
        assert side_by_side(step) is step
