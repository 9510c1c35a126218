"""Training: deterministic, early stopping, and killed runs that end as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import kills
from isotone import LipschitzNetwork, MonotonicNetwork, certify, freeze
from isotone.losses import CrossEntropy, DynamicHinge, Quantile, SquaredError
from isotone.training import train as training
from isotone.training.learners import Backend, FusedLearner
from isotone.training.orders import order_of_rows
from isotone.training.rows import Rows, split
from isotone.training.train import Recipe, train

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = (X @ [1.0, 0.5, -0.5] + 0.3 * RNG.normal(size=400) > 0).astype(int)
RECIPE = Recipe(epochs=6, batch_size=64)


def network(seed: int = 0, **options: Any) -> MonotonicNetwork:
    torch.manual_seed(seed)
    return MonotonicNetwork([3, 8, 8, 1], monotonic_cst=[1, 0, -1], lipschitz=2.0, **options)


def same(a: LipschitzNetwork, b: LipschitzNetwork) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def test_training_learns_and_is_deterministic_for_a_seed() -> None:
    first, second, other = network(), network(), network()
    history = train(first, X, Y, CrossEntropy(), RECIPE)
    train(second, X, Y, CrossEntropy(), RECIPE)
    train(other, X, Y, CrossEntropy(), replace(RECIPE, seed=1))
    assert history.training[-1] < history.training[0]
    assert same(first, second)
    assert not same(first, other)


LEARNERS: dict[Backend, Any] = {"fused": FusedLearner, "torch": training.NetworkLearner}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 0.02), (torch.float64, 1e-9)])
def test_both_backends_learn_alike(dtype: torch.dtype, tolerance: float) -> None:
    fused, batched = (
        train(network().to(dtype), X, Y, CrossEntropy(), RECIPE, backend=backend).training
        for backend in LEARNERS
    )
    np.testing.assert_allclose(fused, batched, rtol=tolerance)


class Squashed(MonotonicNetwork):
    """A network that computes something else than its layers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).tanh()


def hooked() -> MonotonicNetwork:
    model = network()
    model.layers[1].register_forward_hook(lambda module, x, y: 0 * y)
    return model


def constant_first_layer() -> MonotonicNetwork:
    model = network()
    model.layers[0].weight.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("make", "loss", "reason"),
    [
        (lambda: Squashed([3, 8, 1], monotonic_cst=[1, 0, 0]), CrossEntropy(), "Squashed may"),
        (hooked, CrossEntropy(), "hooks of the network would not be called"),
        (constant_first_layer, CrossEntropy(), "some weights are constant"),
        (lambda: network().to(torch.bfloat16), CrossEntropy(), "neither all float32"),
        (lambda: network(apply="project"), CrossEntropy(), "has another norm"),
        (network, DynamicHinge(), "it does not support DynamicHinge"),
    ],
)
def test_what_is_not_fused_is_said_and_trained_by_torch(make: Any, loss: Any, reason: str) -> None:
    model = make()
    with pytest.raises(ValueError, match=f"cannot train this: .*{reason}.*use backend='torch'"):
        train(model, X, Y, loss, RECIPE, backend="fused")
    assert isinstance(training._make_learner(model, loss, RECIPE, "auto"), training.NetworkLearner)


