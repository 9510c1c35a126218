"""The extension under sanitizers: `python -m bench.fuzz.extension --sanitizer address`, or thread.

Question: does `isotone._engine` (scorer, sorter, trainer and what binds them to Python) ever reach
outside of its arrays, do what C++ leaves undefined, or let two threads race?
Method: the extension is built again with the address and undefined-behavior sanitizers of GCC, or
with that for threads, and takes the place of the installed one in the tests that use it and in
drawn calls (`tests/crafted.py`): models and rows of every kind, several threads in one call, many
Python threads on one engine, arguments that lie. The first finding ends the process. Nothing of
ours is suppressed; the sanitizer for threads does not report what libraries do that were built
without it.
Run time: the build takes one and a half minutes on two cores, 1,400 drawn calls under the
sanitizer for threads six; the whole was not timed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SANITIZERS = {"address": "address,undefined,float-cast-overflow", "thread": "thread"}
TESTS = (
    *("tests/frozen/test_engine.py", "tests/frozen/test_lookup.py", "tests/frozen/test_limits.py"),
    *("tests/frozen/test_scoring.py", "tests/nn/test_sorting.py", "tests/test_arithmetic.py"),
    *("tests/training/test_blocks.py", "tests/training/test_fields.py"),
    *("tests/training/test_fused.py", "tests/training/test_learned_lipschitz.py"),
    *("tests/test_compiled.py", "tests/test_last_bit.py", "tests/test_theorems.py"),
)
_WITH_POLARS = ("tests/frozen/test_engine.py",)  # which dies on import under TSan
_RUNTIMES = {"address": ("libasan.so", "libstdc++.so"), "thread": ("libtsan.so", "libstdc++.so")}
_OPTIONS = {
    # Python and its libraries keep memory until the end, which is no leak of the extension; frames
    # that are kept after their return are not aligned for vectors of 64 bytes
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:second_deadlock_stack=1",
}
# Before anything is imported, in every process: the extension is the one beside this file.
_REPLACEMENT = """
import importlib.machinery, importlib.util, pathlib, sys

class Replaced:
    def find_spec(name, path=None, target=None):
        if name == "isotone._engine":
            found, = pathlib.Path(__file__).parent.glob("isotone/_engine*.so")
            return importlib.util.spec_from_file_location(name, found)

sys.meta_path.insert(0, Replaced)
"""


def build(folder: Path, sanitizer: str | None, compiler: str = "g++") -> None:
    """Build the extension into a folder, with what makes Python take it from there."""
    found = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    nanobind = subprocess.run(found, check=True, capture_output=True, text=True).stdout.strip()
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": compiler,
        "CMAKE_INSTALL_PREFIX": str(folder),
        "ISOTONE_SANITIZERS": SANITIZERS[sanitizer] if sanitizer else "",
        "Python_EXECUTABLE": sys.executable,
        "nanobind_ROOT": nanobind,
    }
    work = folder / "work"
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    _run("cmake", "-G", "Ninja", "-S", str(ROOT / "cpp"), "-B", str(work), *defined)
    _run("cmake", "--build", str(work), "--parallel", "2")
    _run("cmake", "--install", str(work))
    (folder / "sitecustomize.py").write_text(_REPLACEMENT)


def surroundings(folder: Path, sanitizer: str | None) -> dict[str, str]:
    """The environment in which Python uses the extension in a folder."""
    paths = f"{folder}{os.pathsep}{ROOT}{os.pathsep}{ROOT / 'tests'}"
    found = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **_OPTIONS}
    if sanitizer:
        found["LD_PRELOAD"] = " ".join(_library(name) for name in _RUNTIMES[sanitizer])
    return found


def python(sanitizer: str | None) -> list[str]:
    """The interpreter; the sanitizer for threads needs memory to be where it expects it."""
    fixed = ["setarch", platform.machine(), "-R"] if sanitizer == "thread" else []
    return [*fixed, sys.executable]


def _library(name: str) -> str:
    words = ["g++", f"-print-file-name={name}"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _run(*words: str) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(words, check=True, env=os.environ | {"PATH": programs})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sanitizer", choices=[*SANITIZERS, "none"], default="address")
    parser.add_argument("--compiler", default="g++", help="for sanitizers, GCC's")
    parser.add_argument("--runs", type=int, default=2000, help="drawn calls")
    options = parser.parse_args()
    sanitizer = None if options.sanitizer == "none" else options.sanitizer
    folder = ROOT / "build" / "sanitizers" / f"{options.sanitizer}-{Path(options.compiler).name}"
    build(folder, sanitizer, options.compiler)
    environment, start = surroundings(folder, sanitizer), python(sanitizer)
    tests = [name for name in TESTS if sanitizer != "thread" or name not in _WITH_POLARS]
    jobs = [
        [*start, "-m", "crafted", "--runs", str(options.runs)],
        [*start, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", *tests],
    ]
    for words in jobs:
        subprocess.run(words, check=True, env=environment, cwd=ROOT)


if __name__ == "__main__":
    main()
