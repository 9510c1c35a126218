"""FrozenNetwork: scores that depend on the row alone, numbers that cannot be changed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import isotone
from isotone import Engine, FrozenNetwork, MonotonicNetwork, Scaling, freeze
from isotone._engine import find_probabilities
from isotone.frozen import reference
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.reference import Units
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, residual_block
from networks import by_hand, every_step, small


def rows(n: int, n_features: int = 3, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, n_features)) * 3


def test_score_does_not_depend_on_the_batch() -> None:
    frozen = small()
    X = rows(3000)
    whole = frozen.score(X)
    assert np.array_equal(whole, np.concatenate([frozen.score(X[i : i + 1]) for i in range(3000)]))
    assert np.array_equal(whole, frozen.score(np.asfortranarray(X)))
    assert np.array_equal(whole[::-1], frozen.score(X[::-1]))


def test_rows_in_one_cell_have_the_same_bits() -> None:
    frozen = small()
    assert frozen.grid is not None
    X = np.rint(rows(1000) / frozen.grid) * frozen.grid
    inside = X + 0.49 * frozen.grid * np.random.default_rng(1).uniform(-1, 1, X.shape)
    assert np.array_equal(frozen.score(X), frozen.score(inside))


def test_beyond_the_clip_the_score_stays() -> None:
    frozen = small()
    assert frozen.score([[1e300, -1e300, 1e9]]) == frozen.score([[1024.0, -1024.0, 1024.0]])


def test_no_rows_give_no_scores() -> None:
    assert small().score(np.empty((0, 3))).shape == (0,)


def test_data_frame_columns_are_found_by_name() -> None:
    frozen = small(features=["a", "b", "c"])
    X = rows(20)
    frame = pd.DataFrame({"c": X[:, 2], "extra": 0, "a": X[:, 0], "b": X[:, 1]})
    assert np.array_equal(frozen.score(frame), frozen.score(X))
    assert np.array_equal(frozen.score(pa.Table.from_pandas(frame)), frozen.score(X))
    with pytest.raises(ValueError, match="no column 'b'"):
        frozen.score(frame.drop(columns="b"))
    with pytest.raises(ValueError, match="2 columns 'a'"):
        frozen.score(pd.concat([frame, frame[["a"]]], axis=1))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0, 3.0], "must have rows and 3 columns"),
        (np.zeros((2, 4)), "must have rows and 3 columns"),
        ([[0, 0, 0], [0, np.nan, 0]], "column 'x1' is missing in row 1"),
        ([[0, 0, np.inf]], "column 'x2' is inf in row 0"),
    ],
)
def test_bad_rows_are_explained(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small().score(X)


def test_numbers_cannot_be_changed_and_copies_cannot_either() -> None:
    frozen = small()
    for network in (frozen, pickle.loads(pickle.dumps(frozen)), copy.deepcopy(frozen)):
        assert network.fingerprint == frozen.fingerprint
        first = network.steps[0]
        assert isinstance(first, Dense)
        for array in (first.weight, first.bias, network.residual, network.lipschitz):
            with pytest.raises(ValueError, match="read-only"):
                array.flat[0] = 1.0


def test_fingerprint_tells_networks_apart_but_not_their_provenance() -> None:
    assert small().fingerprint == small(provenance={"who": "else"}).fingerprint
    assert small().fingerprint != small(seed=1).fingerprint
    assert small().fingerprint != small(clip=512.0).fingerprint
    assert small().fingerprint != small(features=["a", "b", "c"]).fingerprint


def test_probability_of_two_classes_is_the_logistic_function() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork([3, 8, 1], monotonic_cst=[1, 0, 0], lipschitz=5, outputs="logits")
    frozen = freeze(network, classes=["no", "yes"])
    X = rows(500)
    expected = 1 / (1 + np.exp(-frozen.score(X)))
    assert np.allclose(frozen.probability(X), expected, rtol=1e-8)


def test_probabilities_of_several_classes_sum_to_one() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork(
        [3, 8, 4], monotonic_cst=np.zeros(3), lipschitz=50, outputs="logits"
    )
    probability = freeze(network).probability(rows(500))
    assert np.allclose(probability.sum(axis=1), 1, rtol=1e-7)


def test_values_have_no_probability() -> None:
    with pytest.raises(ValueError, match="need outputs='logits'"):
        small().probability(rows(1))


TORCH = {
    "relu": torch.relu,
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, 0.3),
    "abs": torch.abs,
    "hardtanh": torch.nn.functional.hardtanh,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": torch.nn.functional.softplus,
}


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_are_those_of_torch(name: str) -> None:
    h = rows(1000, 4).T * 3
    step = Pointwise(name, 0.3 if name == "leaky_relu" else 0.0)
    expected = TORCH[name](torch.as_tensor(h)).numpy()
    found = Units().pointwise(step, h)
    assert np.allclose(found, expected, rtol=0, atol=3e-9)  # torch's softplus is cut at 20
    along = np.sort(h)
    rise = np.abs(np.diff(Units().pointwise(step, along)))
    slope = rise / np.maximum(np.diff(along), 1e-300)
    assert slope.max() <= step.constant * (1 + 1e-6)


def test_every_activation_has_a_torch_counterpart() -> None:
    assert set(TORCH) == set(ACTIVATIONS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dense(np.ones((2, 3)), np.ones(3)), "needs shapes"),
        (lambda: Dense(np.full((1, 1), np.nan), np.ones(1)), "finite numbers"),
        (
            lambda: Pointwise("gelu"),
            "`activation='gelu'` is unknown; choose from 'abs'",
        ),
        (lambda: Pointwise("leaky_relu", np.inf), "must be finite"),
        (lambda: residual_block(np.nan, 0.5, ()), "weights of members must be finite"),
        (lambda: Members((), ()), "got 0 weights for 0 members"),
        (lambda: Members((1.0,), ()), "at least one member, and one weight per member"),
        (lambda: Members((0.5,), ((Sort(1),), (Sort(1),))), "got 1 weights"),
        (lambda: Members((np.inf,), ((Sort(1),),)), "weights of members must be finite"),
        (
            lambda: Members((1.0, 1.0), ((Sort(1),), (Dense(np.ones((2, 1)), np.ones(2)),))).width(
                1
            ),
            r"all members must have the same number of outputs; got \[1, 2\]",
        ),
        (
            lambda: residual_block(0.5, 0.5, (Dense(np.ones((2, 3)), np.ones(2)),)).width(3),
            r"the same number of outputs; got \[3, 2\]",
        ),
        (lambda: Sort(3).width(4), "does not divide 4"),
        (lambda: Dense(np.ones((2, 3)), np.ones(2)).width(4), "takes 3 inputs but gets 4"),
        (lambda: by_hand(0.5, precision="float32"), "is float64 but the network's precision is"),
        (lambda: by_hand(0.5, clip=1000.1), "do not fit: the grid must be a power of two"),
        (lambda: by_hand(0.5, clip=2.0**65), "must be between"),
        (lambda: by_hand(0.5, classes=("a", "b")), "build it with outputs='logits'"),
        (
            lambda: by_hand(0.5, outputs="logits", classes=("a", "b", "c")),
            "1 logits need 2 class names; got 3",
        ),
        (lambda: replace(by_hand(0.5), steps=()), "at least one step"),
        (lambda: replace(by_hand(0.5), residual=[[np.nan]]), "must be finite"),
        (lambda: replace(by_hand(0.5), features=("a", "b")), "`features` has 2 names"),
        (lambda: Dense(np.ones((1, 1), np.float16), np.ones(1)), "needs float32 or float64"),
        (lambda: Dense(np.ones((1, 1), int), np.ones(1)), "needs float32 or float64"),
        (lambda: by_hand(0.5, outputs="scores"), "`outputs='scores'` is unknown"),
    ],
)
def test_what_cannot_be_a_network_is_explained(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="needs a scaling and `lipschitz` of that length"):
        FrozenNetwork(
            ("a",), Scaling.identity(2), (), np.ones((1, 1)), np.ones(1), np.ones((1, 1))
        )


def test_repr_names_the_shape() -> None:
    assert repr(small()).startswith("<FrozenNetwork 3-8-8-1 float64 ")


def test_members_take_the_precision_of_the_network() -> None:
    step = Dense(np.ones((1, 1), "f4"), np.zeros(1, "f4"))
    frozen = by_hand(0.5, precision="float64")
    with pytest.raises(ValueError, match="`weights` holds numbers that float32 cannot hold"):
        replace(frozen, steps=(Members((1.0 / 3.0,), ((step,),)),), precision="float32")


def test_a_shape_names_members_once_for_each_kind() -> None:
    one, two = (Dense(np.ones((n, 1)), np.zeros(n)) for n in (1, 2))
    narrow, wide = (one, Sort(1), one), (two, Sort(2), Dense(np.ones((1, 2)), np.zeros(1)))
    frozen = by_hand(0.5)
    assert frozen.shape == "1-2-1"
    assert replace(frozen, steps=(Members((0.5,) * 3, (narrow, wide, narrow)),)).shape == (
        "1-(2 × 1-1 + 1 × 2-1)"
    )


def test_members_survive_the_model_file(tmp_path: Path) -> None:
    frozen = every_step(2)
    frozen.save(tmp_path / "m.isotone")
    X = rows(50)
    assert isotone.load(tmp_path / "m.isotone").fingerprint == frozen.fingerprint
    assert np.array_equal(isotone.load(tmp_path / "m.isotone").score(X), frozen.score(X))


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 7])
def test_probabilities_have_the_bits_of_the_reference(n_outputs: int) -> None:
    frozen = every_step(n_outputs, outputs="logits")
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(1003, n_outputs)) * 10.0 ** rng.uniform(-9, 3, (1003, 1))
    logits[::7] = rng.choice([0.0, -0.0, 700.0, -700.0, 1e9, 2.0**-31, 5e-324], logits[::7].shape)
    logits[5, 0] = np.nan
    z = logits[:, 0] if n_outputs == 1 else logits
    with np.errstate(invalid="ignore"):
        expected = reference.probability(z)
    assert np.isnan(expected[5]).all()
    assert np.array_equal(frozen.to_probability(z), expected, equal_nan=True)
    for isa in Engine.instruction_sets():
        for n in (0, 1, 2, 3, 5, 8, 1003):
            found = np.empty_like(z[:n])
            find_probabilities(np.ascontiguousarray(z[:n]), found, isa)
            assert np.array_equal(found, expected[:n], equal_nan=True)
    narrow = np.nan_to_num(z).astype("f4")
    assert np.array_equal(frozen.to_probability(narrow), reference.probability(narrow))


def test_whole_numbers_have_the_fingerprint_of_what_is_loaded(tmp_path: Path) -> None:
    steps: Any = (Members((1,), ((Dense(np.eye(1), np.zeros(1)), Pointwise("leaky_relu", 0)),)),)
    frozen = replace(by_hand(0.5), steps=steps, clip=8, grid=1)
    frozen.save(tmp_path / "model.isotone")
    assert isotone.load(tmp_path / "model.isotone").fingerprint == frozen.fingerprint
