"""Fuzz isotone.hpp: `python -m bench.fuzz.runtime --runs 10000000`; needs Clang with libFuzzer.

Question: does any model that `is_valid` accepts make the runtime read or write outside its arrays,
or score an event in a batch otherwise than alone?
Method: `cpp/fuzz/score.cpp` under the address and undefined-behaviour sanitizers; libFuzzer
chooses inputs by coverage, from the corpus in `tests/fuzz` on, which `make test` runs again.
Run time: 2500 executions a second on a core that others used as well, 65 minutes in all.
`--keep` renews the corpus.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.fuzz import corpus

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "cpp" / "fuzz" / "score.cpp"
FOLDER = ROOT / "build" / "fuzz"
_SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
_SETTINGS = "quarantine_size_mb=4:malloc_context_size=0"  # smaller records of what was freed
_OPTIONS = ["-std=c++17", "-g1", "-march=native", *_SANITIZERS]


def _header() -> str:
    """The option that names the folder of isotone.hpp, which lies beside the extension."""
    found = importlib.util.find_spec("isotone._engine")
    assert found is not None
    assert found.origin is not None
    return f"-I{Path(found.origin).parent}"


def compile_fuzzer() -> Path:
    """The program that chooses inputs."""
    if shutil.which("clang++") is None:
        sys.exit(
            "fuzzing needs Clang with libFuzzer (Debian: apt-get install clang libclang-rt-dev)"
        )
    found = FOLDER / "score"
    options = [*_OPTIONS, _header(), "-O1", "-fsanitize=fuzzer"]
    subprocess.run(["clang++", *options, str(TARGET), "-o", str(found)], check=True)
    return found


def compile_replay(out: Path, compiler: str = "c++") -> Path:
    """The program that runs given inputs."""
    options = [*_OPTIONS, _header(), "-O0", "-DISOTONE_REPLAY"]
    subprocess.run([compiler, *options, str(TARGET), "-o", str(out)], check=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=0, help="at most; 0: as long as it takes")
    parser.add_argument("--keep", action="store_true", help="renew the corpus in tests/fuzz")
    options = parser.parse_args()
    inputs = FOLDER / "inputs"
    corpus.unpack("score", inputs)
    fuzzer = compile_fuzzer()
    limits = [f"-runs={options.runs}", f"-max_total_time={options.seconds}"]
    words = ["-max_len=512", "-len_control=20", "-print_final_stats=1", "-verbosity=1", *limits]
    run = subprocess.run(
        [fuzzer, *words, f"-artifact_prefix={FOLDER}/", inputs],
        env=os.environ | {"ASAN_OPTIONS": _SETTINGS},
        check=False,
    )
    if run.returncode == 0 and options.keep:
        _keep(fuzzer, inputs)
    raise SystemExit(run.returncode)


def _keep(fuzzer: Path, inputs: Path) -> None:
    """The fewest inputs that reach as much."""
    few = FOLDER / "few"
    shutil.rmtree(few, ignore_errors=True)
    few.mkdir()
    subprocess.run([fuzzer, "-merge=1", "-set_cover_merge=1", few, inputs], check=True)
    corpus.pack("score", (path.read_bytes() for path in few.iterdir()))


if __name__ == "__main__":
    main()
