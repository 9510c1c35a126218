"""Directions, λ and others: what a user says of every column, in a list or by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from isotone.checks import check_directions, suggest
from isotone.frozen.joint import check_rates
from isotone.inputs.columns import missing_name
from isotone.typing import Floats, Signs


def spread(
    name: str, value: Any, features: Sequence[str], default: Any, more: Sequence[str] = ()
) -> list[Any]:
    """One entry per feature, from one per feature or from a dictionary by name.

    Parameters
    ----------
    more : names that only a dictionary has; their entries come last

    >>> spread("monotonic_cst", {"debt": -1}, ["income", "debt"], 0)
    [0, -1]
    """
    if isinstance(value, Mapping):
        _refuse_unknown(name, list(value), features, more)
        return [value.get(feature, default) for feature in (*features, *more)]
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(
            f"`{name}={value!r}` says nothing about single features; give one entry for each of "
            f"{len(features)}, or a dictionary by feature name"
        )
    entries = list(value)
    if len(entries) != len(features):
        raise ValueError(
            f"`{name}` has {len(entries)} entries but `X` has {len(features)} features; give one "
            "per feature, or a dictionary by feature name"
        )
    return entries + [default] * len(more)


def by_name(name: str, value: Any, labels: Sequence[Any] | None, features: Sequence[str]) -> Any:
    """A dictionary by label of a frame's columns as one by feature; other values as they are.

    Labels are names, not positions: in a frame with the columns 2 and 1, 1 is the second. The
    columns of an array have no names. If scikit-learn's RFE leaves out the first of them, a key 0
    would mean another column than the user's, so positions are given as a list of all.

    Parameters
    ----------
    labels : of the columns of `X`; None if it is an array
    """
    if not isinstance(value, Mapping) or not value:
        return value
    if labels is None:
        raise ValueError(
            f"`{name}` is a dictionary by name but `X` is an array, whose {len(features)} columns "
            "have no names; give a frame, or a list with one entry per column (scikit-learn's "
            "RFE and some others pass arrays on even for a frame: select columns before the "
            "estimator, and keep their names with set_output(transform='pandas'))"
        )
    names = dict(zip(labels, features, strict=True))
    found = {names.get(key, key): entry for key, entry in value.items()}
    if len(found) < len(value):
        raise ValueError(
            f"`{name}={value}` names a feature twice, as a number and as text; name each once"
        )
    return found


def _refuse_unknown(
    name: str, keys: Sequence[Any], features: Sequence[str], more: Sequence[str]
) -> None:
    known = [*features, *more]
    for key in keys:
        if key not in known:
            hint = suggest(str(key), known, "use one of these.", cutoff=0.5)
            shown = ", ".join(features[:20]) + (", ..." if len(features) > 20 else "")
            raise ValueError(
                f"`{name}` names the feature {key!r}, which `X` does not have; its features are "
                f"{shown}: {hint}"
            )


def missing_names(features: Sequence[str]) -> list[str]:
    """What a dictionary calls the missing values of features; empty for the name of a feature."""
    names = [missing_name(feature) for feature in features]
    return ["" if name in features else name for name in names]


def directions(
    value: Any, features: Sequence[str], n_outputs: int, name: str = "monotonic_cst"
) -> Signs:
    """`monotonic_cst` as a table (n_outputs, 2 n_features) of -1, 0 and +1.

    Behind the features come their missing values, to which only a dictionary gives directions.
    """
    n = len(features)
    if value is None:
        return np.zeros((n_outputs, 2 * n), dtype=np.int8)
    if is_table(value):
        table = check_directions(name, value, n_outputs, n)
        return np.hstack([table, np.zeros_like(table)])
    entries = spread(name, value, features, 0, missing_names(features))
    return check_directions(name, entries, n_outputs, 2 * n, given=value)


def joint_directions(
    value: Any, labels: Sequence[Any] | None, features: Sequence[str]
) -> list[dict[str, float]]:
    """`joint_cst` as rates by feature that are not zero, for every direction.

    >>> joint_directions([{"income": 1, "debt": -1}], ["income", "debt"], ["income", "debt"])
    [{'income': 1.0, 'debt': -1.0}]
    """
    listed = [] if value is None else value
    if isinstance(listed, Mapping | str) or not isinstance(listed, Iterable):
        raise ValueError(
            f"`joint_cst={value!r:.100}` must be a list of directions; put even one into a list, "
            'such as [{"income": 1, "debt": -1}]'
        )
    found = []
    for direction in listed:
        rates = by_name("joint_cst", direction, labels, features)
        if not isinstance(rates, Mapping):
            entries = rates if np.ndim(rates) == 1 else [rates]
            rates = dict(zip(features, spread("joint_cst", entries, features, 0.0), strict=True))
        _refuse_unknown("joint_cst", list(rates), features, ())
        found.append(check_rates(rates))
    return found


def class_directions(
    value: Mapping[Any, Any], features: Sequence[str], classes: Sequence[Any]
) -> Signs:
    """Directions (n_classes, 2 n_features) from a dictionary by class; others are free.

    >>> class_directions({"bad": {"debt": 1}}, ["income", "debt"], ["bad", "fair", "good"])
    array([[0, 1, 0, 0],
           [0, 0, 0, 0],
           [0, 0, 0, 0]], dtype=int8)
    """
    found = {_class_of(key, classes): entry for key, entry in value.items()}
    if len(found) < len(value):
        raise ValueError(
            f"`monotonic_cst={value}` names a class twice, as a number and as text; name each once"
        )
    value = found
    for key in value:
        if key not in classes:
            shown = ", ".join(repr(name) for name in classes[:20])
            feature = key if key in features else features[0]
            example = {classes[0]: {feature: 1}}
            raise ValueError(
                f"`monotonic_cst` names {key!r}, which is not a class of `y` ({shown}); with "
                f"several classes give directions for each that has some, as in {example}"
            )
    rows = [
        directions(value.get(label), features, 1, f"monotonic_cst[{label!r}]") for label in classes
    ]
    return np.vstack(rows)


def _class_of(key: Any, classes: Sequence[Any]) -> Any:
    """The class that a key names, if need be as text: the class "1" may be written 1."""
    alike = [name for name in classes if str(name) == str(key)]
    return alike[0] if key not in classes and len(alike) == 1 else key


def opposite_directions(table: Signs, features: Sequence[str]) -> Signs:
    """Directions of the second of two classes, (1, 2 n_features), from those of both."""
    same = table[0] * table[1] == 1
    names = [*features, *missing_names(features)]
    if same.any():
        raise ValueError(
            f"`monotonic_cst` makes the probabilities of both classes move the same way with "
            f"feature {names[int(same.argmax())]!r}, but they sum to 1; give a direction to one "
            "of them"
        )
    opposite: Signs = np.sign(table[1:] - table[:1])
    return opposite


def check_lipschitz(value: Any, features: Sequence[str]) -> Floats:
    """`lipschitz` as one λ per feature, NaN where it is to be chosen.

    That is everywhere for "auto", and where a dictionary says nothing.
    """
    if isinstance(value, str) and value == "auto":
        return np.full(len(features), np.nan)
    several = isinstance(value, Mapping) or np.ndim(value) > 0
    entries = spread("lipschitz", value, features, None) if several else [value] * len(features)
    try:
        numbers = np.array([np.nan if e is None else float(e) for e in entries])
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`lipschitz={value!r}` must be 'auto', 'learned' or positive numbers: one, one per "
            "feature, or a dictionary by feature name"
        ) from error
    given = numbers[[entry is not None for entry in entries]]
    if not np.all((given > 0) & (given < np.inf)):
        raise ValueError(
            f"`lipschitz={value}` must be positive and finite; choose larger numbers, or 'auto'"
        )
    return numbers


def is_table(value: Any) -> bool:
    """Whether directions are those of every class or target: a table, not a list."""
    return not isinstance(value, Mapping) and np.ndim(value) == 2
