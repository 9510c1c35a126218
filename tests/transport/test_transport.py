"""Wasserstein distances: bounds that hold, estimates that are close, input that is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import ot
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist

import isotone
from isotone.transport.clouds import Cloud, common_scaling
from isotone.transport.critics import Critics, uniform
from isotone.transport.duality import dual_value
from isotone.transport.wasserstein import Distance, Schedule, wasserstein
from transports import random_problem

ORDERS = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}
SHORT, MEDIUM = Schedule(steps=60), Schedule(steps=600)
SMALL: dict[str, Any] = {"widths": (16, 16), "schedule": SHORT, "random_state": 0}


def exact(P: Any, Q: Any, metric: float = 2, p: Any = None, q: Any = None) -> float:
    """POT's network simplex, with distances of SciPy: those of POT cancel far from the origin."""
    shares = [[] if w is None else np.asarray(w) / np.sum(w) for w in (p, q)]
    cost = cdist(P, Q, ORDERS[metric])
    return float(ot.emd2(*shares, cost, numItermax=10**7))


def gaussian(n: int, d: int, seed: int, shift: float = 0.0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d)) + shift * np.eye(d)[0]


@pytest.mark.slow
@pytest.mark.parametrize("metric", [1, 2, math.inf])
def test_the_lower_bound_is_never_above_the_exact_distance(metric: float) -> None:
    """200 problems; random critics with weights as they begin, and after some training."""
    for seed in range(67):
        P, Q, p, q = random_problem(seed)
        clouds = Cloud.of(P, p), Cloud.of(Q, q)
        truth = exact(P, Q, metric, p, q)
        slack = 1e-9 * truth  # POT itself rounds
        critics = Critics(P.shape[1], metric=metric, widths=(16, 16), seed=seed)
        scaling = common_scaling(*clouds)
        points = [torch.as_tensor(scaling.transform(c.points)).float() for c in clouds]
        shares = [torch.as_tensor(c.shares()).float() for c in clouds]
        for _ in range(30):
            critics.ascend(points[0], shares[0], points[1], shares[1], rate=0.03)
        frozen = isotone.freeze(critics.networks()[0], scaling=scaling, grid=None)
        found = dual_value(frozen, *clouds)
        assert 0 <= found.lower_bound <= truth + slack
        assert found.lower_bound <= max(found.value, 0.0)


@pytest.mark.parametrize("metric", [1, 2, math.inf])
def test_the_bound_is_met_by_a_shift_along_a_coordinate(metric: float) -> None:
    P = gaussian(50, 3, 0)
    found = wasserstein(P, P + 2.0 * np.eye(3)[0], metric=metric, random_state=0, schedule=MEDIUM)
    assert 1.98 < found.critic_bound <= found.lower_bound <= 2.0
    assert found.estimate - found.lower_bound < 1e-9


@pytest.mark.slow
def test_a_thousand_points_in_two_dimensions_are_within_two_percent() -> None:
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, 2 * np.pi, 1000)
    ring = 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(1000, 2))
    P = gaussian(1000, 2, 1)
    truth = exact(P, ring)
    schedule = Schedule(steps=1500)  # half the default
    found = wasserstein(P, ring, random_state=0, schedule=schedule, upper_bound=True)
    assert 0.98 * truth < found.critic_bound <= found.lower_bound <= truth
    assert found.lower_bound > 0.9998 * truth
    assert truth <= found.upper_bound <= truth * (1 + 1e-9)  # type: ignore[operator]


def test_two_samples_of_one_distribution_are_told_apart_by_refinement() -> None:
    """What is between them is noise, which the critic does not learn."""
    P, Q = gaussian(300, 2, 0), gaussian(250, 2, 1)
    truth = exact(P, Q)
    found = wasserstein(P, Q, **SMALL)
    assert found.critic_bound < 0.9 * truth < 0.9998 * truth < found.lower_bound <= truth
    plain = wasserstein(P, Q, refine=False, **SMALL)
    assert plain.lower_bound == plain.critic_bound == found.critic_bound


