"""Plots of a frozen network and of a trigger. They need matplotlib, never torch.

All functions draw on `ax`, or on new axes, and return the axes. Features, those of
`frozen.inputs.encoded`, are given by name or by number; points and axes are in raw units. A point
`at` is a whole row, or numbers by name; what it leaves out is the median of `X`, or else the
center of the scaling or of the knots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import by_name, resolver

if TYPE_CHECKING:
    from isotone.plot.canvas import BLACK as BLACK
    from isotone.plot.canvas import BLUE as BLUE
    from isotone.plot.canvas import GRAY as GRAY
    from isotone.plot.canvas import ORANGE as ORANGE
    from isotone.plot.drawings import certificate as certificate
    from isotone.plot.drawings import color_map as color_map
    from isotone.plot.drawings import heatmap as heatmap
    from isotone.plot.drawings import response as response
    from isotone.plot.physics import channels as channels
    from isotone.plot.physics import efficiency as efficiency
    from isotone.plot.physics import rates as rates
    from isotone.plot.style import hep_style as hep_style

_HOME = by_name(
    {
        "canvas": ("BLACK", "BLUE", "GRAY", "ORANGE"),
        "drawings": ("certificate", "color_map", "heatmap", "response"),
        "physics": ("channels", "efficiency", "rates"),
        "style": ("hep_style",),
    }
)

__all__ = list(_HOME)

__getattr__ = resolver(__name__, _HOME)
