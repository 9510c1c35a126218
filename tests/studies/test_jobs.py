"""Jobs: all are run, the longest first, and an error is not lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from studies import jobs
from studies.jobs import Done, Job, load_seconds, run_jobs, save_seconds


@dataclass(frozen=True)
class Square:
    """An item: notes that it ran."""

    number: int
    path: Path

    def run(self) -> int:
        if self.number < 0:
            raise ValueError(f"{self.number} is negative")
        with self.path.open("a") as file:
            file.write(f"{self.number}\n")
        return self.number**2


def test_all_items_are_run_the_longest_jobs_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ran"
    monkeypatch.setattr(jobs, "load_seconds", lambda: {"short": 1.0, "long": 3.0, "two": 2.0})
    items = {name: Square(k, path) for k, name in enumerate(("short", "long", "unknown"))}
    wanted = [Job(name, (item,)) for name, item in items.items()]
    wanted.append(Job("two", (Square(3, path), Square(4, path))))
    found = run_jobs(wanted, 1, Console(quiet=True))
    assert path.read_text().split() == ["2", "3", "4", "1", "0"]  # 5, 4, 3, 1 seconds
    outcomes = {item: x for done in found.values() for item, x in done.outcomes.items()}
    assert {item.number: x for item, x in outcomes.items()} == {k: k * k for k in range(5)}


def test_the_error_of_an_item_ends_a_run(tmp_path: Path) -> None:
    wanted = [Job("odd", (Square(-1, tmp_path / "ran"),))]
    with pytest.raises(ValueError, match="-1 is negative"):
        run_jobs(wanted, 1, Console(quiet=True))


def test_seconds_are_kept_per_item(tmp_path: Path) -> None:
    path = tmp_path / "seconds.json"
    path.write_text('{"other": 7.0}')
    job = Job("two", (Square(3, path), Square(4, path)))
    save_seconds({job: Done({}, 5.0)}, path)
    assert load_seconds(path) == {"other": 7.0, "two": 2.5}
    assert job.cost(load_seconds(path)) == 5.0


PARENT = """
import os, time
from dataclasses import dataclass
from rich.console import Console
from studies.jobs import Job, run_jobs

@dataclass(frozen=True)
class Sleep:
    def run(self):
        print(os.getpid(), flush=True)
        time.sleep(600)

if __name__ == "__main__":
    run_jobs([Job("sleep", (Sleep(),)), Job("again", (Sleep(),))], 1, Console(quiet=True))
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "parent.py"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    try:
        parent.communicate(timeout=60)  # the worker holds the other end of the pipe until it ends
    except subprocess.TimeoutExpired:
        os.kill(worker, signal.SIGKILL)
        raise
