"""Branch coverage of the package and of the shipped header.

Question: is there a branch that decides a certificate or a score and that no test takes?
Data: the test suite under coverage.py; the programs of the C++ tests under Clang's coverage.
Claim: of `frozen`, `certificate`, `inputs`, `rounding` and `isotone.hpp` every branch is taken;
the exit code says so. What is left is printed, line by line.
Run time: the suite takes half as long again; with --quick, only the tests of these packages, ten
minutes on one core. The header takes half a minute.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import coverage

from bench.coverage import header

WHOLE = ("frozen", "certificate", "inputs", "rounding.py")  # must be covered to the last branch
QUICK = [
    *("-m", "not slow", "tests/certificate", "tests/frozen", "tests/inputs", "tests/freezing"),
    *("tests/test_rounding.py", "tests/test_last_bit.py", "tests/test_selftest.py"),
    *("tests/test_plot.py", "tests/report/test_report_notebook.py"),
    "tests/estimators/test_refusals.py",
]
DATA = Path("build/coverage")


def run(tests: list[str], processes: int) -> dict[str, dict[str, dict[str, int]]]:
    """The report on every file of the package, after these tests ran."""
    DATA.mkdir(parents=True, exist_ok=True)
    erase = coverage.Coverage()
    erase.erase()
    words = ["-m", "coverage", "run", "-m", "pytest", "-q", "-n", str(processes), *tests]
    if subprocess.run([sys.executable, *words], check=False).returncode != 0:
        raise SystemExit("tests fail; coverage is measured once they pass")
    found = coverage.Coverage()
    found.combine()
    found.save()
    found.json_report(outfile=str(DATA / "report.json"))
    report: dict[str, dict[str, dict[str, int]]] = json.loads(
        (DATA / "report.json").read_text(encoding="utf-8")
    )["files"]
    text = io.StringIO()
    found.report(file=text, show_missing=True, skip_covered=True)
    (DATA / "missing.txt").write_text(text.getvalue(), encoding="utf-8")
    return report


def by_package(report: dict[str, dict[str, dict[str, int]]]) -> dict[str, Counter[str]]:
    """Branches and statements of every folder, and of every module beside them."""
    packages: dict[str, Counter[str]] = {}
    for file, found in report.items():
        inside = Path(file).parts[Path(file).parts.index("isotone") + 1 :]
        packages.setdefault(inside[0], Counter()).update(
            {
                name: found["summary"][name]
                for name in ("num_branches", "covered_branches", "num_statements", "covered_lines")
            }
        )
    return packages


def missing_lines(report: dict[str, dict[str, dict[str, int]]]) -> list[str]:
    """Branches and lines that must be covered and are not."""
    lines = []
    for file, found in sorted(report.items()):
        inside = Path(file).parts[Path(file).parts.index("isotone") + 1 :]
        if inside[0] in WHOLE and (found["missing_branches"] or found["missing_lines"]):
            lines.append(f"{file}: lines {found['missing_lines']}, {found['missing_branches']}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tests of a few packages alone")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    report = run(QUICK if arguments.quick else [], arguments.processes)
    print(f"{'':16} branches        statements")
    for name, n in sorted(by_package(report).items()):
        branches = f"{n['covered_branches']:5} of {n['num_branches']:5}"
        print(f"{name:16} {branches}  {n['covered_lines']:5} of {n['num_statements']:5}")
    left = missing_lines(report)
    for name, found in header.measure().items():
        print(f"{f'header {name}':16} {found.taken:5} of {found.total:5}")
        left += [f"{name}: {words}" for words in found.missing()]
    print(*left, sep="\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
