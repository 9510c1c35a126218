"""Float32 to the last bit: what `freeze(..., precision="float32", exact=True)` promises."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from bench.proofs.last_bit import adversarial
from isotone import FrozenNetwork, MonotonicNetwork, Scaling, certify, freeze, load
from isotone.certificate import bounds
from isotone.certificate.ordered import find_errors
from isotone.certificate.widths import lattice
from isotone.cli import main
from isotone.freezing import single
from isotone.freezing.single import center, to_single
from isotone.frozen.steps import Dense, Sort

RANGES = [(-7.0, 17.0), (0.0, 24.0), (-2.0, 22.0), (-6.0, 18.0)]


@cache
def paper() -> MonotonicNetwork:
    torch.manual_seed(0)
    return MonotonicNetwork([4, 20, 20, 1], monotonic_cst=[1, 1, 0, 1], lipschitz=2.0)


def exact(**options: Any) -> FrozenNetwork:
    return freeze(paper(), precision="float32", exact=True, **options)


def test_it_is_certified_to_the_last_bit_with_a_small_margin() -> None:
    frozen = exact(ranges=RANGES)
    certificate = certify(frozen)
    assert certificate.guarantee == "computed scores are monotone to the last bit"
    assert frozen.precision == "float32"
    for verdict in certificate.verdicts:
        assert verdict.computed
        assert verdict.margin is not None
        assert verdict.slope >= verdict.margin
        assert verdict.margin <= 2.0 * single.MARGIN


def test_the_grid_is_the_finest_with_that_margin() -> None:
    for options in ({}, {"clip": 8.0}, {"ranges": RANGES}):
        frozen = exact(**options)
        assert frozen.grid is not None
        finer = exact(**options, grid=frozen.grid / 2)
        (margin,) = {v.margin for v in certify(finer).verdicts}
        assert margin is not None
        assert margin > 2.0 * single.MARGIN
        assert certify(finer).holds  # it can be had, for more of λ


def test_bounds_of_any_order_would_need_a_grid_several_times_as_coarse() -> None:
    for options in ({}, {"ranges": RANGES}):
        frozen = exact(**options)
        assert np.all(bounds.rounding_errors(frozen) > 4 * find_errors(frozen).order)


def test_residual_and_first_step_have_so_few_bits_that_nothing_is_rounded() -> None:
    frozen = exact(ranges=RANGES)
    first = frozen.steps[0]
    assert isinstance(first, Dense)
    alone = replace(frozen, steps=(Dense(first.weight, first.bias), Sort(20), _sum_of_nothing()))
    assert find_errors(alone).order == 0.0
    assert frozen.grid is not None
    size = np.abs(frozen.residual).sum() * frozen.clip
    assert size <= 2.0 ** (24 + lattice(frozen.residual)) * frozen.grid


def _sum_of_nothing() -> Dense:
    return Dense(np.zeros((1, 20), "f4"), np.zeros(1, "f4"))


def test_ranges_center_the_network_without_changing_its_function() -> None:
    scaling = Scaling([False] * 3 + [True], [0.0] * 4, [1.0] * 4, [1.0, 2.0, 3.0, 4.0], [0.5] * 4)
    frozen = freeze(paper(), scaling=scaling)
    X = np.random.default_rng(0).uniform(1.0, 20.0, (500, 4))
    ends = np.stack([X.min(axis=0), X.max(axis=0)], axis=1)
    moved, typical, reach = center(frozen, ends)
    assert np.array_equal(typical, np.zeros(4))
    np.testing.assert_allclose(moved.score(X), frozen.score(X), atol=1e-4)
    assert np.abs(moved.scaling.transform(X)).max() <= reach
    assert reach < np.abs(frozen.scaling.transform(X)).max() + 1


def test_scores_are_near_those_of_float64() -> None:
    """A share of at most `MARGIN` of g is lost, and half a cell of every input."""
    frozen, X = freeze(paper()), np.random.default_rng(0).uniform(-8, 8, (500, 4))
    found = freeze(frozen, precision="float32", exact=True, clip=8.0)
    assert found.grid is not None
    size = 4 * 8.0 * 2.0  # Σ λ R
    assert (
        np.abs(found.score(X) - frozen.score(X)).max()
        <= size * (2 * single.MARGIN + single.TRUNCATED) + 16 * found.grid
    )


def test_typical_inputs_keep_their_scores() -> None:
    typical = np.array([5.0, 2.0, 1.0, 3.0])
    frozen = freeze(adversarial([4, 20, 20, 1], 0))
    ends = np.column_stack([RANGES, typical])
    for ranges, most in ((ends, 0.05), (ends[:, :2], 1.0)):
        found = freeze(frozen, precision="float32", exact=True, ranges=ranges)
        change = abs(float((found.score(typical[None]) - frozen.score(typical[None]))[0]))
        assert most / 20 * (most == 1.0) <= change <= most


def test_a_network_trained_with_least_slopes_is_not_shrunk() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork(
        [4, 20, 20, 1], monotonic_cst=[1] * 4, lipschitz=2.0, least_slopes=0.04, init="bound"
    )
    for slopes, least in ((network, 1 - single.TRUNCATED), (adversarial([4, 20, 20, 1], 0), 0)):
        found = freeze(slopes, precision="float32", exact=True)
        (constant,) = certify(found).constants
        assert constant >= least
    assert constant < 1 - single.MARGIN / 4


def test_freezing_it_again_keeps_the_guarantee() -> None:
    once = exact(clip=8.0)
    again = freeze(once, precision="float32", exact=True)
    assert certify(again).holds
    assert (again.clip, again.grid) == (once.clip, once.grid)
    assert np.array_equal(freeze(once).residual, once.residual)


def test_knots_and_classes_are_certified_too() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork(
        [3, 8, 3], monotonic_cst=[[1, 0, 0], [0, 1, 0], [0, 0, -1]], outputs="logits"
    )
    frozen = freeze(network, precision="float32", exact=True, clip=4.0)
    assert certify(frozen).holds
    assert "and so are probabilities" in certify(frozen).guarantee


def test_messages() -> None:
    with pytest.raises(ValueError, match="`exact=True` goes with precision='float32'; got None"):
        freeze(paper(), exact=True)
    with pytest.raises(ValueError, match="`ranges` are used with `exact=True` only"):
        freeze(paper(), ranges=RANGES)
    with pytest.raises(ValueError, match=r"`ranges` has shape \(2, 2\); it needs a smaller"):
        exact(ranges=RANGES[:2])
    with pytest.raises(
        ValueError, match="no grid up to 1 gives a proof in float32 with inputs clamped"
    ):
        exact(clip=2.0**20)
    with pytest.raises(ValueError, match="fails its certificate, and float32 must not hide that"):
        to_single(replace(freeze(paper()), residual=np.zeros((1, 4))))
    sorted_last = freeze(MonotonicNetwork([2, 1], monotonic_cst=[1, 1]))
    sorted_last = replace(sorted_last, steps=(*sorted_last.steps, Sort(1)))
    with pytest.raises(ValueError, match="`ranges` need a network that ends with a dense step"):
        to_single(sorted_last, ranges=RANGES[:2])


def test_the_command_writes_it_and_others_name_it(tmp_path: Any, capsys: Any) -> None:
    source, out = str(tmp_path / "m.isotone"), str(tmp_path / "m32.isotone")
    freeze(paper(), features=["fd", "pt", "vertex", "ip"]).save(source)
    options = [
        f"--range={n}={a}:{b}"
        for n, (a, b) in zip(["fd", "pt", "vertex", "ip"], RANGES, strict=True)
    ]
    with pytest.raises(SystemExit, match="0"):
        main(["freeze", source, "--out", out, *options])
    assert "computed scores are monotone to the last bit" in capsys.readouterr().out
    assert load(out).clip == 12.0
    for command, words in {
        "certify": "computed scores are monotone to the last bit",
        "show": "precision='float32', exact=True: computed scores are monotone to the last bit",
    }.items():
        with pytest.raises(SystemExit, match="0"):
            main([command, out])
        assert words in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--range", "pt=low"], "`--range pt=low` is not a range; write a name and two or three"),
        (["--range", "pt=0:1"], "it must name each feature of the model once"),
    ],
)
def test_the_command_refuses_other_ranges(
    tmp_path: Any, capsys: Any, options: list[str], message: str
) -> None:
    freeze(paper(), features=["fd", "pt", "vertex", "ip"]).save(tmp_path / "m.isotone")
    with pytest.raises(SystemExit, match="2"):
        main(
            ["freeze", str(tmp_path / "m.isotone"), "--out", str(tmp_path / "o.isotone"), *options]
        )
    assert message in " ".join(capsys.readouterr().err.split())
