"""Counts: whole numbers, such as widths and steps, that every part of the package takes."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def is_count(value: Any, least: int = 1) -> bool:
    """Whether `value` is a whole number, of Python or NumPy, of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_count(name: str, value: Any, least: int = 1, also: str = "") -> int:
    """`value` as an int; the message for any other names what is allowed besides, `also`."""
    if not is_count(value, least):
        raise ValueError(f"`{name}={value!r}` must be a whole number of at least {least}{also}")
    return int(value)
