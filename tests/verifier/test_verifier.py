"""The verifier alone: its command, hostile files, and scores within its E."""

from __future__ import annotations

import json
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import isotone
from isotone.frozen.steps import Dense, Sort
from mutants import File
from networks import by_hand, copied, every_step, small
from rationals import exact_score
from rivals import VERIFIER, is_available, verify

pytestmark = pytest.mark.skipif(not is_available(), reason="node is not installed")


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", VERIFIER, *words], capture_output=True, text=True, timeout=120)


def test_exit_codes_are_those_of_certify(tmp_path: Path) -> None:
    good, bad, damaged = (tmp_path / f"{name}.isotone" for name in ("good", "bad", "damaged"))
    small().save(good)
    by_hand(2.0).save(bad)
    damaged.write_bytes(good.read_bytes()[:-1])
    assert run(good).returncode == 0
    assert run(bad).returncode == 1
    assert run(damaged).returncode == 2
    assert run(good, bad).returncode == 1
    assert run(tmp_path / "absent").returncode == 2
    assert run(tmp_path).returncode == 2
    assert run().returncode == 2
    assert run("--help").returncode == 0


def test_it_prints_slopes_errors_and_the_fingerprint(tmp_path: Path) -> None:
    path, model = tmp_path / "model.isotone", small()
    model.save(path)
    text = run(path).stdout
    assert text.startswith(f"HOLDS  {path}")
    assert model.fingerprint in text
    assert "E = 9.789e-12" in text
    assert "x2       falls" in text


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = run(tmp_path / "pipe")
    assert found.returncode == 2
    assert "not a regular file" in found.stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"clip": 1, "clip": 2}', "twice"),
        ('{"clip": NaN}', "a value was expected"),
        ('{"clip": 1e999}', "too large for float64"),
        ('{"clip": ' + "1" * 400 + "}", "400 digits"),
        ("[" * 1000 + "]" * 1000, "nested"),
        ('{"clip": "a\nb"}', "does not end"),
        ("{} {}", "goes on after"),
        ("{}", "lacks"),
        ('{"clock": 1}', "unknown key"),
    ],
)
def test_ambiguous_text_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    small().save(path := tmp_path / "model.isotone")
    file = File.unpack(path.read_bytes())
    file.text = text
    path.write_bytes(file.pack())
    found = json.loads(run("--json", path).stdout)
    assert found["verdict"] == "BAD FILE"
    assert reason in found["reason"]


def test_all_but_the_command_runs_in_a_browser() -> None:
    modules = sorted((VERIFIER.parents[1] / "src").glob("*.mjs"))
    assert len(modules) > 20
    assert [path.stem for path in modules if "node:" in path.read_text()] == ["command"]


def test_a_thousand_steps_take_no_long_time(tmp_path: Path) -> None:
    ones = np.full((8, 8), 0.1)
    steps = [Dense(np.full((8, 3), 0.01), np.zeros(8)), *[Sort(8)] * 400]
    steps += [Dense(ones, np.zeros(8))] * 400 + [Dense(ones[:1], np.zeros(1))]
    model = isotone.FrozenNetwork(
        features=("a", "b", "c"),
        scaling=isotone.Scaling.identity(3),
        steps=tuple(steps),
        residual=np.ones((1, 3)),
        lipschitz=np.ones(3),
        monotonic_cst=np.ones((1, 3)),
    )
    model.save(path := tmp_path / "deep.isotone")
    (found,) = verify([path])
    assert found["verdict"] == ("HOLDS" if isotone.certify(model).holds else "FAILS")


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_within_the_bound_of_the_exact_ones(seed: int, tmp_path: Path) -> None:
    model = [
        lambda: copied(2, 2, seed),
        lambda: copied(1, 2, seed, precision="float32"),
        lambda: every_step(2, "leaky_relu", seed, precision="float32"),
        lambda: small(seed=seed),
    ][seed % 4]()
    model.save(path := tmp_path / "model.isotone")
    (found,) = verify([path])
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, len(model.inputs.columns))) * 10.0 ** rng.uniform(-2, 4, (40, 1))
    scores = model.score(X).reshape(len(X), -1)
    for u, row in zip(model.snap(X), scores, strict=True):
        exact = exact_score(model, u)
        off = [abs(s - y) for s, y in zip(map(Fraction, row.tolist()), exact, strict=True)]
        assert all(d <= E for d, E in zip(off, found["rounding_errors"], strict=True))
