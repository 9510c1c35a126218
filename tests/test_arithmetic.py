"""The floating-point state of the process: bits and certificates do not depend on it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from isotone import Engine, FrozenNetwork, Scaling, certify, load
from isotone.arithmetic import ieee_arithmetic
from isotone.export.native import compiler
from isotone.export.native.cpp import Cpp
from isotone.frozen import reference
from isotone.frozen.steps import Dense, Pointwise, Sort
from networks import every_step, small
from programs import need, on_x86

# What crtfastmath.o does, which GCC links into shared libraries made with -ffast-math.
LIBRARY = """
#include <xmmintrin.h>
extern "C" void set_state(unsigned state) { _mm_setcsr(state); }
extern "C" unsigned get_state() { return _mm_getcsr() & ~0x3fu; }
__attribute__((constructor)) static void set_fast_math() { _mm_setcsr(_mm_getcsr() | 0x8040); }
"""

# control bits of MXCSR: 0x8040 flushes denormal numbers, 0x2000 to 0x6000 round down, up, to zero
STATES = {
    "flush": 0x1F80 | 0x8040,
    "down": 0x1F80 | 0x2000,
    "up": 0x1F80 | 0x4000,
    "zero and flush": 0x1F80 | 0x6000 | 0x8040,
    "traps": 0x1F80 & ~0x0800,  # an underflow would end the process
}


def tiny() -> FrozenNetwork:
    """Its units are denormal numbers, which a last step makes large again."""
    return FrozenNetwork(
        features=("a", "b"),
        scaling=Scaling(
            np.zeros(2, bool), np.zeros(2), np.ones(2), np.zeros(2), np.array([1.0, 2.0**1000])
        ),
        steps=(
            Dense(np.array([[1e-306, 3e-307], [-2e-306, 1e-307]]), np.array([0.0, 3e-310])),
            Sort(2),
            Pointwise("leaky_relu", 0.3),
            Dense(np.array([[1e300, -3e299]]), np.zeros(1)),
        ),
        residual=np.array([[1e-3, 0.0]]),
        lipschitz=np.array([2e-2, 2e-2]),
        monotonic_cst=np.array([[1, 0]], np.int8),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not on_x86():
        pytest.skip("the library sets a register of x86")
    need("g++")
    path = tmp_path_factory.mktemp("fast") / "fast.so"
    compiler.build(LIBRARY, path, ["-shared", "-fPIC", "-O2"], "g++")
    return path


def everything(directory: Path) -> dict[str, object]:
    """Scores of all kinds, certificates and fingerprints of the models in a directory."""
    found: dict[str, object] = {}
    rng = np.random.default_rng(0)
    for path in sorted(directory.glob("*.isotone")):
        frozen = load(path)
        X = rng.normal(size=(3000, frozen.n_features))
        X[:, -1] *= np.resize([1.0, 2.0**-1010], 3000)
        scores = {
            "engine": frozen.score(X),
            "one": frozen.score(X[1:2]),
            "threads": Engine(frozen, threads=2)(X),
            "columns": Engine(frozen)(dict_of(frozen, X)),
            "whole": frozen.score(np.arange(6 * frozen.n_features).reshape(6, -1) * (2**60 + 1)),
            "reference": reference.score(frozen, X[:50]),
            "snap": frozen.snap(X[:50]),
        }
        if frozen.outputs == "logits":
            scores["probability"] = frozen.probability(X)
        found |= {f"{path.stem} {name}": x.tobytes().hex() for name, x in scores.items()}
        certificate = certify(frozen)
        found[f"{path.stem} certificate"] = certificate.to_dict()
        found[f"{path.stem} fingerprint"] = frozen.fingerprint
        if frozen.n_outputs == 1:
            found[f"{path.stem} flips"] = certificate.flip_bound(X, [0.1] * frozen.n_features)
    return found


class Frame(dict[str, np.ndarray]):
    columns: list[str]

    def __len__(self) -> int:
        return len(self[self.columns[0]])


def dict_of(frozen: FrozenNetwork, X: np.ndarray) -> Frame:
    frame = Frame({name: X[:, i] for i, name in enumerate(frozen.features)})
    frame.columns = list(frozen.features)
    return frame


def test_no_state_of_the_process_changes_a_bit(library: Path, tmp_path: Path) -> None:
    for name, frozen in (("tiny", tiny()), ("every", every_step()), ("small", small())):
        frozen.save(tmp_path / f"{name}.isotone")
    expected = everything(tmp_path)
    code = f"""
    import ctypes, json, sys
    sys.path[:0] = {sys.path!r}
    from pathlib import Path
    from test_arithmetic import everything, STATES
    library = ctypes.CDLL({str(library)!r})
    assert library.get_state() & 0x8040 == 0x8040  # as loading it left the process
    result = {{}}
    for name, state in STATES.items():
        library.set_state(state)
        result[name] = everything(Path({str(tmp_path)!r}))
        found = library.get_state()
        library.set_state(0x1f80)
        assert found == state, (name, hex(found))
    print(json.dumps(result))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for state, found in json.loads(done.stdout).items():
        for name, value in json.loads(json.dumps(expected)).items():
            assert found[name] == value, (state, name)


