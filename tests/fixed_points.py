"""Networks in fixed point, and inputs all over their box."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from isotone import FrozenNetwork, freeze
from isotone.freezing.fixed import to_fixed
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Steps, residual_block
from isotone.typing import Floats
from networks import copied, small


def fixed(bits: Any = (10, 8), **options: Any) -> FrozenNetwork:
    return freeze(small(), precision="fixed", bits=bits, **options)


def corners(frozen: FrozenNetwork) -> Floats:
    """Every corner of the box of inputs, and its middle."""
    ends = itertools.product(*[(-frozen.clip, 0.0, frozen.clip)] * frozen.n_features)
    return np.array(list(ends))


def rows_of(frozen: FrozenNetwork, n: int = 60, seed: int = 0) -> Floats:
    """Inputs all over the box and a bit beyond, and its corners."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.1, 1.1, (n, frozen.n_features)) * frozen.clip
    return np.concatenate([x, corners(frozen)[:81]])


def blocks() -> Steps:
    rng = np.random.default_rng(0)

    def dense(n_out: int, n_in: int) -> Dense:
        return Dense(rng.normal(size=(n_out, n_in)) / n_in / n_out, rng.normal(size=n_out))

    branch = (dense(6, 6), Pointwise("leaky_relu", 0.3), dense(6, 6), Pointwise("abs"))
    block = residual_block(0.6, 0.3, branch)
    ends = (dense(1, 6),), (Pointwise("hardtanh"), dense(4, 6), Sort(4), dense(1, 4))
    return (dense(6, 3), Pointwise("relu"), block, Sort(3), Members((0.3, 0.7), ends))


def knotted() -> FrozenNetwork:
    """A network on copies of columns, with two outputs."""
    drawn = copied(n_outputs=2)
    return to_fixed(replace(drawn, lipschitz=np.full(drawn.n_features, 1e4)), (10, 8))
