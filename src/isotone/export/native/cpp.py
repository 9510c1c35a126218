"""C++: a directory with `isotone.hpp`, the model as constants, and an example.

The runtime is the very file that the engine was compiled from, so that what is tested here is what
runs there: in float64 the same bits, whatever the compiler, its options and the processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from isotone.compiled import engine
from isotone.export.claim import Claim
from isotone.export.native import source
from isotone.export.native.header import Header
from isotone.frozen.lookup import Copies
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Instruction, flatten
from isotone.typing import Precision, Reals

RUNTIME = Path(engine.__file__).with_name("isotone.hpp")  # installed beside the extension

_NAN = "std::numeric_limits<double>::quiet_NaN()"
_UNROLLED = 32  # max_unrolled_size of isotone.hpp; larger groups walk a list of comparators
_STACK = engine.MAX_STACK_BYTES  # of workspace that a call may take
_VECTOR = 64  # bytes of the widest vector
_BLOCK = 32768  # bytes of features that are encoded at a time


@dataclass(frozen=True)
class Cpp(Header):
    """A header, its example and what they need."""

    suffix = ".hpp"

    def files(self, frozen: FrozenNetwork, name: str, found: Claim) -> dict[str, str]:
        return {
            "isotone.hpp": RUNTIME.read_text(encoding="utf-8"),
            f"{name}.hpp": to_header(frozen, name, found, self.decision("inline constexpr", "")),
            "example.cpp": _example(frozen, name),
        }


def to_header(frozen: FrozenNetwork, name: str, found: Claim, decision: str = "") -> str:
    """The header with the weights."""
    model = _Model(frozen)
    for instruction in flatten(frozen.steps, frozen.n_features, frozen.copies):
        model.add(instruction)
    model.check_size()
    sizes = ", ".join(str(size) for size in sorted(model.sizes))
    several = f"std::array<Number, {frozen.n_outputs}>"
    one = frozen.n_outputs == 1
    return _HEADER.format(
        name=name,
        decision=decision,
        heading=source.heading(frozen, found),
        facts=source.constants(frozen, found, "inline constexpr"),
        arrays="\n".join(model.arrays),
        steps=",\n".join(f"    {step}" for step in model.steps),
        features=",\n".join(f"    {feature}" for feature in _features(frozen)),
        residual=source.numbers(model.residual, frozen.precision, " " * 4),
        n_inputs=frozen.n_features,
        sources=model.sources,
        shape=f"{len(model.steps)}, {model.width}, {model.depth}",
        clip=source.number(frozen.clip),
        grid=source.number(frozen.grid or 0.0),
        sizes=sizes,
        score="Number" if one else several,
        pointer="&result" if one else "result.data()",
        many=_SCORE if frozen.inputs.is_plain else _encoded(frozen),
    )


def _encoded(frozen: FrozenNetwork) -> str:
    """The functions over many events for raw columns that are not the features."""
    block = max(1, min(64, _BLOCK // (8 * frozen.n_features)))
    lines = "\n".join(f"    {line}" for line in source.encoding(frozen.inputs))
    return _ENCODE.replace("@lines", lines).replace("@block", str(block))


class _Model:
    """The steps of a network as initializers of `isotone::Step`, and the arrays they point to."""

    def __init__(self, frozen: FrozenNetwork) -> None:
        self.precision: Precision = frozen.precision
        self.type = source.TYPES[frozen.precision]
        self.n_rows = self.width = frozen.n_features
        self.residual: Reals = frozen.residual.T
        self.sources = ""
        self.depth = self.saved = 0
        self.arrays: list[str] = []
        self.steps: list[str] = []
        self.sizes: set[int] = set()

        if frozen.copies is not None:
            self._take_copies(frozen.copies, frozen.residual)

    def _take_copies(self, copies: Copies, residual: Reals) -> None:
        """Columns whose copies are looked up: what finds the copy that moves."""
        self.width, self.n_rows = len(copies.counts), 2 * len(copies.counts)
        self.residual, sources = copies.interleaved(residual), []
        for s, (first, count) in enumerate(zip(copies.firsts, copies.counts, strict=True)):
            levels = (count - 1).bit_length()
            ends = [source.number(end) for end in copies.ends[s] if math.isfinite(end)]
            missing = 2**levels - 1 - len(ends)  # at which no number is
            if count > 1:
                literals = source.braces([*ends, *[_NAN] * missing], " " * 4)
                self.arrays.append(f"inline constexpr double ends_{s}[] = {literals};")
            pointer = f"ends_{s}" if count > 1 else "nullptr"
            sources.append(f"    {{{first}, {count}, {levels}, {pointer}}}")
        lines = ",\n".join(sources)
        self.arrays.append(f"inline constexpr isotone::Source sources[] = {{\n{lines}\n}};")
        self.sources = f", {len(sources)}, sources"

    def add(self, i: Instruction) -> None:
        """Append an instruction, and the arrays that it points to."""
        saved = {"save": 1, "merge": -1, "fork": 2, "join": -2}.get(i.kind, 0)
        self.saved += saved
        self.depth = max(self.depth, self.saved)
        if i.kind not in ("fork", "part"):  # what is kept was counted
            self.width = max(self.width, i.n_out)
        network = self._network(i.group_size) if i.kind == "sort" else "{}"
        factors = ", ".join(source.number(factor, self.precision) for factor in (i.keep, i.add))
        self.steps.append(
            f"{{isotone::Kind::{i.kind}, {i.n_in}, {i.n_out}, {self._array('weight', i.weight)}, "
            f"{self._array('bias', i.bias)}, {i.group_size}, {network}, "
            f"isotone::Activation::{i.activation}, {source.number(i.negative_slope)}, {factors}}}"
        )

    def check_size(self) -> None:
        """Refuse networks whose workspace would be too much for a stack."""
        size = (self.n_rows + (2 + self.depth) * self.width) * 2 * _VECTOR
        if size > _STACK:
            raise ValueError(
                f"a step has {self.width} units: C++ code would take {size} bytes of the stack, "
                f"and {_STACK} is the limit; use `isotone.Engine`, or export to onnx"
            )

    def _array(self, name: str, values: Reals | None) -> str:
        """The name of an array of the step that is being added."""
        if values is None:
            return "nullptr"
        name = f"{name}_{len(self.steps)}"
        literals = source.numbers(values, self.precision, " " * 4)
        self.arrays.append(f"inline constexpr {self.type} {name}[] = {literals};")
        return name

    def _network(self, size: int) -> str:
        if size <= _UNROLLED:
            self.sizes |= {size} - {1}
            return "{}"
        name, pairs = f"comparators_{size}", engine.comparators(size)
        if not any(f" {name}[" in array for array in self.arrays):
            literals = source.braces((f"{{{i}, {j}}}" for i, j in pairs), " " * 4)
            self.arrays.append(f"inline constexpr isotone::Comparator {name}[] = {literals};")
        return f"{{{name}, {name} + {len(pairs)}}}"


def _features(frozen: FrozenNetwork) -> list[str]:
    scaling = frozen.scaling
    columns = (scaling.offset, scaling.floor, scaling.center, scaling.factor)
    return [
        f"{{{'true' if log else 'false'}, {', '.join(source.number(v) for v in row)}}}"
        for log, *row in zip(scaling.log.tolist(), *columns, strict=True)
    ]


def _example(frozen: FrozenNetwork, name: str) -> str:
    zeros = ", ".join(["0.0"] * len(frozen.inputs.columns))
    result = "score" if frozen.n_outputs == 1 else "score[0]"
    return _EXAMPLE.format(name=name, zeros=zeros, result=result)


_EXAMPLE = """// c++ -std=c++17 -O3 -march=native example.cpp -o example && ./example
#include <cstdio>
#include "{name}.hpp"

