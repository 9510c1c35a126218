"""One run at a time writes into a directory, and a dead one is no obstacle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from isotone.cli import ending_cleanly, main
from isotone.files.locks import NAME, making, sole_use
from test_files import COMMANDS, everything, write_inputs

DIRECTORIES = {
    "score a directory": "new/scores",
    "export a directory": "cpp",
    "train": "new/model",
    "sweep": "sweep",
    "transport": "transport",
}


@pytest.mark.parametrize("command", DIRECTORIES)
def test_a_second_run_is_refused_and_harms_nothing(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_inputs(tmp_path)
    words = COMMANDS[command].format(tmp_path).split()
    with sole_use(tmp_path / DIRECTORIES[command]):
        (tmp_path / DIRECTORIES[command] / "live.part").touch()
        before = everything(tmp_path)
        with pytest.raises(SystemExit, match="2"):
            main(words)
        assert everything(tmp_path) == before
    complaint = capsys.readouterr().err
    assert f"is being written by process {os.getpid()} on " in complaint
    assert "wait until it ends, or choose another directory" in complaint


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from isotone.files.locks import sole_use
with sole_use(Path({str(tmp_path / "out")!r})):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert (tmp_path / "out" / NAME).exists()
    with sole_use(tmp_path / "out"):
        pass
    assert list((tmp_path / "out").iterdir()) == []


def test_directories_that_stay_empty_are_removed(tmp_path: Path) -> None:
    with sole_use(tmp_path / "a" / "b"), making(tmp_path / "a" / "c" / "d"):
        (tmp_path / "a" / "c" / "file").touch()
    assert [p.name for p in sorted(tmp_path.rglob("*"))] == ["a", "c", "file"]
    with sole_use(tmp_path / "a" / "c"):
        pass
    assert (tmp_path / "a" / "c").is_dir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_exit_code(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # SIGINT is ignored in the background
    try:
        with ending_cleanly():
            pass
        assert signal.getsignal(number) is signal.SIG_DFL
        with pytest.raises(SystemExit) as exit_, ending_cleanly():
            signal.raise_signal(number)
        assert exit_.value.code == 128 + number
        assert signal.getsignal(number) is signal.SIG_IGN  # a second one changes nothing
    finally:
        signal.signal(number, before)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with ending_cleanly():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
