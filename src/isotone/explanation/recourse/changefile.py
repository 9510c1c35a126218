"""Changes that are allowed, as people write them: a TOML file, or a few names with signs.

.. code-block:: toml

    [income]
    cost = 0.001      # for each unit; see `AllowedChange` for all settings
    down = false
    whole = true
    high = 120000

    [city]
    cost = 3
    categories = ["Oslo", "Rome"]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from isotone.explanation.background import Background
from isotone.explanation.recourse.changes import AllowedChange, check_changes
from isotone.files.untrusted import read_toml
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Category, Ordered

_SETTINGS = {
    field.name: (bool if field.type == "bool" else None) for field in fields(AllowedChange)
}


def read_changes(path: str | Path, frozen: FrozenNetwork) -> dict[str, AllowedChange]:
    """The changes of a TOML file, checked against the columns of a model."""
    changes = {name: _change(name, entry, path) for name, entry in read_toml(path).items()}
    check_changes(frozen, changes)
    return changes


def _change(name: str, entry: Any, path: str | Path) -> AllowedChange:
    if not isinstance(entry, dict) or not set(entry) <= set(_SETTINGS):
        raise ValueError(
            f"{str(path)!r} has {entry!r:.100} for {name!r}; its settings are "
            f"{', '.join(_SETTINGS)}: correct it"
        )
    for key, value in entry.items():
        texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
        if (_SETTINGS[key] is bool and type(value) is not bool) or (
            key == "categories" and not texts
        ):
            needed = "a list of texts" if key == "categories" else "true or false"
            raise ValueError(
                f"{str(path)!r} has {key} = {value!r:.50} for {name!r}; it must be {needed}: "
                "correct it"
            )
    settings: dict[str, Any] = dict(entry)
    if "categories" in settings:
        settings["categories"] = tuple(settings["categories"])
    return AllowedChange(**settings)


def usual_changes(
    frozen: FrozenNetwork, background: Background, wanted: Sequence[str]
) -> dict[str, AllowedChange]:
    """Changes of columns by name, with + for up alone and - for down alone, as a table suggests.

    A move by one standard deviation of the background costs 1, and so does a rank and another
    category. Values stay in the range of the table, and whole where all of the table are.
    """
    names = frozen.inputs.names
    changes = {}
    for text in wanted:
        sign = text[-1:] if text not in names and text[-1:] in "+-" else ""
        name = text.removesuffix(sign) if sign else text
        check_changes(frozen, {name: AllowedChange()})
        if sign and isinstance(frozen.inputs.column(name), Category):
            raise ValueError(
                f"{text!r} asks for column {name!r} to {'rise' if sign == '+' else 'fall'}, but "
                "its categories have no order: only numbers and ordered categories have a "
                f"direction; write {name!r} without the sign to allow any other category"
            )
        changes[name] = _usual(frozen, background, name, sign)
    check_changes(frozen, changes)
    return changes


def _usual(frozen: FrozenNetwork, background: Background, name: str, sign: str) -> AllowedChange:
    column = frozen.inputs.column(name)
    up, down = sign != "-", sign != "+"
    if isinstance(column, Category | Ordered):
        return AllowedChange(up=up, down=down)
    number = frozen.inputs.names.index(name)
    place = frozen.inputs.places[number]
    present = frozen.inputs.movable(background.features)[:, number]
    spread = float(np.std(background.features[present, place])) if present.any() else 0.0
    return AllowedChange(
        cost=1.0 / spread if spread > 0 else 1.0,
        up=up,
        down=down,
        low=float(background.low[place]),
        high=float(background.high[place]),
        whole=bool(background.whole[place]),
    )
