"""Bits: no score moves by more than the distance, and no more decisions change than the bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta

from fixed_points import blocks, corners, rows_of
from isotone import FrozenNetwork, MonotonicNetwork, certify, freeze, load
from isotone.certificate.distance import distances
from isotone.cli import main
from isotone.freezing.bits import choose_bits, upper_limit
from isotone.freezing.fixed import to_fixed
from isotone.freezing.margin import dense_first
from isotone.typing import Floats
from networks import small


def shallow() -> FrozenNetwork:
    torch.manual_seed(0)
    return freeze(MonotonicNetwork([2, 4, 1], monotonic_cst=[1, -1], group_size=2))


def normal(n: int = 2000, n_columns: int = 2) -> Floats:
    return np.random.default_rng(0).normal(size=(n, n_columns))


@pytest.mark.parametrize(
    ("name", "bits"),
    [("small", (5, 4)), ("small", (12, 9)), ("shallow", (8, 6)), ("blocks", (6, 5))],
)
def test_no_score_within_the_clip_moves_further_than_the_distance(name: str, bits: Any) -> None:
    made = {"small": small(), "shallow": shallow(), "blocks": replace(small(), steps=blocks())}
    frozen = made[name]
    fixed = to_fixed(frozen, bits, clip=4.0)
    bound = distances(frozen, dense_first(frozen), fixed)
    x = np.clip(np.concatenate([rows_of(fixed, 5000), corners(fixed)]), -fixed.clip, fixed.clip)
    moved = np.abs(fixed.score(x) - frozen.score(x)).max()
    assert 0 < moved <= bound[0] < 200 * moved


def test_the_narrowest_widths_keep_the_bound_and_narrower_ones_break_it() -> None:
    frozen, X = shallow(), normal()
    found = choose_bits(frozen, X, threshold=0.1, max_flips=0.02, rule="box")
    assert found.flips <= found.flip_bound <= 0.02
    assert certify(found.frozen).holds
    assert found.frozen.provenance["fixed"]["flip_bound"] == found.flip_bound
    fewer = to_fixed(frozen, (found.bits[0] - 1, found.bits[1]), clip=4.0)
    assert distances(frozen, frozen.steps, fewer)[0] > found.distance
    decided = choose_bits(frozen, X, threshold=0.1, max_flips=0.02)
    again = freeze(frozen, precision="fixed", bits="auto", rows=X, threshold=0.1, max_flips=0.02)
    assert again.fingerprint == decided.frozen.fingerprint
    assert decided.flips < decided.flip_limit <= 0.02
    assert sum(decided.bits) < sum(found.bits)  # a worst case costs bits


def test_the_limit_is_that_of_clopper_and_pearson() -> None:
    for k, n, alpha in ((0, 50, 0.05), (3, 50, 0.01), (49, 50, 0.3), (700, 20_000, 1e-5)):
        exact = float(beta.ppf(1.0 - alpha, k + 1, n - k))
        assert exact <= upper_limit(k, n, alpha) <= exact * (1.0 + 1e-5)
    assert upper_limit(50, 50, 0.01) == 1.0


def test_other_rows_flip_no_more_often_than_the_limit() -> None:
    """In 200 draws of rows a limit of 90 % confidence fails in about 20, at most."""
    frozen = shallow()
    fixed = to_fixed(frozen, (6, 5), clip=8.0)
    X = np.random.default_rng(1).normal(size=(200_000, 2))
    changed = (fixed.score(X) >= 0.1) != (frozen.score(X) >= 0.1)
    counts = changed.reshape(200, 1000).sum(axis=1)
    limits = [upper_limit(int(k), 1000, 0.1) for k in counts]
    assert changed.mean() > 0
    assert np.mean(np.array(limits) < changed.mean()) <= 0.16


def test_flips_are_counted_exactly() -> None:
    frozen, X = shallow(), normal(500)
    found = choose_bits(frozen, X, max_flips=0.3)
    changed = (found.frozen.score(X) >= 0) != (frozen.score(X) >= 0)
    assert found.flips == np.mean(changed)


def test_rows_beyond_the_clip_may_flip() -> None:
    frozen, X = shallow(), normal(200)
    X[:50] *= 100.0
    with pytest.raises(ValueError, match="the best bound found is"):
        choose_bits(frozen, X, max_flips=0.05, clip=4.0, rule="box")


@pytest.mark.parametrize("clip", [None, 16.0])
def test_fixed_point_clamps_no_farther_out_than_the_network(clip: float | None) -> None:
    """Otherwise rows that both clamp would move by more than the distance."""
    frozen, X = freeze(shallow(), clip=2.0), 1.5 * normal(500)
    found = choose_bits(frozen, X, threshold=0.1, max_flips=0.7, clip=clip, rule="box")
    assert found.frozen.clip <= 2.0
    inside = np.abs(X).max(axis=1) <= found.frozen.clip
    moved = np.abs(found.frozen.score(X) - frozen.score(X))
    assert moved[inside].max() <= found.distance
    assert found.flips <= found.flip_bound


def test_the_largest_logit_decides_between_classes() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork([2, 4, 3], monotonic_cst=[[1, 0], [0, 0], [0, 1]], outputs="logits")
    frozen, X = freeze(network), normal(500)
    found = choose_bits(frozen, X, max_flips=0.2)
    changed = found.frozen.score(X).argmax(axis=1) != frozen.score(X).argmax(axis=1)
    assert found.flips == np.mean(changed) <= found.flip_limit <= 0.2
    assert found.flips <= found.flip_bound


def test_a_command_makes_fixed_point(tmp_path: Path, capsys: Any) -> None:
    model, out, rows = (tmp_path / name for name in ("m.isotone", "f.isotone", "rows.csv"))
    frozen = shallow()
    frozen.save(model)
    np.savetxt(rows, normal(300), delimiter=",", header="x0,x1", comments="")
    assert _run("quantize", model, "--bits", "8,6", "--clip", "4", "--out", out) == 0
    assert load(out).fingerprint == to_fixed(frozen, (8, 6), 4.0).fingerprint
    assert "every score is computed without rounding; widths 8," in capsys.readouterr().out
    assert _run("quantize", model, rows, "--max-flips", "0.2", "--out", out) == 0
    assert "of other such rows at most " in capsys.readouterr().out
    assert _run("quantize", model, rows, "--rule", "table", "--out", out) == 2
    assert "`rule='table'` is unknown; choose from" in capsys.readouterr().err
    assert certify(load(out)).widths
    given = ("--bits", "8,6", "--clip", "4", "--threshold", "0.1")
    assert _run("quantize", model, rows, *given, "--out", out) == 0
    assert "bits: 8 of inputs, 6 of weights" in capsys.readouterr().out
    assert load(out).provenance["fixed"]["threshold"] == 0.1
    assert _run("quantize", model, "--out", out) == 2
    assert "needs a table of rows to decide on" in capsys.readouterr().err
    assert _run("quantize", model, "--bits", "many", "--out", out) == 2
    assert "must be a whole number from 2 to 32" in capsys.readouterr().err


def _run(*arguments: object) -> Any:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code


def test_refusals() -> None:
    with pytest.raises(ValueError, match="or 'auto', which needs `rows`"):
        freeze(small(), precision="fixed", bits="auto")
    with pytest.raises(ValueError, match="`max_flips=2` must be between 0 and 1"):
        choose_bits(shallow(), normal(), max_flips=2)
    with pytest.raises(ValueError, match="`rows` is empty; give rows like those"):
        choose_bits(shallow(), normal(0), max_flips=0.1)
    with pytest.raises(ValueError, match="cannot be proved with scores of at most 53 bits"):
        choose_bits(shallow(), normal(), max_flips=1e-12, clip=0.5)
    with pytest.raises(ValueError, match=r"`confidence=1.0` must be between 0 and 1"):
        choose_bits(shallow(), normal(), max_flips=0.1, confidence=1.0)
