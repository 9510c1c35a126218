"""Comparison: what do computed scores of monotone models do?

Question: which models are monotone as computed, how steep are they, and what do they do beyond
    the data and for several classes?
Data: 3000 rows of three features, one increasing, one decreasing, one free; 50 000 random rows.
Claim: networks in float32 are monotone up to rounding; trees jump; directions of several classes
    are those of raw scores in tree libraries; CatBoost breaks its constraints in two cases.
Run time: about 25 seconds; --quick 6 seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import lightgbm
import monotonicnetworks
import numpy as np
import torch
import xgboost
from matplotlib.figure import Figure
from mononet import MonotonicityMask
from mononet.torch import MonoInput, MonoLinear
from torch import Tensor, nn

import isotone
from isotone.typing import Floats
from studies.figures import CYCLE, draw
from studies.guide.catboost_models import (
    falling_beside_categories,
    falling_quantiles,
    train_classifier,
)
from studies.study import Outcome, main

Score = Callable[[Floats], Floats]

DIRECTIONS = (1, -1, 0)
STEPS: dict[str, Callable[[Floats], Floats]] = {
    "1 float32 ulp": lambda x: np.nextafter(x.astype("f4"), np.float32(np.inf)).astype("f8"),
    "1e-6": lambda x: x + 1e-6,
    "1e-3": lambda x: x + 1e-3,
    "0.5": lambda x: x + 0.5,
}


def run(quick: bool) -> Outcome:
    n_rows, epochs, n_tests = (300, 2, 2000) if quick else (3000, 40, 50_000)
    X, z = sample(n_rows)
    y = (z > 0).astype(np.float64)
    scores = {
        "LightGBM": train_lightgbm(X, y, "binary"),
        "XGBoost": train_xgboost(X, y, "binary:logistic"),
        "CatBoost": train_classifier(X, y, DIRECTIONS),
        "monotonicnetworks": train_torch(authors(), X, y, epochs),
        "mononet": train_torch(Mixed(), X, y, epochs),
        "isotone": train_isotone(X, y, epochs),
    }
    rows = np.random.default_rng(1).normal(size=(n_tests, 3))
    wrong = {name: falls(score, rows) for name, score in scores.items()}
    jumps = {name: largest_jump(score) for name, score in scores.items()}
    shares = several_classes(X, z, rows, epochs)
    numbers = {f"wrong_{name}": max(found.values()) for name, found in wrong.items()}
    numbers |= {f"jump_{name}": jump for name, jump in jumps.items()}
    numbers |= {f"class_{name}": share for name, share in shares.items()}
    median = train_xgboost(X, z, "reg:absoluteerror")
    numbers["absolute_error_XGBoost"] = falls(median, rows)["0.5"]
    numbers |= catboost_cases(X, z, rows)
    return Outcome(numbers, figure(scores, X), table(wrong, jumps, shares))


def catboost_cases(X: Floats, z: Floats, rows: Floats) -> dict[str, float]:
    """Share of predictions that fall, step 0.5, beside categories and for several quantiles."""
    given = X, z, rows, DIRECTIONS
    return {
        "categories_1_CatBoost": falling_beside_categories(*given, n_columns=1),
        "categories_2_CatBoost": falling_beside_categories(*given, n_columns=2),
        "categories_apart_CatBoost": falling_beside_categories(
            *given, n_columns=2, max_ctr_complexity=1
        ),
        "quantiles_CatBoost": falling_quantiles(*given),
    }


def sample(n: int) -> tuple[Floats, Floats]:
    """Features, and a noisy score that rises with the first on the whole."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    z = X @ [1.0, -0.5, 0.2] + 0.5 * np.sin(3 * X[:, 0]) + rng.logistic(size=n)
    return X, z


def train_lightgbm(X: Floats, y: Floats, objective: str, **options: int) -> Score:
    settings = {"objective": objective, "monotone_constraints": list(DIRECTIONS)} | options
    quiet = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 20}
    booster = lightgbm.train(settings | quiet, lightgbm.Dataset(X, y), 100)
    several = objective == "multiclass"
    return lambda rows: np.asarray(booster.predict(rows, raw_score=not several))


def train_xgboost(X: Floats, y: Floats, objective: str, **options: int) -> Score:
    settings = {"objective": objective, "monotone_constraints": DIRECTIONS, "nthread": 1}
    booster = xgboost.train(settings | options, xgboost.DMatrix(X, y), 100)
    several = objective == "multi:softprob"
    return lambda rows: np.asarray(
        booster.predict(xgboost.DMatrix(rows), output_margin=not several), dtype=np.float64
    )


