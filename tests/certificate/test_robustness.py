"""Robustness of the decision between classes: attacks that search for a row that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from isotone import FrozenNetwork, MonotonicNetwork, Scaling, certify, freeze
from isotone.certificate import bounds
from isotone.frozen.steps import Dense, Sort
from isotone.typing import Floats
from networks import saturate

DIRECTIONS = [[1, 0, 0], [0, 0, 0], [-1, 1, 0]]
RNG = np.random.default_rng(0)
X = RNG.lognormal(size=(300, 3))
SCALING = Scaling.fit(X, ["standard", "robust", "log"])


def classes(seed: int = 0, directions: Any = DIRECTIONS, **options: Any) -> FrozenNetwork:
    """Three classes, all of which win some rows, as steep as they may be."""
    torch.manual_seed(seed)
    network = MonotonicNetwork(
        [3, 12, 12, 3], monotonic_cst=directions, lipschitz=2.0, outputs="logits"
    )
    saturate(network)
    frozen = freeze(network, **({"scaling": SCALING} | options))
    *steps, last = frozen.steps
    assert isinstance(last, Dense)
    balance = frozen.score(X).astype(np.float64).mean(axis=0)
    bias = (last.bias - balance).astype(last.bias.dtype)
    return replace(frozen, steps=(*steps, Dense(last.weight, bias)))


def winner(frozen: FrozenNetwork, table: Floats) -> Any:
    return frozen.score(table).argmax(axis=1)


def near_the_border(frozen: FrozenNetwork) -> Floats:
    """Rows so close to where the class changes that rounding decides, by bisection."""
    x = SCALING.transform(X)
    start, end = x, np.roll(x, 1, axis=0)
    apart = winner(frozen, SCALING.inverse(start)) != winner(frozen, SCALING.inverse(end))
    start, end = start[apart], end[apart]
    won = winner(frozen, SCALING.inverse(start))
    for _ in range(60):
        middle = (start + end) / 2
        same = winner(frozen, SCALING.inverse(middle)) == won
        start = np.where(same[:, None], middle, start)
        end = np.where(same[:, None], end, middle)
    return SCALING.inverse(start)


@pytest.mark.parametrize("options", [{}, {"precision": "float32", "clip": 64.0}, {"grid": None}])
@pytest.mark.parametrize("seed", range(3))
def test_no_attack_within_the_radius_changes_the_class(seed: int, options: Any) -> None:
    frozen = classes(seed, **options)
    certificate = certify(frozen)
    rng = np.random.default_rng(seed)
    for table in (X, near_the_border(frozen), X * 100):
        radius, won = certificate.certified_radius(table), winner(frozen, table)
        for i in range(3):
            for sign, distance in ((-1, radius.down[:, i]), (1, radius.up[:, i])):
                for far in (1e-9, 1.0, 50.0):  # infinite ones are tried near and far
                    moved = table.copy()
                    moved[:, i] += sign * np.where(np.isinf(distance), far, distance)
                    np.testing.assert_array_equal(winner(frozen, moved), won)
        for sharp in (1e-3, 1.0):  # corners of the ball, and its inside
            share = rng.dirichlet(np.full(3, sharp), len(table))
            move = share * rng.choice([-1, 1], share.shape)
            x = SCALING.transform(table)
            moved = SCALING.inverse(x + 0.9999 * radius.scaled[:, None] * move)
            inside = np.abs(SCALING.transform(moved) - x).sum(axis=1) <= radius.scaled
            assert inside.mean() > 0.5 or table is not X
            np.testing.assert_array_equal(winner(frozen, moved)[inside], won[inside])


def test_radii_are_not_idle() -> None:
    """Twice as far as the theorem needs, some decisions do change."""
    frozen = classes()
    radius, won = certify(frozen).certified_radius(X), winner(frozen, X)
    assert len(np.unique(won)) == 3
    assert np.median(radius.scaled) > 0.01
    share = np.eye(3)[RNG.integers(3, size=(100, len(X)))] * RNG.choice([-1, 1], (100, len(X), 1))
    x = SCALING.transform(X) + 8 * radius.scaled[:, None] * share
    flips = [winner(frozen, SCALING.inverse(moved)) != won for moved in x]
    assert np.any(flips)


def test_a_class_that_a_feature_only_helps_keeps_winning() -> None:
    frozen = classes()
    radius, won = certify(frozen).certified_radius(X), winner(frozen, X)
    assert np.all(np.isinf(radius.up[won == 0, 0]))
    assert np.all(np.isinf(radius.down[won == 2, 0]))
    assert np.all(np.isinf(radius.up[won == 2, 1]))
    assert np.all(np.isfinite(radius.up[:, 2]))


def test_rows_that_tie_have_a_radius_only_where_a_move_helps() -> None:
    zero = np.zeros((3, 3))
    frozen = replace(classes(), steps=(Dense(zero, np.zeros(3)),), residual=zero)
    residual = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [-1.0, 1.0, 0.0]])
    frozen = replace(frozen, residual=residual, scaling=Scaling.identity(3))
    radius = certify(frozen).certified_radius(np.zeros((1, 3)))  # the first class wins the tie
    assert radius.scaled[0] == 0
    assert radius.down[0, 0] == radius.up[0, 1] == 0
    assert np.isinf(radius.up[0, 0])
    assert np.isinf(radius.down[0, 1])


def test_no_more_classes_change_than_the_bound_says() -> None:
    frozen = classes()
    certificate, won = certify(frozen), winner(frozen, X)
    for shifts in ([0.1, 0.0, 0.0], [0.05, 0.05, 0.02], [(0.0, 0.2), 0.0, (-0.02, 0.0)]):
        pairs = np.array([(-s, s) if np.ndim(s) == 0 else s for s in shifts])
        bound = certificate.flip_bound(X, shifts)
        assert bound < 1
        for _ in range(20):
            moved = X + RNG.uniform(*pairs.T, X.shape)
            assert np.mean(winner(frozen, moved) != won) <= bound
    assert certificate.flip_bound(X, [0, 0, 0]) == 0
    assert certificate.flip_bound(X[:0], [1, 1, 1]) == 0


@pytest.mark.parametrize("seed", range(4))
def test_differences_of_outputs_have_the_slopes_that_are_said(seed: int) -> None:
    frozen = classes(seed, np.zeros((3, 3)), scaling=Scaling.identity(3), grid=None)
    each = bounds.slopes(frozen.steps, 3)
    x = np.random.default_rng(seed).normal(size=(5000, 3))
    for k in range(3):
        joint = bounds.rival_slopes(frozen.steps, 3, k)
        assert np.all(joint <= (each[k] + each) * (1 + 1e-12))
        assert np.all(joint[k] == 0)
        for i in range(3):
            moved = x + 1e-4 * np.eye(3)[i]
            change = (frozen.score(moved) - frozen.score(x)) / 1e-4
            rise = np.abs(change[:, [k]] - change).max(axis=0)
            assert np.all(rise <= joint[:, i] + 1e-6)


def test_differences_after_a_sort_are_bounded_one_by_one() -> None:
    steps = (Dense(np.eye(3), np.zeros(3)), Sort(3))
    expected = 2.0 * bounds.slopes(steps, 3)
    np.testing.assert_allclose(bounds.rival_slopes(steps, 3, 1), expected)


def test_what_cannot_be_decided_is_said() -> None:
    with pytest.raises(ValueError, match=r"`threshold=0.5` is for one output; with 3 classes the"):
        certify(classes()).certified_radius(X, 0.5)
    values = replace(classes(directions=np.zeros((3, 3))), outputs="values", classes=None)
    with pytest.raises(ValueError, match=r"decisions need one output, or classes; this"):
        certify(values).certified_radius(X)


class TestShiftsByName:
    def test_they_are_those_of_the_features(self) -> None:
        certificate = certify(classes())
        by_place = certificate.flip_bound(X, [0.0, 0.05, (-0.02, 0.01)])
        first, second, third = certificate.frozen.features
        assert 0 < by_place < 1
        assert certificate.flip_bound(X, {third: (-0.02, 0.01), second: 0.05}) == by_place
        series = pd.Series([0.05, 0.0], index=[second, first])
        assert certificate.flip_bound(X, series) == certificate.flip_bound(X, [0, 0.05, 0])
        assert certificate.flip_bound(X, pd.Series([0, 0.05, 0])) > 0  # by place
        assert certificate.flip_bound(X, {}) == 0

    def test_unknown_names_are_refused(self) -> None:
        certificate = certify(classes())
        names = ", ".join(map(repr, certificate.frozen.features))
        message = f"`shifts` names 'incme'; the columns are {names}: name some of these"
        with pytest.raises(ValueError, match=message):
            certificate.flip_bound(X, {"incme": 1.0})

    @pytest.mark.parametrize("bad", ["wide", (1.0, 2.0, 3.0), None, np.nan, (0.0, np.inf)])
    def test_what_is_no_shift_is_refused(self, bad: Any) -> None:
        certificate = certify(classes())
        with pytest.raises(ValueError, match="must hold finite numbers or pairs"):
            certificate.flip_bound(X, {certificate.frozen.features[0]: bad})
