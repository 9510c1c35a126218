"""Labels: what axes say, in your own words, formulas and units."""

from __future__ import annotations

from collections.abc import Mapping

from isotone.plot.canvas import literal

Words = Mapping[str, str]


def label_of(name: str, labels: Words | None, units: Words | None, most: int = 48) -> str:
    r"""The label of a column: its own, or its name, and its unit in brackets.

    Labels and units may hold formulas between dollar signs; names are taken literally.

    >>> label_of("sum_pt", {"sum_pt": r"$\sum p_\mathrm{T}$"}, {"sum_pt": "GeV"})
    '$\\sum p_\\mathrm{T}$ [GeV]'
    >>> label_of("cost_$", None, {"cost_$": "EUR"})
    'cost_\\$ [EUR]'
    """
    text = (labels or {}).get(name) or literal(name, most)
    unit = (units or {}).get(name)
    return f"{text} [{unit}]" if unit else text
