"""The mutator: what it changes, that a mutant is put in place, and that a gap in tests shows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.mutation import header
from bench.mutation.mutants import find_mutants, put
from bench.mutation.operators import changes
from isotone import rounding
from isotone.export.native.cpp import RUNTIME

pytest.importorskip("coverage")
from bench.mutation import campaign

ROOT = Path(__file__).parents[1]


def changed(text: str) -> set[str]:
    """All mutants of an expression or a statement, its parts left alone."""
    (statement,) = ast.parse(text).body
    node = statement.value if isinstance(statement, ast.Expr) else statement
    found = [*changes(node), *(changes(statement) if node is not statement else ())]
    return {ast.unparse(ast.fix_missing_locations(each)) for each in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("a <= b < c", {"a < b < c", "a > b < c", "a <= b <= c", "a <= b >= c"}),
        ("a == b", {"a != b"}),
        ("a + b", {"a - b"}),
        ("a ** b", {"a * b"}),
        ("'a' + b", set()),
        ("-a", {"a"}),
        ("not a", {"a"}),
        ("a and b and c", {"b and c", "a and c", "a and b"}),
        ("3", {"4", "2"}),
        ("True", {"False"}),
        ("'text'", set()),
        ("abs(x)", {"x", "pass"}),
        ("np.minimum(a, b)", {"np.maximum(a, b)", "pass"}),
        ("np.ones(n)", {"np.zeros(n)", "pass"}),
        ("np.inf", {"-np.inf"}),
        ("f(x)", {"pass"}),
        ("raise ValueError", {"pass"}),
        ("a if f(x) else b", {"a if not f(x) else b"}),
        ("add(a, b)", {"np.negative(add(np.negative(a), np.negative(b)))", "pass"}),
        ("multiply(2.0, b)", {"np.negative(multiply(-2.0, b))", "pass"}),
    ],
)
def test_operators(text: str, expected: set[str]) -> None:
    assert changed(text) == expected


def test_mutants_are_found_in_functions_and_constants_but_not_in_what_is_said() -> None:
    found = find_mutants("isotone.certificate.slopes")
    names = {mutant.function for mutant in found}
    assert {"slope_range", "_along_columns", "_raw_intervals"} <= names
    assert "Interval.__str__" not in names
    assert len({mutant.key for mutant in found}) == len(found)
    assert {m.function for m in find_mutants("isotone.certificate.bounds")} >= {"_ARITHMETIC"}
    ranks = [mutant.rank for mutant in found]
    assert 0 <= min(ranks) < 0.2 < 0.8 < max(ranks) < 1


def in_a_process(module: str, before: str, after: str, load: str, code: str) -> str:
    """What code prints after it was loaded and then one mutant was put in place."""
    script = f"""
{load}
from bench.mutation.mutants import find_mutants, put
put(next(m for m in find_mutants("{module}") if (m.before, m.after) == ({before!r}, {after!r})))
{code}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_mutant_reaches_those_who_imported_the_function() -> None:
    load, code = "from isotone.rounding import add", "print(float(add(1.0, 2.0**-60)) > 1.0)"
    assert in_a_process("isotone.rounding", "low <= 0", "low > 0", load, code) == "False"
    assert in_a_process("isotone.rounding", "low >= 0", "low < 0", load, code) == "True"


def test_a_constant_reaches_those_who_imported_it() -> None:
    load, code = "import isotone.frozen.activations as a", "print(a.EXP_ERROR)"
    assert in_a_process("isotone.elementary", "48", "47", load, code) == str(2.0**-47)


def test_a_constant_reaches_those_that_are_made_of_it() -> None:
    load = "from isotone.frozen import steps"
    code = "print(steps.ACTIVATIONS['tanh'].error)"
    assert in_a_process("isotone.frozen.activations", "16", "17", load, code) == str(17 * 2.0**-48)


