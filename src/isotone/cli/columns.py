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
    weights: str | None = None,
) -> Columns:
    """Check what was asked for against the columns of the table.

    By default all columns are features but the target and the weights.
    """
    table.find([target, *([weights] if weights else [])])
    others = tuple(name for name in table.columns if name not in (target, weights))
    names = listed(features) or others
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
    for role, taken in (("target", target), ("weight", weights)):
        if taken in names:
            raise ValueError(f"the {role} {taken!r} is among the features; leave it out")
    if target == weights:
        raise ValueError(f"{target!r} is both the target and the weights; choose one of them")
    if len(set(names)) < len(names):
        raise ValueError(f"`--features {features}` names a column twice; name each once")
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


def one_number(text: str, option: str) -> float:
    """Exactly one number."""
    found = numbers_of(text, option)
    if len(found) != 1:
        raise ValueError(f"`--{option} {text}` must be one number")
    return found[0]


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
