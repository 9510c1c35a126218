"""Beginnings: how much of a reference figure is noise of training.

Three seeds are few. Here Auto MPG is learned with the published settings from `N` beginnings on
each of the three parts of the reference protocol; the figure of a beginning is, as there, the
best TEST value over all epochs. The authors' network is compared with ours, which differs in its
initialization alone. These numbers explain a difference; nothing was chosen by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from isotone import Recipe
from isotone.nn import Init
from isotone.typing import Floats, Reals
from studies.tabular.contest import View
from studies.tabular.models import small
from studies.tabular.protocols.cells import REFERENCE, Cell, key_of
from studies.tabular.protocols.clean import Score
from studies.tabular.protocols.reference import N_SEEDS, Authors, Setup, published_network

DATASET = "auto_mpg"
N = 10
AUTHORS = "monotonicnetworks"
INITS: dict[str, Init] = {
    "isotone, published settings": "orthogonal",
    'isotone, `init="torch"`': "torch",
    'isotone, `init="bound"`': "bound",
    'isotone, `init="permutation"`': "permutation",
}
VARIANTS = (AUTHORS, *INITS)


@dataclass(frozen=True)
class Beginning(Cell):
    """Beginning `split % N` of part `split // N`."""

    def key(self) -> str:
        return key_of(self.contestant, *REFERENCE, "beginnings")

    def compute(self) -> Score:
        part, k = divmod(self.split, N)
        return _beginnings(self.contestant, part, self.quick)[k]


def n_splits(quick: bool) -> int:
    return 1 if quick else N * N_SEEDS


@lru_cache(maxsize=1)
def _beginnings(variant: str, part: int, quick: bool) -> list[Score]:
    """All beginnings of a part learn together."""
    setup = Setup.of(DATASET, part, quick)
    view = setup.standard()
    if variant == AUTHORS:
        n_parameters, epochs = _authors(setup, view)
    else:
        n_parameters, epochs = _ours(setup, view, INITS[variant])
    scores = (small.output(setup.problem, view, raw) for raw in epochs)
    errors = [np.square(setup.test.y - score).mean(axis=1) for score in scores]
    text = f"published, {len(errors)} epochs"
    return [Score(float(e), n_parameters, 0.0, text) for e in np.min(errors, axis=0)]


def _authors(setup: Setup, view: View) -> tuple[int, Iterator[Reals]]:
    """What is said of the test rows after every epoch, (N, n_rows), by the authors' network."""
    p = setup.published
    setting = {"rate": p.rate, "shape": p.shape, "lipschitz": p.lipschitz}
    problems = [replace(setup.problem, seed=k) for k in range(N)]
    stack = Authors().stack([(problem, view, setting) for problem in problems])
    x, y, test = (
        torch.as_tensor(rows, dtype=torch.float32)
        for rows in (view.x(setup.train.X), view.y(setup.train.y), view.x(setup.test.X))
    )
    generators = [torch.Generator().manual_seed(k) for k in range(N)]

    def epochs() -> Iterator[Reals]:
        for _ in range(p.epochs):
            orders = [torch.randperm(len(x), generator=generator) for generator in generators]
            stack.learn(x, y, torch.stack(orders), p.batch)
            yield stack.predict(test).numpy()

    return sum(p.numel() for p in stack.form.module.parameters()), epochs()


def _ours(setup: Setup, view: View, init: Init) -> tuple[int, Iterator[Reals]]:
    """The same by our network."""
    p = setup.published
    networks = [published_network(setup, view, seed, init) for seed in range(N)]
    recipe = Recipe(epochs=p.epochs, batch_size=p.batch, learning_rate=p.rate, schedule="constant")
    x = view.x(setup.test.X).astype(np.float32)
    rows = small.rows_of(view, setup.problem, setup.train)
    run = small.epochs(networks, setup.problem, rows, recipe)
    n_parameters = sum(p.numel() for p in networks[0].parameters())
    return n_parameters, (learner.trainer.predict(x)[..., 0] for learner in run)


def summary(values: dict[str, float]) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every part, from values by the number of the cell."""
    table = np.array([values[str(k)] for k in range(N * N_SEEDS)]).reshape(N_SEEDS, N)
    return table.mean(axis=1), table.std(axis=1, ddof=1)