def test_one_dimension_follows_the_quantile_formula() -> None:
    P, Q = gaussian(200, 1, 0), 2.0 * gaussian(200, 1, 1) + 1.0
    truth = np.abs(np.sort(P[:, 0]) - np.sort(Q[:, 0])).mean()
    found = wasserstein(P, Q, random_state=0, upper_bound=True, schedule=MEDIUM)
    assert 0.97 * truth < found.critic_bound <= truth
    assert truth <= found.upper_bound <= truth * (1 + 1e-12)  # type: ignore[operator]


def test_gaussians_that_are_translates_are_as_far_as_their_centers() -> None:
    """W₁ of translates is the length of the shift; samples of them are near that."""
    P, Q = gaussian(4000, 2, 0), gaussian(4000, 2, 1, shift=3.0)
    found = wasserstein(P, Q, random_state=0, schedule=Schedule(steps=500, validation=0.25))
    assert found.estimate == pytest.approx(3.0, abs=0.1)
    assert found.held_out == pytest.approx(3.0, abs=0.15)
    assert len(found.history.validation) == len(found.history.training)


def test_a_cloud_and_its_enlargement() -> None:
    """x → s x moves every point by (s − 1) |x|, along rays that do not cross."""
    P = gaussian(300, 2, 0)
    truth = np.linalg.norm(P, axis=1).mean()
    found = wasserstein(P, 2.0 * P, random_state=0, upper_bound=True, schedule=MEDIUM)
    assert 0.97 * truth < found.critic_bound <= truth <= found.upper_bound  # type: ignore[operator]


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_units_and_offsets_do_not_matter(unit: float) -> None:
    P, Q = gaussian(60, 2, 0), gaussian(40, 2, 1, shift=2.0)
    plain, scaled = wasserstein(P, Q, **SMALL), wasserstein(unit * P, unit * Q, **SMALL)
    assert scaled.estimate == unit * plain.estimate
    far = wasserstein(P + 1e9, Q + 1e9, **SMALL)
    assert far.estimate == pytest.approx(plain.estimate, rel=0.01)
    assert far.lower_bound <= exact(P + 1e9, Q + 1e9)


def test_identical_clouds_are_at_distance_zero() -> None:
    P = gaussian(30, 2, 0)
    found = wasserstein(P, P, upper_bound=True, **SMALL)
    assert found.lower_bound == found.upper_bound == 0.0
    assert abs(found.estimate) < 1e-12


def test_single_points() -> None:
    found = wasserstein([[1.0, 2.0]], [[4.0, 6.0]], upper_bound=True, schedule=MEDIUM)
    assert 4.5 < found.critic_bound <= 5.0 <= found.upper_bound < 5.0 + 1e-12  # type: ignore[operator]
    same = wasserstein([[7.0]], [[7.0]], upper_bound=True, **SMALL)
    assert (same.lower_bound, same.upper_bound) == (0.0, 0.0)


def test_fifty_dimensions_and_unequal_sizes() -> None:
    P, Q = gaussian(20, 50, 0), gaussian(70, 50, 1, shift=5.0)
    found = wasserstein(P, Q, upper_bound=True, **SMALL)
    truth = exact(P, Q)
    assert 3.0 < found.critic_bound <= truth <= found.upper_bound < 1.05 * truth  # type: ignore[operator]


def test_a_weight_is_a_number_of_points_and_zero_is_none() -> None:
    P, Q = gaussian(20, 2, 0), gaussian(20, 2, 1, shift=1.0)
    outlier = np.vstack([P, [[1e6, 0.0]]])
    weighted = wasserstein(outlier, Q, [2.0] * 20 + [0.0], **SMALL)
    assert weighted.estimate == wasserstein(P, Q, **SMALL).estimate
    twice = np.concatenate([P, P[:5]])
    weights = np.r_[np.full(5, 2.0), np.ones(15)]
    assert exact(twice, Q) == pytest.approx(exact(P, Q, p=weights))
    found = wasserstein(P, Q, weights, upper_bound=True, **SMALL)
    assert found.lower_bound <= exact(twice, Q) <= found.upper_bound  # type: ignore[operator]


