"""Canvas: axes to draw on, colors, and names as matplotlib should print them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotone.extras import lacking
from isotone.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, BLACK, GRAY = "#0072B2", "#D55E00", "#222222", "#8C8C8C"  # of Okabe and Ito
RESPONSE = "RdYlBu"  # as in the paper: like signal is blue, like background is red
MOST_POINTS = 1000


def axes_of(ax: Axes | None, height: float = 4.8) -> Axes:
    """The axes to draw on; a new figure of the given height in inches, if none are given."""
    if ax is not None:
        return ax
    new: Axes = _pyplot().subplots(figsize=(6.4, height), layout="constrained")[1]
    return new


def new_panels(n: int) -> list[Axes]:
    """Axes of a new figure, side by side, without a window."""
    _pyplot()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0 * n, 4.2), layout="constrained")
    return list(figure.subplots(1, n, squeeze=False)[0])


def save(ax: Axes, path: Path) -> None:
    """Write the figure of some axes, whole or not at all; the suffix says in which format."""
    kinds = ("png", "pdf", "svg")
    if (kind := path.suffix.lower().lstrip(".")) not in kinds:
        raise ValueError(
            f"{str(path)!r} has an unknown suffix; a picture must end in .png, .pdf or .svg: "
            "rename it"
        )
    figure: Any = ax.figure
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=130)


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        raise ImportError(lacking("`isotone.plot`", "matplotlib", "plot")) from error
    return pyplot


def literal(name: str, most: int = 48) -> str:
    """A name as matplotlib should print it: cut if long, and dollar signs start no formula."""
    short = name if len(name) <= most else f"{name[: most - 1]}…"
    return short.replace("$", r"\$")


def thinned(rows: Any) -> Any:
    """At most a thousand rows, evenly spread; the same ones for arrays of one length."""
    return rows[:: max(1, -(-len(rows) // MOST_POINTS))]
