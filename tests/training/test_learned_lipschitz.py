"""λ as parameters: learned as torch would learn them, within their limits, and certified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from isotone import (
    Ensemble,
    LipschitzNetwork,
    MonotonicNetwork,
    Recipe,
    _engine,
    certify,
    freeze,
    train,
)
from isotone.losses import CrossEntropy, Loss, SquaredError
from isotone.training.fused import FusedTrainer
from isotone.training.learners import FusedLearner

RECIPE = Recipe(epochs=6, batch_size=32, learning_rate=0.01, seed=1)
SHAPES: list[dict[str, Any]] = [
    {"layers": [4, 12, 8, 1], "group_size": 4},
    {"layers": [4, 12, 8, 1], "group_size": None, "chain": "inf"},
    {"layers": [4, 9, 3], "group_size": 3, "outputs": "logits"},
    {"layers": [4, 1], "group_size": None},
]


def build(seed: int, most: float = 4.0, **options: Any) -> MonotonicNetwork:
    torch.manual_seed(seed)
    shape = SHAPES[0] | options
    directions = np.zeros((shape["layers"][-1], 4))
    directions[0] = [1, -1, 0, 1]
    network = MonotonicNetwork(
        monotonic_cst=directions,
        lipschitz="learned",
        lipschitz_max=np.array([most, 0.2, most, most]),
        **shape,
    )
    with torch.no_grad():
        logarithms(network).copy_(torch.tensor([0.3, -2.0, -1.0, 0.5]))
    return network


def logarithms(network: LipschitzNetwork) -> torch.nn.Parameter:
    assert network.log_lipschitz is not None
    return network.log_lipschitz


def rows(n_outputs: int = 1) -> tuple[Any, Any]:
    x = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    values = np.tanh(3 * x[:, 0]) - x[:, 1] + 0.1 * x[:, 2]
    return x, values if n_outputs == 1 else np.arange(len(x)) % n_outputs


def loss_of(network: LipschitzNetwork) -> Loss:
    return CrossEntropy() if network.n_outputs > 1 else SquaredError()


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_gradients_are_those_of_torch(options: dict[str, Any]) -> None:
    network = build(1, **options).double()
    (x, y), loss = rows(network.n_outputs), loss_of(network)
    learner = FusedLearner([network], loss, RECIPE, precision="float64")
    *_, found = learner.trainer.gradients(x, y)
    targets = torch.as_tensor(y) if network.n_outputs > 1 else torch.as_tensor(y).double()[:, None]
    loss(network(torch.as_tensor(x).double()), targets).mean().backward()
    assert found is not None
    np.testing.assert_allclose(found[0], logarithms(network).grad, rtol=1e-7, atol=1e-12)


def test_every_backend_learns_the_same() -> None:
    x, y = rows()
    alone, fused = build(2).double(), build(2).double()
    train(alone, x, y, SquaredError(), RECIPE, backend="torch")
    train(fused, x, y, SquaredError(), RECIPE, backend="fused")
    np.testing.assert_allclose(fused.lipschitz, alone.lipschitz, rtol=1e-6)
    assert not np.allclose(alone.lipschitz, build(2).lipschitz, rtol=0.05)
    stack, single = Ensemble([build(3), build(2)]), build(2)
    stack.train(x, y, SquaredError(), RECIPE, backend="torch")
    train(single, x, y, SquaredError(), RECIPE, backend="torch")
    np.testing.assert_allclose(stack.networks[1].lipschitz, single.lipschitz, rtol=1e-3)


@pytest.mark.parametrize("isa", _engine.instruction_sets())
def test_threads_and_other_members_change_no_bit(isa: str) -> None:
    x, y = rows()

    def learn(networks: list[MonotonicNetwork], threads: int) -> Any:
        trainer = FusedLearner(networks, SquaredError(), RECIPE, threads=threads).trainer
        trainer._isa = isa
        for _ in range(3):
            trainer.train_epoch(x, y, batch_size=33, learning_rates=0.01, threads=threads)
        return trainer.log_lipschitz

    alone, together = learn([build(1)], 1), learn([build(0), build(1)], 2)
    np.testing.assert_array_equal(alone[0], together[1])


@pytest.mark.parametrize("backend", ["torch", "fused"])
def test_lambda_stays_within_its_limits(backend: Any) -> None:
    x, y = rows()
    network = build(0, most=0.5)
    fast = Recipe(epochs=20, batch_size=32, learning_rate=0.05, lipschitz_rate=20.0)
    train(network, x, 100 * y, SquaredError(), fast, backend=backend)
    assert np.all(network.lipschitz <= network.lipschitz_max)
    assert np.all(network.lipschitz >= 0.99e-2 * np.minimum(0.1, network.lipschitz_max))
    np.testing.assert_allclose(network.lipschitz[0], 0.5, rtol=1e-6)


@pytest.mark.parametrize("options", SHAPES, ids=str)
def test_what_was_learned_is_certified_and_computed_scores_obey(options: dict[str, Any]) -> None:
    networks = [build(seed, **options) for seed in range(2)]
    x, y = rows(networks[0].n_outputs)
    Ensemble(networks).train(x, y, loss_of(networks[0]), RECIPE)
    frozen = freeze(networks)
    assert certify(frozen).holds
    np.testing.assert_allclose(frozen.lipschitz, np.mean([n.lipschitz for n in networks], axis=0))
    score = frozen.probability if networks[0].n_outputs > 1 else frozen.score
    for k, direction in ((0, 1), (1, -1), (3, 1)):
        moved = x.astype(float)
        moved[:, k] += 10.0 ** np.random.default_rng(1).uniform(-9, 1, len(x))
        change = score(moved).reshape(len(x), -1)[:, 0] - score(x).reshape(len(x), -1)[:, 0]
        assert np.all(direction * change >= 0)


def test_a_run_continues_to_the_same_bits() -> None:
    x, y = rows()
    whole, parts = (FusedLearner([build(1)], SquaredError(), RECIPE).trainer for _ in range(2))
    again = FusedLearner([build(5)], SquaredError(), RECIPE).trainer
    for _ in range(4):
        whole.train_epoch(x, y, batch_size=50, learning_rates=0.01)
    for _ in range(2):
        parts.train_epoch(x, y, batch_size=50, learning_rates=0.01)
    again.load_state(parts.state())
    for _ in range(2):
        again.train_epoch(x, y, batch_size=50, learning_rates=0.01)
    np.testing.assert_array_equal(again.state()["parameters"], whole.state()["parameters"])


@pytest.mark.parametrize("backend", ["torch", "fused"])
def test_a_large_limit_does_not_lift_lambda(backend: Any) -> None:
    x, y = rows()
    torch.manual_seed(0)
    network = MonotonicNetwork(
        [4, 8, 1], monotonic_cst=[1, 0, 0, 0], lipschitz="learned", lipschitz_max=[8, 8, 8, 1e7]
    )
    train(network, x, y, SquaredError(), Recipe(epochs=1, learning_rate=1e-6), backend=backend)
    np.testing.assert_allclose(network.lipschitz, 0.1, rtol=1e-3)


def test_a_lambda_at_its_limit_has_the_gradient_of_torch() -> None:
    network = build(1).double()
    with torch.no_grad():
        logarithms(network)[0] = np.log(4.0)
    x, y = rows()
    learner = FusedLearner([network], SquaredError(), RECIPE, precision="float64")
    *_, found = learner.trainer.gradients(x, y)
    target = torch.as_tensor(y).double()[:, None]
    SquaredError()(network(torch.as_tensor(x).double()), target).mean().backward()
    assert found is not None
    np.testing.assert_allclose(found[0], logarithms(network).grad, rtol=1e-7, atol=1e-12)


def test_what_tells_a_run_from_others_is_not_what_it_learns() -> None:
    """Checkpoints hold it: a run continues after it has learned, and not with other limits."""
    network = build(1)
    before, (x, y) = network.describe_lipschitz(), rows()
    train(network, x, y, SquaredError(), RECIPE)
    assert not np.allclose(network.lipschitz, build(1).lipschitz)
    assert network.describe_lipschitz() == before
    assert build(1, most=0.5).describe_lipschitz() != before
    fixed = [
        MonotonicNetwork([1, 1], monotonic_cst=[1], lipschitz=lipschitz).describe_lipschitz()
        for lipschitz in (0.5, 0.25)
    ]
    assert len({before, *fixed}) == 3


def test_a_fixed_lambda_is_not_learned() -> None:
    network = MonotonicNetwork([2, 4, 1], monotonic_cst=[1, 0], lipschitz=[0.3, 3.0])
    assert network.log_lipschitz is None
    assert network.lipschitz.tolist() == [0.3, 3.0]
    assert FusedLearner([network], SquaredError(), RECIPE).trainer.log_lipschitz is None


def test_what_cannot_be_learned_is_explained() -> None:
    with pytest.raises(ValueError, match="`least_slopes` are for λ that are known"):
        MonotonicNetwork([1, 1], monotonic_cst=[1], lipschitz="learned", least_slopes=1.0)
    with pytest.raises(ValueError, match=r"`lipschitz_max=0\.0` must"):
        MonotonicNetwork([1, 1], monotonic_cst=[1], lipschitz="learned", lipschitz_max=0.0)
    with pytest.raises(TypeError, match="`lipschitz='lerned'` is text"):
        MonotonicNetwork([1, 1], monotonic_cst=[1], lipschitz="lerned")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`lipschitz_max` must be positive"):
        FusedTrainer([1, 1], n_members=1, lipschitz_max=0.0, loss="squared_error")
    with pytest.raises(ValueError, match="lipschitz_rate"):
        FusedTrainer([1, 1], n_members=1, lipschitz_rate=-1.0, loss="squared_error")
    fixed = MonotonicNetwork([4, 12, 8, 1], monotonic_cst=[1, -1, 0, 1], group_size=4)
    with pytest.raises(ValueError, match="differs from the first"):
        Ensemble([build(0), fixed])
