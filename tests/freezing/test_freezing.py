"""Freezing: the same function, inward rounding, and every network certified."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
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
    LipschitzConv2d,
    LipschitzLinear,
    LipschitzNetwork,
    MonotonicNetwork,
    Residual,
    Scaling,
    certify,
    freeze,
    limits,
)
from isotone.certificate import bounds
from isotone.freezing import margin, unroll
from isotone.frozen.steps import Dense, Sort, average
from networks import by_hand, draw_network, saturate, small


def image() -> list[nn.Module]:
    return [
        LipschitzConv2d(2, 4, 3, stride=2, padding=1),
        GroupSort(group_size=2),
        Center(4),
        Residual(LipschitzConv2d(4, 4, 3, padding=1), GroupSort(group_size=4), Center(4)),
        Abs(),
        nn.Flatten(),
        GroupSort(group_size=3),
        Center(36),
        LipschitzLinear(36, 8),
        nn.Tanh(),
        Residual(LipschitzLinear(8, 8), nn.LeakyReLU(0.3), Residual(LipschitzLinear(8, 8))),
        LipschitzLinear(8, 2),
    ]


def signal() -> list[nn.Module]:
    return [
        GroupSort(group_size=None),
        LipschitzConv1d(3, 6, 3, dilation=2, stride=2),
        nn.Identity(),
        GroupSort(group_size=None),
        nn.Flatten(),
        LipschitzLinear(18, 1),
    ]


def scores(network: LipschitzNetwork, X: Any) -> Any:
    with torch.no_grad():
        return network.double().eval()(torch.as_tensor(X)).numpy()


@pytest.mark.parametrize(("layers", "shape"), [(image, (2, 6, 6)), (signal, (3, 10))])
@pytest.mark.parametrize("chain", ["one", "inf"])
def test_networks_with_convolutions_freeze_to_the_same_function(
    layers: Callable[[], list[nn.Module]], shape: tuple[int, ...], chain: Any
) -> None:
    torch.manual_seed(0)
    n = math.prod(shape)
    network = MonotonicNetwork(
        layers(), input_shape=shape, monotonic_cst=np.arange(n) % 3 - 1, lipschitz=3.0, chain=chain
    )
    for _ in range(3):
        network.train()(torch.randn(32, n) + 0.5)  # move the running means
    X = np.random.default_rng(0).normal(size=(200, n))
    frozen = freeze(network)
    assert certify(frozen).holds
    lost = 2 * margin.MARGIN * 3.0 * np.abs(X).sum(axis=1, keepdims=True)
    assert np.all(np.abs(frozen.score(X).reshape(200, -1) - scores(network, X)) <= lost)


@pytest.mark.parametrize("seed", range(30))
def test_freezing_changes_the_function_by_little(seed: int) -> None:
    drawn = draw_network(seed, max_width=64)
    n = drawn.network.n_features
    X = np.random.default_rng(seed).normal(size=(100, n))
    frozen = freeze(drawn.network)
    size = float(np.abs(X).sum(axis=1).max() * frozen.lipschitz.max())
    expected = scores(drawn.network, X)
    assert np.allclose(frozen.score(X).reshape(100, -1), expected, atol=4e-3 * size), drawn.options


def test_exact_sums_of_the_stored_numbers_respect_the_bounds() -> None:
    for seed in range(30):
        torch.manual_seed(seed)
        network = LipschitzNetwork([4, 20, 20, 20, 1], lipschitz=1.7)
        saturate(network)
        for precision in ("float64", "float32"):
            frozen = freeze(network, precision=precision)
            largest = Fraction(1)
            for step in frozen.steps:
                if isinstance(step, Dense):
                    columns = step.weight.T.astype(float).tolist()
                    sums = [sum((Fraction(abs(w)) for w in c), Fraction(0)) for c in columns]
                    largest *= max(sums)
            assert Fraction(1.7) * (1 - Fraction(1, 10**6)) < largest <= Fraction(1.7)


def test_the_margin_costs_little_of_lambda() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork([4, 20, 20, 1], monotonic_cst=[1, 1, 0, 1], lipschitz=2.0)
    saturate(network)
    frozen = freeze(network)
    assert (frozen.clip, frozen.grid) == (1024, 2.0**-20)
    for slope in certify(frozen).slopes:
        if slope.feature != "x2":
            assert 0 < slope.scaled.low < 2e-4 * 2.0
            assert slope.scaled.high <= 4.0


def test_a_large_network_gets_a_coarser_grid_rather_than_a_large_margin() -> None:
    network = MonotonicNetwork([100, 128, 128, 128, 128, 1], monotonic_cst=np.ones(100))
    saturate(network)
    frozen = freeze(network)
    assert frozen.grid is not None
    assert 2.0**-20 < frozen.grid <= 2.0**-6
    assert min(s.scaled.low for s in certify(frozen).slopes) < 2 * margin.MARGIN


def test_freezing_a_frozen_network_changes_nothing() -> None:
    frozen = small()
    assert freeze(frozen) is frozen


class TestFreezingAgain:
    """No option is ignored for a frozen network: it is done, or refused."""

    @pytest.mark.parametrize("seed", range(8))
    def test_float32_is_float32_and_certified(self, seed: int) -> None:
        torch.manual_seed(seed)
        network = MonotonicNetwork([3, 16, 16, 1], monotonic_cst=[1, 0, -1], lipschitz=[1, 2, 3])
        saturate(network)
        frozen = freeze(network)
        narrow = freeze(frozen, precision="float32")
        assert (narrow.precision, narrow.grid) == ("float32", None)
        assert certify(narrow).holds
        assert narrow.certificate == certify(narrow).to_dict()
        X = np.random.default_rng(seed).normal(size=(200, 3))
        assert narrow.score(X).dtype == np.float32
        assert np.allclose(narrow.score(X), frozen.score(X), rtol=0, atol=1e-3)
        for step, before in zip(narrow.steps, frozen.steps, strict=True):
            if isinstance(step, Dense) and isinstance(before, Dense):
                assert np.all(np.abs(step.weight.astype(float)) <= np.abs(before.weight))

    def test_and_back_to_float64(self) -> None:
        again = freeze(small(precision="float32"), precision="float64")
        assert (again.precision, again.grid) == ("float64", 2.0**-20)
        assert "to the last bit" in certify(again).guarantee

    def test_clip_and_grid_are_taken(self) -> None:
        frozen = small()
        other = freeze(frozen, clip=64.0, grid=2.0**-16)
        assert (other.clip, other.grid) == (64.0, 2.0**-16)
        assert certify(other).holds
        coarse = freeze(frozen, grid=2.0**-16)
        assert freeze(coarse, precision="float64") is coarse
        assert freeze(coarse, clip=64.0).grid == 2.0**-16
        assert freeze(frozen, grid=None).grid is None
        assert freeze(freeze(frozen, grid=None), grid="auto").grid == 2.0**-20

    def test_names_scaling_and_provenance_are_taken(self) -> None:
        frozen = small(provenance={"seed": 7})
        scaling = Scaling.fit(np.random.default_rng(0).normal(size=(9, 3)), "standard")
        other = freeze(
            frozen, features=["a", "b", "c"], scaling=scaling, provenance={"by": "hand"}
        )
        assert (other.features, other.scaling) == (("a", "b", "c"), scaling)
        assert other.provenance == dict(frozen.provenance) | {"by": "hand"}
        assert other.grid == frozen.grid
        assert (other.certificate or {})["fingerprint"] == other.fingerprint
        classes = freeze(by_hand(0.5, outputs="logits"), classes=["no", "yes"])
        assert classes.classes == ("no", "yes")

    def test_a_network_may_begin_with_a_sort(self) -> None:
        frozen = replace(by_hand(0.5), steps=(Sort(1), Dense(np.array([[0.5]]), np.zeros(1))))
        assert certify(freeze(frozen, precision="float32")).holds

    def test_a_failing_network_is_not_repaired_in_silence(self) -> None:
        with pytest.raises(ValueError, match="fails its certificate, and another `precision`"):
            freeze(by_hand(-3.0), precision="float32")
        assert not certify(freeze(by_hand(-3.0), features=["renamed"])).holds

    def test_what_is_no_option_is_refused(self) -> None:
        with pytest.raises(ValueError, match="`precision='float16'` is unknown"):
            freeze(small(), precision="float16")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="`grid='fine'` must be a power of two"):
            freeze(small(), grid="fine")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"`clip=0\.0` must be between"):
            freeze(small(), clip=0)
        with pytest.raises(TypeError, match="must be a fitted Scaling"):
            freeze(small(), scaling="standard")  # type: ignore[arg-type]


def test_training_goes_on_unchanged_after_freezing() -> None:
    network = LipschitzNetwork([2, 4, 1])
    before = {k: v.clone() for k, v in network.state_dict().items()}
    freeze(network)
    assert network.training
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())


def test_the_frozen_network_carries_its_certificate_and_version() -> None:
    frozen = small()
    assert frozen.certificate is not None
    assert frozen.certificate["holds"] is True
    assert frozen.certificate["fingerprint"] == frozen.fingerprint
    assert "isotone" in frozen.provenance


def test_a_grid_that_leaves_no_slope_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the rounding margin .* uses up"):
        small(clip=1024.0, grid=2.0**-40)
    with pytest.raises(ValueError, match="choose a coarser `grid`"):
        small(precision="float32", grid=2.0**-10)


def test_float32_with_a_coarse_grid_is_monotone_to_the_last_bit() -> None:
    certificate = certify(small(precision="float32", clip=16.0, grid=2.0**-6))
    assert certificate.guarantee == "computed scores are monotone to the last bit"


def test_nan_weights_are_refused() -> None:
    network = LipschitzNetwork([2, 4, 1])
    nn.init.constant_(network.layers[0].weight, math.nan)
    with pytest.raises(ValueError, match="lower the learning rate and train again"):
        freeze(network)


def test_a_convolution_too_large_to_unroll_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MATRIX", replace(limits.MATRIX, largest=100))
    layers = [LipschitzConv1d(1, 2, 3), nn.Flatten(), LipschitzLinear(16, 1)]
    with pytest.raises(ValueError, match="160 weights are in one step; the limit is 100"):
        LipschitzNetwork(layers, input_shape=(1, 10))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda n: freeze(nn.Linear(2, 1)), TypeError, "takes a LipschitzNetwork"),
        (lambda n: freeze(n, scaling="standard"), TypeError, "must be a fitted Scaling"),
        (lambda n: freeze(n, grid="fine"), ValueError, "a power of two, 'auto' or None"),
        (lambda n: freeze(n, clip=3.3), ValueError, "`clip=3.3` and `grid="),
        (lambda n: freeze(n, features=["a"]), ValueError, "`features` has 1 names"),
        (lambda n: freeze(n, classes=["a", "b"]), ValueError, "outputs='logits'"),
    ],
)
def test_bad_arguments_are_explained(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make(LipschitzNetwork([2, 4, 1]))


def test_what_freezing_itself_could_get_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 1])
    saturate(network)
    with monkeypatch.context() as patch:
        patch.setattr(margin, "_leave_margin", lambda frozen, error: frozen)
        with pytest.raises(RuntimeError, match="fails its certificate"):
            freeze(network)
    with monkeypatch.context() as patch:
        patch.setattr(margin, "_shrink", lambda frozen, factors: frozen.steps)
        with pytest.raises(RuntimeError, match="could not be brought below their bounds"):
            freeze(network)
    with monkeypatch.context() as patch:
        patch.setattr(unroll, "_array", lambda values, length: np.ones(length))
        with pytest.raises(RuntimeError, match="do not compute what the network does"):
            freeze(network)


def test_rows_may_be_clipped_within_what_freezing_compares() -> None:
    frozen = freeze(MonotonicNetwork([3, 8, 1], monotonic_cst=[1, 0, -1]), clip=0.25)
    assert certify(frozen).holds
    assert frozen.score([[0.25, 0.1, -0.25]]) == frozen.score([[9.0, 0.1, -9.0]])


@pytest.mark.parametrize("layers", [[3, 8, 8, 1], [3, 8, 2], [3, 1]])
@pytest.mark.parametrize("group_size", [None, 2])
def test_an_average_is_one_certified_network(layers: list[int], group_size: int | None) -> None:
    networks = []
    for seed in range(5):
        torch.manual_seed(seed)
        options = {"monotonic_cst": [1, -1, 0], "lipschitz": 1.0 + seed, "group_size": group_size}
        networks.append(MonotonicNetwork(layers, **options))
        saturate(networks[-1])
    frozen = freeze(networks)
    certificate = certify(frozen)
    assert certificate.holds
    assert frozen.lipschitz == pytest.approx(3.0)
    X = np.random.default_rng(0).normal(size=(200, 3))
    expected = np.mean([scores(network, X) for network in networks], axis=0)
    lost = 2 * margin.MARGIN * 3.0 * np.abs(X).sum(axis=1, keepdims=True)
    assert np.all(np.abs(frozen.score(X).reshape(200, -1) - expected) <= lost)


def test_the_average_is_the_mean_of_the_networks_to_within_e() -> None:
    networks: list[LipschitzNetwork] = []
    for seed, chain in enumerate(("one", "inf", "one")):
        torch.manual_seed(seed)
        width = 4 + 2 * seed
        between = [nn.Tanh(), LipschitzLinear(width, width), GroupSort(group_size=2)][: 3 * seed]
        layers = [LipschitzLinear(2, width), *between, nn.Tanh(), LipschitzLinear(width, 1)]
        networks.append(LipschitzNetwork(layers, chain=chain))
        saturate(networks[-1])
    frozen = freeze(networks, grid=None)
    each = [freeze(network, grid=None) for network in networks]
    X = np.random.default_rng(0).normal(size=(300, 2))
    errors = [bounds.rounding_errors(model)[0] for model in (frozen, *each)]
    mean = np.mean([model.score(X) for model in each], axis=0)
    assert np.all(np.abs(frozen.score(X) - mean) <= errors[0] + np.mean(errors[1:]) + 1e-15)
    slopes = [bounds.slopes(model.steps, 2) for model in each]
    assert np.all(bounds.slopes(frozen.steps, 2) <= np.mean(slopes, axis=0) * (1 + 1e-15))


def test_weights_of_members_add_up_to_at_most_one() -> None:
    for n in range(1, 200):
        weights = average([[Sort(1)]] * n, [1.0 / n] * n).weights
        assert 1 - 2.0**-52 * n <= sum(map(Fraction, weights)) <= 1


def test_shares_weigh_the_average() -> None:
    torch.manual_seed(0)
    networks = [MonotonicNetwork([2, 4, 1], monotonic_cst=[1, 0], lipschitz=k) for k in (1, 3)]
    frozen = freeze(networks, shares=[0.25, 0.75])
    X = np.random.default_rng(0).normal(size=(300, 2))
    each = [freeze(network).score(X) for network in networks]
    np.testing.assert_allclose(frozen.score(X), 0.25 * each[0] + 0.75 * each[1], atol=1e-4)
    assert frozen.lipschitz.tolist() == [2.5, 2.5]
    assert certify(frozen).holds


@pytest.mark.parametrize("shares", [[0.5], [0.5, 0.6], [1.5, -0.5], [1.0, 0.0], [math.nan, 1.0]])
def test_shares_must_be_positive_and_add_up_to_one(shares: list[float]) -> None:
    networks = [LipschitzNetwork([2, 4, 1]) for _ in range(2)]
    with pytest.raises(ValueError, match="one positive number for each of 2 networks"):
        freeze(networks, shares=shares)
    with pytest.raises(ValueError, match="`shares` belong to networks that were trained"):
        freeze(freeze(networks), shares=shares)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (LipschitzNetwork([2, 4, 2]), "must have the same features"),
        (LipschitzNetwork([3, 4, 1]), "must have the same features"),
        (MonotonicNetwork([2, 4, 1], monotonic_cst=[1, 0]), "must have the same features"),
    ],
)
def test_different_networks_have_no_average(other: LipschitzNetwork, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        freeze([LipschitzNetwork([2, 4, 1]), other])
