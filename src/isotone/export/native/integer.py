"""Integer C++: one self-contained header for a network in fixed point, and its example.

After the inputs have been rounded to their grid there is no floating point, so that scores have
the same bits on every machine, compiler and order of operations; where inputs are integers from
the start, as behind a detector, there is none at all. Units are whole numbers of a power of two,
and every array has the narrowest of two types, int32_t or int64_t, that holds every number and
every partial sum: `isotone.certificate.widths` proves which. The runtime part is
`cpp/runtime/scalar.cuh`, for scaling and knots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from isotone.certificate.widths import (
    RoundedError,
    Whole,
    describe_widths,
    find_widths,
    follow,
)
from isotone.export.claim import Arithmetic, Claim
from isotone.export.exactness import exact
from isotone.export.native import source
from isotone.export.native.cuda import RUNTIME, encoding, preparation
from isotone.export.native.header import Header
from isotone.export.native.whole import Array, Code, integers
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats


@dataclass(frozen=True)
class CppInteger(Header):
    """A header and its example."""

    suffix = ".hpp"

    def files(self, frozen: FrozenNetwork, name: str, found: Claim) -> dict[str, str]:
        return {
            f"{name}.hpp": to_header(frozen, name, found, self.decision("inline constexpr", "")),
            "example.cpp": _EXAMPLE.format(name=name),
        }

    def tolerance(self, frozen: FrozenNetwork) -> Floats:
        check_exact(frozen, "integer C++")
        return exact(frozen)

    def arithmetic(self, frozen: FrozenNetwork) -> Arithmetic:
        return Arithmetic(
            f"integers; {describe_widths(find_widths(frozen))}",
            repeats=True,
            provided="inputs are integers, or are scaled in IEEE arithmetic",
        )


def check_exact(frozen: FrozenNetwork, what: str) -> list[Whole]:
    """The numbers of a network in fixed point; raises `ValueError` for any other."""
    try:
        if frozen.precision == "float64":
            return follow(frozen)
    except RoundedError:
        pass
    raise ValueError(
        f"{what} needs a network in fixed point, and the numbers of this one are rounded; make "
        "one with freeze(frozen, precision='fixed', bits=(12, 10)) or `isotone quantize`"
    )


def to_header(frozen: FrozenNetwork, name: str, found: Claim, decision: str = "") -> str:
    """The header: runtime, weights and functions."""
    units, code = check_exact(frozen, "integer C++"), Code()
    inputs, score = units[0], units[-1]
    if inputs.width > 32:
        raise ValueError(
            f"inputs have {inputs.width} bits, and those of integer C++ at most 32; choose a "
            "coarser `grid` or a smaller `clip`"
        )
    g = code.run(frozen.steps, Array("u", inputs, 32))
    one, to_integers = frozen.n_outputs == 1, _EXPAND if frozen.copies is not None else _WHOLE
    return _HEADER.format(
        name=name,
        heading=source.heading(frozen, found),
        runtime=RUNTIME.read_text(encoding="utf-8"),
        facts=source.constants(frozen, found, "inline constexpr"),
        n_inputs=frozen.n_features,
        input_exponent=inputs.exponent,
        largest_input=int(math.ldexp(float(inputs.each.max()), -inputs.exponent)),
        score_exponent=score.exponent,
        unit=source.number(math.ldexp(1.0, score.exponent)),
        functions="\n\n".join(code.functions),
        n_cells=frozen.n_features if frozen.copies is None else len(frozen.copies.counts),
        cell="Number" if frozen.copies is None else "scalar::Cell<Number>",
        firsts=_firsts(frozen),
        preparation="\n".join(preparation(frozen)),
        encoding="\n".join(f"    {line}" for line in encoding(frozen)),
        to_integers=to_integers.format(grid=source.number(1.0 / (frozen.grid or 1.0))),
        steps="\n".join(f"    {line}" for line in code.lines),
        last=g.name,
        shift=g.whole.exponent - score.exponent,
        residual=integers(frozen.residual, inputs.exponent - score.exponent),
        score="Number" if one else "std::array<Number, n_outputs>",
        pointer="&result" if one else "result.data()",
        decision=decision,
    )


def _firsts(frozen: FrozenNetwork) -> str:
    firsts = range(frozen.n_features) if frozen.copies is None else frozen.copies.firsts
    return ", ".join(str(int(first)) for first in [*firsts, frozen.n_features])


_WHOLE = """\
    for (int i = 0; i < n_inputs; ++i) whole[i] = static_cast<int32_t>(u[i] * {grid});"""

_EXPAND = """\
    for (int s = 0; s < n_cells; ++s)
        for (int i = firsts[s]; i < firsts[s + 1]; ++i)
            whole[i] = static_cast<int32_t>(
                (i < u[s].feature ? 1.0 : i > u[s].feature ? -1.0 : u[s].phi) * {grid});"""

_EXAMPLE = """// c++ -std=c++17 -O3 -march=native example.cpp -o example && ./example
#include <cstdio>
#include "{name}.hpp"

