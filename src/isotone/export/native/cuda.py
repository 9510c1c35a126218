"""CUDA: one self-contained header with a function for host and device, and a kernel over rows.

Every event is one thread. Shapes are constants, so that units live in registers, and comparators
are written out. In float64 products and sums are the rounded ones that no compiler fuses: the bits
of the engine. A network that is monotone to the last bit in float32 is computed without any
operation in double precision, scaling included, unless it takes logarithms or encodes columns:
every operation before the grid is rounded, hence monotone. The runtime part is
`cpp/runtime/scalar.cuh`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from isotone.compiled import engine
from isotone.export import exactness
from isotone.export.claim import Arithmetic, Claim
from isotone.export.native import source
from isotone.export.native.header import Header
from isotone.frozen.lookup import Copies
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.reference import parts_of, sums_in_parts
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.typing import Floats, Reals

RUNTIME = Path(engine.__file__).with_name("scalar.cuh")  # installed beside the extension


@dataclass(frozen=True)
class Cuda(Header):
    """A header, its example and what they need."""

    suffix = ".cuh"

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        """Scaling in float32 may put a number into the next cell of the grid."""
        if not is_single(frozen):
            return super().tolerance(frozen)
        return exactness.within(frozen, "float32", exactness.float32_shift(frozen))

    def largest(self, frozen: FrozenNetwork) -> float:
        return exactness.FLOAT32_LARGEST if is_single(frozen) else super().largest(frozen)

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        found = super().arithmetic(frozen)
        if not is_single(frozen):
            return found
        words = "float32, scaling included, sums in the order of the model"
        return replace(found, words=words)

    def files(self, frozen: FrozenNetwork, name: str, found: Claim) -> dict[str, str]:
        decision = self.decision("constexpr", "ISOTONE_BOTH ")
        return {
            f"{name}.cuh": to_header(frozen, name, found, decision),
            "example.cu": _EXAMPLE.format(name=name),
        }


def is_single(frozen: FrozenNetwork) -> bool:
    """Whether also scaling, clamping and snapping are done in float32."""
    if not sums_in_parts(frozen) or frozen.copies is not None or not frozen.inputs.is_plain:
        return False
    assert frozen.grid is not None
    return not frozen.scaling.log.any() and frozen.clip <= 2.0**22 * frozen.grid


def to_header(frozen: FrozenNetwork, name: str, found: Claim, decision: str = "") -> str:
    """The header: runtime, weights, functions and kernel."""
    code, copies = _Code(frozen), frozen.copies
    last = code.run(frozen.steps, _Array("u", frozen.n_features), copies is not None)
    residual = frozen.residual.T if copies is None else copies.interleaved(frozen.residual)
    one = frozen.n_outputs == 1
    return _HEADER.format(
        name=name,
        decision=decision,
        heading=source.heading(frozen, found),
        runtime=RUNTIME.read_text(encoding="utf-8"),
        facts=source.constants(frozen, found, "constexpr"),
        functions="\n\n".join(code.functions),
        raw="float" if is_single(frozen) else "double",
        input="Number" if copies is None else "scalar::Cell<Number>",
        inputs="\n".join(preparation(frozen)),
        encoding="\n".join(f"    {line}" for line in encoding(frozen)),
        residual=source.numbers(residual, frozen.precision, " " * 8),
        add=_residual_sum(frozen),
        steps="\n".join(f"    {line}" for line in code.lines),
        last=last.name,
        score="using Score = Number;" if one else _SCORE,
        pointer="&result" if one else "result.values",
    )


@dataclass(frozen=True)
class _Array:
    """Units in an array of the function."""

    name: str
    n: int


class _Code(Language[_Array]):
    """Lines of C++ on arrays u, h0, h1, ..., each of which is written once."""

    def __init__(self, frozen: FrozenNetwork) -> None:
        self.precision, self.copies = frozen.precision, frozen.copies
        self.in_parts = sums_in_parts(frozen)
        self.functions: list[str] = []
        self.lines: list[str] = []
        self._sizes: set[int] = set()
        self._n_arrays = 0

    def dense(self, step: Dense, h: _Array) -> _Array:
        n_in = step.weight.shape[1]
        part = parts_of(n_in, len(step.bias), self.in_parts)[0].stop
        return self._dense("dense", h, step.weight.T, step.bias, n_in, f", {part}")

    def look_up(self, step: Dense, h: _Array) -> _Array:
        assert self.copies is not None
        tables = self.copies.interleaved(step.weight)
        return self._dense("look_up", h, tables, step.bias, len(self.copies.counts))

    def _dense(
        self, kind: str, h: _Array, weight: Reals, bias: Reals, n_in: int, part: str = ""
    ) -> _Array:
        out = self._array(len(bias))
        self.functions.append(
            _DENSE.format(
                name=f"dense_{out.name}",
                kind=kind,
                input="Number" if kind == "dense" else "Input",
                shape=f"{n_in}, {out.n}{part}",
                weight=source.numbers(weight, self.precision, " " * 8),
                bias=source.numbers(bias, self.precision, " " * 8),
            )
        )
        self.lines.append(f"dense_{out.name}({h.name}, {out.name});")
        return out

    def sort(self, step: Sort, h: _Array) -> _Array:
        size, out = step.group_size, self._copy(h)
        if size not in self._sizes:
            self._sizes.add(size)
            self.functions.append(_sort_function(size))
        self.lines += [
            f"ISOTONE_UNROLL({h.n // size})",
            f"for (int i = 0; i < {h.n}; i += {size}) sort_{size}({out.name} + i);",
        ]
        return out

    def pointwise(self, step: Pointwise, h: _Array) -> _Array:
        out = self._copy(h)
        slope = source.number(step.negative_slope)
        self.lines.append(f"scalar::pointwise<{h.n}>(scalar::{step.name}(), {slope}, {out.name});")
        return out

    def members(self, step: Members, h: _Array, copies: bool) -> _Array:
        parts = self.parts(step, h, copies)
        total = self._array(parts[0].n)
        for k, (weight, part) in enumerate(zip(step.weights, parts, strict=True)):
            function = "add_part" if k else "first_part"
            arguments = f"{source.number(weight, self.precision)}, {part.name}, {total.name}"
            self.lines.append(f"scalar::{function}<{total.n}>({arguments});")
        return total

    def _array(self, n: int) -> _Array:
        name = f"h{self._n_arrays}"
        self._n_arrays += 1
        self.lines.append(f"Number {name}[{n}];")
        return _Array(name, n)

    def _copy(self, h: _Array) -> _Array:
        """A copy that may be changed; compilers leave it out where nothing reads the units."""
        out = self._array(h.n)
        self.lines.append(f"scalar::copy<{h.n}>({h.name}, {out.name});")
        return out


def _residual_sum(frozen: FrozenNetwork) -> str:
    """The function that adds the residual to g."""
    if frozen.copies is not None:
        return "look_up<n_features, n_outputs>"
    if sums_in_parts(frozen):
        return "add_residual<n_features, n_outputs>"
    return "dense<n_features, n_outputs, n_features>"


def _sort_function(size: int) -> str:
    exchanges = [
        f"    scalar::exchange(h[{i}], h[{j}]);" for i, j in engine.comparators(size)
    ] or ["    (void)h;"]
    return "\n".join([f"ISOTONE_BOTH void sort_{size}(Number* h) {{", *exchanges, "}"])


def encoding(frozen: FrozenNetwork) -> list[str]:
    """Statements that make the features x of the columns `raw`."""
    if frozen.inputs.is_plain:
        return ["for (int i = 0; i < n_features; ++i) x[i] = raw[i];"]
    return source.encoding(frozen.inputs)


def preparation(frozen: FrozenNetwork) -> list[str]:
    """Statements that make the inputs u, or cells of copies, of the features x."""
    if frozen.copies is not None:
        return _cells(frozen, frozen.copies)
    return [f"    u[{i}] = {_snapped(frozen, i, i)};" for i in range(frozen.n_features)]


def _snapped(frozen: FrozenNetwork, i: int, column: int) -> str:
    """Input i of the network, which is a column as it is."""
    scaling = frozen.scaling
    if is_single(frozen):
        four = (scaling.center[i], scaling.factor[i], frozen.clip, frozen.grid or 0.0)
        arguments = ", ".join(source.number(number, "float32") for number in four)
        return f"scalar::snap_single(x[{column}], {arguments})"
    limits = f"{source.number(frozen.clip)}, {source.number(frozen.grid or 0.0)}"
    arrays = (scaling.offset, scaling.floor, scaling.center, scaling.factor)
    row = ", ".join(source.number(array[i]) for array in arrays)
    log = "true" if scaling.log[i] else "false"
    return f"scalar::snap<Number>(x[{column}], {log}, {row}, {limits})"


def _cells(frozen: FrozenNetwork, copies: Copies) -> list[str]:
    """The copy that moves, of every column."""
    lines, grid = [], source.number(frozen.grid or 0.0)
    for s, (first, count) in enumerate(zip(copies.firsts, copies.counts, strict=True)):
        if count == 1:
            lines.append(f"    u[{s}] = {{{first}, false, {_snapped(frozen, int(first), s)}}};")
            continue
        own = slice(first, first + count)
        tables = {
            "ends": copies.ends[s],
            "centers": frozen.scaling.center[own],
            "factors": frozen.scaling.factor[own],
        }
        for name, values in tables.items():
            literals = source.numbers(values, "float64", " " * 8)
            lines.append(f"    static constexpr double {name}_{s}[] = {literals};")
        arguments = f"x[{s}], {first}, ends_{s}, centers_{s}, factors_{s}, {grid}"
        lines.append(f"    u[{s}] = scalar::find_cell<{count}, Number>({arguments});")
    return lines


_DENSE = """ISOTONE_BOTH void {name}(const {input}* h, Number* out) {{
    static constexpr Number weight[] = {weight};
    static constexpr Number bias[] = {bias};
    scalar::{kind}<{shape}>(weight, bias, h, out);
}}"""

_SCORE = "struct Score {\n    Number values[n_outputs];\n};"

_EXAMPLE = """// nvcc -std=c++17 -O3 example.cu -o example && ./example
#include <cstdio>
#include "{name}.cuh"

