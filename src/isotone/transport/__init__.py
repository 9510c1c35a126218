"""Wasserstein distances with certified bounds, and shapes fitted by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import by_name, resolver

if TYPE_CHECKING:
    from isotone.transport.fits import ShapeFit as ShapeFit
    from isotone.transport.fits import Turns as Turns
    from isotone.transport.fits import fit_shape as fit_shape
    from isotone.transport.fits import flow as flow
    from isotone.transport.shapes import Circles as Circles
    from isotone.transport.shapes import Ellipses as Ellipses
    from isotone.transport.shapes import Outlines as Outlines
    from isotone.transport.shapes import Triangles as Triangles
    from isotone.transport.wasserstein import Distance as Distance
    from isotone.transport.wasserstein import Schedule as Schedule

_HOME = by_name(
    {
        "shapes": ("Circles", "Ellipses", "Outlines", "Triangles"),
        "wasserstein": ("Distance", "Schedule"),
        "fits": ("ShapeFit", "Turns", "fit_shape", "flow"),
    }
)

__all__ = list(_HOME)

__getattr__ = resolver(__name__, _HOME)
