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
import operator
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Literal

import numpy as np
import onnx

from isotone.export import exactness
from isotone.export.claim import Arithmetic, claim
from isotone.export.comparators import rounds
from isotone.export.formulas import activate, clamp, log, snap, uses_exp
from isotone.export.graph import Graph, Tensor
from isotone.export.rawonnx import feeds_of, raw_features
from isotone.export.summary import summary
from isotone.files import replacing
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Blend, Dense, Members, Pointwise, Sort, Step
from isotone.inputs.columns import Number
from isotone.typing import Floats, Precision, Reals

OPSET = 26  # the newest that ONNX Runtime 1.31 calls stable


@dataclass(frozen=True)
class Onnx:
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
        choices = {
            "precision": (None, "float64", "float32"),
            "sort": ("network", "topk"),
            "sums": (None, "matmul", "ordered"),
            "opset": range(18, OPSET + 1),
            "categories": ("text", "codes"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"`{name}={getattr(self, name)!r}` is unknown; choose from {list(allowed)}"
                )

    def write(self, frozen: FrozenNetwork, path: Path) -> None:
        model = self.model(frozen)
        with replacing(path) as temporary:
            temporary.write_bytes(model.SerializeToString())

    def model(self, frozen: FrozenNetwork) -> onnx.ModelProto:
        """The model, accepted by the ONNX checker."""
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
        u = self._scaled(graph, twin, x)
        scores = self._dense(graph, twin.residual, self._apply(graph, twin.steps, u), u)
        graph.output("score", scores, frozen.n_outputs)
        about = {
            f"isotone.{name}": value
            for name, value in summary(frozen, claim(self, frozen)).items()
        }
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in about.items()}
        return graph.model(self.opset, texts)

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

    def _scaled(self, graph: Graph, frozen: FrozenNetwork, x: Tensor) -> Tensor:
        """What enters the first step, (n_features, n_rows)."""
        scaling = frozen.scaling
        if frozen.precision == "float32":
            exactness.refuse_scaling_beyond_float32(scaling)
        if scaling.log.any():
            x = _take_logs(graph, frozen, x)
        x = (x - graph.column(scaling.center)) * graph.column(scaling.factor)
        x = clamp(graph, x, -frozen.clip, frozen.clip)
        return x if frozen.grid is None else snap(graph, x, frozen.grid)

    def _apply(self, graph: Graph, steps: tuple[Step, ...], h: Tensor) -> Tensor:
        for step in steps:
            h = self._apply_one(graph, step, h)
        return h

    def _apply_one(self, graph: Graph, step: Step, h: Tensor) -> Tensor:
        match step:
            case Dense(weight, bias):
                return self._dense(graph, weight, graph.column(bias), h)
            case Sort(group_size):
                return self._sort(graph, group_size, h)
            case Pointwise():
                wide: Precision = "float64" if uses_exp(step) else graph.precision
                return graph.cast(activate(graph, step, graph.cast(h, wide)), graph.precision)
            case Blend(keep, add, steps):
                return h * keep + self._apply(graph, steps, h) * add
            case Members(weights, members):
                parts = [self._apply(graph, steps, h) for steps in members]
                products = [part * w for part, w in zip(parts, weights, strict=True)]
                return reduce(operator.add, products)

    def _dense(self, graph: Graph, weight: Reals, start: Tensor, h: Tensor) -> Tensor:
        """W h + start, by a product of matrices or in the order of `FrozenNetwork.score`."""
        if self.sums == "matmul":
            return graph.matmul(weight, h) + start
        for k, row in enumerate(graph.rows(h)):
            start = start + row * graph.column(weight[:, k])
        return start

    def _sort(self, graph: Graph, group_size: int, h: Tensor) -> Tensor:
        if group_size == 1:
            return h
        topk = self.sort == "topk"
        return graph.topk(h, group_size) if topk else _sort_network(graph, group_size, h)


def _sort_network(graph: Graph, group_size: int, h: Tensor) -> Tensor:
    """Rounds of Min and Max on gathered rows; `place` is where every unit is now."""
    n = h.n_rows
    place = np.arange(n)
    for pairs in rounds(group_size, n):
        first, second = np.array(pairs).T
        rest = np.setdiff1d(np.arange(n), np.array(pairs))
        a, b = graph.take(h, place[first]), graph.take(h, place[second])
        kept = [graph.take(h, place[rest])] if len(rest) else []
        h = graph.join([graph.op("Min", a, b), graph.op("Max", a, b), *kept])
        place = np.argsort(np.concatenate([first, second, rest]))
    return graph.take(h, place)


def _take_logs(graph: Graph, frozen: FrozenNetwork, x: Tensor) -> Tensor:
    """Replace the rows of the columns that take the logarithm."""
    scaling = frozen.scaling
    chosen = np.flatnonzero(scaling.log)
    rest = np.flatnonzero(~scaling.log)
    v = graph.take(x, chosen) + graph.column(scaling.offset[chosen])
    v = graph.op("Max", v, graph.column(scaling.floor[chosen]))
    v = graph.op("Log", v) if graph.precision == "float32" else log(graph, v)
    if len(rest) == 0:
        return v
    joined = graph.join([v, graph.take(x, rest)])
    return graph.take(joined, np.argsort(np.concatenate([chosen, rest])))