def test_methods_that_are_wrapped_are_exchanged() -> None:
    (one,) = [
        m
        for m in find_mutants("isotone.rounding")
        if m.function == "MatrixNorms.of" and m.before == "size.max(axis=0)"
    ]
    of = vars(rounding.MatrixNorms)["of"].__func__
    code = of.__code__
    put(one)
    try:
        norms = rounding.MatrixNorms.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
        assert norms.column_max.tolist() == [1.0, 2.0]
    finally:
        of.__code__ = code


def test_every_mutant_that_is_listed_as_equivalent_exists_and_has_a_reason() -> None:
    listed = campaign.read_equivalent()
    known = {m.key for module in campaign.MODULES for m in find_mutants(module)}
    assert set(listed) <= known
    assert all(len(why) > 10 for why in listed.values())


TEST = """
import numpy as np
from isotone import rounding
def test_root():
    assert rounding.root(np.array([0.0, 4.0])).tolist() == [0.0, np.nextafter(2.0, 3.0)]
"""
RUN = """
from bench.mutation import campaign, mutants
found = [m for m in mutants.find_mutants("isotone.rounding") if m.function == "root"]
run = campaign.run(found, [{test!r}], 5.0)
print("survivors", sorted(m.after for m in run.survivors), dict(run.counts))
"""


def run_campaign(test: Path, text: str) -> subprocess.CompletedProcess[str]:
    """All mutants of the function `root` against one test."""
    test.write_text(text)
    words = [sys.executable, "-c", RUN.format(test=str(test))]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_campaign_finds_no_survivor_of_a_good_test(tmp_path: Path) -> None:
    done = run_campaign(tmp_path / "test_root.py", TEST)
    assert "survivors [] {'killed': 6}" in done.stdout


def test_a_campaign_finds_the_survivors_of_a_poor_test(tmp_path: Path) -> None:
    done = run_campaign(tmp_path / "test_root.py", TEST.replace("==", ">="))
    assert "survivors ['-1', '1', '1.0', " in done.stdout


def test_tests_that_fail_without_a_mutant_are_told(tmp_path: Path) -> None:
    done = run_campaign(tmp_path / "test_root.py", TEST.replace("==", "<"))
    assert done.returncode != 0
    assert "tests fail without a mutant" in done.stdout + done.stderr


HEADER = """// 1 + 1 of a comment
#if !defined(GUARD)
int f(int n) {
    // n < 0 is said to be so
    if (!g(n) && n <= 4) return n;  // 7
#if defined(__AVX2__)
    n += 3;
#endif
    x = minimum(a1, 0x1p54 * b);
}
#endif
"""


def test_changes_of_the_header_are_in_code_that_every_processor_compiles() -> None:
    found = header.find_changes(HEADER)
    assert {change.number for change in found} == {5, 9}
    assert {change.after.partition(";")[0] for change in found} == {
        "if (g(n) && n <= 4) return n",
        "if (!g(n) || n <= 4) return n",
        "if (!g(n) && n < 4) return n",
        "if (!g(n) && n > 4) return n",
        "if (!g(n) && n <= 5) return n",
        "if (!g(n) && n <= 3) return n",
        "x = maximum(a1, 0x1p54 * b)",
        "x = minimum(a1, 0x1p54 / b)",
    }
    for change in found:
        assert 0 <= change.rank < 1
        lines = zip(HEADER.splitlines(), change.put(HEADER).splitlines(), strict=True)
        assert [k for k, (old, new) in enumerate(lines, start=1) if old != new] == [change.number]


def test_changes_of_the_header_that_nothing_notices_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = header.campaign(
        header.find_changes(HEADER), lambda change: "" if change.new == " || " else "edges"
    )
    assert counts == {"edges": 7, "survived": 1}
    assert "isotone.hpp:5\n  if (!g(n) && n <= 4)" in capsys.readouterr().out


def test_every_change_of_the_header_that_is_listed_is_still_one() -> None:
    found, known = header.find_changes(RUNTIME.read_text()), header.read_equivalent()
    assert set(known) <= {(c.before, after) for c in found for after in (c.after, "")}
    assert all(known.values())
    listed = [change for change in found if header.is_listed(change, known)]
    assert 0 < len(listed) < len(found) / 20
