"""Which columns of a table a network learns from, and in which direction."""

from __future__ import annotations

from dataclasses import dataclass

from isotone.scaling import Kind
from isotone.table import Table


@dataclass(frozen=True)
class Columns:
    """Features with their directions and kinds of scaling, and the target."""

    features: tuple[str, ...]
    monotonic_cst: tuple[int, ...]
    kinds: tuple[Kind, ...]
    target: str


def choose_columns(
    table: Table,
    target: str,
    features: str | None,
    increasing: str | None,
    decreasing: str | None,
    log: str | None,
) -> Columns:
    """Check what was asked for against the columns of the table; all but the target by default."""
    table.schema([target])
    names = listed(features) or tuple(name for name in table.columns if name != target)
    table.find(names)
    up, down, logs = listed(increasing), listed(decreasing), listed(log)
    for option, chosen in (("increasing", up), ("decreasing", down), ("log", logs)):
        for name in chosen:
            if name not in names:
                table.find([name])
                raise ValueError(f"`--{option} {name}` is not among the features; add it to them")
    if set(up) & set(down):
        name = min(set(up) & set(down))
        raise ValueError(f"{name!r} is both increasing and decreasing; choose one of them")
    if target in names:
        raise ValueError(f"the target {target!r} is among the features; leave it out")
    return Columns(
        features=names,
        monotonic_cst=tuple((name in up) - (name in down) for name in names),
        kinds=tuple("log" if name in logs else "standard" for name in names),
        target=target,
    )


def listed(text: str | None) -> tuple[str, ...]:
    """Names or numbers separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def numbers_of(text: str, option: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(float(part) for part in listed(text))
    except ValueError as error:
        raise ValueError(
            f"`--{option} {text}` must hold numbers separated by commas, such as 1,2,4"
        ) from error


def counts_of(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers separated by commas, or a range such as 0:100."""
    first, colon, last = text.partition(":")
    try:
        if colon:
            return tuple(range(int(first), int(last)))
        return tuple(int(part) for part in listed(text))
    except ValueError as error:
        raise ValueError(
            f"`--{option} {text}` must hold whole numbers, such as 0:100 or 1,2,3"
        ) from error
