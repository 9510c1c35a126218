"""Picture: how far our models are ahead of the best monotone peer, by data set."""

from __future__ import annotations

import shutil

from matplotlib.figure import Figure

from studies.figures import BLUE, ORANGE, draw, save
from studies.fingerprint import ROOT
from studies.tabular.pages.tables import OURS, TITLES, Results, best_peer, compare

PICTURE = ROOT / "docs" / "figures" / "tabular-overview.svg"
_LIMIT = 8.0  # standard errors; models further away stand at the edge
_MARKERS = dict(zip(OURS, (("o", BLUE), ("^", ORANGE)), strict=True))


def leads(results: Results, name: str) -> dict[str, float]:
    """By how many standard errors of the difference a model is ahead of the best peer."""
    clean = results["clean"]
    return {
        dataset: compare(dataset, clean[dataset][name], clean[dataset][best_peer(dataset, table)])
        for dataset, table in clean.items()
        if name in table and best_peer(dataset, table)
    }


def figure(results: Results) -> Figure:
    """One row per data set, one marker per model; the band is one standard error."""
    drawn, (panel,) = draw(size=(6.4, 3.4))
    places = {dataset: -k for k, dataset in enumerate(d for d in TITLES if d in results["clean"])}
    panel.axvspan(-1.0, 1.0, color="#EEEEEE", linewidth=0, zorder=0)
    panel.axvline(0.0, color="#AAAAAA", linewidth=0.8, zorder=1)
    for name, (marker, color) in _MARKERS.items():
        found = leads(results, name)
        x = [min(max(lead, -_LIMIT), _LIMIT) for lead in found.values()]
        y = [places[dataset] for dataset in found]
        panel.scatter(x, y, marker=marker, color=color, s=30, label=name, zorder=2)
    panel.set_yticks(list(places.values()), [TITLES[dataset] for dataset in places])
    panel.set(xlim=(-1.05 * _LIMIT, 1.05 * _LIMIT))
    panel.set(xlabel="standard errors ahead of the best monotone peer (left: behind)")
    panel.legend(loc="center left")
    return drawn


def write_picture(results: Results) -> None:
    """Renew the picture of `docs/tabular.md`, and its printable version in `results`."""
    stem = ROOT / "results" / "tabular" / "overview"
    save(figure(results), stem)
    shutil.copyfile(stem.with_suffix(".svg"), PICTURE)
