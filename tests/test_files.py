"""Files appear whole or not at all, with the right permissions, beside other runs and signals."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from isotone import files as atomic
from isotone.data.table import SUFFIXES, write_table
from isotone.export import write as export
from isotone.files import remove_leftovers, replacing
from isotone.report import write as report
from isotone.training.checkpoint import save_checkpoint
from networks import small
from programs import need

FROZEN = small()
BATCH = pa.record_batch({"x": [1.0, 2.0]})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def save(path: Path) -> None:
    if any(str(path).endswith(suffix) for suffix in SUFFIXES):
        write_table(path, BATCH.schema, [BATCH])
    elif path.suffix == ".isotone":
        FROZEN.save(path)
    elif path.suffix == ".pt":
        save_checkpoint(path, "", {})
    elif path.suffix == ".html":
        report(FROZEN, path)
    else:
        export(FROZEN, path.suffix[1:], path, check=False)


NAMES = [f"a{suffix}" for suffix in (*SUFFIXES, ".isotone", ".pt", ".html", ".onnx", ".json")]


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("name", NAMES)
def test_a_private_file_stays_private_all_the_time(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / name, []
    create, sync = atomic._create, atomic._sync

    def created(temporary: Path, *arguments: Any) -> int:
        file = create(temporary, *arguments)
        seen.append((mode(temporary), temporary.stat().st_ino))
        return file

    def synced(file: Path) -> None:
        if file.is_file():
            seen.append((mode(file), file.stat().st_ino))
        sync(file)

    monkeypatch.setattr(atomic, "_create", created)
    monkeypatch.setattr(atomic, "_sync", synced)
    path.touch(mode=0o600)
    save(path)
    assert [found for found, _ in seen] == [0o600, 0o600]
    assert seen[0][1] == seen[1][1] == path.stat().st_ino  # nobody made it anew in between
    assert mode(path) == 0o600
    assert path.stat().st_size > 0


@pytest.mark.parametrize("before", [0o600, 0o640, 0o444, 0o666, 0o400])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_permissions_are_those_of_the_file_that_was_there(
    tmp_path: Path, before: int, umask: int
) -> None:
    path, old = tmp_path / "a", os.umask(umask)
    try:
        for expected in (0o666 & ~umask, before):
            with replacing(path) as temporary:
                assert mode(temporary) & ~0o600 == expected & ~0o600
                temporary.write_text("new")
            assert mode(path) == expected
            path.chmod(before)
    finally:
        os.umask(old)


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def fail(error: type[BaseException], lose: bool) -> None:
        with replacing(path) as temporary:
            temporary.write_text("ne")
            if lose:  # somebody else's mistake, which does not hide the error
                temporary.unlink()
            raise error

    for error in (ValueError, KeyboardInterrupt, SystemExit):
        for lose in (False, True):
            with pytest.raises(error):
                fail(error, lose)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a", "old")]


def test_names_reach_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert synced == [(tmp_path / "a").stat().st_ino, tmp_path.stat().st_ino]


def test_devices_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(ValueError, match=r"is a device or a pipe; name a regular file"),
        replacing(tmp_path / "pipe"),
    ):
        pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_leftovers_of_the_dead_are_removed_and_files_of_the_living_are_not(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "a.b"
    code = f"""
import os, signal
from pathlib import Path
from isotone.files import replacing
with replacing(Path({str(path)!r})), replacing(Path({str(other)!r})):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    (tmp_path / "a.0123abcd.part").touch()  # as version 0.1 named them
    assert len(list(tmp_path.glob("*.part"))) == 3
    (tmp_path / "a.mine.part").touch()
    with replacing(path) as first, replacing(path) as second:
        remove_leftovers(path)
        left = set(tmp_path.glob("a.*.part")) - {first, second, tmp_path / "a.mine.part"}
        assert [p.name[:4] for p in left] == ["a.b."]
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # the last to end, and whole
    remove_leftovers(path, other, tmp_path / "none" / "c")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "a.mine.part"]


