"""Tests that may notice a mutant: those that run its lines, the fast ones first."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import coverage
import pytest


@dataclass
class Reach:
    """Which tests run a line of a file, and how long each takes.

    Parameters
    ----------
    seconds : of every test, by its name
    tests : names of tests, by file and line
    failed : tests that fail without any mutant
    """

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def of(self, places: Iterable[tuple[str, int]]) -> set[str]:
        """Tests that run one of these lines."""
        return set().union(*(self.tests.get(place, set()) for place in places))

    def naming(self, constant: str) -> set[str]:
        """Tests in files that name a constant."""
        files = {name.partition("::")[0] for name in self.seconds}
        chosen = {file for file in files if lines_with(constant, file)}
        return {name for name in self.seconds if name.partition("::")[0] in chosen}

    def within(self, names: list[str], budget: float) -> list[str]:
        """The first of these tests, until the budget is spent; at least one."""
        spent = list(accumulate(self.seconds[name] for name in names))
        return [name for name, s in zip(names, spent, strict=True) if s <= budget] or names[:1]


def trace(items: list[pytest.Item], files: list[str]) -> Reach:
    """Run all tests once and see where each gets."""
    reach = Reach()
    tracer = coverage.Coverage(data_file=None, config_file=False, include=files)
    tracer.start()
    for item in items:
        tracer.switch_context(item.nodeid)
        start = time.process_time()
        if not passes(item):
            reach.failed.append(item.nodeid)
        reach.seconds[item.nodeid] = time.process_time() - start
    tracer.stop()
    for file in files:
        for line, names in tracer.get_data().contexts_by_lineno(file).items():
            reach.tests[file, line] = {name for name in names if name}
    return reach


def passes(item: pytest.Item) -> bool:
    """Run one test, with its fixtures set up before and torn down after."""
    before = item.session.testsfailed
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return item.session.testsfailed == before


def lines_with(name: str, file: str) -> list[int]:
    """Lines of a file that contain a name."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, start=1) if name in line]
