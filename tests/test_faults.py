"""On a disk that fails at any moment files are whole: the old one or the new one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faulty_disk import FAULTS, Attempt
from programs import need

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent
NAMES = ["a.isotone", "a.parquet", "a.csv", "a.pt", "a.html", "a.onnx", "a.json", "a.zip"]


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Attempt]]:
    """Of every file, how each of its writes ended."""
    need("cc")
    folder = tmp_path_factory.mktemp("disk")
    library = str(folder / "faulty_disk.so")
    source = str(TESTS / "faulty_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    run = subprocess.run(
        [sys.executable, str(TESTS / "faulty_disk.py"), str(folder), *NAMES],
        env=os.environ | {"LD_PRELOAD": library, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout).items()
    return {name: [Attempt(**one) for one in entries] for name, entries in found}


@pytest.mark.skipif(sys.platform != "linux", reason="the disk is made to fail as Linux does it")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_the_old_or_the_new_whatever_change_fails(
    name: str, fault: str, attempts: dict[str, list[Attempt]]
) -> None:
    *tried, last = [one for one in attempts[name] if one.fault == fault]
    assert (last.end, last.content) == ("untouched", "new")
    assert len(tried) > 5, "every write opens, writes, syncs and renames"
    expected = {"killed": "killed", "cut short": "done"}.get(fault, "OSError")
    for one in tried:
        assert one.end == expected, one
        assert not one.left, one
        assert expected == "killed" or not one.beside, one
    # the name of the new file reaches the disk last: all that comes before leaves the old one
    before = [one.content for one in tried[:-1]]
    assert before == ["new" if expected == "done" else "old"] * len(before)
    assert tried[-1].content in ("old", "new")
