"""Networks: bounds by construction, and the traps of other libraries closed."""

from __future__ import annotations

import copy
import io
import math
import pickle
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from isotone import (
    Abs,
    Center,
    GroupSort,
    LipschitzConv1d,
    LipschitzLinear,
    LipschitzNetwork,
    MonotonicNetwork,
    Residual,
    certify,
    freeze,
)
from isotone.nn.layers import BoundedLayer


def linear(*widths: int) -> list[nn.Module]:
    return [LipschitzLinear(a, b) for a, b in pairwise(widths)]


@pytest.mark.parametrize("p", [1, 2, math.inf])
@pytest.mark.parametrize("chain", [None, "inf"])
def test_g_is_lipschitz_in_its_metric(p: float, chain: Any) -> None:
    torch.manual_seed(0)
    scale = torch.tensor([0.5, 1.0, 3.0])
    network = LipschitzNetwork([3, 16, 16, 2], lipschitz=scale.tolist(), metric=p, chain=chain)
    x, y = torch.randn(2, 2000, 3)
    length = torch.linalg.vector_norm(scale * (x - y), ord=p, dim=1)
    assert torch.all((network(x) - network(y)).abs() <= length[:, None] * (1 + 1e-5) + 1e-6)


def test_the_one_chain_bounds_the_sum_of_the_outputs() -> None:
    network = LipschitzNetwork([3, 16, 4], chain="one", init="bound")
    x, y = torch.randn(2, 2000, 3)
    gap = (network(x) - network(y)).abs().sum(dim=1)
    assert torch.all(gap <= (x - y).abs().sum(dim=1) * (1 + 1e-5))


def test_the_chain_follows_from_outputs_and_metric() -> None:
    assert LipschitzNetwork([3, 4, 1]).chain == "one"
    assert LipschitzNetwork([3, 4, 2]).chain == "inf"
    assert LipschitzNetwork([3, 4, 1], metric=2).chain == "inf"


def test_directions_hold_for_every_feature_and_output() -> None:
    torch.manual_seed(1)
    directions = [[1, -1, 0], [0, 1, -1]]
    network = MonotonicNetwork(
        [3, 16, 16, 2], monotonic_cst=directions, lipschitz=[1, 2, 3]
    ).double()
    x = torch.randn(2000, 3, dtype=torch.float64)
    for feature in range(3):
        step = torch.zeros(3, dtype=torch.float64)
        step[feature] = 0.3
        change = network(x + step) - network(x)
        for output in range(2):
            assert torch.all(directions[output][feature] * change[:, output] >= -1e-12)


def test_per_layer_bounds_multiply_to_lambda_exactly() -> None:
    for lipschitz in (0.3, 1.0, 2.0, 7.7, 1e6):
        network = LipschitzNetwork([2, 4, 4, 4, 4, 1], lipschitz=lipschitz)
        bounded = [m for m in network.modules() if isinstance(m, BoundedLayer)]
        product = math.prod(Fraction(layer.constraint.bound) for layer in bounded)
        assert Fraction(lipschitz) * (1 - Fraction(1, 2**45)) < product <= Fraction(lipschitz)


def test_the_constant_of_an_activation_is_made_up_for() -> None:
    layers: list[nn.Module] = [LipschitzLinear(1, 4), nn.Sigmoid(), LipschitzLinear(4, 1)]
    network = LipschitzNetwork(layers, lipschitz=1.0)
    bounds = [m.constraint.bound for m in network.modules() if isinstance(m, BoundedLayer)]
    assert math.prod(bounds) == pytest.approx(4.0)


def test_widths_and_modules_give_the_same_network() -> None:
    torch.manual_seed(0)
    by_width = LipschitzNetwork([2, 4, 1], group_size=2)
    torch.manual_seed(0)
    modules = [LipschitzLinear(2, 4), GroupSort(group_size=2), LipschitzLinear(4, 1)]
    by_module = LipschitzNetwork(modules)
    by_module.load_state_dict(by_width.state_dict())
    x = torch.randn(10, 2)
    assert torch.equal(by_width(x), by_module(x))


def test_convolutions_take_flat_rows_and_images() -> None:
    layers = [
        LipschitzConv1d(2, 4, 3),
        GroupSort(group_size=2),
        nn.Flatten(),
        LipschitzLinear(16, 1),
    ]
    network = MonotonicNetwork(layers, input_shape=(2, 6), monotonic_cst=np.ones(12))
    x = torch.randn(5, 2, 6)
    assert torch.equal(network(x), network(x.reshape(5, 12)))


def test_networks_work_in_float64_and_float32() -> None:
    network = MonotonicNetwork([2, 4, 1], monotonic_cst=[1, -1])
    x = torch.randn(6, 2)
    assert network(x).dtype == torch.float32
    wide = copy.deepcopy(network).double()(x.double())
    assert torch.allclose(network(x), wide.float(), atol=1e-6)


# The traps of the reference library: each is impossible here, or refused.


