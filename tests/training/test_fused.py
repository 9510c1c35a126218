"""The fused trainer is torch's training of the same networks, and depends on nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from isotone import LipschitzNetwork, MonotonicNetwork, _engine
from isotone.nn.layers import LipschitzLinear
from isotone.training.fused import FusedTrainer

ISAS = _engine.instruction_sets()
WITH_FMA = [isa for isa in ISAS if isa != "baseline"]
PARAMETER = 0.7
Array = NDArray[Any]

PER_ROW: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross_entropy": lambda z, y: (
        functional.binary_cross_entropy_with_logits(PARAMETER * z[:, 0], y, reduction="none")
        if z.shape[1] == 1
        else functional.cross_entropy(PARAMETER * z, y.long(), reduction="none")
    ),
    "squared_error": lambda z, y: ((z - y.reshape(z.shape)) ** 2).sum(dim=1),
    "absolute_error": lambda z, y: (z - y.reshape(z.shape)).abs().sum(dim=1),
    "hinge": lambda z, y: (PARAMETER - (2 * y - 1) * z[:, 0]).relu(),
    "quantile": lambda z, y: pinball(z, y.reshape(z.shape), PARAMETER),
}


def pinball(z: Tensor, y: Tensor, level: Any) -> Tensor:
    return torch.maximum(level * (y - z), (level - 1) * (y - z)).sum(dim=1)


NETWORKS: list[dict[str, Any]] = [
    {"layers": [4, 20, 20, 1]},
    {"layers": [4, 20, 20, 1], "chain": "inf"},
    {"layers": [3, 2]},
    {"layers": [3, 1], "chain": "one"},
    {"layers": [1, 7, 1]},
    {"layers": [5, 6, 12, 3], "group_size": 2},
    {"layers": [5, 6, 12, 3], "group_size": 3, "chain": "one"},
    {"layers": [2, 40, 8, 16, 1], "group_size": 8},
    {"layers": [2, 37, 5, 11, 4]},
    {"layers": [9, 130, 1]},
]
GROUPS = [[0, 1], [1, 2, 4], [3]]
NETWORKS += [  # with masks
    {"layers": [5, 20, 12, 1], "group_size": 4, "interaction_cst": GROUPS},
    {"layers": [5, 6, 12, 3], "group_size": 2, "interaction_cst": GROUPS},
    {"layers": [4, 8, 8, 2], "group_size": 2, "interaction_cst": "no_interactions"},
    {"layers": [5, 6, 3], "group_size": 2, "interaction_cst": GROUPS, "chain": "one"},
    {"layers": [9, 36, 72, 1], "group_size": 4, "interaction_cst": "no_interactions"},
]
MASKED = NETWORKS[-5]
CASES = [
    (network, loss)
    for network in NETWORKS
    for loss in PER_ROW
    if loss != "hinge" or network["layers"][-1] == 1
]


def build(options: dict[str, Any], seed: int) -> LipschitzNetwork:
    """A network in float64 with columns below, near and far above their bounds."""
    torch.manual_seed(seed)
    n_features, n_outputs = options["layers"][0], options["layers"][-1]
    directions = np.zeros((n_outputs, n_features))
    directions[seed % n_outputs] = np.arange(seed, seed + n_features) % 3 - 1
    network = MonotonicNetwork(
        monotonic_cst=directions,
        lipschitz=np.linspace(0.5 + seed, 2.0, n_features),
        init="torch",
        **options,
    ).double()
    with torch.no_grad():
        for layer in linear_layers(network):
            layer.weight.mul_(torch.rand(1, layer.weight.shape[1]) * 6)
            layer.weight.copy_(layer.weight.float())
            layer.bias.copy_(layer.bias.float())
    return network


def linear_layers(network: LipschitzNetwork) -> list[LipschitzLinear]:
    return [layer for layer in network.layers if isinstance(layer, LipschitzLinear)]


def stack(networks: list[LipschitzNetwork], loss: Any, **options: Any) -> FusedTrainer:
    """The trainer whose members are these networks."""
    layers = [linear_layers(network) for network in networks]
    first = networks[0]
    group_size = getattr(first.layers[1], "group_size", None) if len(first.layers) > 1 else None
    trainer = FusedTrainer(
        [first.n_features, *(layer.weight.shape[0] for layer in layers[0])],
        group_size,
        n_members=len(networks),
        chain=first.chain,
        bounds=[[layer.constraint.bound for layer in member] for member in layers],
        feature_scale=[network.feature_scale.numpy() for network in networks],
        residual=[network.residual() for network in networks],
        masks=[None if layer.mask is None else layer.mask.numpy() for layer in layers[0]],
        loss=loss,
        **({"loss_parameter": PARAMETER} | options),
    )
    for i, (weight, bias) in enumerate(zip(trainer.weights, trainer.biases, strict=True)):
        for s, member in enumerate(layers):
            weight[s] = member[i].weight.detach()
            bias[s] = member[i].bias.detach()
    return trainer


def draw(options: dict[str, Any], loss: str, n_rows: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(n_rows)
    n_features, n_outputs = options["layers"][0], options["layers"][-1]
    x = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    labels = rng.integers(0, max(n_outputs, 2), size=n_rows).astype(np.float32)
    values = rng.normal(size=(n_rows, n_outputs)).astype(np.float32)
    y = labels if loss in ("cross_entropy", "hinge") else values
    return x, y, rng.uniform(size=n_rows).astype(np.float32)


def mean_loss(
    network: LipschitzNetwork, loss: str, x: Array, y: Array, weight: Array | None
) -> Tensor:
    losses = PER_ROW[loss](network(torch.tensor(x).double()), torch.tensor(y).double())
    w = torch.ones(len(x)) if weight is None else torch.tensor(weight)
    return (w * losses).sum() / w.sum(dtype=torch.float64)


def assert_near(actual: list[Array], expected: list[Array], tolerance: float) -> None:
    """Relative to the norm of everything together."""
    a = np.concatenate([array.ravel() for array in actual]).astype(np.float64)
    e = np.concatenate([array.ravel() for array in expected])
    assert np.linalg.norm(a - e) <= tolerance * np.linalg.norm(e)


def assert_gradients_agree(
    networks: list[LipschitzNetwork],
    trainer: FusedTrainer,
    data: tuple[Array, Array, Array | None],
    tolerance: float,
) -> None:
    losses, weights, biases, _ = trainer.gradients(*data)
    np.testing.assert_allclose(trainer.loss(*data), losses, rtol=1e-6, atol=1e-7)
    for s, network in enumerate(networks):
        expected = mean_loss(network, trainer.loss_kind, *data)
        layers = linear_layers(network)
        wanted = torch.autograd.grad(
            expected, [p for layer in layers for p in (layer.weight, layer.bias)]
        )
        assert losses[s] == pytest.approx(float(expected.detach()), rel=tolerance, abs=tolerance)
        found = [array[s] for pair in zip(weights, biases, strict=True) for array in pair]
        assert_near(found, [w.numpy() for w in wanted], tolerance)


@pytest.mark.parametrize(("options", "loss"), CASES, ids=str)
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_gradients_are_those_of_torch(
    options: dict[str, Any], loss: str, precision: str, tolerance: float
) -> None:
    networks = [build(options, seed) for seed in range(3)]
    trainer = stack(networks, loss, precision=precision)
    x, y, weight = draw(options, loss, 77)
    assert_gradients_agree(networks, trainer, (x, y, weight), tolerance)
    assert_gradients_agree(networks, trainer, (x, y, None), tolerance)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("n_rows", [1, 31, 32, 33, 127, 128, 129, 500])
def test_gradients_on_every_instruction_set(isa: str, n_rows: int) -> None:
    networks = [build(NETWORKS[0], 1)]
    for precision, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        trainer = stack(networks, "cross_entropy", precision=precision)
        trainer._isa = isa
        data = draw(NETWORKS[0], "cross_entropy", n_rows)
        assert_gradients_agree(networks, trainer, data, tolerance)


@pytest.mark.parametrize("chain", ["one", "inf"])
def test_gradients_of_sizes_exactly_at_the_bound_and_of_ties(chain: Any) -> None:
    network = MonotonicNetwork([2, 4, 1], monotonic_cst=[1, 0], chain=chain).double()
    with torch.no_grad():
        for layer in linear_layers(network):
            layer.weight.fill_(1.0 / layer.weight.shape[chain == "inf"])
            layer.bias.zero_()
    if chain == "inf":
        torch.nn.init.ones_(linear_layers(network)[0].weight)
    trainer = stack([network], "squared_error", precision="float64")
    data = draw({"layers": [2, 4, 1]}, "squared_error", 50)
    assert_gradients_agree([network], trainer, data, 1e-12)


@pytest.mark.parametrize("options", NETWORKS[:6], ids=str)
def test_predictions_are_those_of_the_network(options: dict[str, Any]) -> None:
    networks = [build(options, seed) for seed in range(2)]
    x, _, _ = draw(options, "squared_error", 45)
    trainer = stack(networks, "squared_error")
    for network, scores in zip(networks, trainer.predict(x, threads=2), strict=True):
        expected = network(torch.tensor(x).double()).detach().numpy()
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    assert trainer.predict(x[:0]).shape == (2, 0, options["layers"][-1])


@pytest.mark.parametrize("options", [NETWORKS[0], MASKED], ids=str)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-10), ("float32", 2e-3)])
def test_training_is_that_of_torch_step_by_step(
    options: dict[str, Any], weight_decay: float, precision: str, tolerance: float
) -> None:
    loss = "cross_entropy"
    networks = [build(options, seed) for seed in range(2)]
    trainer = stack(networks, loss, precision=precision, weight_decay=weight_decay)
    x, y, weight = draw(options, loss, 300)
    rng = np.random.default_rng(0)
    optimizers = [
        torch.optim.AdamW(network.parameters(), weight_decay=weight_decay)
        if weight_decay
        else torch.optim.Adam(network.parameters())
        for network in networks
    ]
    for _ in range(4):
        order = np.stack([rng.permutation(300) for _ in networks])
        rates = rng.uniform(1e-3, 2e-2, 5)  # batches of 64, the last of 44
        losses = trainer.train_epoch(x, y, weight, order, batch_size=64, learning_rates=rates)
        for s, (network, optimizer) in enumerate(zip(networks, optimizers, strict=True)):
            expected = train_with_torch(network, optimizer, x, y, weight, order[s], rates)
            assert losses[s] == pytest.approx(expected, rel=tolerance)
            for weights, layer in zip(trainer.weights, linear_layers(network), strict=True):
                assert_near([weights[s]], [layer.masked().detach().numpy()], tolerance)


@pytest.mark.parametrize("isa", ISAS)
def test_weights_outside_of_a_mask_are_zero_and_stay_so(isa: str) -> None:
    network = build(MASKED, 0)
    trainer = stack([network], "squared_error", weight_decay=0.1)
    trainer._isa = isa
    for weight in trainer.weights:
        weight[:] = np.random.default_rng(0).normal(size=weight.shape)
    data = draw(MASKED, "squared_error", 90)
    _, gradients, _, _ = trainer.gradients(*data)
    trainer.train_epoch(*data, batch_size=32, learning_rates=0.01)
    for weight, gradient, layer in zip(
        trainer.weights, gradients, linear_layers(network), strict=True
    ):
        if layer.mask is not None:
            outside = ~layer.mask.numpy()
            assert outside.any()
            assert not weight[0][outside].any()
            assert not gradient[0][outside].any()
            assert np.all(weight[0][~outside] != 0)


@pytest.mark.parametrize("masks", [[np.ones((4, 2))], [np.ones((2, 4)), None], [None, True]])
def test_masks_of_other_shapes_are_refused(masks: Any) -> None:
    with pytest.raises(ValueError, match=r"`masks` have shapes .* layers \[2, 4, 1\] need one"):
        FusedTrainer([2, 4, 1], n_members=1, loss="squared_error", masks=masks)


def train_with_torch(
    network: LipschitzNetwork,
    optimizer: torch.optim.Optimizer,
    x: Array,
    y: Array,
    weight: Array,
    order: Array,
    rates: Array,
) -> float:
    """One epoch in batches of 64; the mean loss of its rows."""
    total, mean_weight = 0.0, float(weight[order].mean(dtype=np.float64))
    for rows, rate in zip(np.split(order, range(64, len(order), 64)), rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        mass = float(weight[rows].sum(dtype=np.float64))
        loss = mean_loss(network, "cross_entropy", x[rows], y[rows], weight[rows])
        (loss * (mass / (len(rows) * mean_weight))).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += float(loss.detach()) * mass
    return total / float(weight.sum(dtype=np.float64))


def trained(networks: list[LipschitzNetwork], isa: str = "", threads: int = 1) -> FusedTrainer:
    trainer = stack(networks, "cross_entropy")
    trainer._isa = isa
    x, y, weight = draw(NETWORKS[0], "cross_entropy", 1000)
    order = np.random.default_rng(3).permutation(1000)
    for _ in range(3):
        trainer.train_epoch(
            x, y, weight, order, batch_size=90, learning_rates=0.01, threads=threads
        )
    return trainer


def bits(trainer: FusedTrainer) -> list[bytes]:
    return [array.tobytes() for array in trainer.state().values()]


def test_nothing_depends_on_threads_or_on_other_members() -> None:
    networks = [build(NETWORKS[0], seed) for seed in range(5)]
    together = trained(networks)
    for threads in (2, 3, 8):
        assert bits(trained(networks, threads=threads)) == bits(together)
    for s, network in enumerate(networks):
        alone = trained([network])
        np.testing.assert_array_equal(alone.weights[1][0], together.weights[1][s])
        np.testing.assert_array_equal(alone.biases[2][0], together.biases[2][s])


def test_instruction_sets_that_round_once_agree_to_the_last_bit() -> None:
    networks = [build(NETWORKS[0], seed) for seed in range(2)]
    assert len({tuple(bits(trained(networks, isa=isa))) for isa in WITH_FMA}) <= 1
    baseline, best = trained(networks, isa="baseline"), trained(networks)
    np.testing.assert_allclose(baseline.weights[1], best.weights[1], atol=1e-3)


def test_an_order_is_the_reordered_table() -> None:
    x, y, weight = draw(NETWORKS[0], "cross_entropy", 200)
    rows = np.random.default_rng(0).integers(0, 200, 333)
    first, second = (stack([build(NETWORKS[0], 0)], "cross_entropy") for _ in range(2))
    kwargs: dict[str, Any] = {"batch_size": 50, "learning_rates": 0.01}
    a = first.train_epoch(x, y, weight, rows, **kwargs)
    b = second.train_epoch(x[rows], y[rows], weight[rows], **kwargs)
    assert a == b
    assert bits(first) == bits(second)


def test_a_weight_of_zero_is_a_row_left_out() -> None:
    x, y, weight = draw(NETWORKS[0], "cross_entropy", 200)
    weight[50:] = 0.0
    trainer = stack([build(NETWORKS[0], 0)], "cross_entropy")
    assert trainer.loss(x, y, weight) == trainer.loss(x[:50], y[:50], weight[:50])
    losses = trainer.train_epoch(x, y, weight, batch_size=50, learning_rates=0.01)
    assert np.all(np.isfinite(losses))
    assert all(np.all(np.isfinite(w)) for w in trainer.weights)


def test_every_member_may_have_weights_of_its_own() -> None:
    networks = [build(NETWORKS[0], seed) for seed in range(3)]
    x, y, _ = draw(NETWORKS[0], "cross_entropy", 300)
    weight = np.random.default_rng(0).uniform(size=(3, 300)).astype(np.float32)
    weight[weight < 0.4] = 0.0
    together = stack(networks, "cross_entropy")
    kwargs: dict[str, Any] = {"batch_size": 64, "learning_rates": 0.01}
    losses = together.train_epoch(x, y, weight, threads=2, **kwargs)
    after, gradients = together.loss(x, y, weight), together.gradients(x, y, weight)[1]
    for s, network in enumerate(networks):
        alone = stack([network], "cross_entropy")
        assert losses[s] == alone.train_epoch(x, y, weight[s], **kwargs)
        assert after[s] == alone.loss(x, y, weight[s])
        np.testing.assert_array_equal(alone.weights[1][0], together.weights[1][s])
        np.testing.assert_array_equal(alone.gradients(x, y, weight[s])[1][1][0], gradients[1][s])


def test_rows_without_weight_are_rows_left_out_to_the_bit() -> None:
    x, y, weight = draw(NETWORKS[0], "cross_entropy", 900)
    counts = np.random.default_rng(0).random(900) < 0.5
    first, second = (stack([build(NETWORKS[0], 0)], "cross_entropy") for _ in range(2))
    kwargs: dict[str, Any] = {"batch_size": 900, "learning_rates": 0.01}
    a = first.train_epoch(x, y, weight * counts, **kwargs)
    assert a == second.train_epoch(x[counts], y[counts], weight[counts], **kwargs)
    assert bits(first) == bits(second)


def test_every_output_may_have_a_level_of_its_own() -> None:
    levels = [[0.125, 0.5, 0.875], [0.25, 0.375, 0.625]]
    networks = [build(NETWORKS[5], seed) for seed in range(2)]
    trainer = stack(networks, "quantile", loss_parameter=levels, precision="float64")
    x, y, _ = draw(NETWORKS[5], "quantile", 50)
    losses = trainer.loss(x, y)
    for network, level, loss in zip(networks, levels, losses, strict=True):
        each = pinball(network(torch.tensor(x).double()), torch.tensor(y), torch.tensor(level))
        assert loss == pytest.approx(float(each.mean().detach()), rel=1e-12)


def test_a_saved_state_continues_to_the_same_bits() -> None:
    x, y, weight = draw(NETWORKS[0], "cross_entropy", 500)
    networks = [build(NETWORKS[0], seed) for seed in range(2)]
    first = trained(networks)
    second = stack(networks, "cross_entropy")
    second.load_state(first.state())
    for trainer in (first, second):
        trainer.train_epoch(x, y, weight, batch_size=64, learning_rates=0.01)
    assert bits(first) == bits(second)
    assert first.n_steps == 3 * 12 + 8


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_parameter_that_is_not_finite_makes_the_loss_nan(bad: float) -> None:
    x, y, _ = draw(NETWORKS[0], "cross_entropy", 40)
    for chain in ("one", "inf"):
        network = build({**NETWORKS[0], "chain": chain}, 0)
        for kind, layer in (("weights", 0), ("weights", 1), ("biases", 0), ("biases", 2)):
            trainer = stack([network, network], "cross_entropy")
            getattr(trainer, kind)[layer][1].flat[0] = bad
            losses = trainer.train_epoch(x, y, batch_size=40, learning_rates=0.0)
            assert np.isfinite(losses[0])
            assert np.isnan(losses[1])


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_cross_entropy_of_large_logits_is_finite_and_right(n_outputs: int) -> None:
    network = LipschitzNetwork([1, n_outputs], lipschitz=1.0).double()
    x = np.concatenate([np.linspace(-30, 30, 101), [-3e4, -200.0, 200.0, 3e4]])[:, None]
    y = np.arange(len(x)) % max(n_outputs, 2)
    trainer = stack([network], "cross_entropy", precision="float64")
    assert_gradients_agree([network], trainer, (x, y, None), 1e-12)
    assert np.isfinite(stack([network], "cross_entropy").loss(x, y))


def test_training_lowers_the_loss_of_members_with_different_bounds() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(512, 2))
    y = np.sin(3 * x[:, 0]) + 0.5 * x[:, 1]
    bounds = np.array([0.5, 1.0, 2.0])[:, None] ** (1 / 3)
    trainer = FusedTrainer([2, 8, 8, 1], 4, n_members=3, bounds=bounds, loss="squared_error")
    for weight in trainer.weights:
        weight[:] = rng.normal(size=weight.shape[1:])
    for _ in range(60):
        losses = trainer.train_epoch(x, y, batch_size=64, learning_rates=0.01, threads=2)
    assert losses[0] > 1.5 * losses[1] > 1.5 * losses[2]
    assert losses[2] < 0.05


# ---- mistakes -------------------------------------------------------------------------------


def make(**changes: Any) -> FusedTrainer:
    options: dict[str, Any] = {"layers": [2, 4, 1], "n_members": 3, "loss": "cross_entropy"}
    return FusedTrainer(**{**options, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": [3]}, r"must name the numbers of features.*between 1 and 32 layers"),
        ({"layers": [3, 0]}, r"`layers=0` must be a whole number of at least 1"),
        ({"layers": [4, 4000, 4000]}, r"make 16024000 parameters but at most 10000000"),
        ({"group_size": 3}, r"`group_size=3` does not divide `width=4`; choose 1, 2 or 4"),
        ({"layers": [1, 2000, 1]}, r"2000 units are sorted together; the limit is 1024"),
        ({"n_members": 0}, r"`n_members=0` must be a whole number of at least 1"),
        ({"loss": "mae"}, r"`loss='mae'` is unknown; choose from"),
        ({"chain": "two"}, r"`chain='two'` is unknown; choose from"),
        ({"precision": "half"}, r"`precision='half'` is unknown; choose from"),
        ({"layers": [2, 3], "loss": "hinge"}, r"`loss='hinge'` is for one output.*has 3"),
        ({"bounds": [1.0, 2.0, 3.0]}, r"`bounds` has shape \(3,\); give \(3, 2\)"),
        ({"bounds": 0.0}, r"`bounds` must be positive in float32"),
        ({"feature_scale": np.nan}, r"`feature_scale` holds NaN or infinity"),
        ({"residual": np.ones((2, 2, 2))}, r"`residual` has shape \(2, 2, 2\); give \(3, 1, 2\)"),
        ({"loss_parameter": [1.0, 2.0]}, r"`loss_parameter` has shape \(2, 1\); give \(3, 1\)"),
        ({"loss_parameter": -1.0}, r"`loss_parameter` must be positive"),
        ({"loss": "quantile", "loss_parameter": 1.0}, r"must lie between 0 and 1"),
        ({"weight_decay": -0.1}, r"`weight_decay` holds -0.1; it must be at least 0"),
        ({"betas": (0.9, 1.0)}, r"`betas` holds 1.0; it must be at least 0 and below 1.0"),
        ({"eps": -1e-8}, r"`eps` holds -1e-08"),
    ],
)
def test_mistakes_in_the_description_are_explained(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((5, 3))}, r"`x` has shape \(5, 3\); give \(n_rows, 2\)"),
        ({"x": np.full((5, 2), np.nan)}, r"`x` holds NaN or infinity"),
        ({"x": np.zeros((0, 2)), "y": []}, r"`x` has no row"),
        ({"y": np.zeros((5, 2))}, r"`y` has shape \(5, 2\); give \(5, 1\) or \(5,\)"),
        ({"y": [0, 1, np.inf, 0, 1]}, r"`y` holds NaN or infinity"),
        ({"y": [-1, 1, 1, -1, 1]}, r"`y` must hold labels 0 and 1"),
        ({"sample_weight": [1.0, 2.0]}, r"`sample_weight` has shape \(2,\); give \(5,\)"),
        ({"sample_weight": np.zeros(5)}, r"`sample_weight` is 0 in all rows"),
        ({"sample_weight": np.ones((2, 5))}, r"has shape \(2, 5\); give \(5,\).*or \(3, 5\) with"),
        ({"sample_weight": np.eye(3, 5) * [1, 1, 0, 0, 0]}, r"`sample_weight` is 0 in all rows"),
        ({"order": np.zeros((2, 5), int)}, r"`order` has shape \(2, 5\).*\(3, n_visits\)"),
        ({"order": np.zeros(0, int)}, r"`order` has shape \(0,\)"),
        ({"order": [0, 5]}, r"`order` holds numbers from 0 to 5 but `x` has 5 rows"),
        ({"order": [2**32]}, r"`order` holds numbers from 4294967296"),
        ({"batch_size": 0}, r"`batch_size=0` must be a whole number"),
        ({"threads": 0}, r"`threads=0` must be a whole number"),
        ({"learning_rates": [0.1, 0.1]}, r"`learning_rates` has shape \(2,\).*has 3 steps"),
        ({"learning_rates": -0.1}, r"`learning_rates` must be finite and not negative"),
    ],
)
def test_mistakes_in_the_data_are_explained(changes: dict[str, Any], message: str) -> None:
    data: dict[str, Any] = {"x": np.zeros((5, 2)), "y": [0, 1, 0, 1, 0]}
    options: dict[str, Any] = {"batch_size": 2, "learning_rates": 0.1}
    trainer = make()
    with pytest.raises(ValueError, match=message):
        trainer.train_epoch(**{**data, **options, **changes})
    assert trainer.n_steps == 0


@pytest.mark.parametrize("hide", [lambda y: y, np.ma.masked_invalid])
def test_a_missing_target_is_refused_even_behind_a_mask(hide: Any) -> None:
    trainer = make(loss="squared_error")
    with pytest.raises(ValueError, match=r"`y` .*finite"):
        trainer.loss(np.zeros((3, 2)), hide(np.array([0.5, np.nan, 1.0])))


def test_class_numbers_and_kinds_of_order_are_checked() -> None:
    trainer = make(layers=[2, 3])
    x = np.zeros((2, 2))
    with pytest.raises(ValueError, match="class numbers from 0 to 2"):
        trainer.loss(x, [0, 3])
    with pytest.raises(TypeError, match="`order` holds float64; give row numbers"):
        trainer.train_epoch(x, [0, 1], None, [0.0], batch_size=1, learning_rates=0.1)


def test_a_state_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`state` lacks \['n_steps'\]"):
        make().load_state({k: v for k, v in make().state().items() if k != "n_steps"})
    with pytest.raises(ValueError, match=r"shape \(2, 17\) but this trainer has .* \(3, 17\)"):
        make().load_state(make(n_members=2).state())


def test_the_engine_refuses_arrays_it_would_overrun() -> None:
    trainer = make()
    trainer._constants["residual"] = trainer._constants["residual"][:1]
    with pytest.raises(ValueError, match="`residual` has 2 entries; there must be 6"):
        trainer.loss(np.zeros((1, 2)), [0])
    trainer = make()
    trainer._parameters = trainer._parameters.astype(np.float64)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        trainer.train_epoch(np.zeros((1, 2)), [0], batch_size=1, learning_rates=0.1)
    with pytest.raises(ValueError, match="group sizes must divide"):
        _engine.Stack([2, 4, 1], [3, 1], "one", "squared_error")