def authors(lipschitz: float = 4.0) -> nn.Module:
    """The network of the paper's authors in their own library."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise([3, 32, 32, 1]):
        linear = nn.Linear(n_in, n_out)
        bound = lipschitz ** (1 / 3)
        layers += [
            monotonicnetworks.direct_norm(linear, kind="one", max_norm=bound),
            monotonicnetworks.GroupSort(n_out // 8 or 1),
        ]
    wrapped: nn.Module = monotonicnetworks.MonotonicWrapper(
        nn.Sequential(*layers[:-1]), lipschitz, DIRECTIONS
    )
    return wrapped


class Mixed(nn.Module):
    """mononet's way: the free feature through a plain layer, then all through monotone ones."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.directed = MonoInput(MonotonicityMask(np.array([1, -1], dtype=np.int8)))
        self.free = nn.Sequential(nn.Linear(1, 16), nn.ReLU())
        self.monotone = nn.Sequential(
            MonoLinear(18, 32, activation="elu"),
            MonoLinear(32, 32, activation="elu"),
            MonoLinear(32, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        joined = torch.cat([self.directed(x[:, :2]), self.free(x[:, 2:])], dim=1)
        result: Tensor = self.monotone(joined)
        return result


def train_torch(network: nn.Module, X: Floats, y: Floats, epochs: int) -> Score:
    """Adam with batches of 256, in float32."""
    optimizer, loss = torch.optim.Adam(network.parameters(), lr=0.01), nn.BCEWithLogitsLoss()
    x, target = (torch.as_tensor(values, dtype=torch.float32) for values in (X, y))
    generator = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(len(x), generator=generator), 256):
            optimizer.zero_grad()
            loss(network(x[batch])[:, 0], target[batch]).backward()
            optimizer.step()

    @torch.no_grad()
    def score(rows: Floats) -> Floats:
        found: Floats = network(torch.as_tensor(rows, dtype=torch.float32))[:, 0].double().numpy()
        return found

    return score


def train_isotone(X: Floats, y: Floats, epochs: int) -> Score:
    model = isotone.MonotonicClassifier(
        list(DIRECTIONS), lipschitz=4.0, n_members=1, max_iter=epochs, random_state=0
    )
    network: isotone.FrozenNetwork = model.fit(X, y).network_
    return lambda rows: network.score(rows).astype(np.float64)


def falls(score: Score, rows: Floats) -> dict[str, float]:
    """For every step, the share of rows whose score falls when the first feature is raised."""
    rows = rows.astype("f4").astype("f8")
    shares = {}
    for name, step in STEPS.items():
        raised = rows.copy()
        raised[:, 0] = step(rows[:, 0])
        shares[name] = float(np.mean(score(raised) < score(rows)))
    return shares


def largest_jump(score: Score) -> float:
    """Largest change of the score in 1/1000 of the first feature, the others at 0."""
    rows = np.zeros((6001, 3))
    rows[:, 0] = np.linspace(-3.0, 3.0, 6001)
    return float(np.abs(np.diff(score(rows))).max())


def several_classes(X: Floats, z: Floats, rows: Floats, epochs: int) -> dict[str, float]:
    """Share of rows in which the probability of the highest class falls, raised by 0.5.

    CatBoost refuses monotone constraints for several classes.
    """
    y = np.digitize(z, [-1.0, 1.0]).astype(np.float64)
    of_highest = [[0, 0, 0], [0, 0, 0], DIRECTIONS]
    ours = isotone.MonotonicClassifier(
        of_highest, lipschitz=4.0, n_members=1, max_iter=epochs, random_state=0
    ).fit(X, y)
    models: dict[str, Score] = {
        "LightGBM": train_lightgbm(X, y, "multiclass", num_class=3),
        "XGBoost": train_xgboost(X, y, "multi:softprob", num_class=3),
        "isotone": ours.predict_proba,
    }
    raised = rows + np.array([0.5, 0.0, 0.0])
    return {name: float(np.mean(p(raised)[:, 2] < p(rows)[:, 2])) for name, p in models.items()}


def figure(scores: dict[str, Score], X: Floats) -> Figure:
    """The score along the first feature, near and far, and the same very near."""
    drawn, panels = draw(1, 2, size=(4.4, 2.9))
    for panel, (low, high) in zip(panels, ((-6.0, 6.0), (0.0, 0.6)), strict=True):
        rows = np.zeros((2001, 3))
        rows[:, 0] = np.linspace(low, high, len(rows))
        for color, (name, score) in zip(CYCLE, scores.items(), strict=False):
            panel.plot(rows[:, 0], score(rows), color=color, label=name)
        panel.set(xlabel="increasing feature", ylabel="score", xlim=(low, high))
    panels[0].axvspan(X[:, 0].min(), X[:, 0].max(), color="#EEEEEE", linewidth=0, zorder=0)
    panels[0].set_title("training rows: shaded")
    panels[1].set_title("a closer look")
    panels[0].legend()
    return drawn


def table(
    wrong: dict[str, dict[str, float]], jumps: dict[str, float], shares: dict[str, float]
) -> str:
    head = "| | " + " | ".join(STEPS) + " | largest jump | class |\n"
    rule = "| --- |" + " --- |" * (len(STEPS) + 2) + "\n"
    rows = []
    for name, found in wrong.items():
        cells = [_percent(share) for share in found.values()]
        cells += [f"{jumps[name]:.2g}", _percent(shares[name]) if name in shares else "–"]
        rows.append(f"| {name} | " + " | ".join(cells) + " |\n")
    return head + rule + "".join(rows)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share else "0"


if __name__ == "__main__":
    main(__file__, run)
