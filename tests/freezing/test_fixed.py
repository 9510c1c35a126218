"""Fixed point: no score is rounded, the theorem needs no margin, and widths are what they say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import isotone
from bench.proofs import last_bit
from fixed_points import blocks, corners, fixed, knotted, rows_of
from isotone import FrozenNetwork, MonotonicNetwork, Scaling, certify, freeze
from isotone.certificate.widths import find_widths, follow, lattice
from isotone.cli import main
from isotone.freezing.fixed import to_fixed
from isotone.frozen import reference
from isotone.frozen.steps import Dense, Pointwise
from isotone.typing import Floats
from networks import by_hand, draw_network, small
from rationals import exact_score


def assert_exact(frozen: FrozenNetwork, x: Floats) -> None:
    scores = frozen.score(x).reshape(len(x), -1)
    for u, score in zip(frozen.snap(x), scores, strict=True):
        assert [Fraction(s) for s in score.tolist()] == exact_score(frozen, u)


@pytest.mark.parametrize("bits", [(4, 3), (8, 8), (12, 10), 9])
def test_every_score_is_the_exact_one(bits: Any) -> None:
    frozen = fixed(bits, clip=8)
    assert certify(frozen).holds
    assert_exact(frozen, rows_of(frozen))
    assert np.array_equal(reference.score(frozen, corners(frozen)), frozen.score(corners(frozen)))


def test_blocks_members_and_activations_are_exact_too() -> None:
    frozen = to_fixed(replace(small(), steps=blocks()), (6, 5), clip=4.0)
    assert_exact(frozen, rows_of(frozen))
    assert len(certify(frozen).widths) == 4  # inputs, first dense step, block, scores


@pytest.mark.parametrize("seed", [*range(8), *range(9, 15)])  # 8 has weights near 1e-30
def test_any_network_of_few_layers_is_certified_and_exact(seed: int) -> None:
    network = draw_network(seed, max_width=16, max_depth=3).network
    frozen = freeze(network, precision="fixed", bits=(6, 6))
    certificate = certify(frozen)
    assert certificate.holds
    assert set(certificate.rounding_errors) == {0.0}
    assert_exact(frozen, rows_of(frozen, 10)[:30])


def test_copies_between_knots_are_exact() -> None:
    frozen = knotted()
    assert frozen.copies is not None
    widths = certify(frozen).widths
    assert widths[0] <= 10
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 3.0, (50, len(frozen.inputs.encoded)))
    scores = frozen.score_features(X).reshape(len(X), -1)
    for u, score in zip(frozen.snap(X), scores, strict=True):
        assert [Fraction(s) for s in score.tolist()] == exact_score(frozen, u)


@pytest.mark.parametrize("group_size", [None, 2])
@pytest.mark.parametrize("lipschitz", [2.0, 0.3])
def test_adversarial_networks_are_monotone_without_a_margin(
    group_size: int | None, lipschitz: float
) -> None:
    network = last_bit.adversarial([4, 20, 20, 1], 0, group_size)
    frozen = freeze(network, precision="fixed", bits=(10, 8), clip=8)
    counts = last_bit.compare(frozen, frozen.score, 20_000, seed=1)
    assert {name: count.violations for name, count in counts.items()} == dict.fromkeys(counts, 0)


def test_slopes_may_cancel_the_residual_entirely() -> None:
    """L = λ exactly: f is constant, and that is proved, which no margin would allow."""
    frozen = by_hand(slope=-1.0, clip=8.0, grid=2.0**-8)
    certificate = certify(frozen)
    assert certificate.holds
    assert certificate.verdicts[0].slope == 0.0
    assert certificate.verdicts[0].margin == 0.0
    assert set(frozen.score(np.linspace(-9, 9, 1001)[:, None])) == {0.0}
    steeper = by_hand(slope=-1.0 - 2.0**-20, clip=8.0, grid=2.0**-8)
    assert not certify(steeper).holds


def test_a_network_that_needs_a_margin_in_float64_needs_none_in_fixed_point() -> None:
    """The same slopes with a finer number in one bias: sums are rounded, and the proof is gone."""
    exact = by_hand(slope=-1.0, clip=8.0, grid=2.0**-8)
    first, *rest = exact.steps
    assert isinstance(first, Dense)
    rounded = replace(exact, steps=(Dense(first.weight, np.array([0.1, 2.0**-60])), *rest))
    assert find_widths(exact)
    assert not find_widths(rounded)
    assert not certify(rounded).holds


def test_widths_hold_every_unit_and_are_not_absurd() -> None:
    frozen = fixed((8, 6), clip=4)
    units = follow(frozen)
    x = np.concatenate([corners(frozen), rows_of(frozen, 20_000)])
    scores = frozen.score(x)
    whole = scores / 2.0 ** units[-1].exponent
    assert np.array_equal(whole, np.rint(whole))
    width = int(np.abs(whole).max()).bit_length() + 1
    assert width <= certify(frozen).widths[-1] <= width + 4


def test_inputs_and_weights_have_the_bits_that_were_asked_for() -> None:
    frozen = fixed((9, 7), clip=8)
    assert frozen.clip == 255 * frozen.grid
    assert certify(frozen).widths[0] == 9
    for step in frozen.steps:
        if isinstance(step, Dense):
            whole = np.ldexp(step.weight, -lattice(step.weight))
            assert np.abs(whole).max() < 2**6


def test_weights_are_rounded_toward_zero() -> None:
    before, after = small(), fixed((10, 8))
    for old, new in zip(before.steps, after.steps, strict=True):
        if isinstance(old, Dense) and isinstance(new, Dense):
            assert np.all(np.abs(new.weight) <= np.abs(old.weight))


def test_more_bits_come_closer() -> None:
    x = np.random.default_rng(0).normal(size=(500, 3))
    off = [np.abs(fixed((b + 2, b)).score(x) - small().score(x)).max() for b in (4, 7, 10)]
    assert off[0] > 4 * off[1] > 16 * off[2]


def test_the_residual_is_exact_if_it_is_short_and_below_lambda_otherwise() -> None:
    torch.manual_seed(0)
    for lipschitz in (2.0, 0.3):
        network = MonotonicNetwork([2, 4, 4, 1], monotonic_cst=[1, -1], lipschitz=lipschitz)
        frozen = freeze(network, precision="fixed", bits=10)
        assert np.all(np.abs(frozen.residual) <= lipschitz)
        assert np.all(np.abs(frozen.residual) > lipschitz * (1 - 2.0**-22))
        assert np.array_equal(np.abs(frozen.residual), [[lipschitz] * 2]) == (lipschitz == 2.0)


def test_fixed_point_survives_the_file_and_names(tmp_path: Any) -> None:
    frozen = freeze(small(), precision="fixed", bits=(10, 8), features=["a", "b", "c"])
    assert frozen.features == ("a", "b", "c")
    frozen.save(tmp_path / "m.isotone")
    again = isotone.load(tmp_path / "m.isotone")
    assert again.fingerprint == frozen.fingerprint
    assert certify(again).widths == certify(frozen).widths
    assert freeze(again) is again


def test_exactness_is_found_from_the_numbers_alone() -> None:
    """float32 is exact below 2²⁴ units; a finer grid, a larger clip or no grid is not."""
    frozen = fixed((6, 4), clip=2)
    assert 0 < max(certify(frozen).widths) <= 24
    single = freeze(frozen, precision="float32", grid=frozen.grid)
    assert certify(single).widths == certify(frozen).widths
    assert np.array_equal(single.score(corners(frozen)), frozen.score(corners(frozen)))
    assert find_widths(replace(frozen, grid=None)) == ()
    wide = fixed((12, 10), clip=8)
    assert find_widths(replace(wide, grid=2.0**-40, clip=8.0)) == ()


def test_logits_of_several_classes() -> None:
    torch.manual_seed(0)
    signs = [[1, 0], [-1, 1], [0, 0]]
    network = MonotonicNetwork([2, 8, 3], monotonic_cst=signs, outputs="logits")
    frozen = freeze(network, precision="fixed", bits=(8, 8))
    assert certify(frozen).holds
    assert_exact(frozen, rows_of(frozen, 20))


def test_scaling_comes_before_the_grid() -> None:
    X = np.random.default_rng(0).lognormal(size=(100, 3))
    frozen = freeze(
        small(), scaling=Scaling.fit(X, ["log", "standard", "robust"]), precision="fixed", bits=10
    )
    assert certify(frozen).holds
    assert certify(frozen).guarantee == "computed scores are monotone to the last bit"


@pytest.mark.parametrize("bits", [1, 33, 8.0, (8,), (8, 8, 8), (8, None)])
def test_bits_must_be_one_or_two_whole_numbers(bits: Any) -> None:
    with pytest.raises(ValueError, match="must be a whole number from 2 to 32, or two of them"):
        fixed(bits)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="bits are those of precision='fixed', which needs them"):
        freeze(small(), precision="fixed")
    with pytest.raises(ValueError, match="bits are those of precision='fixed', which needs them"):
        freeze(small(), bits=8)
    with pytest.raises(ValueError, match="whose grid follows from `clip` and the `bits`"):
        fixed(8, grid=2.0**-8)
    with pytest.raises(ValueError, match="needs more than the 53 bits that float64 computes"):
        fixed((32, 20))
    with pytest.raises(ValueError, match="`clip=-1` must be a positive number"):
        fixed(8, clip=-1)
    tanh = by_hand(0.5)
    tanh = replace(tanh, steps=(tanh.steps[0], Pointwise("tanh"), tanh.steps[2]))
    with pytest.raises(ValueError, match="'tanh' has no exact fixed point; sorts and relu"):
        to_fixed(tanh, 8)
    broken = replace(small(), residual=np.zeros((1, 3)))
    with pytest.raises(ValueError, match="fails its certificate, and fixed point must not hide"):
        to_fixed(broken, 8)


def test_commands_say_that_scores_are_exact(tmp_path: Any, capsys: Any) -> None:
    frozen = fixed((8, 6), clip=4)
    frozen.save(tmp_path / "m.isotone")
    bits = ", ".join(map(str, certify(frozen).widths))
    expected = f"every score is computed without rounding; widths {bits} bits"
    for command in ("certify", "show"):
        with pytest.raises(SystemExit, match="0"):
            main([command, str(tmp_path / "m.isotone")])
        assert expected in " ".join(capsys.readouterr().out.split())
