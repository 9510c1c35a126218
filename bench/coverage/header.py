"""Branches of the shipped header that the programs of the tests take, by gcov.

gcov lists the branches of all instances of a template together and does not say whose they are, so
that a line of a template counts as two: going on, and jumping, in any of them. Branches on the way
to an exception, which the compiler adds, are left out.
"""

from __future__ import annotations

import gzip
import importlib
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OPTIONS = ["-O0", "--coverage", "-fno-inline", "-march=native", "-ffp-contract=off"]


@dataclass(frozen=True)
class Branches:
    """How many there are, and the lines of those that nobody takes."""

    total: int
    missing: dict[int, int]

    @property
    def taken(self) -> int:
        return self.total - sum(self.missing.values())


def measure() -> Branches:
    """Build the program of all models of the tests, score with each, and count."""
    sys.path.insert(0, str(ROOT / "tests"))
    programs: Any = importlib.import_module("programs")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        _build(programs, path)
        for name, frozen in programs.MODELS.items():
            rows = programs.draw_table(frozen).tobytes()
            words = [str(path / "program"), name]
            subprocess.run(words, input=rows, stdout=subprocess.DEVNULL, check=True)
        return _count(path)


def _build(programs: Any, path: Path) -> None:
    cpp: Any = importlib.import_module("isotone.export.native.cpp")
    for name, frozen in programs.MODELS.items():
        cpp.Cpp(name=name).write(frozen, path)
    (path / "program.cpp").write_text(programs.write_program(".hpp", columns=True))
    words = ["g++", "-std=c++17", *OPTIONS, "program.cpp", "-o", "program"]
    subprocess.run(words, cwd=path, check=True)


def _count(path: Path) -> Branches:
    notes = next(path.glob("*.gcda"))
    words = ["gcov", "--json-format", "--branch-probabilities", notes.name]
    subprocess.run(words, cwd=path, check=True, stdout=subprocess.DEVNULL)
    taken: dict[tuple[int, str], int] = defaultdict(int)
    for found in path.glob("*.gcov.json.gz"):
        for file in json.loads(gzip.decompress(found.read_bytes()))["files"]:
            if file["file"] == "isotone.hpp":
                _add(file, taken)
    missing: dict[int, int] = defaultdict(int)
    for (line, _), count in taken.items():
        missing[line] += count == 0
    return Branches(len(taken), {line: n for line, n in sorted(missing.items()) if n})


def _add(file: dict[str, Any], taken: dict[tuple[int, str], int]) -> None:
    for line in file["lines"]:
        real = [branch for branch in line["branches"] if not branch["throw"]]
        for k, branch in enumerate(real):
            way = f"{k}" if line.get("function_name") else f"on {branch['fallthrough']}"
            taken[line["line_number"], way] += branch["count"]
