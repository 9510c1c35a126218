"""Copies and categories of columns are looked up in training, with the result of all features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from isotone import Knots, MonotonicNetwork, Recipe, _engine
from isotone.losses import CrossEntropy, Loss, SquaredError
from isotone.training.fields import Field, compress
from isotone.training.fused import FusedTrainer
from isotone.training.learners import FusedLearner
from isotone.typing import Reals

FIELDS = [Field(7), Field(3, is_category=True), Field(2), Field(1)]
COUNTS = [field.n_features for field in FIELDS]
SHAPES = [[13, 16, 16, 1], [13, 40, 8, 1], [13, 5, 3], [13, 1]]
GROUPS = [[*range(10)], [10, 11, 12, *range(7, 10)]]  # of which both have the categories


def rows(n: int = 170) -> Any:
    """Copies of two columns, also at and beyond their knots, categories, and a plain column."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    knots = Knots.fit(X, [7, 2, 1])
    X[:5] = [[-9, 9, 0], [9, -9, 0], *([*np.sort(X[:, 0])[[k]], 0, 0] for k in (0, 50, -1))]
    x = knots.transform(X)
    x[:, -1] *= 3.0
    categories = np.eye(4)[np.arange(n) % 4][:, :3]  # every fourth row has none of the three
    return np.hstack([x[:, :7], categories, x[:, 7:]])


def same_mostly(x: Any, n_fields: int) -> Any:
    """In the last fields most rows are as one of them is."""
    differs = np.random.default_rng(3).random((len(x), len(FIELDS))) < 0.1
    differs[:, : len(FIELDS) - n_fields] = True
    return np.where(np.repeat(differs, COUNTS, axis=1), x, x[21])


def network(
    layers: list[int], learned: bool, chain: Any, groups: bool = False
) -> MonotonicNetwork:
    torch.manual_seed(1)
    directions = np.zeros((layers[-1], 13))
    directions[0] = np.repeat([1, 0, 0, -1], COUNTS)
    return MonotonicNetwork(
        layers,
        monotonic_cst=directions,
        lipschitz="learned" if learned else np.linspace(0.3, 2.0, 13),
        chain=chain,
        init="torch",
        outputs="logits" if layers[-1] > 1 else "values",
        group_size=4 if groups else None,
        interaction_cst=GROUPS if groups else None,
    )


def both(
    layers: list[int],
    learned: bool,
    chain: Any,
    precision: Any = "float64",
    groups: bool = False,
    n_usual: int = 0,
) -> tuple[FusedTrainer, FusedTrainer, Any]:
    one = network(layers, learned, chain, groups)
    loss: Loss = CrossEntropy() if layers[-1] > 1 else SquaredError()
    plain, looked = (
        FusedLearner([one, one], loss, Recipe(), precision=precision, fields=fields).trainer
        for fields in ((), FIELDS)
    )
    x = same_mostly(rows(), n_usual)
    usual = compress(x, FIELDS).visited.usual
    assert n_usual == (0 if usual is None else np.count_nonzero(usual.cells >= 0))
    y = np.arange(len(x)) % 3 if layers[-1] > 1 else x @ np.linspace(-1, 1, 13)
    return plain, looked, (x, y)


