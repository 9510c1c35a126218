"""The runtime that exports ship, at its edges: what is refused, every layout, every shape."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.coverage.header import EDGES, SETS
from isotone import Engine
from isotone.export.native import compiler
from isotone.export.native.cpp import RUNTIME
from programs import STRICT, need


def build_and_run(text: str, folder: Path, options: list[str]) -> subprocess.CompletedProcess[str]:
    places = [f"-I{each}" for each in (folder, RUNTIME.parent, EDGES.parent)]
    words = [*places, *STRICT, "-Wno-psabi", *options]
    compiler.build(text, folder / "program", words, "g++")
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", SETS)
def test_claims_hold_at_the_edges_with_every_instruction_set(name: str, tmp_path: Path) -> None:
    need("g++")
    if name not in Engine.instruction_sets():
        pytest.skip(f"this processor has no {name}")
    said = build_and_run(EDGES.read_text(), tmp_path, ["-O0", *SETS[name]])
    assert (said.stdout, said.returncode) == ("", 0)


@pytest.mark.slow
def test_claims_hold_at_the_edges_under_sanitizers(tmp_path: Path) -> None:
    need("g++")
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    said = build_and_run(EDGES.read_text(), tmp_path, ["-O0", "-march=native", *sanitizers])
    assert (said.stdout, said.stderr, said.returncode) == ("", "", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scores[j * size + e]", "scores[j * size]", "a batch of"),
        ("if (step.n_in != units ||", "if (", "accepted: a step on other units"),
        ("n <= max_group_size &&", "n < max_group_size &&", "refused: the largest group"),
        (
            "write_state(found);",
            "write_state(default_state);",
            "a state that is not left as it was",
        ),
        ("? out[j] + T(0) : fill", "? out[j] + T(0) : fill + T(1)", "the fill"),
    ],
)
def test_a_claim_that_fails_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    need("g++")
    text = RUNTIME.read_text()
    assert old in text
    (tmp_path / "isotone.hpp").write_text(text.replace(old, new))
    said = build_and_run(EDGES.read_text(), tmp_path, ["-O0"])
    assert message in said.stdout
    assert said.returncode == 1
