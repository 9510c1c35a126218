"""The C++ export: compiled by whatever compiler, it is the engine to the last bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from isotone import FrozenNetwork, MonotonicNetwork, Scaling, export, freeze
from isotone.export.native import compiler, source
from isotone.export.native.cpp import RUNTIME, Cpp
from isotone.frozen.steps import Dense, Sort
from networks import every_step, small
from programs import HOSTILE, MODELS, STRICT, check_program, need, on_x86, root, write_program

# name: compiler, options, what runs the program
WAYS: dict[str, tuple[str, list[str], list[str]]] = {
    "GCC": ("g++", ["-O2", "-march=native", "-ffp-contract=fast"], []),
    "GCC without optimization, with sanitizers": (
        "g++",
        ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        [],
    ),
    "Clang": ("clang++", ["-O3", "-mavx2", "-mfma", "-ffp-contract=fast"], []),
    "Clang, unsafe": ("clang++", ["-O3", "-mavx2", "-mfma", "-funsafe-math-optimizations"], []),
    "ARM": (
        "aarch64-linux-gnu-g++",
        ["-O2", "-static", "-ffp-contract=fast"],
        ["qemu-aarch64-static"],
    ),
}


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("headers")
    for name, frozen in MODELS.items():
        Cpp(name=name).write(frozen, path)
    return path


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.slow] * (way != "GCC")) for way in WAYS]
)
def test_every_compiler_gives_the_bits_of_the_engine(
    way: str, headers: Path, tmp_path: Path
) -> None:
    program, options, runner = WAYS[way]
    need(program, *runner)
    if not on_x86() and way.startswith("Clang"):
        options = [option for option in options if not option.startswith("-m")]
    built = tmp_path / "program"
    text = write_program(".hpp", columns=True)
    compiler.build(text, built, [f"-I{headers}", *STRICT, *options], program)
    fuses = "-march=native" in options or "-mfma" in options or way == "ARM"
    check_program([*runner, str(built)], exact_single=fuses)


def test_an_export_is_checked_and_its_example_runs(tmp_path: Path) -> None:
    need("g++")
    frozen = small()
    export.write(frozen, "cpp", tmp_path / "my-model.v2")
    files = sorted(path.name for path in (tmp_path / "my-model.v2").iterdir())
    assert files == ["example.cpp", "isotone.hpp", "my_model.hpp"]
    example = (tmp_path / "my-model.v2" / "example.cpp").read_text()
    options = [f"-I{tmp_path / 'my-model.v2'}", "-O1", *STRICT]
    compiler.build(example, tmp_path / "example", options, "g++")
    said = subprocess.run([tmp_path / "example"], capture_output=True, text=True, check=True)
    assert float(said.stdout) == frozen.score(np.zeros((1, 3)))[0]


def test_nothing_is_allocated(headers: Path, tmp_path: Path) -> None:
    need("g++", "nm")
    text = '#include "single.hpp"\nvoid f(const double* x, float* y) { single::score(x, 99, y); }'
    compiler.build(text, tmp_path / "x.o", ["-c", "-O1", f"-I{headers}"], "g++")
    said = subprocess.run(["nm", "-u", tmp_path / "x.o"], capture_output=True, text=True)
    symbols = set(said.stdout.split()) - {"U"}
    assert symbols <= {"memcpy", "memmove", "memset", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}


def test_fast_math_is_refused(headers: Path, tmp_path: Path) -> None:
    need("g++")
    loose = ["-funsafe-math-optimizations", "-freciprocal-math", "-ffp-contract=fast -mfpmath=387"]
    for option in ("-ffast-math", "-Ofast", "-ffinite-math-only", *loose[: 3 if on_x86() else 2]):
        with pytest.raises(ValueError, match="needs IEEE arithmetic"):
            compiler.build(
                '#include "isotone.hpp"',
                tmp_path / "x",
                ["-E", *option.split(), f"-I{headers}"],
                "g++",
            )


@pytest.mark.parametrize("suffix", [".hpp", ".cuh"])
def test_constants_of_single_precision_are_refused(suffix: str, tmp_path: Path) -> None:
    need("g++")
    export.write(small(), {".hpp": "cpp", ".cuh": "cuda"}[suffix], tmp_path / "m", check=False)
    options = ["-c", "-fsingle-precision-constant", "-x", "c++", f"-I{tmp_path / 'm'}"]
    with pytest.raises(ValueError, match="compile without -fsingle-precision-constant"):
        compiler.build(f'#include "m{suffix}"', tmp_path / "x.o", options, "g++")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "{isotone::Kind::sort, 64, 64, nullptr, nullptr, 64",
            "{isotone::Kind::sort, 64, 64, nullptr, nullptr, 2048",
        ),
        (
            "{isotone::Kind::sort, 64, 64, nullptr, nullptr, 64",
            "{isotone::Kind::sort, 64, 64, nullptr, nullptr, 32",
        ),
        ("isotone::Kind::dense, 3, 64, ", "isotone::Kind::dense, 3, 640, "),
        ("isotone::Kind::dense, 64, 1, ", "isotone::Kind::dense, 640, 1, "),
        ("isotone::Kind::dense, 64, 1, ", "isotone::Kind::merge, 64, 1, "),
        ("= {{0, 1}", "= {{0, 64}"),
    ],
)
def test_a_header_that_was_altered_beyond_its_arrays_does_not_compile(
    old: str, new: str, tmp_path: Path
) -> None:
    need("g++")
    Cpp(name="m").write(freeze(MonotonicNetwork([3, 64, 1], monotonic_cst=[1, 0, 0])), tmp_path)
    path = tmp_path / "m.hpp"
    text = path.read_text().replace("{\n    {0, 1}", "{{0, 1}")
    assert old in text
    path.write_text(text.replace(old, new))
    source = '#include "m.hpp"\ndouble f(const double* x) { return m::score(x); }'
    with pytest.raises(ValueError, match="beyond a limit, or its steps do not fit"):
        compiler.build(source, tmp_path / "x.o", ["-c", f"-I{tmp_path}"], "g++")


def test_no_option_that_is_let_through_hides_a_nan(tmp_path: Path) -> None:
    need("clang++")
    Cpp(name="four").write(small((1, 1, 1, 1)), tmp_path)
    text = """
    #include <cstdint>
    #include <cstdio>
    #include <cstring>
    #include "four.hpp"
    int main() {
        static double rows[64 * 4], scores[64];
        const std::uint64_t nan = 0x7ff8000000000000;
        std::memcpy(rows + 21, &nan, 8);
        std::printf("%d %g", static_cast<int>(four::score(rows, 64, scores, -7.5)), scores[5]);
    }
    """
    options = ["-O3", "-fno-honor-nans", "-fno-signed-zeros", f"-I{tmp_path}"]
    compiler.build(text, tmp_path / "program", options, "clang++")
    said = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    assert said.stdout == "1 -7.5"


def test_the_runtime_is_the_parts_that_the_engine_was_made_from() -> None:
    shipped = RUNTIME.read_text()
    parts = sorted((root() / "cpp/runtime").glob("*.hpp"))
    titles = {part: part.read_text().split("#pragma once\n")[0] for part in parts}
    positions = {part: shipped.index(title) for part, title in titles.items()}
    lines = iter(line for line in shipped.splitlines() if line)
    for part in sorted(parts, key=positions.__getitem__):
        for line in part.read_text().splitlines():
            if line and line != "#pragma once" and not line.startswith('#include "'):
                assert next(found for found in lines if found == line)
    assert shipped.count("\n// ---- ") == len(parts) - 1  # the opening has none


def test_a_header_says_what_it_holds(headers: Path) -> None:
    frozen = MODELS["several"]
    assert frozen.inputs.names == HOSTILE
    text = (headers / "several.hpp").read_text()
    assert frozen.fingerprint in text
    assert r'"a\"b", "c\\", "\303\251*/\012#error \?\?/"' in text
    assert frozen.features == HOSTILE
    assert "certificate_holds = " in text


def test_literals_are_exact() -> None:
    for value in (0.1, -0.0, 5e-324, 1e308, -3.0):
        assert float.fromhex(source.number(value)) == value
    assert source.number(0.5, "float32") == "0x1.0000000000000p-1f"


@pytest.mark.parametrize("name", ["class", "isotone", "2x", "a__b", "a b", "_x", ""])
def test_bad_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be the name of a C\+\+ namespace; give"):
        export.write(small(), "cpp", tmp_path / "x", name=name)
    assert not (tmp_path / "x").exists()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(ValueError, match="x' is a file; this export needs the name of a dir"):
        export.write(small(), "cpp", tmp_path / "x")


def wide(n: int) -> FrozenNetwork:
    return FrozenNetwork(
        features=("a",),
        scaling=Scaling.identity(1),
        steps=(Dense(np.ones((n, 1)), np.zeros(n)), Sort(2), Dense(np.ones((1, n)), np.zeros(1))),
        residual=np.zeros((1, 1)),
        lipschitz=np.full(1, 1e6),
        monotonic_cst=np.zeros((1, 1), np.int8),
    )


def test_what_does_not_fit_a_stack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has 5000 units: C\+\+ code would take 1280128 b"):
        export.write(wide(5000), "cpp", tmp_path / "x")


def test_without_a_compiler_the_check_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"no C\+\+ compiler was found.*--no-check"):
        export.write(small(), "cpp", tmp_path / "x")
    export.write(small(), "cpp", tmp_path / "x", check=False)


def test_what_the_compiler_or_the_program_says_is_passed_on(tmp_path: Path) -> None:
    need("g++")
    with pytest.raises(ValueError, match=r"failed:\n.*error"):
        compiler.build("this is no C++", tmp_path / "x", [], "g++")
    with pytest.raises(ValueError, match="false ended with status 1"):
        compiler.run(["false"], np.zeros((1, 1)), 1, "float64")


def test_a_header_of_another_model_is_noticed(tmp_path: Path) -> None:
    need("g++")
    from isotone.export import parity

    Cpp().write(every_step(seed=1), tmp_path / "x")
    with pytest.raises(ValueError, match="does not score as the model does"):
        parity.compare(every_step(seed=0), Cpp(), tmp_path / "x")


def test_the_compiler_may_come_with_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("g++")
    monkeypatch.setenv("CXX", "g++ -DWHAT=int")
    source = "WHAT main() { return 0; }"
    compiler.build(source, tmp_path / "program", [], compiler.find_compiler())
    assert (tmp_path / "program").exists()


def test_two_exports_go_into_one_program(tmp_path: Path) -> None:
    for name in ("one", "two"):
        export.write(every_step(), "cpp", tmp_path / name, check=False)
    both = '#include "one/one.hpp"\n#include "two/two.hpp"\n'
    options = ["-fsyntax-only", f"-I{tmp_path}", *STRICT]
    compiler.build(both, tmp_path / "unused", options, compiler.find_compiler())
    wrong = both + "auto score(const long long* x) { return one::score(x); }\n"
    with pytest.raises(ValueError, match="raw features are float or double"):
        compiler.build(wrong, tmp_path / "unused", options, compiler.find_compiler())


_COPIES = """
#include <cstdio>
#include "isotone.hpp"
namespace runtime = isotone::ISOTONE_ISA;
using Step = isotone::Step<double>;
using Model = isotone::Model<double>;
using Sizes = runtime::Unrolled<2>;

