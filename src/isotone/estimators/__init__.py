"""The networks as estimators of scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import resolver

if TYPE_CHECKING:
    from isotone.estimators.columns import choose_scaling

_HOME = {
    "choose_scaling": "columns",
}

__all__ = ["choose_scaling"]

__getattr__ = resolver(__name__, _HOME)