def test_an_interrupted_training_keeps_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    model, learn = network(), FusedLearner.learn

    def interrupted(self: Any, rows: Rows, now: int, recipe: Recipe) -> Any:
        if now == 2:
            raise KeyboardInterrupt
        return learn(self, rows, now, recipe)

    monkeypatch.setattr(FusedLearner, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(model, X, Y, CrossEntropy(), RECIPE)
    assert not same(model, network())


@pytest.mark.parametrize(("batch_size", "expected"), [(8, 1), (10**9, 2)])
def test_small_batches_are_learned_in_one_thread(batch_size: int, expected: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with training.few_threads(network(), batch_size):
            assert torch.get_num_threads() == expected
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_weight_of_zero_is_no_row() -> None:
    weight = np.ones(400)
    weight[200:] = 0
    spoiled = Y.copy()
    spoiled[200:] = 1 - spoiled[200:]
    full = replace(RECIPE, batch_size=400, epochs=20)
    first, second = network(), network()
    train(first, X, Y, CrossEntropy(), full, sample_weight=weight)
    train(second, X, spoiled, CrossEntropy(), full, sample_weight=weight)
    assert same(first, second)


def test_batches_without_weight_change_nothing() -> None:
    weight = np.zeros(400)
    weight[:5] = 1.0
    history = train(network(), X, Y, CrossEntropy(), RECIPE, sample_weight=weight)
    assert np.all(np.isfinite(history.training))


def test_a_missing_directory_is_noticed_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        train(network(), X, Y, CrossEntropy(), RECIPE, checkpoint=tmp_path / "no" / "run")


def test_the_best_weights_on_validation_rows_are_restored() -> None:
    model = network()
    recipe = Recipe(epochs=40, batch_size=16, learning_rate=0.3, schedule="constant")
    noise = RNG.normal(size=400)  # nothing to learn: validation gets worse
    history = train(
        model, X[:40], noise[:40], SquaredError(), recipe, validation=(X[40:], noise[40:])
    )
    rows = Rows.of(X[40:], noise[40:], SquaredError())
    best = training.NetworkLearner(model, SquaredError(), recipe).losses(rows)
    assert history.validation[history.best_epoch[0]][0] == pytest.approx(float(best), rel=1e-6)
    assert history.validation[history.best_epoch[0]] == min(history.validation)


def test_patience_ends_training_early() -> None:
    recipe = Recipe(epochs=1000, batch_size=16, learning_rate=0.3, schedule="constant", patience=3)
    noise = RNG.normal(size=400)
    history = train(
        network(), X[:40], noise[:40], SquaredError(), recipe, validation=(X[40:], noise[40:])
    )
    assert history.n_epochs == history.best_epoch[0] + 1 + 3


def test_rates_drop_from_the_best_epoch_on() -> None:
    noise = RNG.normal(size=400)
    data: Any = X[:40], noise[:40], SquaredError()
    recipe = Recipe(epochs=1000, batch_size=16, learning_rate=0.3, schedule="constant", patience=3)
    validation = (X[40:], noise[40:])
    without = train(network(), *data, recipe, validation=validation)
    history = train(network(), *data, replace(recipe, drops=2), validation=validation)
    n = without.n_epochs
    assert history.training[:n] == without.training
    assert history.n_epochs > n
    # what comes after the drop begins where the best epoch ended
    again = without.training[without.best_epoch[0] + 1]
    assert history.training[n] == pytest.approx(again, rel=0.5)
    assert min(history.validation) <= min(without.validation)


class Killed(BaseException):
    """Stands in for a kill in the middle of an epoch."""


DROPPING = Recipe(epochs=6, batch_size=64, learning_rate=0.5, patience=1, drops=2)


@pytest.mark.parametrize("backend", LEARNERS)
@pytest.mark.parametrize("epoch", range(6))
@pytest.mark.parametrize("recipe", [RECIPE, DROPPING], ids=["plain", "dropping"])
def test_a_run_killed_in_any_epoch_continues_to_the_same_bits(
    epoch: int,
    backend: Backend,
    recipe: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {"validation": (X[300:], Y[300:]), "backend": backend}
    undisturbed = network()
    expected = train(undisturbed, X[:300], Y[:300], CrossEntropy(), recipe, **options)
    if expected.n_epochs <= epoch:
        return
    options["checkpoint"] = tmp_path / "run"
    learn = LEARNERS[backend].learn

    def killed(self: Any, rows: Rows, now: int, recipe: Recipe) -> Any:
        if now == epoch:
            raise Killed
        return learn(self, rows, now, recipe)

    monkeypatch.setattr(training, "fit", partial(training.fit, checkpoint_seconds=0.0))
    with monkeypatch.context() as patch:
        patch.setattr(LEARNERS[backend], "learn", killed)
        with pytest.raises(Killed):
            train(network(), X[:300], Y[:300], CrossEntropy(), recipe, **options)
    resumed = network()
    history = train(resumed, X[:300], Y[:300], CrossEntropy(), recipe, **options)
    assert same(resumed, undisturbed)
    assert history.training == expected.training
    assert history.validation == expected.validation
    assert history.best_epoch == expected.best_epoch


SCRIPT = """
    import sys, numpy as np, torch
    from isotone import MonotonicNetwork
    from isotone.training import train as training
    from isotone.losses import CrossEntropy
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)); Y = (X[:, 0] > 0).astype(int)
    network = MonotonicNetwork([3, 8, 8, 1], monotonic_cst=[1, 0, -1])
    loss, recipe = CrossEntropy(), training.Recipe(epochs=60, batch_size=50)
    rows = training.Rows.of(X, Y, loss)
    learner = training.NetworkLearner(network, loss, recipe)
    training.fit(learner, rows, recipe, checkpoint=sys.argv[1], checkpoint_seconds=0.0)
    print(sum(p.double().sum().item() for p in network.parameters()).hex())
"""


def run(checkpoint: Path, moment: str | None = None) -> subprocess.Popen[str]:
    code = kills.PRELUDE + textwrap.dedent(SCRIPT)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(checkpoint)],
        stdout=subprocess.PIPE,
        text=True,
        env=kills.surroundings(moment),
    )


@pytest.mark.slow
def test_a_process_killed_again_and_again_ends_with_the_same_bits(tmp_path: Path) -> None:
    expected = run(tmp_path / "undisturbed").communicate()[0]
    for moment in kills.MOMENTS[1:3]:
        kills.expect_death(run(tmp_path / "killed", moment))
    assert run(tmp_path / "killed").communicate()[0] == expected


def test_a_checkpoint_of_another_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "fit", partial(training.fit, checkpoint_seconds=0.0))
    path = tmp_path / "run"
    train(network(), X, Y, CrossEntropy(), RECIPE, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to another run"):
        train(network(), X, 1 - Y, CrossEntropy(), RECIPE, checkpoint=path)
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="cannot be read"):
        train(network(), X, Y, CrossEntropy(), RECIPE, checkpoint=path)


