"""Peers: other networks, monotone and not, and linear models.

All networks train with Adam, the batches and the number of epochs of ours, and stop after
`_PATIENCE` epochs without a lower loss on the validation rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor, nn

from isotone.elementary import Floats
from studies.tabular.contest import (
    BUDGET,
    Choice,
    Model,
    Problem,
    Table,
    View,
    batch_size,
    best,
    n_epochs,
    sigmoid,
)

_PATIENCE = 15

Setting = dict[str, Any]


class Network(ABC):
    """A peer that is a torch module; a subclass builds it and names its settings."""

    name: str
    needs = "torch"
    monotone = True
    settings: list[Setting]

    @abstractmethod
    def build(self, view: View, setting: Setting) -> nn.Module:
        """The module for one setting."""

    def slope(self, setting: Setting) -> float | None:
        return None

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        settings = self.settings[:2] if problem.quick else self.settings
        return best([self._try(problem, train, validation, setting) for setting in settings])

    def _try(self, problem: Problem, train: Table, validation: Table, setting: Setting) -> Choice:
        """One setting: the epoch with the lowest loss on the validation rows."""
        view = View.of(problem, train)
        x = torch.as_tensor(view.x(validation.X), dtype=torch.float32)
        found = Choice(setting, 0, np.inf, np.empty(0))
        n = n_epochs(problem)
        for epoch, network in enumerate(self._epochs(problem, view, train, setting, n), start=1):
            score = _score(network, x, view, problem)
            loss = problem.loss(validation.y, score)
            if loss < found.loss:
                found = Choice(setting, epoch, loss, score)
            elif epoch - found.rounds >= _PATIENCE:
                break
        return found

    def _epochs(
        self, problem: Problem, view: View, rows: Table, setting: Setting, n: int
    ) -> Iterator[nn.Module]:
        """The network after each epoch."""
        generator = torch.Generator().manual_seed(problem.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(problem.seed)
            network = self.build(view, setting)
        optimizer = torch.optim.AdamW(
            network.parameters(),
            lr=setting["rate"],
            weight_decay=setting.get("decay", 0.0),
            fused=True,
        )
        x = torch.as_tensor(view.x(rows.X), dtype=torch.float32)
        y = torch.as_tensor(view.y(rows.y), dtype=torch.float32)
        loss = nn.MSELoss() if problem.task == "regression" else nn.BCEWithLogitsLoss()
        for _ in range(n):
            order = torch.randperm(len(x), generator=generator)
            for batch in torch.split(order, batch_size(len(x))):
                optimizer.zero_grad()
                loss(network(x[batch])[:, 0], y[batch]).backward()
                optimizer.step()
            yield network

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        view = View.of(problem, rows)
        for network in self._epochs(problem, view, rows, choice.setting, choice.rounds):
            last = network

        def score(X: Floats) -> Floats:
            x = torch.as_tensor(view.x(X), dtype=torch.float32)
            return _score(last, x, view, problem)

        n_parameters = sum(p.numel() for p in last.parameters())
        return Model(score, n_parameters, self.slope(choice.setting))


@torch.no_grad()
def _score(network: nn.Module, x: Tensor, view: View, problem: Problem) -> Floats:
    raw: Floats = network(x)[:, 0].double().numpy()
    return sigmoid(raw) if problem.task == "classification" else view.restore(raw)


def grid(**choices: list[Any]) -> list[Setting]:
    """All combinations, as many as the budget allows."""
    settings = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    assert len(settings) == BUDGET
    return settings


class Authors(Network):
    """The network of the paper's authors in their own library, with the norm of Eq. 8."""

    name, needs = "monotonicnetworks", "monotonicnetworks"
    settings = grid(shape=[(32,), (32, 32)], lipschitz=[0.25, 0.5, 1.0, 2.0], rate=[0.02])

    def build(self, view: View, setting: Setting) -> nn.Module:
        import monotonicnetworks

        widths = [len(view.kept), *setting["shape"], 1]
        bound = setting["lipschitz"] ** (1 / (len(widths) - 1))
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise(widths):
            linear = nn.Linear(n_in, n_out)
            layers.append(monotonicnetworks.direct_norm(linear, kind="one", max_norm=bound))
            layers.append(monotonicnetworks.GroupSort(n_out // 8 if n_out > 8 else 1))
        wrapped: nn.Module = monotonicnetworks.MonotonicWrapper(
            nn.Sequential(*layers[:-1]),
            lipschitz_const=setting["lipschitz"],
            monotonic_constraints=view.directions.tolist(),
        )
        return wrapped


class MixedMononet(nn.Module):
    """Free features through two plain layers, then all through monotone ones (its README)."""

    def __init__(self, view: View, width: int) -> None:
        super().__init__()
        from mononet import MonotonicityMask
        from mononet.torch import MonoInput, MonoLinear, MonoResidual

        free, mono = np.flatnonzero(view.directions == 0), np.flatnonzero(view.directions)
        self.free, self.mono = torch.as_tensor(free), torch.as_tensor(mono)
        self.embed = nn.Sequential(
            nn.Linear(len(free), width), nn.ReLU(), nn.Linear(width, width // 2), nn.ReLU()
        )
        self.signs = MonoInput(MonotonicityMask(view.directions[mono]))
        self.layers = nn.Sequential(
            MonoLinear(len(mono) + width // 2, width, activation="elu"),
            MonoResidual(width, width, activation="elu"),
            MonoLinear(width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.signs(x[:, self.mono]), self.embed(x[:, self.free])]
        scores: Tensor = self.layers(torch.cat(parts, dim=1))
        return scores


class Mononet(Network):
    """The newest library of constrained monotone networks."""

    name, needs = "mononet", "mononet"
    settings = grid(width=[8, 16, 32, 64], rate=[0.003, 0.01])

    def build(self, view: View, setting: Setting) -> nn.Module:
        return MixedMononet(view, setting["width"])


class Perceptron(Network):
    """An ordinary network without any promise."""

    name, monotone = "MLP, unconstrained", False
    settings = grid(width=[16, 64], rate=[0.003, 0.01], decay=[0.0, 0.1])

    def build(self, view: View, setting: Setting) -> nn.Module:
        width = setting["width"]
        layers = nn.Linear(len(view.kept), width), nn.Linear(width, width), nn.Linear(width, 1)
        return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


@dataclass(frozen=True)
class Linear:
    """Logistic or ridge regression on scaled columns."""

    name: str = "logistic / ridge"
    needs: str = "sklearn"
    monotone: bool = False

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        choices = []
        for strength in 10.0 ** np.arange(-3, BUDGET - 3):
            choice = Choice({"strength": float(strength)}, 1, np.inf, np.empty(0))
            score = self.fit(problem, train, choice).score(validation.X)
            loss = problem.loss(validation.y, score)
            choices.append(Choice(choice.setting, 1, loss, score))
        return best(choices)

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        view, strength = View.of(problem, rows), choice.setting["strength"]
        x, y = view.x(rows.X), view.y(rows.y)
        n_parameters = x.shape[1] + 1
        if problem.task == "regression":
            ridge = Ridge(alpha=strength).fit(x, y)
            return Model(lambda X: view.restore(ridge.predict(view.x(X))), n_parameters)
        logistic = LogisticRegression(C=1.0 / strength, max_iter=1000).fit(x, y)
        return Model(lambda X: logistic.predict_proba(view.x(X))[:, 1], n_parameters)
