"""A PostgreSQL server for one query: what the check after an export to that dialect runs.

`initdb` makes a database in a temporary directory, and `postgres --single` reads one command from
its standard input: the server's own parser, planner and executor in one process, without a port,
a socket or a client library. The directory is removed afterwards.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from isotone.export.sql.statement import quote

Columns = dict[str, list[Any]]
Rows = list[tuple[Any, ...]]
Run = Callable[[str, str, Columns], Rows]

_PLACES = "/usr/lib/postgresql/*/bin"  # of Debian and Ubuntu, not in $PATH
_ACCOUNT = "postgres"
_NULL = "null"


class NoServerError(ValueError):
    """There is no PostgreSQL server that can be run."""


def run_postgresql(select: str, table: str, columns: Columns) -> Rows:
    """The rows that a SELECT gives for a table with these columns; cells are text, or None."""
    with server() as run:
        return run(select, table, columns)


@contextmanager
def server() -> Iterator[Run]:
    """What runs queries, each in a process and with a table of its own."""
    programs, account = find_server(), _account()
    with tempfile.TemporaryDirectory(prefix="isotone-") as name:
        folder = Path(name)
        os.chown(folder, -1 if account is None else account, -1)
        options = ("--no-sync", "--encoding=UTF8", "--locale=C", "--auth=trust", "-U", _ACCOUNT)
        _run([str(programs / "initdb"), *options, "-D", str(folder / "data")], account)
        yield partial(_query, programs, account, folder)


def _query(
    programs: Path, account: int | None, folder: Path, select: str, table: str, columns: Columns
) -> Rows:
    _write_script(folder, select, table, columns)
    script = _text(str(folder / "script.sql"))
    postgres = [str(programs / "postgres"), "--single", "-F"]
    settings = ["-c", "exit_on_error=on", "-c", "jit=off"]  # compiling takes minutes
    command = f"DO $$BEGIN EXECUTE pg_read_file({script}); END$$\n"
    _run([*postgres, *settings, "-D", str(folder / "data"), "postgres"], account, command)
    with (folder / "scores.csv").open(encoding="utf-8", newline="") as file:
        return [tuple(None if c == _NULL else c for c in row) for row in csv.reader(file)]


def find_server() -> Path:
    """The directory with `initdb` and `postgres`, in $PATH or the newest where Debian has it."""
    found = shutil.which("initdb")
    debian = sorted(Path("/").glob(_PLACES.lstrip("/")), key=_version)
    places = [*([Path(found).resolve().parent] if found else []), *reversed(debian)]
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise NoServerError(
        "the file was written but not compared with the model: no PostgreSQL server was found to "
        "run it; install one, put `initdb` and `postgres` into $PATH, or leave the check out "
        "(check=False, --no-check)"
    )


def _version(place: Path) -> float:
    name = place.parent.name
    return float(name) if name.replace(".", "", 1).isdigit() else 0.0


def _account() -> int | None:
    """Whom the server runs as if we are root, which it refuses to be."""
    if os.geteuid() != 0:
        return None
    import pwd

    try:
        return pwd.getpwnam(_ACCOUNT).pw_uid
    except KeyError:
        raise NoServerError(
            "the file was written but not compared with the model: PostgreSQL does not run as "
            f"root, and there is no user {_ACCOUNT!r}; export as another user, or leave the check "
            "out (check=False, --no-check)"
        ) from None


def _write_script(folder: Path, select: str, table: str, columns: Columns) -> None:
    """Fill the table from a file, and copy what the SELECT gives to another."""
    types = {name: "text" if _has_text(cells) else "float8" for name, cells in columns.items()}
    defined = ", ".join(f"{quote(name)} {type_}" for name, type_ in types.items())
    rows, scores = (_text(str(folder / name)) for name in ("rows.csv", "scores.csv"))
    lines = (",".join(map(_cell, row)) for row in zip(*columns.values(), strict=True))
    _write(folder / "rows.csv", "".join(f"{line}\n" for line in lines))
    body = select.rstrip().removesuffix(";")
    script = (
        f"CREATE TEMPORARY TABLE {quote(table)} ({defined});\n"
        f"COPY {quote(table)} FROM {rows} (FORMAT csv);\n"
        f"COPY (\n{body}\n) TO {scores} (FORMAT csv, NULL '{_NULL}');\n"
    )
    _write(folder / "script.sql", script)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")
    path.chmod(0o644)  # the server may be another user


def _has_text(cells: Iterable[Any]) -> bool:
    return any(isinstance(cell, str) for cell in cells)


def _cell(value: Any) -> str:
    """A cell of a CSV file, in which nothing is NULL and an empty text has quotes."""
    if value is None:
        return ""
    return quote(value) if isinstance(value, str) else repr(float(value))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _run(command: Sequence[str], account: int | None, text: str = "") -> None:
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=account,
        env=os.environ | {"LC_ALL": "C"},
    )
    if done.returncode != 0:
        raise ValueError(_complaint(done.stderr))


def _complaint(said: str) -> str:
    """The error among what the server writes to its log."""
    kinds = ("FATAL:", "ERROR:", "error:")
    errors = [line for line in said.splitlines() if any(kind in line for kind in kinds)]
    return errors[0].strip() if errors else said.strip()
