"""The command line. Every command is one function in a file of its own; this file lists them.

A command parses, calls the library and prints; no command here loads torch on import.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import isotone
from isotone.arithmetic import ieee_arithmetic
from isotone.cli.certify import certify
from isotone.cli.console.options import Command
from isotone.cli.console.terminal import errors, printable, warnings_as_lines
from isotone.cli.explain import explain
from isotone.cli.export import export
from isotone.cli.model.bundle import bundle
from isotone.cli.model.card import card
from isotone.cli.model.freeze import freeze
from isotone.cli.model.quantize import quantize
from isotone.cli.model.show import show
from isotone.cli.model.sign import sign
from isotone.cli.monitor import monitor
from isotone.cli.report import report
from isotone.cli.score import score
from isotone.cli.sweep import sweep
from isotone.cli.train import train
from isotone.cli.transport import transport
from isotone.cli.trigger import trigger
from isotone.extras import lacking


class _Commands(TyperGroup):
    """Commands of which none ends with 1 unless a verdict says so."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # typer would end with 1
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(2) from error
        except EOFError as error:
            raise ValueError(f"the input ended too early ({error}); copy it again") from error


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for command in (
    train,
    certify,
    score,
    show,
    explain,
    report,
    card,
    sign,
    freeze,
    quantize,
    export,
    bundle,
    trigger,
    monitor,
    sweep,
    transport,
):
    app.command(cls=Command)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isotone {isotone.__version__}")
        raise typer.Exit


@app.callback()
def _isotone(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Neural networks that are provably monotonic and provably robust."""


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = 2.0  # seconds within which another signal is the same wish: `timeout` sends two


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Within the block SIGINT, SIGTERM and SIGHUP raise SystemExit, with 128 + their number.

    A signal that is ignored, as SIGHUP is under nohup, stays ignored. One that ended the block is
    ignored after it: the process is leaving, and should do so with its exit code.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}
    ours = [n for n, handler in before.items() if handler is not signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # Python lets the main thread alone set handlers
    leave = _Leave()
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            ended = number == leave.number
            signal.signal(number, signal.SIG_IGN if ended else before[number])


class _Leave:
    """Raise SystemExit; again only if that was of no effect for a while."""

    def __init__(self) -> None:
        self._last = -_AGAIN
        self.number: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last >= _AGAIN:
            self._last, self.number = now, number
            raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; exit code 2 with one line on stderr if the library refuses.

    Exit code 1 is a verdict and nothing else: a declared constraint does not hold, or `monitor`
    raises an alarm. A command that a signal ends removes what it has not finished and exits with
    128 + its number.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # λ and ∞ on a terminal that has only ASCII
    try:
        with ending_cleanly(), ieee_arithmetic(), warnings_as_lines():
            app(arguments)
    except Exception as error:
        if not isinstance(error, _EXPECTED):
            traceback.print_exc()
        errors.print("error: ", style="bold red", end="")
        # a message may quote a file: in one line, without room for a line that looks like ours
        errors.print(printable(" ".join(_message(error).split())), soft_wrap=True)
        raise SystemExit(2) from error


_EXPECTED = (ValueError, OSError, ImportError, MemoryError, OverflowError, RecursionError)


def _message(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package in ("torch", "sklearn", "scipy"):
            return lacking("this command trains networks and", package, "train")
    if isinstance(error, IsADirectoryError) and error.filename is not None:
        inside = Path(error.filename) / "model.isotone"
        hint = f"give the model in it, {inside}" if inside.is_file() else "give a file in it"
        return f"{str(error.filename)!r} is a directory, but a file is needed; {hint}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{str(error.filename)!r}: {error.strerror}; check the path"
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return f"there is not enough memory{detail}; use less data, a smaller model or more memory"
    if not isinstance(error, _EXPECTED):
        return f"{type(error).__name__}: {error}; this is a bug in isotone: please report it"
    return str(error)