@pytest.mark.parametrize("layers", SHAPES, ids=str)
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("chain", ["one", "inf"])
@pytest.mark.parametrize("n_usual", [0, 3, 4])
def test_losses_gradients_and_predictions_are_those_of_all_copies(
    layers: list[int], learned: bool, chain: Any, n_usual: int
) -> None:
    plain, looked, (x, y) = both(layers, learned, chain, n_usual=n_usual)
    weight = np.random.default_rng(1).random(len(x)) * (np.arange(len(x)) % 4 > 0)
    for given in (None, weight):
        expected, found = (trainer.gradients(x, y, given) for trainer in (plain, looked))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        for one, other in zip(found[1] + found[2], expected[1] + expected[2], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        if learned:
            np.testing.assert_allclose(found[3], expected[3], rtol=1e-9, atol=1e-12)  # type: ignore[arg-type]
    np.testing.assert_allclose(looked.predict(x), plain.predict(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("chain", ["one", "inf"])
@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("n_usual", [0, 3, 4])
def test_training_is_that_of_all_copies(
    learned: bool, chain: Any, groups: bool, n_usual: int
) -> None:
    plain, looked, (x, y) = both(SHAPES[0], learned, chain, groups=groups, n_usual=n_usual)
    order = np.random.default_rng(2).permutation(len(x))
    for trainer in (plain, looked):
        for _ in range(5):
            trainer.train_epoch(x, y, order=order, batch_size=37, learning_rates=0.01)
    expected, found = ((*trainer.weights, *trainer.biases) for trainer in (plain, looked))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    if learned:
        lipschitz = looked.log_lipschitz, plain.log_lipschitz
        np.testing.assert_allclose(*lipschitz, rtol=1e-6, atol=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_usual", [0, 3])
def test_instruction_sets_and_threads_change_no_bit(n_usual: int) -> None:
    results: list[Reals] = []
    for isa in _engine.instruction_sets():
        for threads in (1, 2):
            _, looked, (x, y) = both(SHAPES[1], True, "one", "float32", n_usual=n_usual)
            looked._isa = isa
            for _ in range(3):
                looked.train_epoch(x, y, batch_size=50, learning_rates=0.01, threads=threads)
            results.append(looked.state()["parameters"])
    np.testing.assert_array_equal(results[0], results[1])  # the baseline rounds twice
    for other in results[3:]:
        np.testing.assert_array_equal(other, results[2])


def test_rows_are_compressed_without_loss() -> None:
    x = rows()
    looked = compress(x, FIELDS)
    assert looked.cells.shape == looked.values.shape == (len(x), 4)
    assert looked.shape == x.shape
    assert np.all((looked.cells >= [0, 7, 10, 12]) & (looked.cells < [7, 10, 12, 13]))
    np.testing.assert_array_equal(looked[10:20].values, compress(x[10:20], FIELDS).values)
    _, trainer, (_, y) = both(SHAPES[0], True, "one")
    assert trainer.loss(looked, y).tolist() == trainer.loss(x, y).tolist()


def test_what_is_usual_is_visited_once() -> None:
    looked = compress(same_mostly(rows(), 3), FIELDS)
    cells, values, usual = looked.visited
    assert cells is not None
    assert usual is not None
    assert cells.shape == values.shape == (len(looked), 1)
    again_cells = np.where(usual.cells < 0, cells[:, :1], usual.cells)
    again_values = np.where(usual.cells < 0, values[:, :1], usual.values)
    places = np.repeat(np.arange(len(looked)), np.diff(usual.begins)), usual.other_fields
    assert not np.any(
        (again_cells[places] == usual.other_cells) & (again_values[places] == usual.other_values)
    )
    again_cells[places], again_values[places] = usual.other_cells, usual.other_values
    np.testing.assert_array_equal(again_cells, looked.cells)
    np.testing.assert_array_equal(again_values, looked.values)
    assert compress(same_mostly(rows(), 2), FIELDS).visited.usual is None  # it would not pay
    assert compress(rows()[:0], FIELDS).visited.usual is None


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cells", [-1, 0, 0, 0], "`cells` must be copies of their fields"),
        ("values", [0.0], "`usual values` has 1 entries; there must be 4"),
        ("begins", [0, 1], "rows must divide the fields in which they differ"),
        ("begins", [], "`begins` has 0 entries; there must be 1"),
        ("other_fields", 0, "rows may differ in fields that have a usual cell"),
        ("other_fields", 4, "rows may differ in fields that have a usual cell"),
        ("other_cells", 13, "`cells` must be copies of their fields"),
        ("other_cells", [], "`other cells` has 0 entries"),
    ],
)
def test_wrong_entries_of_what_is_usual_are_refused(name: str, value: Any, message: str) -> None:
    trainer = both(SHAPES[0], True, "one", "float32")[1]
    looked = compress(same_mostly(rows(), 3).astype(np.float32), FIELDS)
    usual = looked.visited.usual
    assert usual is not None
    old = getattr(usual, name)
    new = np.full_like(old, value) if isinstance(value, int) else np.array(value, old.dtype)
    looked.__dict__["visited"] = looked.visited._replace(usual=usual._replace(**{name: new}))
    with pytest.raises(ValueError, match=message):
        trainer.predict(looked)


def test_what_is_not_copied_is_refused() -> None:
    with pytest.raises(ValueError, match="features 0 to 1 are not copies of one column"):
        compress(np.array([[0.5, 0.5]]), [Field(2)])
    with pytest.raises(ValueError, match="features 0 to 1 are not indicators of one column"):
        compress(np.array([[1.0, 1.0]]), [Field(2, is_category=True)])
    with pytest.raises(ValueError, match="have 3 features in all but the networks have 4"):
        FusedTrainer([4, 1], n_members=1, loss="squared_error", fields=[2, 1])
    trainer = both(SHAPES[0], True, "one")[1]
    looked = compress(rows(), FIELDS)
    looked.cells[3, 1] = 12
    with pytest.raises(ValueError, match="`cells` must be copies of their fields"):
        trainer.predict(looked)
    other = FusedTrainer([13, 1], n_members=1, loss="squared_error", fields=[7, 6])
    with pytest.raises(ValueError, match="the rows were looked up for fields"):
        other.predict(looked)
    assert FusedTrainer([2, 1], n_members=1, loss="squared_error", fields=[1, 1]).fields == ()
