"""An ONNX graph under construction: tensors with arithmetic, (n_units, n_rows) each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from isotone.export.formulas import frexp_by_comparing, ldexp_by_comparing
from isotone.typing import Precision, Reals

_IR_VERSION = 10
_TYPES = {"float32": onnx.TensorProto.FLOAT, "float64": onnx.TensorProto.DOUBLE}


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph by its name; Python floats beside it take its precision.

    `padded` means one row that is stored twice.
    """

    graph: Graph
    name: str
    precision: Precision
    n_rows: int
    padded: bool = False

    def __add__(self, other: Tensor | float) -> Tensor:
        return self.graph.op("Add", self, other)

    def __sub__(self, other: Tensor | float) -> Tensor:
        return self.graph.op("Sub", self, other)

    def __mul__(self, other: Tensor | float) -> Tensor:
        return self.graph.op("Mul", self, other)

    def __truediv__(self, other: Tensor | float) -> Tensor:
        return self.graph.op("Div", self, other)

    def __rsub__(self, other: float) -> Tensor:
        return self.graph.op("Sub", other, self)

    def __rtruediv__(self, other: float) -> Tensor:
        return self.graph.op("Div", other, self)


class Graph:
    """Nodes and constants; equal constants are stored once."""

    def __init__(self, precision: Precision) -> None:
        self.precision = precision
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._n_names = 0

    def input(self, name: str, n_features: int) -> Tensor:
        """The batch (n_rows, n_features), to be transposed."""
        shape: list[str | int | None] = ["n_rows", n_features]
        self._inputs.append(helper.make_tensor_value_info(name, _TYPES[self.precision], shape))
        return Tensor(self, name, self.precision, n_features)

    def row(self, name: str, strings: bool = False) -> Tensor:
        """A raw column (n_rows,) of numbers or strings, as (1, n_rows)."""
        kind = onnx.TensorProto.STRING if strings else _TYPES[self.precision]
        self._inputs.append(helper.make_tensor_value_info(name, kind, ["n_rows"]))
        shape = self._constant(np.array([1, -1]))
        return Tensor(self, self._add("Reshape", [name, shape]), self.precision, 1)

    def is_nan(self, x: Tensor) -> Tensor:
        return Tensor(self, self._add("IsNaN", [x.name]), x.precision, 1)

    def equals(self, x: Tensor, value: str | float) -> Tensor:
        """Where a row of strings or numbers holds this one."""
        kind = object if isinstance(value, str) else self.precision
        constant = self._constant(np.array([[value]], dtype=kind))
        return Tensor(self, self._add("Equal", [x.name, constant]), self.precision, 1)

    def either(self, a: Tensor, b: Tensor) -> Tensor:
        return Tensor(self, self._add("Or", [a.name, b.name]), a.precision, 1)

    def where(self, chosen: Tensor, yes: float, no: Tensor) -> Tensor:
        """A row with `yes` where it is chosen, and `no` elsewhere."""
        number = self._constant(np.array([[yes]], self.precision))
        return Tensor(self, self._add("Where", [chosen.name, number, no.name]), no.precision, 1)

    def output(self, name: str, x: Tensor, n_outputs: int) -> None:
        """Give `x` out as (n_rows,) if it is one output, otherwise as (n_rows, n_outputs)."""
        shape: list[str | int | None] = ["n_rows"] if n_outputs == 1 else ["n_rows", n_outputs]
        if n_outputs == 1:
            self._node("Squeeze", [x.name, self._constant(np.array([0]))], [name])
        else:
            self._node("Transpose", [x.name], [name], perm=[1, 0])
        self._outputs.append(helper.make_tensor_value_info(name, _TYPES[self.precision], shape))

    def model(self, opset: int) -> onnx.ModelProto:
        """The checked model."""
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, "isotone", self._inputs, self._outputs, constants)
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="isotone"
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def op(self, kind: str, *inputs: Tensor | float, **attributes: Any) -> Tensor:
        """One operator on tensors of one shape, or columns, or numbers."""
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        like, n_rows = tensors[0], max(x.n_rows for x in tensors)
        operands = [
            x if isinstance(x, Tensor) else self._number(x, like.precision, n_rows) for x in inputs
        ]
        name = self._add(kind, [x.name for x in operands], **attributes)
        if any(x.padded for x in operands):
            return self.take(Tensor(self, name, like.precision, 2), np.array([0]))
        return Tensor(self, name, like.precision, n_rows)

    def _number(self, value: float, precision: Precision, n_rows: int) -> Tensor:
        if _seems_neutral(value):
            return self.column(np.full(n_rows, value), precision)
        return Tensor(self, self._constant(np.array(value, precision)), precision, 1)

    def column(self, values: Reals, precision: Precision | None = None) -> Tensor:
        """One number per unit, in the precision of the graph unless another is given."""
        precision = precision or self.precision
        padded = len(values) == 1 and _seems_neutral(float(values[0]))
        stored = np.repeat(values, 2) if padded else values
        constant = self._constant(stored.astype(precision)[:, None])
        return Tensor(self, constant, precision, len(values), padded)

    def transpose(self, x: Tensor) -> Tensor:
        return self.op("Transpose", x, perm=[1, 0])

    def matmul(self, weight: Reals, h: Tensor) -> Tensor:
        names = [self._constant(weight.astype(self.precision)), h.name]
        return Tensor(self, self._add("MatMul", names), self.precision, len(weight))

    def take(self, x: Tensor, rows: NDArray[Any]) -> Tensor:
        """The rows of `x` with these numbers, in this order."""
        if np.array_equal(rows, np.arange(x.n_rows)):
            return x
        name = self._add("Gather", [x.name, self._constant(rows.astype(np.int64))], axis=0)
        return Tensor(self, name, x.precision, len(rows))

    def count_up_to(self, x: Tensor, ends: Reals) -> Tensor:
        """How many of the ends are not above the numbers of a row, as indices (n_rows,)."""
        column = self._constant(ends.astype(x.precision)[:, None])
        reached = self._add("GreaterOrEqual", [x.name, column])
        whole = self._add("Cast", [reached], to=onnx.TensorProto.INT64)
        names = [whole, self._constant(np.array([0]))]
        return Tensor(self, self._add("ReduceSum", names, keepdims=0), x.precision, 1)

    def pick(self, table: Reals, place: Tensor) -> Tensor:
        """Columns of a table (n_units, n) by their numbers: (n_units, n_rows)."""
        names = [self._constant(table.astype(self.precision)), place.name]
        return Tensor(self, self._add("Gather", names, axis=1), self.precision, len(table))

    def join(self, parts: list[Tensor]) -> Tensor:
        name = self._add("Concat", [x.name for x in parts], axis=0)
        return Tensor(self, name, parts[0].precision, sum(x.n_rows for x in parts))

    def rows(self, x: Tensor) -> list[Tensor]:
        """Every row of `x` as a tensor (1, n_rows)."""
        if x.n_rows == 1:
            return [x]
        names = [self._new_name() for _ in range(x.n_rows)]
        self._node("Split", [x.name, self._constant(np.ones(x.n_rows, np.int64))], names, axis=0)
        return [Tensor(self, name, x.precision, 1) for name in names]

    def topk(self, x: Tensor, group_size: int) -> Tensor:
        """Sort groups of rows with TopK."""
        shape = np.array([x.n_rows // group_size, group_size, -1])
        groups = self._add("Reshape", [x.name, self._constant(shape)])
        names = [self._new_name(), self._new_name()]
        size = self._constant(np.array([group_size]))
        self._node("TopK", [groups, size], names, axis=1, largest=0, sorted=1)
        flat = self._constant(np.array([x.n_rows, -1]))
        return Tensor(self, self._add("Reshape", [names[0], flat]), x.precision, x.n_rows)

    def cast(self, x: Tensor, precision: Precision) -> Tensor:
        if x.precision == precision:
            return x
        name = self._add("Cast", [x.name], to=_TYPES[precision])
        return Tensor(self, name, precision, x.n_rows)

    # What `isotone.export.formulas` asks of a language.

    def let(self, x: Tensor) -> Tensor:
        return x

    def if_less(self, a: Tensor, b: float, yes: Tensor, no: Tensor) -> Tensor:
        less = self.op("Less", a, b)
        return Tensor(
            self, self._add("Where", [less.name, yes.name, no.name]), a.precision, a.n_rows
        )

    def maximum(self, a: Tensor, b: float) -> Tensor:
        return self.op("Max", a, b)

    def minimum(self, a: Tensor, b: float) -> Tensor:
        return self.op("Min", a, b)

    def rint(self, x: Tensor) -> Tensor:
        return self.op("Round", x)

    def frexp(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return frexp_by_comparing(self, x)

    def ldexp(self, x: Tensor, k: Tensor) -> Tensor:
        power: Tensor = ldexp_by_comparing(self, x, k)
        return power

    def _add(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = self._new_name()
        self._node(kind, inputs, [name], **attributes)
        return name

    def _node(self, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        self._nodes.append(helper.make_node(kind, inputs, outputs, **attributes))

    def _new_name(self) -> str:
        self._n_names += 1
        return f"t{self._n_names}"

    def _constant(self, array: NDArray[Any]) -> str:
        array = np.ascontiguousarray(array)
        content = str(array.tolist()).encode() if array.dtype == object else array.tobytes()
        key = array.dtype.str, array.shape, content
        if key not in self._constants:
            name = f"constant{len(self._constants)}"
            self._constants[key] = numpy_helper.from_array(array, name)
        return str(self._constants[key].name)


def _seems_neutral(value: float) -> bool:
    """Whether a number is nearly 0 or 1 but neither.

    ONNX Runtime (1.31 and before) leaves out x + c and x · c if the only entry of c is 0 or 1
    after rounding to float32, even in a graph of doubles. Two entries are safe.
    """
    return value not in (0.0, 1.0) and (abs(value) < 1e-40 or abs(value - 1.0) < 1e-6)