def test_trap_wrong_norm_chain() -> None:
    with pytest.raises(ValueError, match="cannot give a constant in metric 2"):
        LipschitzNetwork([2, 4, 1], metric=2, chain="one")
    with pytest.raises(ValueError, match="only the 1-norm bounds every partial derivative"):
        MonotonicNetwork([2, 4, 1], monotonic_cst=[1, 0], metric=2)
    with pytest.raises(TypeError):
        LipschitzLinear(2, 3, kind="inf")
    chains = {
        m.constraint.chain
        for m in LipschitzNetwork([2, 4, 3]).modules()
        if hasattr(m, "constraint")
    }
    assert chains == {"inf"}


def test_trap_layer_constants_that_multiply() -> None:
    """λ is the constant of the network: deeper is not steeper."""
    x, y = torch.randn(2, 500, 2)
    for depth in (1, 3, 6):
        network = LipschitzNetwork([2, *[8] * depth, 1], lipschitz=3.0, init="bound")
        gap = (network(x) - network(y)).abs()[:, 0]
        assert torch.all(gap <= 3.0 * (x - y).abs().sum(dim=1) * (1 + 1e-5))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.BatchNorm1d(4), "divides by a spread that may be arbitrarily small; use Center"),
        (nn.LayerNorm(4), "divides by a spread"),
        (nn.RMSNorm(4), "divides by a spread"),
        (nn.GroupNorm(2, 4), "divides by a spread"),
        (nn.Linear(4, 4), "its weights have no bound; use LipschitzLinear"),
        (nn.Conv1d(4, 4, 1), "use LipschitzConv1d"),
        (nn.Dropout(0.5), "enlarges the units that it keeps"),
        (nn.PReLU(), "learned slope has no bound"),
        (nn.GELU(), "Lipschitz constant is not known"),
        (nn.Sequential(nn.ReLU()), "give them one by one"),
        (nn.Flatten(2), "flattens only some of the axes"),
        (nn.Softplus(threshold=0.0), "Lipschitz constant is not known"),
        (type("Steep", (nn.ReLU,), {"forward": lambda self, x: 5 * x})(), "is not known"),
        (type("Wide", (GroupSort,), {})(group_size=1), "is not known"),
    ],
)
def test_trap_unbounded_modules_inside(module: nn.Module, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LipschitzNetwork([LipschitzLinear(2, 4), module, LipschitzLinear(4, 1)])
    with pytest.raises(ValueError, match=reason):
        LipschitzNetwork([LipschitzLinear(2, 4), Residual(LipschitzLinear(4, 4), module)])


def test_trap_lists_of_length_one_that_broadcast() -> None:
    with pytest.raises(ValueError, match=r"`monotonic_cst` has shape \(1,\); give one of"):
        MonotonicNetwork([3, 4, 1], monotonic_cst=[1])
    with pytest.raises(ValueError, match=r"`lipschitz` has shape \(1,\) but the network has 3"):
        LipschitzNetwork([3, 4, 1], lipschitz=[1.0])


@pytest.mark.parametrize("lipschitz", [1.0, 2.0])
def test_a_layer_belongs_to_one_network(lipschitz: float) -> None:
    layers = linear(2, 4, 1)
    LipschitzNetwork(layers, lipschitz=lipschitz)
    with pytest.raises(ValueError, match="is already part of another network"):
        LipschitzNetwork(layers)


def test_trap_networks_that_cannot_be_pickled() -> None:
    network = MonotonicNetwork(
        [LipschitzLinear(2, 4), Center(4), Residual(*linear(4, 4)), Abs(), LipschitzLinear(4, 1)],
        monotonic_cst=[1, 0],
    ).eval()
    x = torch.randn(4, 2)
    buffer = io.BytesIO()
    torch.save(network, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    for twin in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network), again):
        assert torch.equal(twin(x), network(x))


def test_trap_group_size_mistaken_for_number_of_groups() -> None:
    assert torch.equal(
        GroupSort(group_size=2)(torch.tensor([[4.0, 3.0, 2.0, 1.0, 6.0, 5.0]])),
        torch.tensor([[3.0, 4.0, 1.0, 2.0, 5.0, 6.0]]),
    )
    with pytest.raises(
        ValueError, match="`group_size=3` does not divide `width=20`; choose 1, 2, 4, 5, 10 or 20"
    ):
        LipschitzNetwork([4, 20, 1], group_size=3)