int main() {{
    const double x[{name}::n_columns] = {{{zeros}}};  // a raw row
    const auto score = {name}::score(x);
    std::printf("%.17g\\n", static_cast<double>({result}));
}}
"""

_SCORE = """\
// Many events: n rows of n_columns numbers, float or double, one after the other. Writes n rows
// of n_outputs scores, and returns how many events have none and got `fill`.
template <class Real>
std::size_t score(const Real* rows, std::size_t n, Number* out, Number fill = quiet_nan) {
    return runtime::score_rows<numbers::Sizes, numbers::model>(rows, n, fill, out);
}

// The same for a table in columns: column i of all events is at columns[i].
template <class Real>
std::size_t score_columns(const Real* const* columns, std::size_t n, Number* out,
                          Number fill = quiet_nan) {
    return runtime::score_columns<numbers::Sizes, numbers::model>(columns, n, fill, out);
}
"""

_ENCODE = """\
// Features of a raw row: numbers, and codes of categories, their places in categories_i, beside
// which is said where there is a code of all others. NaN is a missing value. What the model does
// not know becomes NaN, and the event scores `fill`.
inline void encode(const double* raw, double* x) {
@lines
}

// Calls read(e, i) for column i of event e.
template <class Read>
std::size_t score_encoded(Read read, std::size_t n, Number* out, Number fill) {
    constexpr std::size_t block = @block;
    double raw[n_columns], x[block * n_features];
    std::size_t n_bad = 0;
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t m = n - first < block ? n - first : block;
        for (std::size_t e = 0; e < m; ++e) {
            for (int i = 0; i < n_columns; ++i) raw[i] = static_cast<double>(read(first + e, i));
            encode(raw, x + e * n_features);
        }
        n_bad += runtime::score_rows<numbers::Sizes, numbers::model>(x, m, fill,
                                                                     out + first * n_outputs);
    }
    return n_bad;
}