// two copies of one column, over [-1, 1] and [1, 3], and a column of its own: 2 members
constexpr double ends[] = {1.0};
constexpr isotone::Source sources[] = {{0, 2, 1, ends}, {2, 1, 0, nullptr}};
constexpr isotone::Feature features[] = {
    {false, 0.0, 1.0, 0.0, 1.0}, {false, 0.0, 1.0, 2.0, 1.0}, {false, 0.0, 1.0, 0.0, 1.0}};
constexpr double weight[] = {-2.0, 1.0, 1.0, 2.0, 0.0, 4.0}, bias[] = {0.5};

constexpr Step step(isotone::Kind kind, int n_in, int n_out, double keep = 0.0, double add = 0.0) {
    Step made = {};
    made.kind = kind;
    made.n_in = n_in;
    made.n_out = n_out;
    made.weight = weight;
    made.bias = bias;
    made.keep = keep;
    made.add = add;
    return made;
}
using isotone::Kind;
constexpr Step steps[] = {step(Kind::fork, 3, 3), step(Kind::look_up, 3, 1),
                          step(Kind::part, 1, 3, 0.0, 0.5), step(Kind::look_up, 3, 1),
                          step(Kind::join, 1, 1, 1.0, 0.25)};
constexpr Step on_copies[] = {step(Kind::dense, 3, 1)};
constexpr Step twice[] = {step(Kind::look_up, 3, 1), step(Kind::look_up, 1, 1)};
constexpr Step no_member[] = {step(Kind::fork, 3, 3), step(Kind::join, 3, 3)};
constexpr Step bad_sum[] = {steps[0], steps[1], step(Kind::join, 1, 1, 1.0, 0.25)};