def test_large_clouds_come_in_batches_and_early_stopping_stops() -> None:
    P, Q = gaussian(5000, 2, 0), gaussian(3000, 2, 1, shift=2.0)
    schedule = Schedule(steps=400, batch_size=256, validation=0.5, patience=50)
    found = wasserstein(P, Q, random_state=0, schedule=schedule, widths=(16, 16))
    assert found.estimate == pytest.approx(2.0, abs=0.1)
    assert found.history.step[-1] <= found.history.best_step + 100
    weights = np.where(np.arange(5000) < 2500, 1.0, 0.0)
    assert wasserstein(P, P, weights, **SMALL).estimate < 0.2


def test_the_same_state_gives_the_same_bits_and_another_another_critic() -> None:
    P, Q = gaussian(300, 2, 0), gaussian(200, 2, 1, shift=1.0)
    again = Schedule(steps=20, batch_size=64)
    a, b, c = (
        wasserstein(P, Q, **(SMALL | {"schedule": again, "random_state": k})) for k in (1, 1, 2)
    )
    assert (a.estimate, a.critic.fingerprint) == (b.estimate, b.critic.fingerprint)
    assert a.critic.fingerprint != c.critic.fingerprint
    torch.manual_seed(0)
    before = torch.rand(1)
    torch.manual_seed(0)
    assert wasserstein(P, Q, widths=(8,), group_size=None, schedule=again).estimate > 0
    assert torch.equal(torch.rand(1), before)  # the global state is left alone


def test_the_bound_holds_for_any_critic_on_a_grid_and_in_float32() -> None:
    P, Q = Cloud.of(gaussian(30, 2, 0)), Cloud.of(gaussian(30, 2, 1, shift=1.0))
    truth = exact(P.points, Q.points)
    torch.manual_seed(0)
    for precision, grid in product(("float64", "float32"), (None, 2.0**-6)):
        network = isotone.LipschitzNetwork([2, 8, 1], metric=2, lipschitz=3.0)
        frozen = isotone.freeze(network, precision=precision, grid=grid, clip=8.0)  # type: ignore[arg-type]
        for pair in ((P, Q), (Q, P)):
            assert 0 <= dual_value(frozen, *pair).lower_bound <= truth
    with pytest.raises(ValueError, match="takes 2 coordinates but the clouds have 3"):
        dual_value(frozen, *[Cloud.of(gaussian(3, 3, 0))] * 2)
    monotone = isotone.freeze(isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 0]))
    with pytest.raises(ValueError, match="one output, no directions"):
        dual_value(monotone, P, Q)


def test_a_constant_critic_proves_nothing() -> None:
    P, Q = Cloud.of(gaussian(3, 1, 0)), Cloud.of(gaussian(3, 1, 1))
    frozen = isotone.freeze(isotone.LipschitzNetwork([1, 2, 1]))
    flat = [replace(s, weight=0 * s.weight) if hasattr(s, "weight") else s for s in frozen.steps]
    assert dual_value(replace(frozen, steps=tuple(flat)), P, Q).lower_bound == 0.0


def test_values_are_differentiable_in_points_and_weights() -> None:
    critics = Critics(2, 3, seed=0)
    P, Q = (torch.as_tensor(gaussian(10, 2, k)).float().requires_grad_() for k in (0, 1))
    p = uniform(10).requires_grad_()
    values = critics.value(P, p, Q, uniform(10))
    values.sum().backward()
    assert values.shape == (3,)
    assert P.grad is not None
    assert p.grad is not None
    assert torch.allclose(p.grad, critics(P).sum(dim=0))
    lengths = 10 * P.grad.norm(dim=1)  # each of three critics has slope at most 1
    assert float(lengths.max()) <= 3.0001


