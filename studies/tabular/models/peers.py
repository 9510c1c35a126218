"""Peers: other networks, monotone and not, and linear models.

All networks train with Adam and stop after `_PATIENCE` epochs without a lower loss on the
validation rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from isotone.typing import Floats
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
from studies.tabular.models.stacks import Form, Stack

_PATIENCE = 15
_NUMBERS = ("lipschitz", "rate", "decay")  # of settings: no part of a form

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

    def form(self, view: View, setting: Setting) -> Hashable:
        """Settings of one form differ in the numbers of the module only, not in its operators."""
        own = {name: value for name, value in setting.items() if name not in _NUMBERS}
        return type(self), str(own), tuple(view.directions.tolist())

    def choose(self, problem: Problem, train: Table, validation: Table) -> Choice:
        """Settings of one form are tried together."""
        view = View.of(problem, train)
        groups: dict[Hashable, list[Setting]] = {}
        for setting in self.settings[:2] if problem.quick else self.settings:
            groups.setdefault(self.form(view, setting), []).append(setting)
        return best(
            [self._try(problem, view, train, validation, group) for group in groups.values()]
        )

    def _try(
        self, problem: Problem, view: View, train: Table, validation: Table, group: list[Setting]
    ) -> Choice:
        """The best of some settings, each at the epoch of its lowest loss on validation rows."""
        x = torch.as_tensor(view.x(validation.X), dtype=torch.float32)
        found = [Choice(setting, 0, np.inf) for setting in group]
        members = going = list(range(len(group)))
        run = self._epochs(problem, view, train, group, n_epochs(problem))
        for epoch, stack in enumerate(run, start=1):
            scores = dict(zip(members, _output(stack.predict(x), view, problem), strict=True))
            for k in going:
                loss = problem.loss(validation.y, scores[k])
                if loss < found[k].loss:
                    found[k] = Choice(group[k], epoch, loss)
            going = [k for k in going if epoch - found[k].rounds < _PATIENCE]
            if not going:
                break
            if 2 * len(going) <= len(members):  # the others are no longer computed
                stack.keep([members.index(k) for k in going])
                members = going
        return best(found)

    def stack(self, members: list[tuple[Problem, View, Setting]]) -> Stack:
        """New networks of one form."""
        modules = []
        for problem, view, setting in members:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(problem.seed)
                modules.append(self.build(view, setting))
        rates = [(setting["rate"], setting.get("decay", 0.0)) for _, _, setting in members]
        problem, view, setting = members[0]
        return Stack(modules, Form(modules[0], problem.task, self.form(view, setting)), rates)

    def _epochs(
        self, problem: Problem, view: View, rows: Table, group: list[Setting], n: int
    ) -> Iterator[Stack]:
        """The networks after each epoch."""
        stack = self.stack([(problem, view, setting) for setting in group])
        generator = torch.Generator().manual_seed(problem.seed)
        x = torch.as_tensor(view.x(rows.X), dtype=torch.float32)
        y = torch.as_tensor(view.y(rows.y), dtype=torch.float32)
        for _ in range(n):
            order = torch.randperm(len(x), generator=generator)
            stack.learn(x, y, order, batch_size(len(x)))
            yield stack

    def fit(self, problem: Problem, rows: Table, choice: Choice) -> Model:
        view = View.of(problem, rows)
        for stack in self._epochs(problem, view, rows, [choice.setting], choice.rounds):
            last = stack
        network = last.unstack(self.build(view, choice.setting))

        @torch.no_grad()
        def score(X: Floats) -> Floats:
            x = torch.as_tensor(view.x(X), dtype=torch.float32)
            return _output(network(x)[:, 0], view, problem)

        n_parameters = sum(p.numel() for p in network.parameters())
        return Model(score, n_parameters)


def _output(raw: Tensor, view: View, problem: Problem) -> Floats:
    score: Floats = raw.double().numpy()
    return sigmoid(score) if problem.task == "classification" else view.restore(score)


def grid(**choices: list[Any]) -> list[Setting]:
    """All combinations, as many as the budget allows."""
    settings = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    assert len(settings) == BUDGET
    return settings


class Times(nn.Module):
    """Multiplication with a number that is no part of a form."""

    factor: Tensor

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.register_buffer("factor", torch.tensor(factor))

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.factor


def bounded(linear: nn.Linear, kind: str, bound: float) -> nn.Linear:
    """The authors' `direct_norm` with `max_norm=bound`, as bound · norm(W / bound)."""
    import monotonicnetworks

    register_parametrization(linear, "weight", Times(1 / bound))
    monotonicnetworks.direct_norm(linear, kind=kind, max_norm=1.0)
    register_parametrization(linear, "weight", Times(bound))
    return linear


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
            layers.append(bounded(linear, "one", bound))
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
            choice = Choice({"strength": float(strength)}, 1, np.inf)
            score = self.fit(problem, train, choice).score(validation.X)
            choices.append(replace(choice, loss=problem.loss(validation.y, score)))
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
