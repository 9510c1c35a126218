"""ONNX: a graph of standard operators, raw columns in, score out, any number of rows.

Units are rows inside the graph and events are columns, so that a comparator acts on whole rows of
memory. GroupSort is a comparator network of Min and Max; TopK, which few accelerators have, is a
choice. In float64 the scaling and the activations are computed as `FrozenNetwork.score` does; a
matrix product may be summed in any order, unless ordered sums are asked for.

A model whose columns are all numbers without missing values has one input, X. Others have one
input per column, of numbers or of strings, where NaN and "" are missing values. What the model
does not know, a new category or a missing value without a meaning, makes the score NaN; infinities
are clamped like any large number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnx

from isotone.checks import check_choice
from isotone.export import exactness
from isotone.export.claim import Arithmetic, Claim, SingleFile
from isotone.export.onnx.graph import Graph
from isotone.export.onnx.nodes import Nodes, feeds_of, raw_features
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Number
from isotone.typing import Floats, Precision, Reals

OPSET = 26  # the newest that ONNX Runtime 1.31 calls stable


@dataclass(frozen=True)
class Onnx(SingleFile):
    """An ONNX model with raw columns as inputs, and the output "score".

    Parameters
    ----------
    precision : of everything in the graph; that of the network if None
    sort : "network" of comparators, or "topk"
    sums : "ordered", one product and one addition after the other: the same numbers as
        `FrozenNetwork.score`, monotone to the last bit; or "matmul", faster and within rounding
        errors. If None, "ordered" where model and graph are float64, where alone it proves more
    opset : version of the operators, 18 to 26; strings need 19
    categories : given to the graph as "text", or as "codes", their places in the model's list, so
        that all inputs are numbers
    """

    precision: Precision | None = None
    sort: Literal["network", "topk"] = "network"
    sums: Literal["matmul", "ordered"] | None = None
    opset: int = OPSET
    categories: Literal["text", "codes"] = "text"

    def __post_init__(self) -> None:
        choices: dict[str, Sequence[object]] = {
            "precision": (None, "float64", "float32"),
            "sort": ("network", "topk"),
            "sums": (None, "matmul", "ordered"),
            "opset": range(18, OPSET + 1),
            "categories": ("text", "codes"),
        }
        for name, allowed in choices.items():
            check_choice(name, getattr(self, name), allowed)

    def content(self, frozen: FrozenNetwork, found: Claim) -> bytes:
        model = self.model(frozen)
        about = {f"isotone.{name}": value for name, value in found.summary().items()}
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in about.items()}
        onnx.helper.set_model_props(model, texts)
        return bytes(model.SerializeToString())

    def model(self, frozen: FrozenNetwork) -> onnx.ModelProto:
        """The model without its metadata, accepted by the ONNX checker."""
        if self.sums is None:
            return replace(self, sums=self._sums(frozen)).model(frozen)
        if self.opset < 19 and self.categories == "text" and not frozen.inputs.is_plain:
            raise ValueError(
                f"`opset={self.opset}` cannot compare strings, which needs 19; choose a newer "
                "one, or categories='codes'"
            )
        twin = exactness.in_precision(frozen, self._precision(frozen))
        graph = Graph(twin.precision)
        x = raw_features(graph, frozen.inputs, self.categories == "text")
        nodes = Nodes(graph, twin, x, ordered=self.sums == "ordered", topk=self.sort == "topk")
        graph.output("score", nodes.score(), frozen.n_outputs)
        return graph.model(self.opset)

    def score(self, frozen: FrozenNetwork, path: Path, X: Floats) -> Reals:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            path.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
        text = self.categories == "text"
        feeds = feeds_of(frozen.inputs, X, self._precision(frozen), text)
        scores: Reals = session.run(["score"], feeds)[0]
        return scores

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        precision = self._precision(frozen)
        if precision == "float32":
            return exactness.within(frozen, precision, exactness.float32_shift(frozen))
        if frozen.precision == "float32":
            return exactness.within(frozen, precision, shift=2.0**-24 * frozen.clip)
        ordered = self._sums(frozen) == "ordered"
        return exactness.exact(frozen) if ordered else exactness.within(frozen, precision)

    def largest(self, frozen: FrozenNetwork) -> float:
        narrow = self._precision(frozen) == "float32"
        return exactness.FLOAT32_LARGEST if narrow else np.inf

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        precision, sums = self._precision(frozen), self._sums(frozen)
        order = "in the order of the model" if sums == "ordered" else "in any order"
        provided = f"the runtime computes node by node in IEEE {precision}, as on a CPU"
        if precision == "float32":
            provided += ", its logarithm errs by at most 4 units in the last place" * bool(
                frozen.scaling.log.any()
            )
            provided += f", and raw features are within ±{exactness.FLOAT32_LARGEST:.3g}"
        if not all(isinstance(column, Number) for column in frozen.inputs.columns):
            kind = "strings without spaces around them" if self.categories == "text" else "codes"
            provided += f", and categories are given as {kind}"
        repeats = self._is_double(frozen) and sums == "ordered"
        return Arithmetic(f"{precision}, sums {order}", repeats, provided)

    def _precision(self, frozen: FrozenNetwork) -> Precision:
        return self.precision or frozen.precision

    def _sums(self, frozen: FrozenNetwork) -> Literal["matmul", "ordered"]:
        return self.sums or ("ordered" if self._is_double(frozen) else "matmul")

    def _is_double(self, frozen: FrozenNetwork) -> bool:
        return self._precision(frozen) == frozen.precision == "float64"
