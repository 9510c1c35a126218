"""Models of every kind that a certifier may be asked about, many of them on the edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from draws import draw_frozen
from fixed_points import fixed
from isotone import FrozenNetwork, certify, freeze
from isotone.frozen.activations import ACTIVATIONS
from networks import by_hand, copied, draw_network, every_step, mixed, small

Rng = np.random.Generator


def draw_model(seed: int) -> FrozenNetwork:
    """A model of one of the kinds, certified or not; one in three is put on the edge."""
    rng = np.random.default_rng([seed, 20])
    kinds = sorted(_KINDS)
    model = _KINDS[kinds[seed % len(kinds)]](seed, rng)
    return on_the_edge(model, rng) if rng.random() < 0.3 else model


def on_the_edge(model: FrozenNetwork, rng: Rng) -> FrozenNetwork:
    """The residual such that directions are just as steep as they must be, or just not."""
    factor = float(rng.choice([0.0, 0.5, 1 - 1e-6, 1 + 1e-6, 1.5]))
    certificate, residual = certify(model), model.residual.copy()
    places = {name: i for i, name in enumerate(model.features)}
    for verdict in certificate.verdicts:
        wanted = factor * (verdict.margin or 0.0)
        if verdict.feature in places and np.isfinite(wanted) and not model.of_classes:
            change = verdict.direction * (verdict.slope - wanted)
            residual[verdict.output, places[verdict.feature]] -= change
    return replace(model, residual=residual.astype(model.precision).astype(float))


def _network(seed: int, rng: Rng) -> FrozenNetwork:
    clip = float(rng.choice([1024.0, 16.0]))
    return freeze(draw_network(seed, 32, 5).network, clip=clip)


def _classes(seed: int, rng: Rng) -> FrozenNetwork:
    model = _network(seed, rng)
    signs = rng.integers(-1, 2, model.monotonic_cst.shape)
    steep = 2.5 * rng.uniform(0.9, 1.1) * model.lipschitz * signs
    return replace(model, outputs="logits", monotonic_cst=signs, residual=steep)


def _single(seed: int, rng: Rng) -> FrozenNetwork:
    return freeze(draw_network(seed, 32, 4).network, precision="float32")


def _ordered(seed: int, rng: Rng) -> FrozenNetwork:
    """Monotone to the last bit in float32, whose sums have an order of their own."""
    signs = tuple(rng.integers(-1, 2, 3).tolist())
    clip = float(rng.choice([8.0, 32.0, 128.0]))
    return freeze(small(signs, seed=seed), precision="float32", exact=True, clip=clip)


def _steps(seed: int, rng: Rng) -> FrozenNetwork:
    return _directed(draw_frozen(seed), rng)


def _single_steps(seed: int, rng: Rng) -> FrozenNetwork:
    return _directed(draw_frozen(seed, "float32"), rng)


def _every(seed: int, rng: Rng) -> FrozenNetwork:
    activation = str(rng.choice(sorted(ACTIVATIONS)))
    return _directed(every_step(int(rng.integers(1, 3)), activation, seed), rng)


def _copied(seed: int, rng: Rng) -> FrozenNetwork:
    n_outputs, n_members = (int(n) for n in rng.integers(1, 4, 2))
    return _directed(copied(n_outputs, n_members, seed), rng)


def _directed(model: FrozenNetwork, rng: Rng) -> FrozenNetwork:
    """Random directions, residuals around what they take, and λ above or below the slopes."""
    signs = rng.integers(-1, 2, model.monotonic_cst.shape)
    found = [slope.scaled for slope in certify(model).slopes]
    steep = max((slope.high - slope.low) / 2 for slope in found)
    if not 0 < steep < 1e30:
        return model
    residual = signs * steep * rng.choice([0.9, 1.0, 1.1, 2.0])
    lipschitz = np.full(model.n_features, steep * rng.choice([0.9, 1.0, 1.1]))
    residual = residual.astype(model.precision).astype(float)
    return replace(model, monotonic_cst=signs, residual=residual, lipschitz=lipschitz)


def _mixed(seed: int, rng: Rng) -> FrozenNetwork:
    """Missing values of columns have directions too, and residuals that may suffice for them."""
    model = mixed(1, tuple(rng.integers(-1, 2, 4).tolist()), seed)
    signs, residual = model.monotonic_cst.copy(), model.residual.copy()
    for i, name in enumerate(model.features):
        if name.startswith("missing") and (size := rng.choice([0.0, 0.1, 1.0, 10.0])):
            signs[:, i] = rng.choice([-1, 1])
            residual[:, i] = np.float32(signs[0, i] * size)
    options: dict[str, Any] = {"grid": None} if rng.random() < 0.2 else {}
    return replace(model, monotonic_cst=signs, residual=residual, **options)


def _joint(seed: int, rng: Rng) -> FrozenNetwork:
    model = small((1, 1, 0), seed=seed)
    rates = rng.choice([-1.0, 0.25, 0.5, 1.0, 3.0], (2, 3))
    named = [dict(zip(model.features, row.tolist(), strict=True)) for row in rates]
    return replace(model, joint_cst=tuple(named), residual=3.0 * model.residual)


def _fixed(seed: int, rng: Rng) -> FrozenNetwork:
    return fixed((int(rng.integers(6, 15)), int(rng.integers(5, 13))))


def _by_hand(seed: int, rng: Rng) -> FrozenNetwork:
    slope = float(rng.choice([0.5, 1.0, 1.0 + 2.0**-40, 1 / 3, 2.0]))
    return by_hand(slope, int(rng.choice([-1, 1])), grid=float(2.0 ** -rng.integers(1, 40)))


_KINDS: dict[str, Callable[[int, Rng], FrozenNetwork]] = {
    "network": _network,
    "classes": _classes,
    "single": _single,
    "ordered": _ordered,
    "steps": _steps,
    "single steps": _single_steps,
    "every": _every,
    "copied": _copied,
    "mixed": _mixed,
    "joint": _joint,
    "fixed": _fixed,
    "by hand": _by_hand,
}
