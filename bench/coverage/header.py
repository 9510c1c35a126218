"""Branches of the shipped header that the C++ programs of the tests take, by Clang.

Clang counts every condition of a decision, where the source says it, true and false; with GCC and
gcov one sees jumps of instructions. All instances of a template count as one. What the compiler
knows beforehand is no branch, so that every instruction set has its own: each is built, run and
counted alone, as far as this processor has it.

Three programs run: the exported headers of all models of the tests (`tests/programs.py`), the
corpus of the fuzzer (`cpp/fuzz/score.cpp`), and claims at the edges (`cpp/tests/runtime.cpp`).
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fuzz import corpus
from isotone import Engine

ROOT = Path(__file__).parents[2]
REPLAY = ROOT / "cpp" / "fuzz" / "score.cpp"
EDGES = ROOT / "cpp" / "tests" / "runtime.cpp"
OPTIONS = ["-std=c++17", "-O0", "-fprofile-instr-generate", "-fcoverage-mapping"]
SETS = {  # as cpp/CMakeLists.txt builds them
    "baseline": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", *(f"-mavx512{name}" for name in ("f", "bw", "dq", "vl"))],
}
NO_BRANCHES = {  # lines that are not counted, and why
    "return mask ? a : b;": "of vectors: both are computed, and every lane takes one",
}
_BRANCH = re.compile(r"^ *\| +Branch \((\d+):(\d+)\): \[True: ([^,]+), False: ([^\]]+)\]")

Way = tuple[int, int, bool]  # line, column, outcome of a condition


@dataclass(frozen=True)
class Branches:
    """What conditions came out true and false, and the lines of the source.

    Parameters
    ----------
    counts : zero where no test goes
    """

    counts: Counter[Way]
    source: list[str]

    @property
    def total(self) -> int:
        return len(self.counts)

    @property
    def taken(self) -> int:
        return sum(count > 0 for count in self.counts.values())

    def missing(self) -> Iterator[str]:
        """In words, with what the source says from the condition on."""
        for (line, column, outcome), count in sorted(self.counts.items()):
            if not count:
                said = self.source[line - 1][column - 1 :]
                yield f"isotone.hpp:{line}:{column} never {outcome}: {said}"


def measure() -> dict[str, Branches]:
    """Branches of the header, of every instruction set that runs here."""
    if shutil.which("clang++") is None or shutil.which("llvm-cov") is None:
        sys.exit("the header's coverage needs Clang (Debian: apt-get install clang llvm)")
    chosen = [name for name in SETS if name in Engine.instruction_sets()]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        programs = _write(path)
        inputs = _unpack(path)
        return {name: _measure(path, SETS[name], programs, inputs) for name in chosen}


def _write(path: Path) -> Any:
    """The headers of all models, and the program that scores with them."""
    sys.path.insert(0, str(ROOT / "tests"))
    programs: Any = importlib.import_module("programs")
    cpp: Any = importlib.import_module("isotone.export.native.cpp")
    for name, frozen in programs.MODELS.items():
        cpp.Cpp(name=name).write(frozen, path)
    (path / "program.cpp").write_text(programs.write_program(".hpp", columns=True))
    return programs


def _unpack(path: Path) -> list[str]:
    corpus.unpack("score", path / "inputs")
    return [str(each) for each in sorted((path / "inputs").iterdir())]


def _measure(path: Path, options: list[str], programs: Any, inputs: list[str]) -> Branches:
    counts: Counter[Way] = Counter()
    _build(path, [*options, "program.cpp"])
    for name, frozen in programs.MODELS.items():
        _run(path, [name], programs.draw_table(frozen).tobytes())
    counts.update(_count(path))
    _build(path, [*options, "-DISOTONE_REPLAY", str(REPLAY)])
    _run(path, inputs)
    counts.update(_count(path))
    _build(path, [*options, str(EDGES)])
    _run(path, [])
    counts.update(_count(path))
    source = (path / "isotone.hpp").read_text(encoding="utf-8").splitlines()
    for line in NO_BRANCHES:
        number = [text.strip() for text in source].index(line) + 1
        counts = Counter({way: n for way, n in counts.items() if way[0] != number})
    return Branches(counts, source)


def _build(path: Path, words: list[str]) -> None:
    for old in path.glob("*.profraw"):
        old.unlink()
    words = ["clang++", *OPTIONS, *words, f"-I{path}", "-o", "program"]
    subprocess.run(words, cwd=path, check=True)


def _run(path: Path, words: list[str], rows: bytes = b"") -> None:
    profiles = os.environ | {"LLVM_PROFILE_FILE": str(path / "%p.profraw")}
    command = [str(path / "program"), *words]
    subprocess.run(command, input=rows, stdout=subprocess.DEVNULL, env=profiles, check=True)


def _count(path: Path) -> Counter[Way]:
    """All ways of all instances; what is known beforehand has none."""
    profiles = [str(each) for each in path.glob("*.profraw")]
    words = ["llvm-profdata", "merge", "-o", "profile", *profiles]
    subprocess.run(words, cwd=path, check=True)
    words = ["llvm-cov", "show", "program", "-instr-profile=profile", "-show-branches=count"]
    words += ["-show-instantiations=false", str(path / "isotone.hpp")]
    shown = subprocess.run(words, cwd=path, check=True, stdout=subprocess.PIPE, text=True)
    counts: Counter[Way] = Counter()
    for line in shown.stdout.splitlines():
        if found := _BRANCH.match(line):
            row, column = int(found[1]), int(found[2])
            counts[row, column, True] += found[3] != "0"
            counts[row, column, False] += found[4] != "0"
    return counts
