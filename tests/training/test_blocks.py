"""Masked weights cost nothing and change nothing: results are those of zeros, to the last bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from isotone import Knots, _engine
from isotone.training.fields import Field
from isotone.training.fused import FusedTrainer
from isotone.typing import Bools, Floats

LAYERS = [13, 40, 48, 2]
FIELDS = (Field(7), Field(3, is_category=True), Field(2), Field(1))
SHAPES = [(n_out, n_in) for n_in, n_out in pairwise(LAYERS)]


def groups(n_out: int, n_in: int) -> Bools:
    """Four blocks, as of groups of features."""
    return np.equal.outer(np.arange(n_out) * 4 // n_out, np.arange(n_in) * 4 // n_in)


def scattered(n_out: int, n_in: int) -> Bools:
    """A few entries, and rows and columns without any."""
    mask = np.random.default_rng(0).random((n_out, n_in)) < 0.1
    mask[1:4], mask[:, 2] = False, False
    return mask


def stripes(n_out: int, n_in: int) -> Bools:
    """Long blocks of rows with the same holes."""
    return np.logical_and.outer(np.arange(n_out) != 7, np.arange(n_in) % 5 > 1)


def corner(n_out: int, n_in: int) -> Bools:
    """A single entry."""
    return np.add.outer(np.arange(n_out), np.arange(n_in)) == n_out + n_in - 2


def rows() -> tuple[Floats, Floats]:
    X = np.random.default_rng(0).normal(size=(90, 3))
    copies = Knots.fit(X, [7, 2, 1]).transform(X)
    x = np.hstack([copies[:, :7], np.eye(4)[np.arange(90) % 4][:, :3], copies[:, 7:]])
    return x, np.stack([X[:, 0] * X[:, 1], X[:, 2]], axis=1)


def trainer(masks: list[Bools], zeros: list[Bools], **options: Any) -> FusedTrainer:
    """Masked by the one, with weights that are zero outside of the other."""
    made = FusedTrainer(LAYERS, 4, n_members=2, loss="squared_error", masks=masks, **options)
    rng = np.random.default_rng(1)
    for weight, bias, inside in zip(made.weights, made.biases, zeros, strict=True):
        weight[:] = np.where(inside, rng.normal(size=weight.shape), 0)
        bias[:] = rng.normal(size=bias.shape)
    return made


@pytest.mark.parametrize("mask", [groups, scattered, stripes, corner])
@pytest.mark.parametrize("fields", [(), FIELDS], ids=["plain", "looked up"])
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("chain", ["one", "inf"])
@pytest.mark.parametrize("isa", _engine.instruction_sets())
def test_what_is_masked_is_what_is_zero(
    mask: Any, fields: Any, learned: bool, chain: Any, isa: str
) -> None:
    masks = [mask(*shape) for shape in SHAPES]
    options = {"chain": chain, "fields": fields, "lipschitz_max": 3.0 if learned else None}
    one, other = (trainer(given, masks, **options) for given in (masks, []))
    one._isa = other._isa = isa
    x, y = rows()
    np.testing.assert_array_equal(one.predict(x), other.predict(x))
    found, expected = one.gradients(x, y), other.gradients(x, y)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[3], expected[3])
    for k, inside in enumerate(masks):
        np.testing.assert_array_equal(found[1][k], np.where(inside, expected[1][k], 0))
        np.testing.assert_array_equal(found[2][k], expected[2][k])


@pytest.mark.parametrize("mask", [groups, scattered, stripes, corner])
@pytest.mark.parametrize("fields", [(), FIELDS], ids=["plain", "looked up"])
def test_training_leaves_zeros_and_moves_all_others(mask: Any, fields: Any) -> None:
    masks = [mask(*shape) for shape in SHAPES]
    one = trainer(masks, masks, fields=fields, weight_decay=0.1)
    before = [weight.copy() for weight in one.weights]
    for _ in range(3):
        one.train_epoch(*rows(), batch_size=32, learning_rates=0.01)
    for weight, start, inside in zip(one.weights, before, masks, strict=True):
        np.testing.assert_array_equal(weight != 0, np.broadcast_to(inside, weight.shape))
        assert np.all((weight != start)[:, inside])