def test_whoever_writes_a_file_next_removes_what_was_left_of_it(tmp_path: Path) -> None:
    left = [tmp_path / f"{name}.0123456789abcdef.part" for name in ("a", "b")]
    for path in left:
        path.touch()
    with replacing(tmp_path / "a") as temporary:
        assert set(tmp_path.iterdir()) == {temporary, left[1]}
        temporary.write_text("new")
    assert set(tmp_path.iterdir()) == {tmp_path / "a", left[1]}


def test_a_folder_that_nobody_may_list_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(folder))

    def open_files_alone(path: Path, *rest: int) -> int:
        return refuse(path) if Path(path).is_dir() else opened(path, *rest)  # type: ignore

    opened = os.open
    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "open", open_files_alone)
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a").read_text() == "new"


def test_what_is_called_like_a_leftover_but_is_a_pipe_or_a_link_is_left_alone(
    tmp_path: Path,
) -> None:
    pipe, link = (tmp_path / f"a.{name}3456789abcdef.part" for name in ("012", "123"))
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "b")
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert {pipe, link, tmp_path / "a"} == set(tmp_path.iterdir())


def test_a_file_that_two_programs_replace_at_once_is_that_of_one(tmp_path: Path) -> None:
    """Each takes the other's temporary file for a leftover, in the moment before it is locked."""
    path = tmp_path / "a"
    path.write_text("0" * 1000)
    code = """
import sys, time
from isotone.files import write_whole
end = time.monotonic() + 3
while time.monotonic() < end:
    write_whole(sys.argv[1], sys.argv[2] * 1000)
"""
    words = [sys.executable, "-c", code, str(path)]
    running = [subprocess.Popen([*words, name]) for name in "12"]
    assert [each.wait(60) for each in running] == [0, 0]
    assert path.read_text() in ("1" * 1000, "2" * 1000)
    assert list(tmp_path.iterdir()) == [path]


# Commands that a signal ends while they write

STOP_IN_A_FILE = """
import atexit, signal, sys, time
from isotone import files as atomic
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup ignores, and so would the command
def stop(path):
    print("ready", flush=True)
    time.sleep(60)
@atexit.register
def leave():
    print("leaving", flush=True)
    time.sleep(0.1)
if __name__ == "__main__":
    atomic._sync = stop
    from isotone.cli import main
    main(sys.argv[1:])
"""

RUN = "import sys; from isotone.cli import main; main(sys.argv[1:])"

COMMANDS = {
    "score": "score {0}/m.isotone {0}/t.csv --out {0}/s.csv",
    "score to ROOT": "score {0}/m.isotone {0}/t.csv --out {0}/s.root",
    "score a directory": "score {0}/m.isotone {0}/tables --out {0}/new/scores --workers 1",
    "export": "export {0}/m.isotone --to json --out {0}/m.json --no-check",
    "export a directory": "export {0}/m.isotone --to cpp --out {0}/cpp --no-check",
    "explain": "explain {0}/m.isotone {0}/t.csv --out {0}/reasons.csv",
    "report": "report {0}/m.isotone {0}/t.csv --out {0}/r.html",
    "train": "train {0}/t.csv --target y --out {0}/new/model --max-iter 2",
    "sweep": "sweep {0}/t.csv --target y --out {0}/sweep --seeds 0:2 --max-iter 1 --workers 1",
    "transport": "transport {0}/t.csv {0}/t.csv --steps 2 --out {0}/transport",
    "trigger": "trigger {0}/m.isotone {0}/t.csv --target y --event id --n-events 999"
    " --max-rate 1e7 --out {0}/trigger.json",
}


