"""Workers: nobody else reaches them, their work is done whatever dies, and none is left over."""

from __future__ import annotations

import math
import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client, Future

from clusters import QUIET, cluster
from isotone.workers import Processes, hearing, run

pytestmark = pytest.mark.slow

TWO = Processes(2)


def results(n: int, function: Callable[..., Any], shared: object, tasks: range) -> list[Any]:
    with run(Processes(n), function, shared, tasks) as found:
        return list(found)


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


class Mortal:
    """Kills the first process that unpacks it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return die_once, (self.folder, 0)


def weigh(shared: tuple[Mortal, bytes], task: int) -> int:
    return len(shared[1])


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
    deadline = time.monotonic() + 120
    while not check() and time.monotonic() < deadline:
        time.sleep(0.02)
    return check()


def test_a_process_may_die_before_it_has_begun(tmp_path: Path) -> None:
    found = results(2, weigh, (Mortal(tmp_path), bytes(2**20)), range(3))
    assert (tmp_path / "died").exists()
    assert sorted(found) == [(k, 2**20) for k in range(3)]


@pytest.mark.parametrize("n", [1, 2])
def test_every_task_is_done_once(n: int) -> None:
    found = results(n, square, 5, range(7))
    assert sorted(found) == [(task, 5 + task**2) for task in range(7)]
    assert results(n, square, 5, range(0)) == []


def test_processes_cannot_be_reached_and_end_when_left_early() -> None:
    workers: list[psutil.Process] = []

    def leave() -> None:
        with run(TWO, nap, 0.05, range(100)) as found:
            workers.append(psutil.Process(next(found)[1]))
            assert not list(doors(os.getpid()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:  # whose traceback keeps everything alive
        leave()
    assert workers[0].pid != os.getpid()
    assert not workers[0].is_running()
    assert error.traceback


def test_a_command_cannot_be_reached(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = "".join(f"{k / 7},{k % 3},{k % 2}\n" for k in range(300))
    table.write_text(f"a,b,y\n{rows}")
    grid = (
        "--seeds 0:40 --lipschitz 1 --hidden-layer-sizes 8 --max-iter 4 --shard-size 1 --workers 2"
    )
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
    found = results(2, die_once, tmp_path, range(5))
    assert sorted(found) == [(task, task) for task in range(5)]


def test_processes_that_die_again_and_again_are_given_up() -> None:
    with pytest.raises(
        ChildProcessError, match=r"workers ended 3 times in a row.* use fewer `--workers`"
    ):
        results(2, die, None, range(2))


def test_an_error_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        results(2, refuse, None, range(2))
    with pytest.raises(ValueError, match="`--workers 0` must be at least 1"):
        Processes(0)


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from isotone.workers import Processes, run; from test_workers import nap\n"
        "with run(Processes(2), nap, 0.1, range(10**4)) as found:\n"
        "    for _, pid in found: print(pid, flush=True)"
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


def test_tasks_that_a_scheduler_loses_are_given_to_it_again(tmp_path: Path) -> None:
    powers, done = range(2_000_000, 2_000_006), []  # some work, which its worker can import
    with (
        cluster(tmp_path, 1) as (address, _),
        Client(address, timeout=60) as client,
        run(client, operator.pow, 3, powers) as found,
    ):
        for task, result in found:
            if not done:
                lost = [Future(key, client) for key in client.futures if "pow" in key]
                assert len(lost) == len(powers)
                client.cancel(lost)
            assert result.bit_length() == math.ceil(task * math.log2(3))
            done.append(task)
    assert sorted(done) == list(powers)


def tell_square(tell: Callable[[Any], object], task: int) -> None:
    tell((task, task**2, None, "news"))


@pytest.mark.parametrize("n", [1, 2])
def test_what_tasks_tell_is_heard(n: int) -> None:
    heard: list[Any] = []
    with hearing(Processes(n), heard.append) as tell:
        assert len(results(n, tell_square, tell, range(5))) == 5
        assert not list(doors(os.getpid()))
    assert sorted(heard) == [(task, task**2, None, "news") for task in range(5)]


def test_a_task_on_dask_ends_when_nobody_is_left_to_hear_it(tmp_path: Path) -> None:
    heard: list[Any] = []

    def tell_on(tell: Callable[[Any], object], file: Path) -> None:  # sent, not imported
        for k in range(3000):
            tell((7, k))
            with file.open("a") as told:
                told.write(".")
            time.sleep(0.02)

    file = tmp_path / "told"
    with cluster(tmp_path, 1) as (address, _):
        with Client(address, timeout=60) as client, hearing(client, heard.append) as tell:
            future = client.submit(tell_on, tell, file, retries=3)
            assert eventually(lambda: len(heard) > 3)
            assert not future.done()
        counts = [0]
        while file.stat().st_size > counts[-1]:
            counts.append(file.stat().st_size)
            time.sleep(1.0)
    assert counts[-1] < 3000
    assert heard[:3] == [(7, 0), (7, 1), (7, 2)]
