"""The CUDA export: its host path is the engine to the last bit, and nvcc takes it for devices."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.proofs.last_bit import adversarial
from isotone import FrozenNetwork, Scaling, export, freeze
from isotone.export.native import compiler
from isotone.export.native.cuda import RUNTIME, Cuda, is_single
from networks import small
from programs import MODELS, STRICT, check_program, need, root, write_program
from test_parity import paper


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("headers")
    for name, frozen in MODELS.items():
        Cuda(name=name).write(frozen, path)
    return path


@pytest.mark.parametrize("program", ["g++", "nvcc"])
def test_the_host_path_gives_the_bits_of_the_engine(
    program: str, headers: Path, tmp_path: Path
) -> None:
    need(program)
    built, text = tmp_path / "program", write_program(".cuh", columns=False)
    if program == "g++":
        options = ["-O1", "-march=native", "-ffp-contract=fast", *STRICT]
        compiler.build(text, built, [f"-I{headers}", *options], "g++")
    else:
        (tmp_path / "program.cu").write_text(text)
        _nvcc("-O1", f"-I{headers}", tmp_path / "program.cu", "-o", built)
    check_program([str(built)], exact_single=program == "g++")


def test_nvcc_keeps_the_papers_network_in_registers(tmp_path: Path) -> None:
    need("nvcc")
    Cuda().write(paper(), tmp_path / "trigger")
    example = tmp_path / "trigger" / "example.cu"
    said = _nvcc("-O3", "--ptxas-options=-v", "-cubin", example, "-o", tmp_path / "x.cubin")
    assert re.search("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", said)


def _nvcc(*arguments: str | Path) -> str:
    command = ["nvcc", "-std=c++17", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


def test_an_export_is_checked(tmp_path: Path) -> None:
    need("g++")
    export.write(small(), "cuda", tmp_path / "model")
    files = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert files == ["example.cu", "model.cuh"]
    assert RUNTIME.read_text() == (root() / "cpp/runtime/scalar.cuh").read_text()
    assert RUNTIME.read_text() in (tmp_path / "model" / "model.cuh").read_text()


def single() -> FrozenNetwork:
    """Float32 to the last bit, with a scaling that is rounded."""
    scaling = Scaling([False] * 4, [0.0] * 4, [1.0] * 4, [0.1, 5.0, 1 / 3, -2.0], [0.7, 1, 3, 0.1])
    return freeze(adversarial([4, 20, 20, 1], 0), scaling=scaling, precision="float32", exact=True)


def test_float32_to_the_last_bit_is_computed_without_doubles(tmp_path: Path) -> None:
    """No instruction of the scoring function is one of double precision."""
    need("g++")
    Cuda().write(single(), tmp_path / "model")
    text = '#include "model.cuh"\nfloat f(const float* x) { return model::score(x); }\n'
    options = ["-O2", "-S", f"-I{tmp_path / 'model'}"]
    compiler.build(text, tmp_path / "f.s", options, "g++")
    assembly = (tmp_path / "f.s").read_text()
    assert re.search(r"\bmulss\b|\bvmulss\b|\bfmul\b", assembly)
    assert not re.search(r"\b\w*(2sd|sd2\w+|addsd|subsd|mulsd|divsd|ucomisd|cvtps2pd)\b", assembly)


def test_scaling_in_float32_is_monotone_and_within_the_claim(tmp_path: Path) -> None:
    """Rows at the edges of cells, raised by one unit in the last place of float32."""
    need("g++")
    frozen = single()
    claim = export.write(frozen, "cuda", tmp_path / "model")
    assert claim.to_the_last_bit
    assert claim.arithmetic == "float32, scaling included, sums in the order of the model"
    rng, n = np.random.default_rng(0), 50_000
    assert frozen.grid is not None
    cells = rng.integers(-1000, 1000, (n, 4)) + 0.5
    low = frozen.scaling.inverse(cells * frozen.grid).astype("f4")
    feature = rng.choice(np.flatnonzero(frozen.monotonic_cst[0]), n)
    high, rows = low.copy(), np.arange(n)
    high[rows, feature] = np.nextafter(low[rows, feature], np.float32(np.inf))
    header = tmp_path / "model" / "model.cuh"
    scores = [compiler.score(header, X.astype(float), 1, "float32")[:, 0] for X in (low, high)]
    change = frozen.monotonic_cst[0, feature] * (scores[1] - scores[0])
    assert np.all(change >= 0)
    assert np.any(change > 0)


def test_logarithms_are_still_taken_in_double_precision(tmp_path: Path) -> None:
    scaling = Scaling([True] * 4, [0.0] * 4, [1.0] * 4, [0.0] * 4, [1.0] * 4)
    frozen = replace(single(), scaling=scaling)
    assert not is_single(frozen)
    assert is_single(single())
    assert export.write(frozen, "cuda", tmp_path / "model", check=False).to_the_last_bit
