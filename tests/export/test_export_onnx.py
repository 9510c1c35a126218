"""ONNX: standard operators only, any number of rows, metadata, NaN stays NaN."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from isotone import FrozenNetwork, Scaling, certify, export
from isotone.export.onnx.model import OPSET, Onnx
from isotone.export.parity import check_rows
from isotone.frozen.steps import Dense, Sort
from networks import by_hand, every_step, small

PLAIN = {
    *("Transpose", "Sub", "Mul", "Max", "Min", "Round", "MatMul", "Add"),
    *("Gather", "Concat", "Squeeze"),
}


def session(model: onnx.ModelProto) -> Any:
    return onnxruntime.InferenceSession(model.SerializeToString())


def operators(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_only_plain_operators_are_used(precision: Any) -> None:
    model = Onnx(precision=precision, sums="matmul").model(small())
    assert operators(model) <= PLAIN
    types = {tensor.data_type for tensor in model.graph.initializer}
    wanted = onnx.TensorProto.FLOAT if precision == "float32" else onnx.TensorProto.DOUBLE
    assert types == {wanted, onnx.TensorProto.INT64}
    topk = Onnx(sort="topk", sums="matmul").model(small())
    assert operators(topk) - PLAIN == {"TopK", "Reshape"}
    assert operators(Onnx(sums="ordered").model(small())) - PLAIN == {"Split"}


def test_sums_are_ordered_where_that_gives_the_same_numbers() -> None:
    assert "MatMul" not in operators(Onnx().model(small()))
    assert "MatMul" in operators(Onnx(precision="float32").model(small()))
    assert "MatMul" in operators(Onnx().model(small(precision="float32")))


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_any_number_of_rows_can_be_scored(n_outputs: int) -> None:
    frozen = every_step(n_outputs)
    running = session(Onnx().model(frozen))
    X = check_rows(frozen, 40)
    for n_rows in (0, 1, 2, 7, len(X)):
        found = running.run(None, {"X": X[:n_rows]})[0]
        assert found.shape == frozen.score(X[:n_rows]).shape
        assert np.allclose(found, frozen.score(X[:n_rows]), rtol=0, atol=1e-9)
    (entry,) = running.get_inputs()
    assert (entry.name, entry.shape) == ("X", ["n_rows", 3])


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    frozen = every_step(outputs="logits", classes=("no", "yes"))
    export.write(frozen, "onnx", tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert about["isotone.fingerprint"] == frozen.fingerprint
    assert json.loads(about["isotone.features"]) == list(frozen.features)
    assert json.loads(about["isotone.classes"]) == ["no", "yes"]
    assert json.loads(about["isotone.certificate"])["holds"] == certify(frozen).holds
    assert model.opset_import[0].version == OPSET


@pytest.mark.parametrize("options", [{}, {"sort": "topk"}, {"precision": "float32"}], ids=str)
@pytest.mark.parametrize("frozen", [small(), every_step()], ids=["small", "every_step"])
def test_nan_stays_nan_and_infinity_is_clamped(
    frozen: FrozenNetwork, options: dict[str, Any]
) -> None:
    model = Onnx(**options).model(frozen)
    dtype = options.get("precision", "float64")
    X = np.tile(np.array([[1.0, 2.0, 3.0]], dtype), (4, 1))
    X[0, 0], X[1, 1], X[2, 0] = np.nan, np.nan, np.inf
    score = session(model).run(None, {"X": X})[0]
    assert np.isnan(score).tolist() == [True, True, False, False]
    # a feature without a logarithm is clamped
    expected = frozen.score([[1e30, 2.0, 3.0]])[0]
    assert score[2] == pytest.approx(expected, rel=1e-3)


def test_the_sort_may_be_wide() -> None:
    rng = np.random.default_rng(0)
    n = 48
    steps = (
        Dense(rng.normal(size=(n, 1)), rng.normal(size=n)),
        Sort(n),
        Dense(rng.normal(size=(1, n)) / n, np.zeros(1)),
    )
    frozen = replace(by_hand(0.5), steps=steps)
    X = rng.normal(size=(200, 1))
    network, topk = (
        session(Onnx(sort=sort, sums="ordered").model(frozen)).run(None, {"X": X})[0]
        for sort in ("network", "topk")
    )
    assert np.array_equal(network, frozen.score(X))
    assert np.array_equal(network, topk)


@pytest.mark.parametrize("number", [1 + 1e-9, 1 - 1e-12, 1e-300, 1.0, 0.0])
def test_numbers_that_a_runtime_takes_for_neutral_stay(number: float, tmp_path: Path) -> None:
    """ONNX Runtime drops single constants that float32 rounds to 0 or 1."""
    scaling = Scaling(*(np.array([v]) for v in (False, 0.0, 1.0, number, number or 0.5)))
    weight, bias = np.array([[number]]), np.array([number])
    frozen = replace(
        by_hand(0.5),
        scaling=scaling,
        steps=(Dense(weight, bias), Dense(weight, bias)),
        residual=np.array([[number]]),
        grid=None,
    )
    export.write(frozen, "onnx", tmp_path / "x", sums="ordered")
    export.write(frozen, "onnx", tmp_path / "x", sums="matmul")
