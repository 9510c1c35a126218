"""Integer C++: the integers of the engine, and those of rationals, with any compiler options."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from fixed_points import blocks, corners, knotted, rows_of
from isotone import FrozenNetwork, certify, export, freeze
from isotone.certificate.widths import follow
from isotone.export.native import compiler
from isotone.export.native.integer import CppInteger
from isotone.freezing.fixed import to_fixed
from isotone.typing import Integers
from networks import by_hand, small
from programs import STRICT, need
from rationals import exact_score

_PROGRAM = """#include <cstdio>
#include <vector>
#include "model.hpp"

int main() {
    std::vector<int32_t> rows;
    int32_t row[model::n_inputs];
    while (std::fread(row, sizeof(row), 1, stdin) == 1)
        rows.insert(rows.end(), row, row + model::n_inputs);
    const std::size_t n = rows.size() / model::n_inputs;
    std::vector<int64_t> scores(n * model::n_outputs);
    model::score_integers(rows.data(), n, scores.data());
    return std::fwrite(scores.data(), 8, scores.size(), stdout) != scores.size();
}
"""


MODELS = {
    "narrow": freeze(small(), precision="fixed", bits=(6, 4), clip=2),
    "wide": freeze(small(), precision="fixed", bits=(14, 11), clip=8),
    "blocks": to_fixed(replace(small(), steps=blocks()), (6, 5), clip=4.0),
    "knots": knotted(),
}


def run_integers(frozen: FrozenNetwork, rows: Integers, path: Path, *options: str) -> Integers:
    CppInteger(name="model").write(frozen, path)
    compiler.build(_PROGRAM, path / "program", [f"-I{path}", *STRICT, *options], "g++")
    data = rows.astype(np.int32).tobytes()
    done = subprocess.run([path / "program"], input=data, capture_output=True, check=False)
    assert not done.stderr, done.stderr.decode()
    assert done.returncode == 0
    return np.frombuffer(done.stdout, np.int64).reshape(len(rows), -1)


@pytest.mark.parametrize("name", MODELS)
def test_raw_rows_score_as_in_the_engine(name: str, tmp_path: Path) -> None:
    """Edge cases, strange rows and random ones, one by one and many at once."""
    need("g++")
    options = {"threshold": 0.25} if MODELS[name].n_outputs == 1 else {}
    claim = export.write(MODELS[name], "cpp-int", tmp_path / "model", **options)
    assert claim.holds
    assert claim.distance == (0.0,) * MODELS[name].n_outputs
    files = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert files == ["example.cpp", "model.hpp"]


@pytest.mark.parametrize("name", ["narrow", "wide", "blocks"])
def test_integers_are_those_of_rationals_and_never_overflow(name: str, tmp_path: Path) -> None:
    need("g++")
    frozen = MODELS[name]
    u = frozen.snap(np.concatenate([rows_of(frozen, 41), corners(frozen)]))
    rows = (u / frozen.grid).astype(np.int64)
    found = run_integers(frozen, rows, tmp_path, "-O1", "-fsanitize=undefined")
    unit = Fraction(2) ** follow(frozen)[-1].exponent
    for row, score in zip(u, found, strict=True):
        assert [int(s) * unit for s in score] == exact_score(frozen, row)


def test_the_same_integers_with_any_options(tmp_path: Path) -> None:
    need("g++")
    frozen = MODELS["wide"]
    rows = (frozen.snap(rows_of(frozen, 5000)) / frozen.grid).astype(np.int64)
    every = [
        run_integers(frozen, rows, tmp_path, *options)
        for options in (("-O0",), ("-O3", "-march=native"))
    ]
    assert np.array_equal(*every)
    scores = np.ldexp(every[0][:, 0].astype(float), follow(frozen)[-1].exponent)
    assert np.array_equal(scores, frozen.score(rows * frozen.grid))


def test_types_are_as_narrow_as_widths_allow(tmp_path: Path) -> None:
    CppInteger(name="model").write(MODELS["narrow"], tmp_path)
    text = (tmp_path / "model.hpp").read_text()
    assert max(certify(MODELS["narrow"]).widths) <= 32
    assert "int64_t h" not in text
    CppInteger(name="model").write(MODELS["wide"], tmp_path)
    assert "int64_t h" in (tmp_path / "model.hpp").read_text()


def test_what_is_rounded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="needs a network in fixed point, and the numbers of this"
    ):
        export.write(small(), "cpp-int", tmp_path / "model")
    fine = by_hand(0.5, clip=8.0, grid=2.0**-40)
    with pytest.raises(ValueError, match="inputs have 45 bits, and those of integer C"):
        export.write(fine, "cpp-int", tmp_path / "model")
