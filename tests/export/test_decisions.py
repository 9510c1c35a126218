"""A threshold in an export: it decides as Python does, also at the threshold itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotone import bundle, export
from isotone.cli import main
from isotone.export.native import compiler
from networks import every_step, mixed, small

PROGRAM = """#include <cstdio>
#include "HEADER"
int main() {
    double x[line::n_columns];
    while (std::fread(x, sizeof(x), 1, stdin) == 1) std::putchar(line::passes(x) ? '1' : '0');
    std::printf(" %a", line::threshold);
}
"""


def decide(header: Path, X: Any) -> tuple[list[bool], float]:
    """Decisions of a compiled header, and its threshold."""
    program = header.parent / "decide"
    text = PROGRAM.replace("HEADER", header.name)
    options = [f"-I{header.parent}", "-O1", "-Wall", "-Wextra", "-Werror"]
    compiler.build(text, program, options, compiler.find_compiler())
    data = np.ascontiguousarray(X, np.float64).tobytes()
    said = subprocess.run([program], input=data, capture_output=True, check=True).stdout.decode()
    decisions, threshold = said.split()
    return [letter == "1" for letter in decisions], float.fromhex(threshold)


@pytest.mark.parametrize(
    ("target", "suffix", "precision", "at"),
    [
        ("cpp", ".hpp", "float64", True),
        ("cpp", ".hpp", "float32", False),
        ("cuda", ".cuh", "float64", True),
    ],
)
def test_decisions_are_those_of_python_at_and_around_the_threshold(
    target: str, suffix: str, precision: Any, at: bool, tmp_path: Path
) -> None:
    """A score, or the next double, which float32 does not have."""
    frozen = small(precision=precision)
    X = np.random.default_rng(0).normal(size=(3000, 3))
    X[1:1000] = X[0] + np.arange(1, 1000)[:, None] * [2.0**-20, 0.0, -(2.0**-20)]
    X[-1, 1] = np.nan
    scores = frozen.score(X[:-1]).astype(float)
    threshold = float(scores[500] if at else np.nextafter(scores[500], np.inf))
    path = tmp_path / "line"
    assert export.write(frozen, target, path, threshold=threshold, check=False).holds
    found, told = decide(path / f"line{suffix}", X)
    assert told == threshold  # every bit of it
    assert found == [*(scores >= threshold).tolist(), False]
    assert found[500] == at
    assert found[400] is False
    assert found[600] is True


def test_a_header_without_a_threshold_decides_nothing(tmp_path: Path) -> None:
    for target, suffix in (("cpp", "hpp"), ("cuda", "cuh")):
        export.write(small(), target, tmp_path / target, name="line", check=False)
        assert "passes" not in (tmp_path / target / f"line.{suffix}").read_text()


def test_encoded_columns_are_decided_too(tmp_path: Path) -> None:
    frozen = mixed(directions=(1, 1, -1, 1))
    export.write(frozen, "cpp", tmp_path / "line", threshold=0.25)  # and is compared with scores
    assert "bool passes" in (tmp_path / "line" / "line.hpp").read_text()


def test_thresholds_that_decide_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`threshold=nan` must be finite; give a number"):
        export.write(small(), "cpp", tmp_path / "line", threshold=float("nan"))
    with pytest.raises(ValueError, match=r"is for one output but the model has 3; leave it out"):
        export.write(every_step(3), "cuda", tmp_path / "line", threshold=0.0)
    with pytest.raises(ValueError, match=r"`threshold` is not an option of the target 'sql'"):
        export.write(small(), "sql", tmp_path / "line", threshold=0.0)


def test_the_command_takes_a_threshold_or_the_point_of_its_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen, model, point = small(), tmp_path / "m.isotone", tmp_path / "point.json"
    frozen.save(model)
    text = '{"format": 1, "threshold": 0.125, "rule": ">=", "fingerprint": "%s"}'
    words = ["export", str(model), "--to", "cpp", "--no-check", "--out", str(tmp_path / "line")]
    for given, expected in (
        (["--threshold", "0.125"], 0),
        (["--point", str(point)], 0),
        (["--point", str(point), "--threshold", "1"], 2),
    ):
        point.write_text(text % frozen.fingerprint)
        with pytest.raises(SystemExit) as exit_:
            main([*words, *given])
        assert (exit_.value.code or 0) == expected
        assert "double threshold = 0x1.0" in (tmp_path / "line" / "line.hpp").read_text()
    assert "both give a threshold; give one of them" in capsys.readouterr().err
    point.write_text(text % "another")
    with pytest.raises(SystemExit):
        main([*words, "--point", str(point)])
    assert "was chosen for the model another… but this one is" in capsys.readouterr().err


def test_a_bundle_becomes_a_header_with_its_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = tmp_path / "line.zip"
    made = bundle.write(small(), line, threshold=0.125, name="two-track", version="2026.1")
    words = ["export", str(line), "--to", "cuda", "--no-check", "--out", str(tmp_path / "line")]
    with pytest.raises(SystemExit):
        main(words)
    text = (tmp_path / "line" / "line.cuh").read_text()
    assert f'char version[] = "two-track 2026.1 {made.identity}";' in text
    assert "double threshold = 0x1.0000000000000p-3;" in text
    with pytest.raises(SystemExit):
        main([*words, "--threshold", "1"])
    assert "and another was given; leave `--threshold` and" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words[:3], "onnx", "--out", str(tmp_path / "m.onnx")])
    assert "is not an option of the target 'onnx'" in capsys.readouterr().err
