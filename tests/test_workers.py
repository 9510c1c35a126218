"""Workers: nobody else reaches them, their work is done whatever dies, and none is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from distributed import Client

from clusters import QUIET, cluster
from isotone.workers import Processes, run

TWO = Processes(2)


def square(shared: int, task: int) -> int:
    return shared + task**2


def nap(shared: float, task: int) -> int:
    time.sleep(shared)
    return os.getpid()


def die_once(folder: Path, task: int) -> int:
    """Die by SIGKILL when the first process gets here, as if memory had run out."""
    try:
        (folder / "died").touch(exist_ok=False)
    except FileExistsError:
        return task
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def die(shared: None, task: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(shared: None, task: int) -> None:
    raise ZeroDivisionError(task)


def family(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def doors(pid: int) -> Iterator[object]:
    """Where a process and those below it can be reached: ports, and named sockets."""
    for process in family(pid):
        try:
            yield from (c for c in process.net_connections("inet") if c.status == "LISTEN")
            yield from (c for c in process.net_connections("unix") if c.laddr)
        except psutil.NoSuchProcess:
            continue


def eventually(check: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not check() and time.monotonic() < deadline:
        time.sleep(0.02)
    return check()


@pytest.mark.parametrize("n", [1, 2])
def test_every_task_is_done_once(n: int) -> None:
    found = list(run(Processes(n), square, 5, range(7)))
    assert sorted(found) == [(task, 5 + task**2) for task in range(7)]
    assert list(run(Processes(n), square, 5, [])) == []


def test_processes_cannot_be_reached_and_end_when_left_early() -> None:
    for _, pid in run(TWO, nap, 0.05, range(100)):
        assert pid != os.getpid()
        assert not list(doors(os.getpid()))
        break
    ours = family(os.getpid())
    assert eventually(lambda: all("spawn_main" not in " ".join(p.cmdline()) for p in ours[1:]))


def test_a_command_cannot_be_reached(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = "".join(f"{k / 7},{k % 3},{k % 2}\n" for k in range(300))
    table.write_text(f"a,b,y\n{rows}")
    grid = "--seeds 0:40 --lipschitz 1 --hidden 8 --epochs 4 --shard-size 1 --workers 2"
    words = ["sweep", str(table), "--target", "y", "--out", str(tmp_path / "out"), *grid.split()]
    code = "import sys; from isotone.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=QUIET)
    try:
        shards = tmp_path / "out" / "shards"
        assert eventually(lambda: len(list(shards.glob("*.parquet"))) > 0)
        assert len(family(process.pid)) >= 3
        assert not list(doors(process.pid))
    finally:
        process.kill()
        process.wait()


def test_work_of_a_process_that_dies_is_done_by_another(tmp_path: Path) -> None:
    found = list(run(TWO, die_once, tmp_path, range(5)))
    assert sorted(found) == [(task, task) for task in range(5)]


def test_processes_that_die_again_and_again_are_given_up() -> None:
    with pytest.raises(ChildProcessError, match=r"ended 3 times in a row.* use fewer `--workers`"):
        list(run(TWO, die, None, range(2)))


def test_an_error_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        list(run(TWO, refuse, None, range(2)))
    with pytest.raises(ValueError, match="`--workers 0` must be at least 1"):
        Processes(0)


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from isotone.workers import Processes, run; from test_workers import nap\n"
        "for _, pid in run(Processes(2), nap, 0.1, range(10**4)): print(pid, flush=True)"
    )
    environment = QUIET | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    workers = {int(process.stdout.readline()) for _ in range(6)}
    process.kill()
    process.communicate()
    assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in workers))


def test_a_cluster_of_tests_refuses_strangers(tmp_path: Path) -> None:
    with cluster(tmp_path, 1) as (address, _):
        code = "\n".join(
            [
                "from distributed import Client",
                f"for address in ('{address}', '{address.replace('tls', 'tcp')}'):",
                "    try: Client(address, timeout=3)",
                "    except (OSError, TypeError): print('refused')",
            ]
        )
        words = [sys.executable, "-c", code]
        found = subprocess.run(words, capture_output=True, text=True, env=QUIET, check=False)
        assert found.stdout.split() == ["refused", "refused"]
        with Client(address, timeout=60) as client:  # those who have the credentials may
            assert client.submit(abs, -3).result() == 3