def test_networks_in_float64_are_trained_in_float64(tmp_path: Path) -> None:
    steps = partial(train, x=X, y=Y, loss=CrossEntropy(), validation=(X, Y))
    single, double = network(), network().double()
    first = steps(single, recipe=Recipe(epochs=2, batch_size=50))
    second = steps(double, recipe=Recipe(epochs=2, batch_size=50), checkpoint=tmp_path / "run")
    assert {parameter.dtype for parameter in double.parameters()} == {torch.float64}
    # Adam follows the sign of gradients that are 0 but for rounding: close, not equal
    assert np.allclose(second.training, first.training, rtol=0.05)
    assert second.training[-1] < second.training[0]
    assert second.training != first.training
    assert certify(freeze(double)).holds


def test_a_loss_that_is_not_finite_stops_with_advice() -> None:
    model = network()
    torch.nn.init.constant_(model.layers[0].weight, float("nan"))
    with pytest.raises(ValueError, match="lower the learning rate"):
        train(model, X, Y, CrossEntropy(), RECIPE)


@pytest.mark.parametrize("schedule", ["cosine", "exponential", "constant"])
def test_schedules_begin_and_end_where_they_should(schedule: Any) -> None:
    recipe = Recipe(epochs=10, learning_rate=0.1, final_rate=0.01, schedule=schedule)
    rates = [rate for epoch in range(10) for rate in recipe.rates(epoch, 100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[-1] == pytest.approx(0.1 if schedule == "constant" else 0.001, rel=0.02)
    assert all(a >= b for a, b in pairwise(rates))


def test_orders_are_permutations_that_change_with_the_epoch() -> None:
    orders = [order_of_rows(100, 0, epoch) for epoch in range(3)]
    assert all(np.array_equal(np.sort(order), np.arange(100)) for order in orders)
    assert not np.array_equal(orders[0], orders[1])
    assert np.array_equal(orders[0], order_of_rows(100, 0, 0))


def test_groups_are_never_split() -> None:
    groups = RNG.integers(0, 20, 400)
    training_rows, held_out = split(400, 0.25, groups=groups)
    assert not set(groups[training_rows]) & set(groups[held_out])
    assert len(set(groups[held_out])) == 5
    assert np.array_equal(training_rows, ~held_out)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recipe(epochs=0), "`epochs=0` must be positive"),
        (lambda: Recipe(schedule="steps"), "`schedule='steps'` is unknown"),
        (lambda: split(10, 1.5), "must lie between 0 and 1"),
        (lambda: split(10, 0.5, groups=[1, 2]), "give one for each of 10 rows"),
        (lambda: split(3, 0.5, groups=[1, 1, 1]), "cannot be split in two"),
        (lambda: Rows.of(X, Y[:10], CrossEntropy()), "has 400 rows but `y` has 10"),
        (lambda: Rows.of(X * np.nan, Y, CrossEntropy()), "`x` holds NaN or infinity"),
        (lambda: Rows.of(X, X[:, 0] * np.inf, SquaredError()), "`y` holds NaN or infinity"),
        (
            lambda: Rows.of(X, Y, CrossEntropy(), sample_weight=[1.0]),
            r"has shape \(1,\); give",
        ),
        (
            lambda: Rows.of(X, Y, CrossEntropy(), sample_weight=-Y),
            "is -1 in row 2",
        ),
        (lambda: train(network(), X[:, :2], Y, CrossEntropy()), "the network takes 3 features"),
        (lambda: train(network(), X, np.arange(400) % 3, CrossEntropy()), "holds the class 2"),
        (lambda: train(network(), X, X[:, :2], SquaredError()), "`y` has 2 columns"),
        (lambda: train(network(), X, Y, Quantile((0.1, 0.9))), "2 levels need one output each"),
    ],
)
def test_bad_input_is_explained(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
