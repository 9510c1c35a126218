"""The verifier agrees with `certify` on models of every kind, and on files changed at random."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from candidates import draw_model
from mutants import mutate
from rivals import Pair, is_available, verify

pytestmark = pytest.mark.skipif(not is_available(), reason="node is not installed")

N = 220


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    paths = [folder / f"{seed}.isotone" for seed in range(N)]
    for seed, path in enumerate(paths):
        draw_model(seed).save(path)
    return paths


def compare(paths: list[Path]) -> tuple[dict[str, list[str]], Counter[str]]:
    """What they disagree on by file, and how often each verdict was given."""
    pairs = [Pair(path, found) for path, found in zip(paths, verify(paths), strict=True)]
    found = {pair.path.name: list(pair.disagreements()) for pair in pairs}
    return {name: texts for name, texts in found.items() if texts}, Counter(
        f"{pair.our_verdict}, {pair.theirs['verdict']}" for pair in pairs
    )


def test_both_say_the_same_of_models_of_every_kind(models: list[Path]) -> None:
    disagreements, count = compare(models)
    assert disagreements == {}
    assert count["HOLDS, HOLDS"] > N // 4
    assert count["FAILS, FAILS"] > N // 5


def test_both_say_the_same_of_changed_files(models: list[Path], tmp_path: Path) -> None:
    paths = []
    for k, path in enumerate(models):
        raw = mutate(path.read_bytes(), np.random.default_rng(k))
        paths.append(tmp_path / f"{k}.isotone")
        paths[-1].write_bytes(raw)
    disagreements, count = compare(paths)
    assert disagreements == {}
    assert count["BAD FILE, BAD FILE"] > N // 4
    assert count["HOLDS, HOLDS"] > N // 20
    assert count["FAILS, FAILS"] > N // 20
