"""The part that learns: layers of bounded slope, and the networks made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import resolver

if TYPE_CHECKING:
    from isotone.nn.initialization import Init
    from isotone.nn.layers import Apply
    from isotone.nn.network import Options
    from isotone.nn.norms import Norm

_HOME = {
    "Apply": "layers",
    "Init": "initialization",
    "Norm": "norms",
    "Options": "network",
}

__all__ = ["Apply", "Init", "Norm", "Options"]

__getattr__ = resolver(__name__, _HOME)
