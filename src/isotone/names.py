"""Names: public ones of a package, resolved on first use, so that none loads torch too early."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any


def by_name(homes: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Where every public name lives, from the names that modules offer; in alphabetical order.

    >>> by_name({"shapes": ["Circles"], "fits": ["flow", "Turns"]})
    {'Circles': 'shapes', 'Turns': 'fits', 'flow': 'fits'}
    """
    return dict(sorted((name, home) for home, names in homes.items() for name in names))


def resolver(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `home` says in which of its modules a name lives.

    >>> resolver("isotone", {"Scaling": "inputs.scaling"})("Scaling").__name__
    'Scaling'
    """

    def resolve(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(load(f"{package}.{home[name]}", f"{package}.{name}"), name)

    return resolve


def load(module: str, wanted: str) -> ModuleType:
    """A module; one that needs torch or scikit-learn says so if they are not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in ("torch", "sklearn"):
            raise
        from isotone.extras import lacking

        raise ImportError(lacking(f"`{wanted}` trains networks and", missing, "train")) from error