def test_the_test_would_see_a_state_that_is_not_set(library: Path) -> None:
    """Denormal numbers and rounding matter to these networks: NumPy alone gives other bits."""
    fast, found = ctypes.CDLL(str(library)), {}
    for name in ("flush", "up"):
        fast.set_state(STATES[name])
        found[name] = float(np.float64(3e-310) * 2.0), float(np.float64(1.0) / 3.0)
        fast.set_state(0x1F80)
    assert found["flush"][0] == 0.0
    assert found["up"][1] > 1.0 / 3.0
    engine = Engine(tiny())
    assert engine(np.array([[0.5, 0.0]]))[0] != 5e-4


def test_the_state_is_given_back_after_an_error(library: Path) -> None:
    fast = ctypes.CDLL(str(library))
    fast.set_state(STATES["flush"])
    try:
        with contextlib.suppress(ZeroDivisionError), ieee_arithmetic():
            assert fast.get_state() == 0x1F80
            raise ZeroDivisionError
        assert fast.get_state() == STATES["flush"]
    finally:
        fast.set_state(0x1F80)


@pytest.mark.parametrize("program", ["g++", "clang++"])
@pytest.mark.parametrize("n", [1, 37])
def test_the_shipped_header_computes_in_the_default_state(
    program: str, n: int, tmp_path: Path
) -> None:
    need(program)
    if not on_x86():
        pytest.skip("the program sets a register of x86")
    frozen = tiny()
    Cpp(name="tiny").write(frozen, tmp_path)
    rows = np.random.default_rng(0).normal(size=(n, 2))
    rows[:, 1] *= 2.0**-1010
    text = """
    #include <cstdio>
    #include <cstring>
    #include "tiny.hpp"
    int main() {
        const double rows[] = {ROWS};
        static double scores[N];
        for (unsigned state : {STATES}) {
            _mm_setcsr(state);
            tiny::score(rows, N, scores);
            const bool kept = (_mm_getcsr() & ~0x3fu) == state;
            _mm_setcsr(0x1f80);
            if (!kept) return 1;
            for (double score : scores) std::printf("%a ", score);
        }
    }
    """
    text = text.replace("ROWS", ", ".join(x.hex() for x in rows.ravel().tolist()))
    text = text.replace("STATES", ", ".join(str(state) for state in STATES.values()))
    text = text.replace("N]", f"{n}]").replace("N,", f"{n},")
    compiler.build(text, tmp_path / "program", [f"-I{tmp_path}", "-O2"], program)
    said = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    found = np.array([float.fromhex(x) for x in said.stdout.split()]).reshape(len(STATES), n)
    assert np.array_equal(found, np.tile(frozen.score(rows), (len(STATES), 1)))
