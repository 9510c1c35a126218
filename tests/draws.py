"""Frozen networks of every kind of step and rows of every size, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone import FrozenNetwork, Scaling
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, residual_block
from isotone.typing import Floats

EDGES = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-310, 5e-324, 1e308, -1e308, 1024.0, 1e-20, 2.0**-21, 3e8]


def draw_steps(rng: np.random.Generator, n_in: int, deep: int = 2) -> tuple[list[Step], int]:
    steps: list[Step] = []
    kinds = ["dense", "sort", "pointwise", "blend", "members"]
    for _ in range(rng.integers(1, 6)):
        kind = rng.choice(kinds, p=[0.4, 0.25, 0.15, 0.1, 0.1])
        if kind == "dense":
            n_out = int(rng.integers(1, 45))
            weight = rng.normal(size=(n_out, n_in)) * 10.0 ** rng.uniform(-2, 1)
            steps.append(Dense(weight.astype("f4").astype("f8"), rng.normal(size=n_out)))
            n_in = n_out
        elif kind == "sort":
            divisors = [d for d in range(1, n_in + 1) if n_in % d == 0]
            steps.append(Sort(int(rng.choice(divisors))))
        elif kind == "pointwise":
            name = str(rng.choice(sorted(ACTIVATIONS)))
            steps.append(Pointwise(name, 0.25 if name == "leaky_relu" else 0.0))
        elif deep and kind == "blend":
            steps.append(residual_block(0.5, 0.25, draw_branch(rng, n_in, n_in, deep)))
        elif deep:
            n_out, n_members = (int(n) for n in rng.integers(1, (12, 5)))
            members = tuple(draw_branch(rng, n_in, n_out, deep) for _ in range(n_members))
            weights = rng.normal(size=n_members).astype("f4").astype("f8").tolist()
            steps.append(Members(tuple(weights), members))
            n_in = n_out
    return steps or [Sort(1)], n_in


def draw_branch(rng: np.random.Generator, n_in: int, n_out: int, deep: int) -> tuple[Step, ...]:
    inner, n = draw_steps(rng, n_in, deep - 1)
    if n != n_out:
        inner.append(Dense(rng.normal(size=(n_out, n)), rng.normal(size=n_out)))
    return tuple(inner)


def draw_frozen(seed: int, precision: Any = "float64") -> FrozenNetwork:
    """Steps of every kind, logarithms, several outputs; nothing is certified about it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    steps, m = draw_steps(rng, n)
    log = rng.random(n) < 0.4
    offset, floor = np.where(log, rng.uniform(-1, 1, n), 0.0), 10.0 ** rng.uniform(-9, 1, n)
    scaling = Scaling(log, offset, floor, rng.normal(size=n), 10.0 ** rng.uniform(-2, 2, n))
    if precision == "float32":
        steps = [single(step) for step in steps]
    return FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n)),
        scaling=scaling,
        steps=tuple(steps),
        residual=rng.integers(-2, 3, (m, n)).astype(float),
        lipschitz=np.ones(n),
        monotonic_cst=np.zeros((m, n)),
        precision=precision,
        grid=None if rng.random() < 0.3 else 2.0**-20,
    )


def single(step: Step) -> Step:
    match step:
        case Dense(weight, bias):
            return Dense(weight.astype("f4"), bias.astype("f4"))
        case Members(weights, members):
            return Members(weights, tuple(tuple(single(inner) for inner in m) for m in members))
    return step


def draw_rows(seed: int, n_rows: int, n_features: int) -> Floats:
    """Rows of all sizes; some entries are zeros, subnormal, huge, on the grid or on its ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.uniform(-3, 3, (n_rows, 1))
    X = np.where(rng.random(X.shape) < 0.1, rng.choice(EDGES, X.shape), X)
    ties = (rng.integers(-(2**22), 2**22, X.shape) + 0.5) * 2.0**-20
    return np.where(rng.random(X.shape) < 0.1, ties, X)
