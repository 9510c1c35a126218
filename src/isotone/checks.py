"""Checks: one for every kind of argument that several parts take, each with one message."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from isotone.typing import Reals, Signs

T = TypeVar("T")


def is_count(value: Any, least: int = 1) -> bool:
    """Whether `value` is a whole number, of Python or NumPy, of at least `least`."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_count(name: str, value: Any, least: int = 1, also: str = "") -> int:
    """`value` as an int; the message for any other names what is allowed besides, `also`."""
    if not is_count(value, least):
        raise ValueError(f"`{name}={value!r}` must be a whole number of at least {least}{also}")
    return int(value)


def check_choice(name: str, value: T, choices: Sequence[object]) -> T:
    """`value`, if it is one of the choices.

    >>> check_choice("metric", "3", ("1", "2"))
    Traceback (most recent call last):
    ...
    ValueError: `metric='3'` is unknown; choose from '1', '2'
    """
    if value not in choices:
        given = f"{name} {value}" if name.startswith("--") else f"{name}={value!r}"
        known = ", ".join(str(c) if name.startswith("--") else repr(c) for c in choices)
        raise ValueError(f"`{given}` is unknown; choose from {known}")
    return value


def check_divides(group_size: int, width: int) -> None:
    """Raise `ValueError` with the sizes to choose from unless `group_size` divides `width`."""
    if group_size > 0 and width % group_size == 0:
        return
    *others, last = [str(size) for size in range(1, width + 1) if width % size == 0] or ["1"]
    choices = f"{', '.join(others)} or {last}" if others else last
    raise ValueError(f"`{group_size=}` does not divide `{width=}`; choose {choices}.")


def check_positive(name: str, value: Any) -> float:
    """`value` as a float, if it is a positive finite number."""
    if not is_number(value):
        raise ValueError(
            f"`{name}={value!r}` is of type {type(value).__name__} but must be a number, positive "
            "and finite; choose 0.01 or 1"
        )
    if not 0 < value < np.inf:
        raise ValueError(f"`{name}={value!r}` must be positive and finite; choose 0.01 or 1")
    return float(value)


def check_least(name: str, value: Any, least: float = 0.0) -> float:
    """`value` as a float, if it is a number of at least `least`; infinity is one."""
    if not is_number(value) or not value >= least:
        raise ValueError(f"`{name}={value!r}` must be a number of at least {least:g}; give one")
    return float(value)


def check_fraction(name: str, value: Any) -> float:
    """`value` as a float, if it lies strictly between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        given = f"{name} {value:g}" if name.startswith("--") else f"{name}={value!r}"
        raise ValueError(f"`{given}` must lie between 0 and 1; choose 0.2, for example")
    return float(value)


def check_frequency(name: str, value: Any) -> int | float:
    """`value`, if it is a number of rows, at least 1, or a share of them, between 0 and 1."""
    is_share = is_number(value) and 0 < value < 1
    if not is_share and not is_count(value):
        given = f"{name} {value}" if name.startswith("--") else f"{name}={value!r}"
        raise ValueError(
            f"`{given}` must be a number of rows, whole and at least 1, or a share of them "
            "between 0 and 1; choose 10 or 0.01, for example, or 1 to pool no categories"
        )
    return float(value) if is_share else int(value)


def check_finite(name: str, values: Any) -> None:
    """Raise `ValueError` if an array holds NaN or infinity."""
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"`{name}` holds NaN or infinity in {values.dtype}; it must be finite: drop or "
            "replace such values"
        )


def check_weights(
    name: str, weights: ArrayLike, n_rows: int, n_members: int | None = None
) -> Reals:
    """Weights (n_rows,), or also (n_members, n_rows): finite, at least 0, not all of them 0."""
    array: Reals = np.asarray(weights)
    array = array if array.dtype.kind == "f" else array.astype(np.float64)
    shapes = [(n_rows,)] + [(n_members, n_rows)] * (n_members is not None)
    if array.shape not in shapes:
        rows = f", or {shapes[-1]} with one row per member" if n_members is not None else ""
        raise ValueError(f"`{name}` has shape {array.shape}; give ({n_rows},), one per row{rows}")
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        row = np.argwhere(bad)[0]
        raise ValueError(
            f"`{name}` is {array[tuple(row)]:g} in row {row[-1]} (counted from 0); weights must "
            "be finite and at least 0: correct or drop such rows"
        )
    if not np.all(np.any(array > 0, axis=-1)):
        raise ValueError(f"`{name}` is 0 in all rows; it must be positive in some: correct it")
    return array


def check_directions(
    name: str, value: Any, n_outputs: int, n_features: int, given: Any = None
) -> Signs:
    """Directions (n_features,), or one row of them per output, as (n_outputs, n_features).

    Parameters
    ----------
    given : what the message shows, if `value` was made from it
    """
    table = np.asarray(value)
    if table.shape not in ((n_features,), (n_outputs, n_features)):
        raise ValueError(
            f"`{name}` has shape {table.shape}; give one of -1, 0, +1 for each of the "
            f"{n_features} features, or a table of shape {(n_outputs, n_features)}"
        )
    check_signs(name, value if given is None else given, table)
    return np.broadcast_to(table, (n_outputs, n_features)).astype(np.int8)


def check_signs(name: str, given: Any, table: Any = None) -> None:
    """Raise `ValueError` unless `table`, by default what was given, holds -1, 0 and +1 alone."""
    signs = np.asarray(given if table is None else table)
    if not set(signs.ravel().tolist()) <= {-1, 0, 1}:
        raise ValueError(
            f"`{name}={given}` must hold -1 (decreasing), 0 (free) or +1 (increasing)"
        )


def refuse_rivals(
    directions: Signs, features: Sequence[str] = (), classes: Sequence[str] = ()
) -> None:
    """Raise `ValueError` if two classes must gain, or lose, with one feature.

    Parameters
    ----------
    directions : of the probabilities, (n_classes, n_features)
    features, classes : names for the message; numbers without them
    """
    for sign, word in ((1, "rise"), (-1, "fall")):
        rivals = directions == sign
        for k in np.flatnonzero(rivals.sum(axis=0) > 1)[:1].tolist():
            numbers = np.flatnonzero(rivals[:, k]).tolist()
            names = " and ".join(str(classes[n]) if classes else str(n) for n in numbers)
            raise ValueError(
                f"the probabilities of the classes {names} must all {word} with feature "
                f"{features[k] if features else k}, but each would have to gain on the others; "
                "keep one of these directions, or reverse that of another class"
            )


def suggest(name: str, known: Sequence[str], otherwise: str, cutoff: float = 0.65) -> str:
    """Advice about an unknown name: the known one most like it in any case, or `otherwise`.

    >>> suggest("PT", ["pt", "eta"], "choose another column")
    "did you mean 'pt'?"
    """
    alike = get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=cutoff)
    meant = [repr(k) for k in known if k.lower() in alike]
    return f"did you mean {' or '.join(meant)}?" if meant else otherwise


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
