"""Mutants of the shipped header: `python -m bench.mutation.header --share 0.1`.

Question: is there a change of isotone.hpp that no program of the tests notices?
Method: one operator, number or check at a time is changed in the text. Then three programs run:
the claims at the edges (`cpp/tests/runtime.cpp`), the corpus of the fuzzer
(`cpp/fuzz/score.cpp`), and the exported headers of all models (`tests/programs.py`), whose scores
must have the bits of the engine, which is not changed. The first two run with every instruction
set of this processor, the first also under sanitizers.
Claim: every mutant is noticed, or listed in `tests/equivalent_mutants.toml` with the reason why it
changes nothing that is promised. The exit code says so.
Run time: three seconds of a core for most mutants, thirty for one that survives.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.coverage.header import EDGES, REPLAY, ROOT, SETS
from bench.fuzz import corpus
from isotone import Engine

EQUIVALENT = ROOT / "tests" / "equivalent_mutants.toml"
_SWAPS = {
    " < ": (" <= ", " >= "),
    " <= ": (" < ", " > "),
    " > ": (" >= ", " <= "),
    " >= ": (" > ", " < "),
    " == ": (" != ",),
    " != ": (" == ",),
    " && ": (" || ",),
    " || ": (" && ",),
    " + ": (" - ",),
    " - ": (" + ",),
    " * ": (" / ",),
    " / ": (" * ",),
    " += ": (" -= ",),
    " -= ": (" += ",),
    "(!": ("(",),
    "true": ("false",),
    "false": ("true",),
    "minimum(": ("maximum(",),
    "maximum(": ("minimum(",),
    "continue;": (";",),
}
_PATTERN = re.compile("|".join(map(re.escape, _SWAPS)) + r"|(?<![\w.])\d+(?![\w.])")
_LEFT_OUT = ("template", "static_assert", "asm", "using", "typedef", "for (int k = 0; k < n_lanes")
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_SECONDS = 120  # an endless loop is noticed too


@dataclass(frozen=True)
class Change:
    """One change of a line of the header.

    Parameters
    ----------
    before : the line as it is, without the spaces around it
    column : where the change begins in it
    old, new : what is there, and what comes in its place
    number : of the line today, from 1 on
    """

    before: str
    column: int
    old: str
    new: str
    number: int

    @property
    def after(self) -> str:
        rest = self.before[self.column + len(self.old) :]
        return self.before[: self.column] + self.new + rest

    @property
    def rank(self) -> float:
        """A number in [0, 1) that is drawn from the change alone."""
        digest = hashlib.sha256(f"{self.before}\0{self.after}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2.0**64

    def put(self, text: str) -> str:
        lines = text.splitlines()
        lines[self.number - 1] = self.after
        return "\n".join(lines) + "\n"


def find_changes(text: str) -> list[Change]:
    """All of the code that is compiled whatever the instruction set."""
    return [change for number, line in _code(text) for change in _changes(number, line)]


def _code(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and preprocessor, and without what only some processors compile."""
    depth = 0
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        depth += word.startswith("#if")
        depth -= word.startswith("#endif")
        inside = depth == 1  # the guard of the file
        if inside and not word.startswith(("#", "//", *_LEFT_OUT)):
            yield number, word


def _changes(number: int, line: str) -> Iterator[Change]:
    code = line.partition("//")[0]
    for found in _PATTERN.finditer(code):
        old = found[0]
        others = _SWAPS[old] if old in _SWAPS else (f"{int(old) + 1}", f"{int(old) - 1}")
        for new in others:
            yield Change(line, found.start(), old, new, number)


class Programs:
    """The programs that may notice a change, in a folder with a header of one's own."""

    def __init__(self, path: Path) -> None:
        self.path, self.sets = path, [s for s in SETS if s in Engine.instruction_sets()]
        sys.path.insert(0, str(ROOT / "tests"))
        self.tests: Any = importlib.import_module("programs")
        cpp: Any = importlib.import_module("isotone.export.native.cpp")
        for name, frozen in self.tests.MODELS.items():
            cpp.Cpp(name=name).write(frozen, path)
        self.text = (path / "isotone.hpp").read_text(encoding="utf-8")
        (path / "program.cpp").write_text(self.tests.write_program(".hpp", columns=True))
        corpus.unpack("score", path / "inputs")
        self.inputs = [str(each) for each in sorted((path / "inputs").iterdir())]

    def judge(self, change: Change | None) -> str:
        """What notices a change; nothing if it survives."""
        text = self.text if change is None else change.put(self.text)
        (self.path / "isotone.hpp").write_text(text, encoding="utf-8")
        try:
            return self._edges() or self._watched_edges() or self._replay() or self._models()
        except subprocess.TimeoutExpired:
            return "takes too long"

    def _edges(self) -> str:
        for name in self.sets:
            if not self._build([*SETS[name], str(EDGES)]):
                return "does not compile"
            if not self._runs([]):
                return "edges"
        return ""

    def _watched_edges(self) -> str:
        built = self._build([*SETS[self.sets[-1]], *_SANITIZERS, str(EDGES)])
        return "" if built and self._runs([]) else "sanitizers"

    def _replay(self) -> str:
        for name in self.sets:
            built = self._build([*SETS[name], "-DISOTONE_REPLAY", str(REPLAY)])
            if not built or not self._runs(self.inputs):
                return "corpus"
        return ""

    def _models(self) -> str:
        name = self.sets[-1]
        if not self._build([*SETS[name], "program.cpp"]):
            return "models"
        try:
            self.tests.check_program([str(self.path / "program")], exact_single=name != "baseline")
        except (AssertionError, ValueError):
            return "models"
        return ""

    def _build(self, words: list[str]) -> bool:
        command = ["clang++", "-std=c++17", "-O0", "-w", f"-I{self.path}", *words, "-o", "program"]
        return self._ends_well(command)

    def _runs(self, words: list[str]) -> bool:
        return self._ends_well([str(self.path / "program"), *words])

    def _ends_well(self, command: list[str]) -> bool:
        done = subprocess.run(
            command, cwd=self.path, capture_output=True, timeout=_SECONDS, check=False
        )
        return done.returncode == 0


def read_equivalent() -> dict[tuple[str, str], str]:
    """Reasons why changes break no promise, by the line before and after; "" for any."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("header", [])
    return {(entry["before"], entry.get("after", "")): entry["why"] for entry in entries}


def is_listed(change: Change, known: dict[tuple[str, str], str]) -> bool:
    return (change.before, "") in known or (change.before, change.after) in known


def campaign(changes: list[Change], judge: Callable[[Change], str]) -> Counter[str]:
    """How many changes each program noticed first; survivors are printed."""
    counts: Counter[str] = Counter()
    for change in changes:
        outcome = judge(change) or "survived"
        counts[outcome] += 1
        if outcome == "survived":
            where = f"isotone.hpp:{change.number}"
            print(f"survived: {where}\n  {change.before}\n  {change.after}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants that is tried")
    arguments = parser.parse_args()
    known = read_equivalent()
    with tempfile.TemporaryDirectory() as directory:
        programs = Programs(Path(directory))
        if noticed := programs.judge(None):
            raise SystemExit(f"{noticed}: fails without a change")
        every = find_changes(programs.text)
        listed = [change for change in every if is_listed(change, known)]
        tried = [c for c in every if c not in listed and c.rank < arguments.share]
        counts = campaign(tried, programs.judge)
    print(f"{len(every)} mutants, {len(tried)} tried: {dict(counts)}; {len(listed)} listed")
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
