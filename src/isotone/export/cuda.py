"""CUDA: one self-contained header with a function for host and device, and a kernel over rows.

Every event is one thread. Shapes are constants, so that units live in registers, and comparators
are written out. In float64 products and sums are the rounded ones that no compiler fuses: the bits
of the engine. The runtime part is `cpp/runtime/scalar.cuh`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from isotone import _engine
from isotone.export import source
from isotone.export.claim import claim
from isotone.export.header import Header
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Blend, Dense, Members, Pointwise, Sort, Step, Steps
from isotone.typing import Reals

RUNTIME = Path(_engine.__file__).with_name("scalar.cuh")  # installed beside the extension


@dataclass(frozen=True)
class Cuda(Header):
    """A header, its example and what they need."""

    suffix = ".cuh"

    def write(self, frozen: FrozenNetwork, path: Path) -> None:
        name = source.identifier(self.name, path)
        content = {
            f"{name}.cuh": to_header(frozen, name),
            "example.cu": _EXAMPLE.format(name=name),
        }
        source.write_files(path, content)


def to_header(frozen: FrozenNetwork, name: str) -> str:
    """The header: runtime, weights, functions and kernel."""
    code = _Code(frozen)
    code.add_all(frozen.steps)
    one, found = frozen.n_outputs == 1, claim(Cuda(name), frozen)
    return _HEADER.format(
        name=name,
        heading=source.heading(frozen, found),
        runtime=RUNTIME.read_text(encoding="utf-8"),
        facts=source.constants(frozen, found, "constexpr"),
        functions="\n\n".join(code.functions),
        inputs="\n".join(_inputs(frozen)),
        encoding="\n".join(f"    {line}" for line in _encoding(frozen)),
        residual=source.numbers(frozen.residual.T, frozen.precision, " " * 8),
        steps="\n".join(f"    {line}" for line in code.lines),
        last=code.units,
        score="using Score = Number;" if one else _SCORE,
        pointer="&result" if one else "result.values",
    )


class _Code:
    """The steps of a network as lines of C++ on arrays u, h0, h1, ..."""

    def __init__(self, frozen: FrozenNetwork) -> None:
        self.precision = frozen.precision
        self.units, self.n_units = "u", frozen.n_features
        self.functions: list[str] = []
        self.lines: list[str] = []
        self._sizes: set[int] = set()
        self._n_arrays = 0
        self._kept = {"u"}

    def add_all(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            match step:
                case Dense(weight, bias):
                    self._add_dense(weight, bias)
                case Sort(group_size):
                    self._add_sort(group_size)
                case Pointwise(name, slope):
                    self._own()
                    arguments = f"scalar::{name}(), {source.number(slope)}, {self.units}"
                    self.lines.append(f"scalar::pointwise<{self.n_units}>({arguments});")
                case Blend(keep, add, inner):
                    self._add_blend(keep, add, inner)
                case Members(weights, members):
                    self._add_members(weights, members)

    def _array(self, n: int) -> str:
        name = f"h{self._n_arrays}"
        self._n_arrays += 1
        self.lines.append(f"Number {name}[{n}];")
        return name

    def _own(self) -> None:
        """Make the units a copy if they are needed again: by the residual, or by a member."""
        if self.units in self._kept:
            kept, self.units = self.units, self._array(self.n_units)
            self.lines.append(f"scalar::copy<{self.n_units}>({kept}, {self.units});")

    def _add_dense(self, weight: Reals, bias: Reals) -> None:
        n_out, n_in = weight.shape
        out = self._array(n_out)
        self.functions.append(
            _DENSE.format(
                name=f"dense_{out}",
                shape=f"{n_in}, {n_out}",
                weight=source.numbers(weight.T, self.precision, " " * 8),
                bias=source.numbers(bias, self.precision, " " * 8),
            )
        )
        self.lines.append(f"dense_{out}({self.units}, {out});")
        self.units, self.n_units = out, n_out

    def _add_sort(self, size: int) -> None:
        self._own()
        if size not in self._sizes:
            self._sizes.add(size)
            self.functions.append(_sort_function(size))
        self.lines += [
            f"ISOTONE_UNROLL({self.n_units // size})",
            f"for (int i = 0; i < {self.n_units}; i += {size}) sort_{size}({self.units} + i);",
        ]

    def _add_blend(self, keep: float, add: float, inner: tuple[Step, ...]) -> None:
        self._own()
        saved, n = self._array(self.n_units), self.n_units
        self.lines.append(f"scalar::copy<{n}>({self.units}, {saved});")
        self.add_all(inner)
        factors = ", ".join(source.number(factor, self.precision) for factor in (keep, add))
        self.lines.append(f"scalar::merge<{n}>({factors}, {saved}, {self.units});")

    def _add_members(self, weights: tuple[float, ...], members: tuple[Steps, ...]) -> None:
        kept, n, total = self.units, self.n_units, ""
        self._kept.add(kept)
        for k, (weight, inner) in enumerate(zip(weights, members, strict=True)):
            self.units, self.n_units = kept, n
            self.add_all(inner)
            total = total or self._array(self.n_units)
            factor = source.number(weight, self.precision)
            function = "add_part" if k else "first_part"
            self.lines.append(
                f"scalar::{function}<{self.n_units}>({factor}, {self.units}, {total});"
            )
        self.units = total


def _sort_function(size: int) -> str:
    exchanges = [
        f"    scalar::exchange(h[{i}], h[{j}]);" for i, j in _engine.comparators(size)
    ] or ["    (void)h;"]
    return "\n".join([f"ISOTONE_BOTH void sort_{size}(Number* h) {{", *exchanges, "}"])


def _encoding(frozen: FrozenNetwork) -> list[str]:
    if frozen.inputs.is_plain:
        return ["for (int i = 0; i < n_features; ++i) x[i] = raw[i];"]
    unknown = "constexpr double unknown = std::numeric_limits<double>::quiet_NaN();"
    return [unknown, "(void)unknown;", *source.encoding(frozen.inputs)]


def _inputs(frozen: FrozenNetwork) -> list[str]:
    scaling = frozen.scaling
    limits = f"{source.number(frozen.clip)}, {source.number(frozen.grid or 0.0)}"
    lines = []
    for i in range(frozen.n_features):
        columns = (scaling.offset, scaling.floor, scaling.center, scaling.factor)
        row = ", ".join(source.number(column[i]) for column in columns)
        log = "true" if scaling.log[i] else "false"
        lines.append(f"    u[{i}] = scalar::snap<Number>(x[{i}], {log}, {row}, {limits});")
    return lines


_DENSE = """ISOTONE_BOTH void {name}(const Number* h, Number* out) {{
    static constexpr Number weight[] = {weight};
    static constexpr Number bias[] = {bias};
    scalar::dense<{shape}>(weight, bias, h, out);
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
// Events with a NaN or an infinity score `fill`. In double precision scores have the bits of
// the library: the same rounded operations in the same order, on the host and on the device.
#pragma once

{runtime}
namespace {name} {{

{facts}

namespace numbers {{

namespace scalar = isotone::scalar;

{functions}

// Features of a raw row: numbers, and codes of categories, their places in categories_i. NaN is a
// missing value where the model knows it; what it does not know becomes NaN.
ISOTONE_BOTH void encode(const double* raw, double* x) {{
{encoding}
}}

// Scaled, clamped and rounded features.
ISOTONE_BOTH void prepare(const double* x, Number* u) {{
{inputs}
}}

ISOTONE_BOTH void run(const Number* u, Number* out) {{
    static constexpr Number residual[] = {residual};
{steps}
    scalar::dense<n_features, n_outputs>(residual, {last}, u, out);
}}

}}  // namespace numbers

{score}
constexpr Number quiet_nan = std::numeric_limits<Number>::quiet_NaN();

// One event whose columns, float or double, are `stride` numbers apart; n_outputs scores go to
// `out`. Returns whether all features are finite.
template <class Real>
ISOTONE_BOTH bool score_strided(const Real* x, std::ptrdiff_t stride, Number* out,
                                Number fill = quiet_nan) {{
    double raw[n_columns], features[n_features], zero = 0.0;
    Number u[n_features], scores[n_outputs];
    ISOTONE_UNROLL(n_columns)
    for (int i = 0; i < n_columns; ++i) raw[i] = static_cast<double>(x[i * stride]);
    numbers::encode(raw, features);
    ISOTONE_UNROLL(n_features)
    for (int i = 0; i < n_features; ++i) zero += features[i] - features[i];  // NaN unless finite
    numbers::prepare(features, u);
    numbers::run(u, scores);
    ISOTONE_UNROLL(n_outputs)
    for (int j = 0; j < n_outputs; ++j) out[j] = zero == 0.0 ? scores[j] + Number(0) : fill;
    return zero == 0.0;
}}

// One event of n_columns numbers.
template <class Real>
ISOTONE_BOTH Score score(const Real* x, Number fill = quiet_nan) {{
    Score result{{}};
    score_strided(x, 1, {pointer}, fill);
    return result;
}}

// Many events: n rows of n_columns numbers; returns how many had a NaN or an infinity.
template <class Real>
ISOTONE_BOTH std::size_t score(const Real* rows, std::size_t n, Number* out,
                               Number fill = quiet_nan) {{
    std::size_t n_bad = 0;
    for (std::size_t e = 0; e < n; ++e)
        n_bad += !score_strided(rows + e * n_columns, 1, out + e * n_outputs, fill);
    return n_bad;
}}

#if defined(__CUDACC__)
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
