"""Mutants of the code that decides a certificate or a score, each against the tests that reach it.

Question: is there a change of that code which no test notices?
Data: all mutants of `bench.mutation.mutants`, or a share of them, drawn from their text;
other modules and tests by --modules and --tests.
Claim: every one is noticed, or listed with the reason why it changes nothing that is promised in
`tests/equivalent_mutants.toml`. The exit code says so.
Run time: 12 minutes for 1,209 mutants, on a core that others used as well.

Libraries are loaded and tests collected once. Then every mutant runs in a fork of this process, in
which the code is exchanged in memory, until a test fails or time is up.
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.mutation.mutants import Mutant, find_mutants, functions, put
from bench.mutation.tests import Reach, lines_with, passes, trace

ROOT = Path(__file__).parents[2]
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.toml"
MODULES = [
    *("isotone.rounding", "isotone.elementary"),
    *(f"isotone.certificate.{name}" for name in ("bounds", "slopes", "verdicts", "certify")),
    *(f"isotone.certificate.{name}" for name in ("robustness", "coordinates", "along", "widths")),
    *(f"isotone.certificate.{name}" for name in ("interactions", "ordered", "missing")),
    *(f"isotone.certificate.{name}" for name in ("distance", "stack")),
    *(f"isotone.inputs.{name}" for name in ("knots", "scaling", "chain", "cells", "columns")),
    *(f"isotone.frozen.{name}" for name in ("reference", "program", "steps", "activations")),
    *(f"isotone.frozen.{name}" for name in ("network", "modelfile", "loading", "lookup")),
    *("isotone.freezing.margin", "isotone.freezing.unroll"),
]
TESTS = [
    *("tests/certificate", "tests/test_rounding.py", "tests/test_elementary.py"),
    *(f"tests/freezing/test_{name}.py" for name in ("fixed", "margin", "unroll", "freezing")),
    *(f"tests/inputs/test_{name}.py" for name in ("knots", "scaling", "inputs", "columns")),
    *(f"tests/inputs/test_{name}.py" for name in ("chain", "cells", "names", "missing", "pool")),
    *(f"tests/frozen/test_{name}.py" for name in ("reference", "frozen", "program", "steps")),
    *(f"tests/frozen/test_{name}.py" for name in ("activations", "frozen_network", "modelfile")),
    *(f"tests/frozen/test_{name}.py" for name in ("loading", "lookup", "copies")),
]
TOO_SLOW = "exported_headers or fits_the_absolute or worker_killed or test_limits or flipped_bit"
_PATIENCE = 5.0  # times as long as tests take without a mutant, until it counts as killed
_MEMORY = 4 << 30  # bytes that a mutant may take


class Campaign:
    """A plugin of pytest that runs tests on mutants instead of once.

    Parameters
    ----------
    mutants : that are tried
    seconds : of tests for each
    say : what to do with a line of text
    """

    def __init__(
        self, mutants: list[Mutant], seconds: float, say: Callable[[str], None] = print
    ) -> None:
        self.mutants, self.seconds, self.say = mutants, seconds, say
        self.survivors: list[Mutant] = []
        self.counts: Counter[str] = Counter()
        self.killers: dict[str, Counter[str]] = {"": Counter()}  # by module, and in all

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files = {
            name: str(sys.modules[name].__file__) for name in {m.module for m in self.mutants}
        }
        items = {item.nodeid: item for item in session.items}
        reach: Reach = _in_fork(lambda: trace(session.items, sorted(files.values())), None)
        if reach is None or reach.failed:
            raise pytest.UsageError(f"tests fail without a mutant: {reach and reach.failed}")
        functions()  # before the collector forgets them
        gc.freeze()
        for mutant in self.mutants:
            names = self._choose(mutant, reach, files)
            outcome = self._try(mutant, [items[name] for name in names], reach)
            self.counts[outcome] += 1
            if outcome in ("survived", "not reached"):
                self.survivors.append(mutant)
                self.say(f"{outcome} {len(names)} tests: {mutant}")
        return True

    def _choose(self, mutant: Mutant, reach: Reach, files: dict[str, str]) -> list[str]:
        """Tests that reach a mutant: first those that killed many before, then fast ones."""
        own = files[mutant.module]
        found = reach.of((own, k) for k in range(mutant.lines[0], mutant.lines[1] + 1))
        if not found:  # a constant: who uses it?
            users = ((f, k) for f in files.values() for k in lines_with(mutant.function, f))
            found = reach.of(users) or reach.naming(mutant.function)
        kills, every = self.killers.setdefault(mutant.module, Counter()), self.killers[""]
        strongest = sorted(found, key=lambda n: (-kills[n], -every[n], reach.seconds[n]))
        return reach.within(strongest, self.seconds)

    def _try(self, mutant: Mutant, items: list[pytest.Item], reach: Reach) -> str:
        if not items:
            return "not reached"
        limit = 5.0 + _PATIENCE * sum(reach.seconds[item.nodeid] for item in items)
        killer = _in_fork(lambda: _first_failure(mutant, items), limit)
        if killer == "":
            return "survived"
        if killer is None:
            return "stopped"
        for kills in (self.killers[mutant.module], self.killers[""]):
            kills[killer] += 1
        return "killed"


def _first_failure(mutant: Mutant, items: list[pytest.Item]) -> str:
    put(mutant)
    return next((item.nodeid for item in items if not passes(item)), "")


def _in_fork(work: Callable[[], Any], seconds: float | None) -> Any:
    """What `work` gives in a child process; None if it does not end well, or in time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _end_with(work, writer, seconds)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(answer) if status == 0 and answer else None


def _end_with(work: Callable[[], Any], writer: int, seconds: float | None) -> None:
    status = 1
    try:
        _be_quiet()
        if seconds is not None:
            _limit(seconds)
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(work()))
        status = 0
    finally:
        os._exit(status)


def _be_quiet() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _limit(seconds: float) -> None:
    """The default action of these signals ends the process."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))


def read_equivalent(path: Path = EQUIVALENT) -> dict[tuple[str, str, str, str, int], str]:
    """Reasons why mutants change nothing that is promised, by the key of the mutant."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    names = ("module", "function", "before", "after")
    return {(*(e[name] for name in names), e.get("nth", 0)): e["why"] for e in entries}


def run(mutants: list[Mutant], tests: list[str], seconds: float) -> Campaign:
    campaign = Campaign(mutants, seconds, lambda text: print(text, flush=True))
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=no"]
    code = pytest.main([*options, "-k", f"not ({TOO_SLOW})", *tests], plugins=[campaign])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"pytest ended with {code!r}")
    return campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants that is tried")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for each mutant")
    parser.add_argument("--modules", nargs="*", default=MODULES)
    parser.add_argument("--tests", nargs="*", default=TESTS)
    arguments = parser.parse_args()
    start, equivalent = time.time(), read_equivalent()
    every = [mutant for module in arguments.modules for mutant in find_mutants(module)]
    known = [m for m in every if m.key in equivalent]
    tried = [m for m in every if m.rank < arguments.share and m.key not in equivalent]
    campaign = run(tried, arguments.tests, arguments.seconds)
    gone = [key for key in set(equivalent) - {m.key for m in every} if key[0] in arguments.modules]
    for key in gone:
        print("listed as equivalent, but there is no such mutant:", *key)
    print(
        f"{len(every)} mutants, {len(tried)} tried: {dict(campaign.counts)}; {len(known)} listed "
        f"as equivalent; {(time.time() - start) / 60:.1f} minutes"
    )
    return 1 if campaign.survivors or gone else 0


if __name__ == "__main__":
    sys.exit(main())
