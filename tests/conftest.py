"""Every test alone: the same examples and the same random numbers, whatever ran before it.

Hypothesis has no deadline, on a machine that others use too.
"""

from __future__ import annotations

import copy
import os
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import firefox
from browser import chromium, opened

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported, or a check of estimators skips

settings.register_profile("isotone", deadline=None, derandomize=True)
settings.load_profile("isotone")

_STATES: dict[str, dict[str, Any]] = {}  # of the generators of every module, as it left them


def pytest_collection_finish(session: pytest.Session) -> None:
    modules = {item.getparent(pytest.Module) for item in session.items}
    for module in (each.obj for each in modules if each is not None):
        _STATES[module.__name__] = {
            name: copy.deepcopy(value.bit_generator.state)
            for name, value in vars(module).items()
            if isinstance(value, np.random.Generator)
        }


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Set the generators of the module back, and seed torch with the name of the test."""
    module = item.getparent(pytest.Module)
    if module is not None:
        for name, state in _STATES.get(module.obj.__name__, {}).items():
            vars(module.obj)[name].bit_generator.state = copy.deepcopy(state)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(zlib.crc32(item.name.encode()))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, started once: Playwright cannot be started twice at a time."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="module", params=["Chromium", "Firefox"])
def open_page(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens pages in one browser and then in the other, each started once."""
    if request.param == "Chromium":
        yield partial(opened, request.getfixturevalue("browser"))
    else:
        with firefox.firefox() as running:
            yield partial(firefox.opened, running)
