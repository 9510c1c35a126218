"""Style: that of an experiment, if mplhep is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def hep_style(name: str = "LHCb2", size: float = 14.0) -> Iterator[bool]:
    """Within the block plots look as mplhep draws them; without mplhep they look as always.

    Gives whether mplhep was found.

    Parameters
    ----------
    name : a style of mplhep, such as "LHCb2", "CMS" or "ATLAS"
    size : of labels, in points; styles of mplhep are made for figures of 12 inches

    Examples
    --------
    >>> with hep_style("CMS"):  # doctest: +SKIP
    ...     isotone.plot.heatmap(frozen)
    """
    found = _style(name)
    if found is None:
        yield False
        return
    from matplotlib import pyplot

    with pyplot.style.context([found, _sized(found, size)]):
        yield True


def _style(name: str) -> Any:
    try:
        from mplhep import style as styles
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "mplhep":
            raise
        return None
    found = getattr(styles, name, None)
    if not isinstance(found, dict):
        known = [word for word in dir(styles) if isinstance(getattr(styles, word), dict)]
        known = [word for word in known if not word.startswith("_")]
        raise ValueError(f"mplhep has no style {name!r}; choose from {', '.join(known)}")
    return found


def _sized(style: dict[str, Any], size: float) -> dict[str, Any]:
    """Sizes of text, ticks and lines as the style has them, for labels of another size."""
    scale = size / float(style.get("axes.labelsize", 32))
    names = (
        *("axes.labelsize", "axes.titlesize", "legend.fontsize"),
        *("xtick.labelsize", "ytick.labelsize"),
        *(f"{axis}tick.{kind}.{what}" for axis in "xy" for kind in ("major", "minor")
          for what in ("size", "width", "pad")),
        *("axes.linewidth", "lines.linewidth", "lines.markersize"),
    )  # fmt: skip
    numbers = {n: style[n] for n in names if isinstance(style.get(n), int | float)}
    plain = {"figure.figsize": (6.4, 4.8), "font.size": size}
    return plain | {n: scale * value for n, value in numbers.items()}