template <int n>
constexpr Model model_of(const Step (&steps)[n], int n_sources = 2, int depth = 2) {
    return {3, 1, n, 2, depth, features, steps, weight, 1024.0, 0.0, n_sources, sources};
}
constexpr Model model = model_of(steps);
static_assert(runtime::is_valid<Sizes>(model));
static_assert(!runtime::is_valid<Sizes>(model_of(steps, 2, 1)));
static_assert(!runtime::is_valid<Sizes>(model_of(steps, 1)));
static_assert(!runtime::is_valid<Sizes>(model_of(steps, 0)));
static_assert(!runtime::is_valid<Sizes>(model_of(on_copies)));
static_assert(!runtime::is_valid<Sizes>(model_of(twice)));
static_assert(!runtime::is_valid<Sizes>(model_of(no_member)));
static_assert(!runtime::is_valid<Sizes>(model_of(bad_sum)));

int main() {
    const double rows[] = {-9.0, 0.0, 0.0, 0.25, 1.0, 0.0, 2.5, -1.0, 9.0, 1.0};
    double out[5];
    runtime::score_rows<Sizes, model>(rows, 5, 0.0, out);
    for (double score : out) std::printf("%g ", score);
    runtime::score_rows<Sizes, model>(rows + 4, 1, 0.0, out);
    std::printf("%g", out[0]);
}
"""


def test_a_fixed_model_takes_copies_of_columns(headers: Path, tmp_path: Path) -> None:
    need("g++")
    compiler.build(_COPIES, tmp_path / "p", ["-O1", *STRICT, "-Wno-psabi", f"-I{headers}"], "g++")
    said = subprocess.run([tmp_path / "p"], capture_output=True, text=True, check=True)

    def score(x: float, y: float) -> float:
        g = float(np.clip(x, -1, 1) + 2 * np.clip(x - 2, -1, 1) + 4 * y)
        return 0.75 * (0.5 + g) + g

    expected = [score(*row) for row in ((-9, 0), (0, 0.25), (1, 0), (2.5, -1), (9, 1), (1, 0))]
    assert [float(word) for word in said.stdout.split()] == expected