def write_inputs(folder: Path) -> None:
    FROZEN.save(folder / "m.isotone")
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {name: rng.normal(size=200) for name in FROZEN.features}
    table = pa.table(columns | {"y": np.arange(200) % 2, "id": np.arange(200)})
    batches = table.to_batches()
    write_table(folder / "t.csv", table.schema, batches)
    (folder / "tables").mkdir()
    for k in range(3):
        write_table(folder / "tables" / f"{k}.parquet", table.schema, batches)


def everything(folder: Path) -> dict[Path, bytes | None]:
    return {p: p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def stop_in_a_file(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """A command that has written a file, which does not have its name yet."""
    process = subprocess.Popen(
        [sys.executable, "-c", STOP_IN_A_FILE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    assert process.stdout is not None
    assert b"ready" in b"".join(iter(process.stdout.readline, b"ready\n")) + b"ready"
    assert list(folder.rglob("*.part"))
    return process


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_killed_command_left_goes_when_it_runs_again(tmp_path: Path, command: str) -> None:
    write_inputs(tmp_path)
    words = COMMANDS[command].format(tmp_path).split()
    process = stop_in_a_file(words, tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    subprocess.run([sys.executable, "-c", RUN, *words], check=True, capture_output=True)
    names = {path.name for path in tmp_path.rglob("*")}
    assert not [name for name in names if name.endswith((".part", "-lock"))]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_while_writing_leaves_nothing_behind(tmp_path: Path, command: str) -> None:
    write_inputs(tmp_path)
    before = everything(tmp_path)
    number = signal.SIGHUP if command in ("export", "sweep") else signal.SIGTERM
    process = stop_in_a_file(COMMANDS[command].format(tmp_path).split(), tmp_path)
    assert process.stdout is not None
    process.send_signal(number)
    process.send_signal(number)  # as `timeout` does: twice, at once
    assert process.stdout.readline() == b"leaving\n"
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 128 + number, complaint
    assert b"Traceback" not in complaint
    assert everything(tmp_path) == before


def bound_by_permissions() -> list[str]:
    """What a program is started with, so that permissions bind it, even if this is root."""
    if os.geteuid() != 0:
        return []
    need("setpriv")
    return ["setpriv", "--bounding-set=-dac_override"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="root is bound by permissions as on Linux")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, command: str) -> None:
    write_inputs(tmp_path)
    before = everything(tmp_path)
    words = COMMANDS[command].format(tmp_path).split()
    tmp_path.chmod(0o555)
    try:
        start = [*bound_by_permissions(), sys.executable, "-c", RUN]
        run = subprocess.run([*start, *words], capture_output=True, text=True, check=False)
    finally:
        tmp_path.chmod(0o755)
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    assert re.search(rf"error: '{tmp_path}.*': Permission denied; check the path", run.stderr)
    assert everything(tmp_path) == before


@pytest.mark.slow
def test_a_signal_ends_the_processes_of_a_command_and_removes_their_files(tmp_path: Path) -> None:
    FROZEN.save(tmp_path / "m.isotone")
    rows = np.random.default_rng(0).normal(size=(10**6, 3))
    table = pa.table({name: rows[:, i] for i, name in enumerate(FROZEN.features)})
    (tmp_path / "tables").mkdir()
    for k in range(4):
        pa.parquet.write_table(table, tmp_path / "tables" / f"{k}.parquet")
    out = tmp_path / "scores"
    words = ["score", str(tmp_path / "m.isotone"), str(tmp_path / "tables"), "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-c", RUN, *words], start_new_session=True)
    assert eventually(lambda: len(list(out.glob("?.parquet.*.part"))) == 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    left = {p.name for p in out.iterdir()}
    assert left <= {"scored-with.json", *(f"{k}.parquet" for k in range(4))}
    with pytest.raises(ProcessLookupError):  # nobody of its group is left
        eventually(lambda: os.killpg(process.pid, 0) is not None)


def eventually(check: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 120
    while not check() and time.monotonic() < deadline:
        time.sleep(0.005)
    return check()