GOOD = [[0.0, 1.0], [2.0, 3.0]]
FRAME = pd.DataFrame(GOOD, columns=["x", "y"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GOOD, [[1.0]]), "`P` has 2 columns and `Q` has 1; both clouds must lie in the same"),
        ((GOOD, [[1.0, math.nan]]), "`Q` cannot be used: column 1 is nan in row 0"),
        ((np.empty((0, 2)), GOOD), r"`P` has shape \(0, 2\); a cloud needs at least one point"),
        (([1.0, 2.0], GOOD), "`P` cannot be used: `X` has shape"),
        ((GOOD, GOOD, [1.0, -2.0]), "weight of point 1 of `P` is -2.0; weights must be finite"),
        ((GOOD, GOOD, None, [1.0, math.inf]), "weight of point 1 of `Q` is inf"),
        ((GOOD, GOOD, [1.0]), r"weights of `P` have shape \(1,\) but it has 2 points"),
        ((GOOD, GOOD, [0.0, 0.0]), "all weights of `P` are 0; a cloud needs some mass"),
        ((GOOD, GOOD, ["a", "b"]), "weights of `P` are not numeric"),
        ((GOOD, GOOD, (w for w in [1.0, 2.0])), "are not numeric .*give a list or an array"),
        ((GOOD, GOOD, [1.0, math.nan]), "weight of point 1 of `P` is nan"),
        ((GOOD, (row for row in GOOD)), "`Q` cannot be used: `X` is not a numeric table"),
        ((torch.ones(2, 2).requires_grad_(), GOOD), "`P` cannot be used: Can't call numpy"),
        ((FRAME, FRAME[["y", "x"]]), "columns .'x', 'y'. and `Q` has .'y', 'x'.; coordinates"),
        (([[1e200, 0.0]], GOOD), "coordinates must be at most 1e[+]100"),
    ],
)
def test_clouds_that_cannot_be_used_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wasserstein(*arguments)


def test_one_point_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="needs at least two points in each cloud"):
        wasserstein([[1.0]], [[2.0]], schedule=Schedule(validation=0.2))


def test_tables_and_tensors_are_clouds() -> None:
    arrays = wasserstein(GOOD, np.array(GOOD) + 1.0, [1.0, 2.0], **SMALL).lower_bound
    series = pd.Series([1.0, 2.0], index=[7, 3])
    assert wasserstein(FRAME, FRAME + 1.0, series, **SMALL).lower_bound == arrays
    tensors = torch.tensor(GOOD), torch.tensor(GOOD) + 1.0, torch.tensor([1.0, 2.0])
    assert wasserstein(*tensors, **SMALL).lower_bound == arrays


def test_a_far_point_of_hardly_any_weight() -> None:
    """Its scaled coordinates would not fit into float32."""
    P, Q, weights = [[0.0], [1.0], [1e60]], [[0.0], [2.0]], [1.0, 1.0, 1e-300]
    found = wasserstein(P, Q, weights, upper_bound=True, **SMALL)
    assert 0 <= found.lower_bound <= 0.5 * (1 + 1e-12) <= found.upper_bound  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metric": 3}, ValueError, "`metric=3` must be 1, 2 or infinity"),
        ({"random_state": "x"}, TypeError, "`random_state='x'` must be a whole number"),
        ({"random_state": -1}, ValueError, "`random_state=-1` must be at least 0"),
        ({"schedule": 5}, TypeError, "`schedule=5` must be a Schedule"),
        ({"group_size": 7}, ValueError, "does not divide"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        wasserstein(GOOD, GOOD, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "`steps=0` must be a whole number of at least 1"),
        ({"batch_size": 1.5}, "`batch_size=1.5` must be a whole number"),
        ({"learning_rate": 0.0}, "`learning_rate=0.0` must be positive"),
        ({"validation": 1.0}, "`validation=1.0` must be a share of the points"),
    ],
)
def test_schedules_that_cannot_be_used_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schedule(**options)


def test_the_critic_is_a_model_like_any_other(tmp_path: Any) -> None:
    P, Q = gaussian(30, 2, 0), gaussian(30, 2, 1, shift=1.0)
    found: Distance = wasserstein(P, Q, features=["a", "b"], **SMALL)
    assert isotone.certify(found.critic).holds
    found.critic.save(tmp_path / "critic.isotone")
    again = isotone.load(tmp_path / "critic.isotone")
    assert dual_value(again, Cloud.of(P), Cloud.of(Q)).lower_bound == found.critic_bound
    assert again.features == ("a", "b")
