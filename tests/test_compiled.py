"""The compiled engine is the one that Python was written for, and has one home."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import isotone
from isotone import compiled

SOURCE = Path(isotone.__file__).parent


@pytest.mark.parametrize(
    ("found", "named"),
    [({}, "none"), ({"INTERFACE": compiled.INTERFACE + 1}, str(compiled.INTERFACE + 1))],
)
def test_an_engine_of_another_version_is_refused(found: dict[str, int], named: str) -> None:
    message = f"has interface {named}, and its Python needs {compiled.INTERFACE}; .* install"
    with pytest.raises(ImportError, match=message):
        compiled.check_interface(SimpleNamespace(**found))


def test_no_module_gets_past_the_check() -> None:
    importing = re.compile(r"import _engine|isotone\._engine import|import .*, _engine\b")
    found = [path.name for path in SOURCE.rglob("*.py") if importing.search(path.read_text())]
    assert found == ["compiled.py"]
