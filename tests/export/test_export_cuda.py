"""The CUDA export: its host path is the engine to the last bit, and nvcc takes it for devices."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from isotone import export
from isotone.export.native import compiler
from isotone.export.native.cuda import RUNTIME, Cuda
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