@pytest.mark.parametrize(
    ("directions", "message"),
    [
        ([[1, 0], [1, 0], [0, 0]], "classes 0 and 1 must all rise with feature 0"),
        ([[0, -1], [0, 0], [0, -1]], "classes 0 and 2 must all fall with feature 1"),
        ([1, 0], "classes 0 and 1 and 2 must all rise"),
    ],
)
def test_rival_classes_are_refused(directions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MonotonicNetwork([2, 4, 3], monotonic_cst=directions, outputs="logits")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LipschitzNetwork([3]), "at least the numbers of inputs and of outputs"),
        (lambda: LipschitzNetwork([3, 1], lipschitz=-1.0), "must be positive, and between"),
        (lambda: LipschitzNetwork([3, 1], lipschitz=math.nan), "must be positive, and between"),
        (lambda: LipschitzNetwork([3, 1], metric=3), "`metric=3` must be 1, 2 or infinity"),
        (lambda: LipschitzNetwork([3, 1], norm="row"), "`norm='row'` is unknown"),
        (lambda: LipschitzNetwork([3, 1], apply="never"), "`apply='never'` is unknown"),
        (lambda: LipschitzNetwork([3, 1], chain="two"), "`chain='two'` is unknown"),
        (lambda: LipschitzNetwork([3, 1], init="zero"), "`init='zero'` is unknown"),
        (lambda: LipschitzNetwork([3, 1], outputs="class"), "`outputs='class'` is unknown"),
        (lambda: LipschitzNetwork([GroupSort(group_size=1)]), "`input_shape` is needed"),
        (
            lambda: LipschitzNetwork([GroupSort(group_size=1)], input_shape=(2,)),
            "at least one layer",
        ),
        (lambda: LipschitzNetwork(linear(2, 4) + linear(3, 1)), "layer 1, .* cannot take units"),
        (
            lambda: LipschitzNetwork([LipschitzConv1d(1, 1, 2)], input_shape=(1, 3)),
            "a row of outputs",
        ),
        (lambda: LipschitzNetwork(linear(2, 2) * 2), "contains one module twice"),
        (
            lambda: LipschitzNetwork(
                [Residual(*linear(2, 2)), *linear(2, 1)], input_shape=(2,), metric=2
            ),
            "put a LipschitzLinear before it",
        ),
        (
            lambda: LipschitzNetwork([Abs(), *linear(2, 1)], input_shape=(2,), metric=2),
            "Abs before the first weights",
        ),
        (
            lambda: LipschitzNetwork([*linear(2, 4), Residual(*linear(4, 1)), *linear(4, 1)]),
            "it must keep their shape",
        ),
        (
            lambda: LipschitzNetwork(
                [LipschitzConv1d(1, 2, 2), *linear(3, 1)], input_shape=(1, 4)
            ),
            "put nn.Flatten",
        ),
        (lambda: LipschitzNetwork([2, 1], lipschitz=1e-300), "choose other units"),
        (lambda: LipschitzNetwork([2, 1], metric=[2]), "must be 1, 2 or infinity"),
        (lambda: LipschitzNetwork(linear(2, 1), input_shape=2), "must be a tuple"),
        (
            lambda: LipschitzNetwork([*linear(2, 2), Residual(Abs()), *linear(2, 1)]),
            "a `Residual` needs a layer with weights",
        ),
        (lambda: MonotonicNetwork([2, 1], monotonic_cst=[1, 2]), "must hold -1"),
        (
            lambda: MonotonicNetwork([2, 1], monotonic_cst=[1, 1], least_slopes=[1, -1]),
            r"`least_slopes=\[1, -1\]` must be between 0 and 1e\+20, one number",
        ),
        (
            lambda: LipschitzNetwork([2, 1])(torch.zeros(3)),
            "takes rows of 2 features but got shape",
        ),
        (lambda: LipschitzNetwork([2, 1])(torch.zeros(3, 4)), "takes rows of 2 features"),
    ],
)
def test_bad_arguments_are_explained(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_widths_and_modules_cannot_be_mixed() -> None:
    for layers in ([LipschitzLinear(2, 4), 4], [2, 4.0, 1]):
        with pytest.raises(TypeError, match="only whole numbers, the widths, or only modules"):
            LipschitzNetwork(layers)
    with pytest.raises(TypeError, match="must be a list of widths"):
        LipschitzNetwork(3)
    with pytest.raises(TypeError, match="is text"):
        LipschitzNetwork([2, 1], lipschitz="2")


def test_widths_may_be_numpy_integers() -> None:
    assert LipschitzNetwork(list(np.array([2, 4, 1]))).n_outputs == 1


def test_scores_go_their_way_by_the_least_slope_at_least() -> None:
    rng = np.random.default_rng(0)
    network = MonotonicNetwork(
        [3, 8, 1], monotonic_cst=[1, -1, 0], lipschitz=2.0, least_slopes=[0.5, 3.0, 7.0]
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1e3)
    frozen = freeze(network)
    x = np.rint(rng.normal(size=(500, 3)) * 64) / 64
    for feature, least in ((0, 0.5), (1, -3.0)):
        step = np.eye(3)[feature] * rng.integers(1, 64, (500, 1)) / 64
        rise = (frozen.score(x + step) - frozen.score(x)) / step[:, feature]
        assert np.all(rise * np.sign(least) >= abs(least) * (1 - 1e-12))
        interval = certify(frozen).slopes[feature].scaled
        assert max(interval.low, -interval.high) >= abs(least)
    assert np.array_equal(network.residual(), [[2.5, -5.0, 0.0]])