// Many events: n rows of n_columns numbers, float or double, one after the other. Writes n rows
// of n_outputs scores, and returns how many events have none and got `fill`.
template <class Real>
std::size_t score(const Real* rows, std::size_t n, Number* out, Number fill = quiet_nan) {
    const auto read = [=](std::size_t e, int i) { return rows[e * n_columns + i]; };
    return score_encoded(read, n, out, fill);
}

// The same for a table in columns: column i of all events is at columns[i].
template <class Real>
std::size_t score_columns(const Real* const* columns, std::size_t n, Number* out,
                          Number fill = quiet_nan) {
    const auto read = [=](std::size_t e, int i) { return columns[i][e]; };
    return score_encoded(read, n, out, fill);
}
"""

_HEADER = """// {name}.hpp: a network as constants, made by isotone. Needs isotone.hpp and C++17.
//
{heading}
//
// Events that hold what the model does not know score `fill`: an infinity, or a NaN where it has
// not learned what a missing value means. In double precision scores have the bits of
// the library, whatever the processor and the compiler's options (-ffast-math is refused).
#pragma once

#include <array>
#include <cstddef>
#include <limits>

#include "isotone.hpp"

namespace {name} {{
inline namespace ISOTONE_ISA {{

namespace runtime = isotone::ISOTONE_ISA;

{facts}

namespace numbers {{

{arrays}

inline constexpr isotone::Step<Number> steps[] = {{
{steps}
}};

// logarithm or not, offset, floor, center, factor
inline constexpr isotone::Feature features[] = {{
{features}
}};

inline constexpr Number residual[] = {residual};

inline constexpr isotone::Model<Number> model = {{
    {n_inputs}, n_outputs, {shape}, features, steps, residual, {clip}, {grid}{sources}
}};

using Sizes = runtime::Unrolled<{sizes}>;  // of groups that are sorted

}}  // namespace numbers

using Score = {score};
inline constexpr Number quiet_nan = std::numeric_limits<Number>::quiet_NaN();

{many}
// One event of n_columns numbers.
template <class Real>
Score score(const Real* x, Number fill = quiet_nan) {{
    Score result{{}};
    score(x, 1, {pointer}, fill);
    return result;
}}

{decision}}}  // namespace ISOTONE_ISA
}}  // namespace {name}
"""
