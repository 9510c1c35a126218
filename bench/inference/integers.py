"""Integer C++ against the float engine, on one core.

Question: do integers of few bits beat floating point on a CPU with AVX2?
Data: normal rows; the paper's network 4-20-20-1, λ = 2, in fixed point of several widths, with
sorts of pairs and of all units. The float headers have the same numbers.
Method: one program with all headers, built with -O3 -march=native; contestants take turns, best of
the rounds. Ratios are to the float64 header on the same rows; integers get integer rows, without
scaling.
Run time: about a minute.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from isotone import FrozenNetwork, MonotonicNetwork, certify, export, freeze

BITS = ((6, 4), (8, 6), (10, 8), (12, 10))
NAMES = ("double_raw", "single_raw", "integer_raw", "integer")

_PROGRAM = """#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>
#include "double_raw/double_raw.hpp"
#include "single_raw/single_raw.hpp"
#include "integer/integer.hpp"

int main() {
    constexpr std::size_t n = 1 << 16;
    std::mt19937 random(0);
    std::normal_distribution<double> normal;
    std::vector<double> rows(4 * n), scores(n);
    std::vector<float> single(n);
    std::vector<int32_t> whole(4 * n);
    std::vector<int64_t> found(n);
    for (double& x : rows) x = normal(random);
    for (std::size_t e = 0; e < n; ++e) integer::quantize(&rows[4 * e], &whole[4 * e]);
    double best[4] = {1e9, 1e9, 1e9, 1e9};
    const auto measure = [&](int k, auto call) {
        const auto start = std::chrono::steady_clock::now();
        call();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        best[k] = std::min(best[k], 1e9 * took.count() / n);
    };
    for (int round = 0; round < 40; ++round) {
        measure(0, [&] { double_raw::score(rows.data(), n, scores.data()); });
        measure(1, [&] { single_raw::score(rows.data(), n, single.data()); });
        measure(2, [&] { integer::score(rows.data(), n, scores.data()); });
        measure(3, [&] { integer::score_integers(whole.data(), n, found.data()); });
    }
    std::printf("%g %g %g %g\\n", best[0], best[1], best[2], best[3]);
}
"""


def measure(fixed: FrozenNetwork) -> list[float]:
    """Nanoseconds per event of every contestant."""
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        single = freeze(fixed, precision="float32")
        export.write(fixed, "cpp", where / "double_raw", check=False)
        export.write(single, "cpp", where / "single_raw", check=False)
        export.write(fixed, "cpp-int", where / "integer", check=False)
        (where / "race.cpp").write_text(_PROGRAM)
        options = ["-std=c++17", "-O3", "-march=native", "race.cpp", "-o", "race"]
        subprocess.run(["c++", *options], cwd=where, check=True)
        done = subprocess.run([where / "race"], capture_output=True, text=True, check=True)
    return [float(text) for text in done.stdout.split()]


def main() -> None:
    table = Table("sort", "bits", "widths", *(f"{name}, ns" for name in NAMES), "float64 = 1")
    for group_size in (2, None):
        torch.manual_seed(0)
        network = MonotonicNetwork(
            [4, 20, 20, 1], monotonic_cst=[1] * 4, lipschitz=2.0, group_size=group_size
        )
        for bits in BITS:
            fixed = freeze(network, precision="fixed", bits=bits, clip=8)
            times = measure(fixed)
            ratios = " ".join(f"{times[0] / each:.2f}" for each in times[1:])
            widths = " ".join(map(str, certify(fixed).widths))
            shown = (f"{each:.1f}" for each in times)
            table.add_row("pairs" if group_size else "all", str(bits), widths, *shown, ratios)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
