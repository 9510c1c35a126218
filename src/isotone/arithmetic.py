"""Arithmetic: the floating-point state of a thread, on which bits and certificates depend.

A library built with ``-ffast-math`` may switch off denormal numbers for any program that loads
it, and any code may leave another rounding mode behind. The engine checks the state in every call.
What is computed in Python, such as a certificate, runs inside `ieee_arithmetic`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from isotone.compiled import engine


@contextmanager
def ieee_arithmetic() -> Iterator[None]:
    """Round to nearest, with denormal numbers and without traps; then restore what was found.

    For the calling thread; also a decorator of functions.

    Examples
    --------
    >>> with ieee_arithmetic():
    ...     2.0**-1074 > 0.0
    True
    """
    found = engine.enter_default_state()
    try:
        yield
    finally:
        engine.leave_default_state(found)