int main() {{
    constexpr std::size_t n = 1000;
    double* rows;  // n rows of n_columns raw numbers
    {name}::Number* scores;
    cudaMallocManaged(&rows, n * {name}::n_columns * sizeof(*rows));
    cudaMallocManaged(&scores, n * {name}::n_outputs * sizeof(*scores));
    for (std::size_t i = 0; i < n * {name}::n_columns; ++i) rows[i] = 0.001 * i;
    {name}::score_kernel<<<(n + 127) / 128, 128>>>(rows, n, scores);
    cudaDeviceSynchronize();
    std::printf("%.17g\\n", static_cast<double>(scores[0]));
}}
"""

_HEADER = """// {name}.cuh: a network for host and device, made by isotone. It needs C++17 alone.
//
{heading}
//
// Events that hold what the model does not know score `fill`: an infinity, or a NaN where it has
// not learned what a missing value means. In double precision scores have the bits of
// the library: the same rounded operations in the same order, on the host and on the device.
#pragma once

{runtime}
namespace {name} {{

{facts}

namespace numbers {{

namespace scalar = isotone::scalar;
using Input = {input};  // of the network, one per feature

{functions}

// Features of a raw row: numbers, and codes of categories, their places in categories_i, beside
// which is said where there is a code of all others. NaN is a missing value where the model knows
// it; what it does not know becomes NaN.
ISOTONE_BOTH void encode(const {raw}* raw, {raw}* x) {{
{encoding}
}}

// Scaled, clamped and rounded features.
ISOTONE_BOTH void prepare(const {raw}* x, Input* u) {{
{inputs}
}}

ISOTONE_BOTH void run(const Input* u, Number* out) {{
    static constexpr Number residual[] = {residual};
{steps}
    scalar::{add}(residual, {last}, u, out);
}}

}}  // namespace numbers

{score}
constexpr Number quiet_nan = std::numeric_limits<Number>::quiet_NaN();

// One event whose columns, float or double, are `stride` numbers apart; n_outputs scores go to
// `out`. Returns whether all features are finite.
template <class Real>
ISOTONE_BOTH bool score_strided(const Real* x, std::ptrdiff_t stride, Number* out,
                                Number fill = quiet_nan) {{
    {raw} raw[n_columns], features[n_features], zero = 0;
    numbers::Input u[n_features];
    Number scores[n_outputs];
    ISOTONE_UNROLL(n_columns)
    for (int i = 0; i < n_columns; ++i) raw[i] = static_cast<{raw}>(x[i * stride]);
    numbers::encode(raw, features);
    ISOTONE_UNROLL(n_features)
    for (int i = 0; i < n_features; ++i) zero += features[i] - features[i];  // NaN unless finite
    numbers::prepare(features, u);
    numbers::run(u, scores);
    ISOTONE_UNROLL(n_outputs)
    for (int j = 0; j < n_outputs; ++j) out[j] = zero == 0 ? scores[j] + Number(0) : fill;
    return zero == 0;
}}

// One event of n_columns numbers.
template <class Real>
ISOTONE_BOTH Score score(const Real* x, Number fill = quiet_nan) {{
    Score result{{}};
    score_strided(x, 1, {pointer}, fill);
    return result;
}}

// Many events: n rows of n_columns numbers; returns how many have no score and got `fill`.
template <class Real>
ISOTONE_BOTH std::size_t score(const Real* rows, std::size_t n, Number* out,
                               Number fill = quiet_nan) {{
    std::size_t n_bad = 0;
    for (std::size_t e = 0; e < n; ++e)
        n_bad += !score_strided(rows + e * n_columns, 1, out + e * n_outputs, fill);
    return n_bad;
}}

{decision}#if defined(__CUDACC__)
// The same with a thread per event, for any number of threads. Column i of event e is at
// x[e * event_stride + i * column_stride]: rows by default, columns of n numbers with 1 and n.
template <class Real>
__global__ void score_kernel(const Real* x, std::size_t n, Number* out, Number fill = quiet_nan,
                             std::ptrdiff_t event_stride = n_columns,
                             std::ptrdiff_t column_stride = 1) {{
    const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    const std::size_t first = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (std::size_t e = first; e < n; e += step)
        score_strided(x + static_cast<std::ptrdiff_t>(e) * event_stride, column_stride,
                      out + e * n_outputs, fill);
}}
#endif

}}  // namespace {name}
"""