int main() {{
    const int32_t x[{name}::n_inputs] = {{}};  // scaled inputs, whole numbers of 2^input_exponent
    int64_t score[{name}::n_outputs];
    {name}::score_integers(x, 1, score);
    std::printf("%lld * 2^%d\\n", static_cast<long long>(score[0]), {name}::score_exponent);
}}
"""

_HEADER = """// {name}.hpp: a network in integers, made by isotone. It needs C++17, GCC or Clang.
//
{heading}
//
// Where inputs are integers from the start, call score_integers: nothing there is floating point,
// and nothing is ever rounded or overflows. The other functions scale raw rows first. Events that
// hold what the model does not know score `fill`: an infinity, or a NaN where it has not learned
// what a missing value means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

{runtime}
namespace {name} {{

{facts}
inline constexpr int n_inputs = {n_inputs};  // of the network
inline constexpr int input_exponent = {input_exponent};  // inputs are whole numbers of 2^this
inline constexpr int32_t largest_input = {largest_input};  // that is meant, of either sign
inline constexpr int score_exponent = {score_exponent};  // and so are scores

namespace numbers {{

namespace scalar = isotone::scalar;

template <int n, int n_lanes, class In, class Out>
void copy(const In (*h)[n_lanes], Out (*out)[n_lanes]) {{
    for (int i = 0; i < n; ++i)
        for (int e = 0; e < n_lanes; ++e) out[i][e] = h[i][e];
}}

// Numbers of several events: a vector of GCC and Clang, as wide as the processor's.
#if defined(__AVX2__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif
template <class Int, std::size_t n_lanes>
constexpr int n_at_once =
    n_lanes * sizeof(Int) <= vector_bytes ? n_lanes : vector_bytes / sizeof(Int);

template <class Int, int n>
struct Lanes {{
    typedef Int Vector __attribute__((vector_size(sizeof(Int) * n)));
    static void load(Vector& v, const Int* from) {{ std::memcpy(&v, from, sizeof(v)); }}
    static void store(Int* to, const Vector& v) {{ std::memcpy(to, &v, sizeof(v)); }}
}};

// The smaller of every pair to a, the larger to b.
template <int n_lanes, class Int>
void exchange(Int* a, Int* b) {{
    constexpr int n = n_at_once<Int, n_lanes>;
    using L = Lanes<Int, n>;
    for (int e = 0; e < n_lanes; e += n) {{
        typename L::Vector x, y;
        L::load(x, a + e);
        L::load(y, b + e);
        L::store(a + e, x < y ? x : y);
        L::store(b + e, x < y ? y : x);
    }}
}}

template <class Int>
Int clamp(Int v, Int limit) {{
    return v < -limit ? -limit : v > limit ? limit : v;
}}

// out = bias + W h; no sum or partial sum is beyond its type, which the certificate proves.
template <int n_in, int n_out, int n_lanes, class Weight, class In, class Out>
void dense(const Weight* weight, const Out* bias, const In (*h)[n_lanes], Out (*out)[n_lanes]) {{
    constexpr int n = n_at_once<Out, n_lanes>;
    using L = Lanes<Out, n>;
    constexpr int tile = n_out % 5 == 0 ? 5 : n_out % 4 == 0 ? 4 : 1;  // sums in registers
    for (int e = 0; e < n_lanes; e += n)
        for (int j = 0; j < n_out; j += tile) {{
            typename L::Vector sum[tile];
            for (int t = 0; t < tile; ++t) sum[t] = typename L::Vector{{}} + bias[j + t];
            for (int k = 0; k < n_in; ++k) {{
                typename Lanes<In, n>::Vector narrow;
                Lanes<In, n>::load(narrow, h[k] + e);
                const auto x = __builtin_convertvector(narrow, typename L::Vector);
                for (int t = 0; t < tile; ++t)
                    sum[t] += static_cast<Out>(weight[(j + t) * n_in + k]) * x;
            }}
            for (int t = 0; t < tile; ++t) L::store(out[j + t] + e, sum[t]);
        }}
}}

{functions}

// Scores of n_lanes events.
template <int n_lanes>
void run(const int32_t (*u)[n_lanes], int64_t (*out)[n_lanes]) {{
    static constexpr int64_t residual[] = {residual};
{steps}
    for (int j = 0; j < n_outputs; ++j)
        for (int e = 0; e < n_lanes; ++e) {{
            out[j][e] = static_cast<int64_t>({last}[j][e]) * (int64_t{{1}} << {shift});
            for (int i = 0; i < n_inputs; ++i) out[j][e] += residual[j * n_inputs + i] * u[i][e];
        }}
}}

// Features of a raw row: numbers, and codes of categories, their places in categories_i, beside
// which is said where there is a code of all others. NaN is a missing value where the model knows
// it; what it does not know becomes NaN.
inline void encode(const double* raw, double* x) {{
{encoding}
}}

// Features as the integers that enter the network: scaled, clamped and rounded.
inline void prepare(const double* x, int32_t* whole) {{
    constexpr int n_cells = {n_cells};
    constexpr int firsts[] = {{{firsts}}};
    (void)firsts;
    {cell} u[n_cells];
{preparation}
{to_integers}
}}

// Calls read(e, i) for input i of event e, and write(e, j, score).
template <int n_lanes, class Read, class Write>
void run_block(Read read, Write write, std::size_t first, std::size_t n) {{
    int32_t u[n_inputs][n_lanes];
    int64_t out[n_outputs][n_lanes];
    for (std::size_t e = 0; e < n_lanes; ++e)
        for (int i = 0; i < n_inputs; ++i) u[i][e] = read(first + (e < n ? e : 0), i);
    run<n_lanes>(u, out);
    for (std::size_t e = 0; e < n_lanes && e < n; ++e)
        for (int j = 0; j < n_outputs; ++j) write(first + e, j, out[j][e]);
}}

}}  // namespace numbers

using Score = {score};
inline constexpr Number quiet_nan = std::numeric_limits<Number>::quiet_NaN();

// Integers to integers: n rows of n_inputs inputs, n rows of n_outputs scores.
inline void score_integers(const int32_t* rows, std::size_t n, int64_t* out) {{
    constexpr std::size_t n_lanes = 8;
    const auto read = [=](std::size_t e, int i) {{ return rows[e * n_inputs + i]; }};
    const auto write = [=](std::size_t e, int j, int64_t s) {{ out[e * n_outputs + j] = s; }};
    const std::size_t rest = n % n_lanes, alone = rest > n_lanes / 2 ? 0 : rest;
    for (std::size_t e = 0; e < n - alone; e += n_lanes)
        numbers::run_block<n_lanes>(read, write, e, n - e);
    for (std::size_t k = 0; k < alone; ++k)
        numbers::run_block<1>(read, write, n - alone + k, 1);
}}

// One raw event: its inputs as integers; returns whether the model knows all that it holds.
template <class Real>
bool quantize(const Real* row, int32_t* whole) {{
    double raw[n_columns], x[n_features], zero = 0.0;
    for (int i = 0; i < n_columns; ++i) raw[i] = static_cast<double>(row[i]);
    numbers::encode(raw, x);
    for (int i = 0; i < n_features; ++i) zero += x[i] - x[i];  // NaN unless all are finite
    for (int i = 0; i < n_features; ++i) x[i] = zero == 0.0 ? x[i] : 0.0;
    numbers::prepare(x, whole);
    return zero == 0.0;
}}

// A score as a number, exactly.
inline Number to_number(int64_t score) {{
    return static_cast<Number>(score) * {unit};
}}

// Many events: n rows of n_columns numbers, float or double, one after the other. Writes n rows
// of n_outputs scores, and returns how many events have none and got `fill`.
template <class Real>
std::size_t score(const Real* rows, std::size_t n, Number* out, Number fill = quiet_nan) {{
    constexpr std::size_t block = 64;
    int32_t whole[block * n_inputs];
    int64_t scores[block * n_outputs];
    bool known[block];
    std::size_t n_bad = 0;
    for (std::size_t first = 0; first < n; first += block) {{
        const std::size_t m = n - first < block ? n - first : block;
        for (std::size_t e = 0; e < m; ++e) {{
            known[e] = quantize(rows + (first + e) * n_columns, whole + e * n_inputs);
            n_bad += !known[e];
        }}
        score_integers(whole, m, scores);
        for (std::size_t e = 0; e < m; ++e)
            for (int j = 0; j < n_outputs; ++j)
                out[(first + e) * n_outputs + j] =
                    known[e] ? to_number(scores[e * n_outputs + j]) : fill;
    }}
    return n_bad;
}}

// One event of n_columns numbers.
template <class Real>
Score score(const Real* x, Number fill = quiet_nan) {{
    Score result{{}};
    score(x, 1, {pointer}, fill);
    return result;
}}

{decision}}}  // namespace {name}
"""
