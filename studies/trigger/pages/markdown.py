"""Markdown: tables and signed numbers as the page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def join(values: Iterable[float], form: str, separator: str = ", ") -> str:
    return separator.join(format(value, form).replace("-", "−") for value in values)


def span(values: Sequence[float]) -> str:
    """The smallest and the largest of some changes; zero has no sign."""
    ends = {round(value, 3) + 0.0 for value in (min(values), max(values))}
    return join(sorted(ends), "+.3f", " to ").replace("+0.000", "0.000")
