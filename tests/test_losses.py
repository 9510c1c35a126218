"""Losses: the paper's formulas, weights, and the distance to the other class."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

from isotone.losses import (
    AbsoluteError,
    CrossEntropy,
    DynamicHinge,
    Hinge,
    KantorovichRubinstein,
    Quantile,
    SquaredError,
    balanced_weights,
    half_distances,
    mean,
    parse_loss,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (RNG.random(60) < 0.4).astype(int)


def score(n_outputs: int = 1, members: int | None = None) -> Any:
    shape = (60, n_outputs) if members is None else (members, 60, n_outputs)
    return torch.as_tensor(np.random.default_rng(1).normal(size=shape))


def test_cross_entropy_multiplies_logits_by_the_temperature() -> None:
    loss = CrossEntropy(temperature=16.0)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        16 * score()[:, 0], torch.as_tensor(Y, dtype=torch.float64), reduction="none"
    )
    assert torch.allclose(loss(score(), loss.prepare(X, Y)), expected)


def test_cross_entropy_of_several_classes() -> None:
    labels = np.arange(60) % 4
    loss = CrossEntropy(temperature=2.0)
    expected = torch.nn.functional.cross_entropy(
        2 * score(4), torch.as_tensor(labels), reduction="none"
    )
    assert torch.allclose(loss(score(4), loss.prepare(X, labels)), expected)


def test_hinge_is_zero_beyond_its_margin() -> None:
    loss = Hinge(margin=0.5)
    target = loss.prepare(X, Y)
    signed = (2 * torch.as_tensor(Y) - 1) * score()[:, 0]
    values = loss(score(), target)
    assert torch.all(values[signed >= 0.5] == 0)
    assert torch.allclose(values[signed < 0.5], 0.5 - signed[signed < 0.5])


@pytest.mark.parametrize(("metric", "p"), [("1", 1), ("2", 2), ("inf", np.inf)])
def test_dynamic_margin_is_half_the_distance_to_the_other_class(metric: Any, p: float) -> None:
    gaps = np.linalg.norm(X[:, None] - X[None], ord=p, axis=2)
    gaps[Y[:, None] == Y[None]] = np.inf
    assert np.allclose(half_distances(X, Y.astype(float), metric), gaps.min(axis=1) / 2)


def test_the_signed_distance_has_no_dynamic_hinge_loss() -> None:
    """A score of ± half the distance to the other class is 1-Lipschitz and loses nothing."""
    loss = DynamicHinge()
    target = loss.prepare(X, Y, "1")
    distance = torch.as_tensor(half_distances(X, Y.astype(float)) * (2 * Y - 1))
    assert torch.all(loss(distance[:, None], target) == 0)
    assert torch.all(loss(0.9 * distance[:, None], target) > 0)


def test_margins_of_a_hundred_thousand_rows_take_no_distance_matrix() -> None:
    x = np.random.default_rng(2).normal(size=(100_000, 4))
    start = time.perf_counter()
    half_distances(x, (x[:, 0] > 0).astype(float))
    assert time.perf_counter() - start < 120  # a full matrix would not fit the memory


def test_regression_losses() -> None:
    y = RNG.normal(size=(60, 2))
    gap = score(2) - torch.as_tensor(y)
    for loss, expected in ((SquaredError(), gap.square()), (AbsoluteError(), gap.abs())):
        assert torch.allclose(loss(score(2), loss.prepare(X, y)), expected.sum(dim=1))


def test_the_minimum_of_the_quantile_loss_is_the_quantile() -> None:
    y = RNG.normal(size=1001)
    loss = Quantile(level=0.9)
    target = loss.prepare(X, y)
    grid = torch.linspace(-3, 3, 601, dtype=torch.float64)
    values = torch.stack([mean(loss(torch.full((1001, 1), float(c)), target)) for c in grid])
    assert float(grid[values.argmin()]) == pytest.approx(np.quantile(y, 0.9), abs=0.02)


def test_kantorovich_rubinstein_is_minus_the_difference_of_means() -> None:
    loss = KantorovichRubinstein()
    g = score()[:, 0]
    expected = -(g[Y == 1].mean() - g[Y == 0].mean())
    assert torch.allclose(mean(loss(score(), loss.prepare(X, Y))), expected)


LOSSES: list[Any] = [
    CrossEntropy(),
    Hinge(),
    DynamicHinge(),
    SquaredError(),
    AbsoluteError(),
    Quantile(0.3),
    KantorovichRubinstein(),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_members_have_the_losses_they_would_have_alone(loss: Any) -> None:
    target = loss.prepare(X, Y, "1")
    together = loss(score(members=5), target)
    alone = torch.stack([loss(s, target) for s in score(members=5)])
    assert together.shape == (5, 60)
    assert torch.allclose(together, alone, rtol=1e-14)  # softplus differs in its last bit


def test_a_weight_of_two_is_a_row_twice() -> None:
    losses = torch.tensor([1.0, 2.0, 4.0])
    assert mean(losses, torch.tensor([1.0, 2.0, 1.0])) == mean(torch.tensor([1.0, 2.0, 2.0, 4.0]))


def test_balanced_weights_make_classes_count_alike() -> None:
    weights = balanced_weights(Y)
    assert weights.mean() == pytest.approx(1)
    assert weights[Y == 0].sum() == pytest.approx(weights[Y == 1].sum())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CrossEntropy(temperature=0.0), "`temperature=0.0` must be positive"),
        (lambda: Hinge(margin=-1.0), "`margin=-1.0` must be positive"),
        (lambda: Quantile(level=1.0), "`level=1.0` must lie between 0 and 1"),
        (lambda: CrossEntropy().prepare(X, Y + 0.5), "encode the classes first"),
        (lambda: CrossEntropy().prepare(X, Y - 1), "encode the classes first"),
        (lambda: Hinge().prepare(X, np.arange(60) % 3), "use CrossEntropy for more"),
        (lambda: DynamicHinge().prepare(X, np.zeros(60)), "needs rows of both classes"),
        (lambda: KantorovichRubinstein().prepare(X, np.ones(60)), "needs rows of both classes"),
        (lambda: parse_loss("rms"), "choose from 'cross_entropy'"),
        (lambda: parse_loss("squared_error:2"), "has no parameter"),
        (lambda: parse_loss("hinge:x"), "loss 'hinge:x' cannot be used"),
        (lambda: parse_loss("hinge:-1"), "must be positive"),
        (lambda: Hinge()(score(2), torch.ones(60)), "has 2 outputs; this loss is for one"),
    ],
)
def test_bad_input_is_explained(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_losses_have_names() -> None:
    assert parse_loss("hinge:0.1") == Hinge(0.1)
    assert parse_loss("quantile:0.9") == Quantile(0.9)
    assert parse_loss("squared_error") == SquaredError()


def test_several_quantiles_add_up() -> None:
    score, y = torch.randn(4, 10, 2), torch.randn(10, 1)
    both = Quantile((0.1, 0.8))(score, y)
    each = [Quantile(level)(score[..., [k]], y) for k, level in enumerate((0.1, 0.8))]
    torch.testing.assert_close(both, each[0] + each[1])
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        Quantile((0.1, 1.0))
