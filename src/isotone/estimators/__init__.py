"""The networks as scikit-learn estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import resolver

if TYPE_CHECKING:
    from isotone.estimators.fitting.automatic import choose_scaling

_HOME = {
    "choose_scaling": "fitting.automatic",
}

__all__ = ["choose_scaling"]

__getattr__ = resolver(__name__, _HOME)
