"""Wasserstein distances with certified bounds, and shapes fitted by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import resolver

if TYPE_CHECKING:
    from isotone.transport.fits import ShapeFit, Turns, fit_shape, flow
    from isotone.transport.shapes import Circles, Ellipses, Outlines, Triangles
    from isotone.transport.wasserstein import Distance, Schedule

_HOME = {
    "Circles": "shapes",
    "Distance": "wasserstein",
    "Ellipses": "shapes",
    "Outlines": "shapes",
    "Schedule": "wasserstein",
    "ShapeFit": "fits",
    "Triangles": "shapes",
    "Turns": "fits",
    "fit_shape": "fits",
    "flow": "fits",
}

__all__ = [
    "Circles",
    "Distance",
    "Ellipses",
    "Outlines",
    "Schedule",
    "ShapeFit",
    "Triangles",
    "Turns",
    "fit_shape",
    "flow",
]

__getattr__ = resolver(__name__, _HOME)
