"""Stacks: networks that learn together are the networks that learn alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from studies.tabular.contest import Problem, Table, View
from studies.tabular.models import peers, stacks
from studies.tabular.protocols import reference

N, BATCH = 70, 32  # the last batch is not full
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=N), RNG.exponential(size=N), RNG.integers(0, 2, N)])
DIRECTIONS = np.array([1, -1, 0], dtype=np.int8)
ORDERS = [torch.randperm(N, generator=torch.Generator().manual_seed(k)) for k in range(3)]
PUBLISHED = [{"shape": (4, 4), "lipschitz": x, "rate": 0.01} for x in (1.0, 2.2)]
GROUPS = [
    (peers.Authors(), peers.Authors.settings[4:]),
    (peers.Mononet(), peers.Mononet.settings[:2]),
    (peers.Perceptron(), peers.Perceptron.settings[:4]),
    (reference.Authors(), PUBLISHED),
]


def rows(task: Any) -> tuple[Problem, View, Tensor, Tensor]:
    z = X[:, 0] - 0.5 * X[:, 1]
    y = z if task == "regression" else (z > 0).astype(float)
    problem = Problem(task, DIRECTIONS, seed=3)
    view = View.of(problem, Table(X, y))
    return problem, view, torch.tensor(view.x(X)).float(), torch.tensor(view.y(y)).float()


def alone(module: nn.Module, setting: Any, orders: list[Tensor], task: Any) -> Tensor:
    """Scores after a plain training in torch."""
    *_, x, y = rows(task)
    loss = nn.MSELoss() if task == "regression" else nn.BCEWithLogitsLoss()
    decay = setting.get("decay", 0.0)
    optimizer = torch.optim.AdamW(module.parameters(), lr=setting["rate"], weight_decay=decay)
    for order in orders:
        for batch in torch.split(order, BATCH):
            optimizer.zero_grad()
            loss(module(x[batch])[:, 0], y[batch]).backward()
            optimizer.step()
    return module(x)[:, 0].detach()


def built(peer: peers.Network, problem: Problem, view: View, setting: Any) -> nn.Module:
    torch.manual_seed(problem.seed)
    return peer.build(view, setting)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is traced when it is first called."""
    monkeypatch.setattr(stacks, "_FEW", 0)
    monkeypatch.setattr(stacks, "_programs", {})


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize(("peer", "group"), GROUPS, ids=lambda part: type(part).__qualname__)
def test_stacked_and_traced_networks_learn_what_they_learn_alone(
    peer: peers.Network, group: list[Any], task: Any, at_once: None
) -> None:
    pytest.importorskip(peer.needs)
    problem, view, x, y = rows(task)
    assert len({peer.form(view, setting) for setting in group}) == 1
    stack = peer.stack([(problem, view, setting) for setting in group])
    for order in ORDERS:
        stack.learn(x, y, order, BATCH)
    assert len(stacks._programs) == 1
    together = stack.predict(x)
    for k, setting in enumerate(group):
        expected = alone(built(peer, problem, view, setting), setting, ORDERS, task)
        torch.testing.assert_close(together[k], expected, rtol=1e-4, atol=1e-5)
        module = stack.unstack(built(peer, problem, view, setting), k)
        torch.testing.assert_close(module(x)[:, 0], together[k], rtol=1e-5, atol=1e-6)


def test_tracing_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = peers.Perceptron()
    problem, view, x, y = rows("classification")
    found = []
    for few in (0, 1000):
        monkeypatch.setattr(stacks, "_FEW", few)
        monkeypatch.setattr(stacks, "_programs", {})
        stack = peer.stack([(problem, view, setting) for setting in peer.settings[:4]])
        stack.learn(x, y, ORDERS[0], BATCH)
        found.append(stack.predict(x))
        assert bool(stacks._programs) == (few == 0)
    assert torch.equal(*found)


def test_members_can_have_rows_of_their_own_and_others_can_leave() -> None:
    """Order, rate and start are those of each member, whoever else is there."""
    peer = peers.Perceptron()
    problem, view, x, y = rows("regression")
    group = [peer.settings[k] for k in (0, 1, 2)]
    stack = peer.stack([(problem, view, setting) for setting in group])
    stack.learn(x, y, torch.stack(ORDERS), BATCH)
    stack.keep([2, 0])
    assert len(stack) == 2
    stack.learn(x, y, torch.stack([ORDERS[2], ORDERS[0]]), BATCH)
    scores = stack.predict(torch.stack([x, x]))
    for j, k in enumerate((2, 0)):
        module = built(peer, problem, view, group[k])
        expected = alone(module, group[k], [ORDERS[k]] * 2, "regression")
        torch.testing.assert_close(scores[j], expected, rtol=1e-4, atol=1e-5)


def test_the_two_networks_in_the_authors_library_share_no_program() -> None:
    """They differ in norms and sorts, which no setting says."""
    _, view, *_ = rows("regression")
    assert peers.Authors().form(view, PUBLISHED[0]) != reference.Authors().form(view, PUBLISHED[0])


@pytest.mark.parametrize("kind", ["one", "inf", "one-inf"])
@pytest.mark.parametrize("bound", [0.3, 1.0, 1.7])
def test_bounds_of_weights_are_those_of_the_authors(kind: str, bound: float) -> None:
    library = pytest.importorskip("monotonicnetworks")
    weight = 2.0 * torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    plain, ours = nn.Linear(4, 5), nn.Linear(4, 5)
    for linear in (plain, ours):
        linear.weight.data.copy_(weight)
    library.direct_norm(plain, kind=kind, max_norm=bound)
    peers.bounded(ours, kind, bound)
    torch.testing.assert_close(ours.weight, plain.weight)
