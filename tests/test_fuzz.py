"""What fuzzers found once stays found: their corpora run again, and some changed files more."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import hostile
from bench.fuzz import corpus
from bench.fuzz.runtime import compile_replay
from candidates import draw_model
from hostile import examine
from mutants import mutate
from networks import small
from programs import need


def inputs(name: str, folder: Path) -> list[Path]:
    corpus.unpack(name, folder)
    return sorted(folder.iterdir())


@pytest.mark.slow
def test_the_runtime_stays_within_its_arrays_on_its_corpus(tmp_path: Path) -> None:
    need("c++")
    paths = inputs("score", tmp_path / "inputs")
    assert len(paths) > 500
    program = compile_replay(tmp_path / "replay", shutil.which("c++") or "c++")
    run = subprocess.run([program, *paths], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{len(paths)} inputs\n"


def test_no_file_of_the_corpus_does_harm(tmp_path: Path) -> None:
    ends = [examine(path.read_bytes()) for path in inputs("model_files", tmp_path)]
    assert {"holds", "fails"} < set(ends)
    assert len(set(ends)) > 50  # reasons to refuse a file


@pytest.mark.parametrize("seed", range(12))  # one of every kind
def test_no_changed_file_does_harm(seed: int, tmp_path: Path) -> None:
    path, rng = tmp_path / "a.isotone", np.random.default_rng(seed)
    draw_model(seed).save(path)
    assert examine(path.read_bytes()) in ("holds", "fails")
    for _ in range(8):
        examine(mutate(path.read_bytes(), rng))


def test_a_score_that_falls_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = tmp_path / "a.isotone", hostile.kept_directions
    small((1, -1, 0)).save(path)
    assert examine(path.read_bytes()) == "holds"
    monkeypatch.setattr(hostile, "kept_directions", lambda *given: -kept(*given))
    with pytest.raises(AssertionError, match="turned a score"):
        examine(path.read_bytes())
