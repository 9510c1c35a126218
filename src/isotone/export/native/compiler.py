"""Compiling an exported program and scoring rows with it: what the check after an export does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isotone.typing import Floats, Precision, Reals

_HARNESS = """#include <cstdio>
#include <cstring>
#include <vector>
#include "{header}"

int main() {{
    std::vector<double> rows;
    double row[{name}::n_columns];
    while (std::fread(row, sizeof(row), 1, stdin) == 1)
        rows.insert(rows.end(), row, row + {name}::n_columns);
    const std::size_t n = rows.size() / {name}::n_columns;
    std::vector<{name}::Number> scores(n * {name}::n_outputs);
    {name}::score(rows.data(), n, scores.data());
    for (std::size_t e = 0; e < n; ++e) {{
        const auto one = {name}::score(&rows[e * {name}::n_columns]);
        if (std::memcmp(&one, &scores[e * {name}::n_outputs], sizeof(one)) != 0) {{
            std::fprintf(stderr, "row %zu has another score when it is alone", e);
            return 1;
        }}{decision}
    }}
    return std::fwrite(scores.data(), sizeof(scores[0]), scores.size(), stdout) != scores.size();
}}
"""

_DECISION = """
        if ({name}::passes(&rows[e * {name}::n_columns]) != (one >= {name}::threshold)) {{
            std::fprintf(stderr, "row %zu is decided differently", e);
            return 1;
        }}"""


def find_compiler() -> str:
    """The C++ compiler that $CXX names, with its options, or else c++, g++ or clang++."""
    for command in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        if command.strip() and shutil.which(shlex.split(command)[0]):
            return command
    raise ValueError(
        "no C++ compiler was found, and the check compiles what was written; install g++ or "
        "clang++, name one in $CXX, or leave the check out (check=False, --no-check)"
    )


def build(source: str, program: Path, options: Sequence[str], compiler: str) -> None:
    """Compile C++ text to `program`; raises `ValueError` with what the compiler said."""
    arguments = ["-std=c++17", *options, "-x", "c++", "-", "-o", str(program)]
    command = [*shlex.split(compiler), *arguments]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")


def run(program: Sequence[str], X: Floats, n_outputs: int, precision: Precision) -> Reals:
    """Rows through a program that reads doubles and writes scores: (n_rows, n_outputs)."""
    data = np.ascontiguousarray(X, np.float64).tobytes()
    done = subprocess.run(program, input=data, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")
        raise ValueError(f"{program[0]} ended with status {done.returncode}:\n{said}")
    return np.frombuffer(done.stdout, precision).reshape(-1, n_outputs)


def score(
    header: Path,
    X: Floats,
    n_outputs: int,
    precision: Precision,
    options: Sequence[str] = ("-O2",),
    compiler: str | None = None,
    decides: bool = False,
) -> Reals:
    """Compile an exported header into a program and score rows with it.

    With `decides` it also compares the decisions of `passes` with the scores.
    """
    decision = _DECISION.format(name=header.stem) if decides else ""
    source = _HARNESS.format(header=header.name, name=header.stem, decision=decision)
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "score"
        where = ["-I", str(header.parent.resolve())]
        build(source, program, [*where, *options], compiler or find_compiler())
        return run([str(program)], X, n_outputs, precision)
