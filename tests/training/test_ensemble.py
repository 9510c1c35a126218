"""Ensembles: members trained together end where they would have ended alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotone import MonotonicNetwork, certify, freeze
from isotone.losses import (
    AbsoluteError,
    CrossEntropy,
    DynamicHinge,
    Hinge,
    Quantile,
    SquaredError,
)
from isotone.training import train as training
from isotone.training.ensemble import Ensemble
from isotone.training.learners import FusedLearner, StackLearner
from isotone.training.orders import orders_of_rows
from isotone.training.rows import Rows
from isotone.training.train import Recipe, train

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X @ [1.0, 0.5, -0.5] + 0.3 * RNG.normal(size=300) > 0).astype(int)
RECIPE = Recipe(epochs=4, batch_size=64)


def members(n: int = 4, **options: Any) -> list[MonotonicNetwork]:
    networks = []
    for seed in range(n):
        torch.manual_seed(seed)
        options = {"layers": [3, 8, 8, 1], "monotonic_cst": [1, 0, -1], "lipschitz": 2.0} | options
        networks.append(MonotonicNetwork(**options))
        with torch.no_grad():
            # off the bound: on it the gradient has a kink, and rounding would choose the side
            for name, parameter in networks[-1].named_parameters():
                parameter.mul_(1.1 if "weight" in name else 1.0)
    return networks


@pytest.mark.parametrize("backend", ["fused", "torch"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"group_size": 2},
        {"chain": "inf"},
        {"layers": [3, 8, 2], "outputs": "logits", "monotonic_cst": np.zeros((2, 3))},
        {"layers": [3, 1]},
        {"lipschitz": [1.0, 2.0, 3.0]},
    ],
    ids=str,
)
def test_members_end_where_they_would_have_ended_alone(options: Any, backend: Any) -> None:
    stack = Ensemble(members(**options))
    history = stack.train(X, Y, CrossEntropy(), RECIPE, backend=backend)
    for s, alone in enumerate(members(**options)):
        expected = np.array(train(alone, X, Y, CrossEntropy(), RECIPE).training)[:, 0]
        assert np.array(history.training)[:, s] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("loss", "n_outputs"),
    [
        (Hinge(0.5), 1),
        (SquaredError(), 1),
        (SquaredError(), 3),
        (AbsoluteError(), 3),
        (Quantile(0.8), 1),
        (Quantile(0.8), 3),
        (Quantile((0.1, 0.5, 0.9)), 3),
    ],
)
def test_both_backends_train_alike(loss: Any, n_outputs: int) -> None:
    weight = RNG.uniform(0.5, 2, 300)
    y = Y if np.size(getattr(loss, "level", 0)) > 1 or n_outputs == 1 else X
    options = {"sample_weight": weight, "validation": (X[:50], y[:50])}
    shape = {"layers": [3, 8, 8, n_outputs], "chain": "inf"}
    histories = [
        Ensemble(members(**shape)).train(X, y, loss, RECIPE, backend=backend, **options)
        for backend in ("fused", "torch")
    ]
    for name in ("training", "validation"):
        fused, batched = (np.array(getattr(history, name)) for history in histories)
        assert fused == pytest.approx(batched, rel=1e-3)


def test_threads_do_not_change_a_bit() -> None:
    stacks = [Ensemble(members()), Ensemble(members())]
    for stack, threads in zip(stacks, (1, 2), strict=True):
        stack.train(X, Y, CrossEntropy(), RECIPE, backend="fused", threads=threads)
    for a, b in zip(*(stack.networks for stack in stacks), strict=True):
        assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize(
    ("options", "loss", "message"),
    [
        ({}, DynamicHinge(), "it does not support DynamicHinge"),
        ({"layers": [3, *[2] * 33, 1]}, SquaredError(), "is for small networks, not for 34 layer"),
    ],
)
def test_what_the_fused_backend_lacks_is_said(options: Any, loss: Any, message: str) -> None:
    stack = Ensemble(members(2, **options))
    with pytest.raises(ValueError, match=message):
        stack.train(X, Y, loss, RECIPE, backend="fused")
    stack.train(X, Y, loss, replace(RECIPE, epochs=1))  # "auto" takes torch
    with pytest.raises(ValueError, match="`backend='cuda'` is unknown"):
        stack.train(X, Y, loss, RECIPE, backend="cuda")


def test_every_member_may_have_its_own_lambda() -> None:
    networks = [members(1, lipschitz=value)[0] for value in (0.5, 1.0, 4.0)]
    stack = Ensemble(networks)
    stack.train(X, Y, CrossEntropy(), replace(RECIPE, epochs=40))
    for network in stack.networks:
        assert certify(freeze(network)).holds
    assert stack.summary().best == 2  # the steepest fits these rows best


def test_members_may_see_the_rows_in_orders_of_their_own() -> None:
    shared, own = Ensemble(members()), Ensemble(members())
    shared.train(X, Y, CrossEntropy(), RECIPE)
    own.train(X, Y, CrossEntropy(), RECIPE, orders="own")
    first = [e.networks[0].layers[0].weight for e in (shared, own)]
    other = [e.networks[1].layers[0].weight for e in (shared, own)]
    assert torch.allclose(first[0], first[1], atol=1e-3)  # member 0 has the seed itself
    assert not torch.allclose(other[0], other[1], atol=1e-3)


@pytest.mark.parametrize("backend", ["fused", "torch"])
def test_a_bootstrapped_member_never_sees_the_rows_it_did_not_draw(backend: Any) -> None:
    drawn = np.unique(orders_of_rows(300, 1, "bootstrap", 0, RECIPE.seed))
    later = np.unique(orders_of_rows(300, 1, "bootstrap", 3, RECIPE.seed))
    assert np.array_equal(drawn, later)
    assert 150 < len(drawn) < 230  # about 63 %
    spoiled = 1 - Y
    spoiled[drawn] = Y[drawn]
    stacks = [Ensemble(members(2)), Ensemble(members(2))]
    for stack, y in zip(stacks, (Y, spoiled), strict=True):
        stack.train(X, y, CrossEntropy(), RECIPE, orders="bootstrap", backend=backend)
    for k, same in ((0, True), (1, False)):
        first, second = (stack.networks[k].layers[0].weight for stack in stacks)
        assert torch.equal(first, second) is same


def test_weighted_bootstraps_report_the_same_losses_in_both_backends() -> None:
    weight = np.where(np.arange(300) < 5, 200.0, 1.0)
    still = replace(RECIPE, learning_rate=1e-12, epochs=1)
    losses = [
        Ensemble(members()).train(
            X, Y, CrossEntropy(), still, sample_weight=weight, orders="bootstrap", backend=backend
        )
        for backend in ("fused", "torch")
    ]
    assert losses[0].training[0] == pytest.approx(losses[1].training[0], rel=1e-4)


def test_networks_without_bias_are_refused() -> None:
    network = members(1)[0]
    network.layers[0].bias = None
    with pytest.raises(ValueError, match="has a layer without bias"):
        Ensemble([network])


def test_unknown_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="`orders='random'` is unknown"):
        Ensemble(members(1)).train(X, Y, CrossEntropy(), RECIPE, orders="random")


def test_every_member_keeps_its_own_best_weights() -> None:
    recipe = Recipe(epochs=30, batch_size=16, learning_rate=0.2, schedule="constant", patience=4)
    noise = RNG.normal(size=300)
    stack = Ensemble(members())
    history = stack.train(
        X[:60], noise[:60], SquaredError(), recipe, validation=(X[60:], noise[60:])
    )
    assert len(set(history.best_epoch)) > 1
    for s, network in enumerate(stack.networks):
        with torch.no_grad():
            score = network(torch.as_tensor(X[60:], dtype=torch.float32))[:, 0].double().numpy()
        loss = float(np.mean((score - noise[60:]) ** 2))
        assert loss == pytest.approx(history.validation[history.best_epoch[s]][s], rel=1e-5)


def test_summary_tells_mean_spread_and_best() -> None:
    stack = Ensemble(members())
    with pytest.raises(ValueError, match="call `train` first"):
        stack.summary()
    history = stack.train(X, Y, CrossEntropy(), RECIPE)
    summary = stack.summary()
    losses = np.array(history.training[-1])
    assert (summary.mean, summary.spread) == pytest.approx((losses.mean(), losses.std()))
    assert summary.best_loss == losses[summary.best] == losses.min()


@pytest.mark.parametrize(
    ("backend", "learner"), [("torch", StackLearner), ("fused", FusedLearner)]
)
def test_a_killed_ensemble_continues_to_the_same_bits(
    backend: Any, learner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, resumed = Ensemble(members()), Ensemble(members())
    options: dict[str, Any] = {"validation": (X[:50], Y[:50]), "backend": backend}
    undisturbed.train(X, Y, CrossEntropy(), RECIPE, **options)
    learn = learner.learn

    def killed(self: Any, rows: Rows, epoch: int, recipe: Recipe) -> Any:
        if epoch == 2:
            raise KeyboardInterrupt
        return learn(self, rows, epoch, recipe)

    monkeypatch.setattr(training, "fit", partial(training.fit, checkpoint_seconds=0.0))
    with monkeypatch.context() as patch:
        patch.setattr(learner, "learn", killed)
        options["checkpoint"] = tmp_path / "run"
        with pytest.raises(KeyboardInterrupt):
            Ensemble(members()).train(X, Y, CrossEntropy(), RECIPE, **options)
    resumed.train(X, Y, CrossEntropy(), RECIPE, **options)
    for a, b in zip(undisturbed.networks, resumed.networks, strict=True):
        pairs = zip(a.parameters(), b.parameters(), strict=True)
        assert all(torch.equal(p, q) for p, q in pairs)


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        ([], "at least one network"),
        (members(1) + members(1, layers=[3, 4, 1]), "network 1 differs from the first"),
        (members(1) + members(1, monotonic_cst=[1, 1, 1]), "network 1 differs from the first"),
        (members(1, norm="matrix"), "network 0 has another norm"),
        (members(1, apply="project"), "network 0 has another norm"),
    ],
)
def test_what_cannot_be_stacked_is_refused(networks: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ensemble(networks)
