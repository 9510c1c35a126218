"""Programs made of exported headers: many networks in one, since compiling takes seconds."""

from __future__ import annotations

import platform
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from draws import draw_frozen, draw_rows
from isotone import FrozenNetwork, Scaling
from isotone.export.native.compiler import run
from isotone.export.parity import check_rows
from isotone.frozen.activations import ACTIVATIONS
from isotone.frozen.engine import Engine
from isotone.frozen.steps import Dense, Sort, Step
from isotone.typing import Floats, Precision, Reals
from networks import copied, every_step

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
HOSTILE = ('a"b', "c\\", "é*/\n#error ??/")  # names of features
FILL = -7.5


def _chain(
    precision: Precision, *widths: int, sort: int, n: int = 3, n_outputs: int = 1
) -> FrozenNetwork:
    """Dense steps with sorts between, linear scaling, a grid."""
    rng = np.random.default_rng(sum(widths))
    steps: list[Step] = []
    for n_out, n_in in zip((*widths, n_outputs), (n, *widths), strict=True):
        weight = rng.normal(size=(n_out, n_in)) / n_in
        bias = rng.normal(size=n_out).astype(precision)
        steps += [Dense(weight.astype(precision), bias), Sort(sort)]
    shape = n_outputs, n
    return FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n)),
        scaling=Scaling.fit(rng.normal(size=(20, n)), "standard"),
        steps=tuple(steps[:-1]),
        residual=rng.integers(-4, 5, shape) / 4.0,
        lipschitz=np.ones(n),
        monotonic_cst=np.zeros(shape, np.int8),
        precision=precision,
    )


MODELS: dict[str, FrozenNetwork] = {
    **{f"every_{name}": every_step(activation=name, grid=None) for name in sorted(ACTIVATIONS)},
    "several": every_step(3),
    "single": every_step(2, precision="float32"),
    **{f"drawn_{seed}": draw_frozen(seed) for seed in (1, 2, 5, 7, 9)},
    "drawn_single": draw_frozen(4, "float32"),
    "wide_single": _chain("float32", 40, 40, 20, sort=20),
    "fused_single": _chain("float32", 8, 8, sort=8),
    "grouped_single": _chain("float32", 16, 8, sort=8),
    "fused": _chain("float64", 16, 16, sort=16),
    "four": _chain("float64", 6, sort=2, n=4),
    "narrow_single": _chain("float32", 1, sort=1, n=9, n_outputs=17),
    "knots": copied(2, 3),
    "knots_single": copied(1, 1, precision="float32", grid=None),
}
MODELS["several"] = replace(MODELS["several"], features=HOSTILE)

_RUN = """
int run_{name}(const std::vector<double>& rows) {{
    using namespace {name};
    const std::size_t n = rows.size() / n_features;
    std::vector<Number> out(n * n_outputs), other(n * n_outputs);
    const std::size_t bytes = out.size() * sizeof(Number);
    const std::size_t n_bad = score(rows.data(), n, out.data(), FILL);
    for (std::size_t e = 0; e < n; ++e) {{
        const auto one = score(&rows[e * n_features], FILL);
        std::memcpy(&other[e * n_outputs], &one, sizeof(one));
    }}
    if (n_bad != N_BAD || std::memcmp(out.data(), other.data(), bytes) != 0) return 2;
    {more}
    return std::fwrite(out.data(), 1, bytes, stdout) != bytes;
}}
"""

_COLUMNS = """
    std::vector<double> turned(rows.size());
    const double* columns[n_features];
    for (int i = 0; i < n_features; ++i) {
        columns[i] = &turned[i * n];
        for (std::size_t e = 0; e < n; ++e) turned[i * n + e] = rows[e * n_features + i];
    }
    score_columns(columns, n, other.data(), FILL);
    if (std::memcmp(out.data(), other.data(), bytes) != 0) return 3;
    std::vector<float> narrow(rows.begin(), rows.end());
    const std::vector<double> wide(narrow.begin(), narrow.end());
    std::vector<Number> third(n * n_outputs);
    score(narrow.data(), n, other.data());
    score(wide.data(), n, third.data());
    if (std::memcmp(third.data(), other.data(), bytes) != 0) return 4;
"""

_MAIN = """
int main(int, char** arguments) {
    std::vector<double> rows;
    double x;
    while (std::fread(&x, sizeof(x), 1, stdin) == 1) rows.push_back(x);
    CHOICES
    return 9;
}
"""

N_BAD = 19


def write_program(suffix: str, columns: bool) -> str:
    """C++ text: every model's scores of many rows, of each alone, in columns, of float rows."""
    more = _COLUMNS if columns else ""
    choose = 'if (std::strcmp(arguments[1], "{0}") == 0) return run_{0}(rows);'
    return "\n".join(
        [
            "#include <cstdio>\n#include <cstring>\n#include <vector>",
            f"#define FILL {FILL}\n#define N_BAD {N_BAD}",
            *(f'#include "{name}{suffix}"' for name in MODELS),
            *(_RUN.format(name=name, more=more) for name in MODELS),
            _MAIN.replace("CHOICES", "\n    ".join(choose.format(name) for name in MODELS)),
        ]
    )


def draw_table(frozen: FrozenNetwork) -> Floats:
    """Edges and random rows of sizes that float32 holds, and N_BAD rows with NaN or infinity."""
    X = np.concatenate([check_rows(frozen, 150), draw_rows(0, 150, len(frozen.inputs.columns))])
    X = X[np.all(np.abs(X) < 1e38, axis=1)]
    bad = X[:N_BAD].copy()
    bad[:, 0] = np.resize([np.nan, np.inf, -np.inf], N_BAD)
    return np.concatenate([X, bad, X[:5]])


def check_program(command: list[str], exact_single: bool) -> None:
    """Every model in a program gives the engine's bits; float32 need not without fusing."""
    for name, frozen in MODELS.items():
        X = draw_table(frozen)
        expected = Engine(frozen, on_unseen=FILL)(X).reshape(len(X), -1)
        found = run([*command, name], X, frozen.n_outputs, frozen.precision)
        if frozen.precision == "float64" or exact_single:
            finite = np.isfinite(expected)
            assert np.array_equal(_bits(found)[finite], _bits(expected)[finite]), name


def _bits(scores: Reals) -> np.ndarray:
    return np.ascontiguousarray(scores).view(f"u{scores.itemsize}")


def need(*programs: str) -> None:
    """Skip where a program is absent."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def on_x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")


def root() -> Path:
    return Path(__file__).parent.parent
