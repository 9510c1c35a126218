"""Signals that end a command, as an exception, so that nothing half-written is left behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = 2.0  # seconds within which another signal is the same wish: `timeout` sends two


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """Within the block SIGINT, SIGTERM and SIGHUP raise SystemExit, with 128 + their number.

    A signal that is ignored, as SIGHUP is under nohup, stays ignored.
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
            signal.signal(number, before[number])


class _Leave:
    """Raise SystemExit; again only if that was of no effect for a while."""

    def __init__(self) -> None:
        self._last = -_AGAIN

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last >= _AGAIN:
            self._last = now
            raise SystemExit(128 + number)
