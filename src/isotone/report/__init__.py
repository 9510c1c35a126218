"""Report: one HTML file about one frozen network, with the network itself running inside the page.

`write(frozen, "report.html")` needs nothing else; a table of rows adds distributions, curves and
flips. The file opens without a network, from a disk or an e-mail. The page computes scores with
the arithmetic of `isotone.frozen.reference`, in JavaScript doubles: for float64 networks its
scores have the same bits as those of the engine, for float32 both are within the certificate's E
of the exact score.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape as html_escape
from pathlib import Path
from typing import Any

import numpy as np

from isotone.certificate.certify import Certificate, certify
from isotone.explanation.points import Points
from isotone.explanation.texts import Texts
from isotone.files import write_whole
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Rule
from isotone.report import figures, page, presets, verdict
from isotone.report.controls import controls_of, start_row
from isotone.report.history import check_history
from isotone.report.numbers import describe_decision, describe_network
from isotone.report.outcomes import Outcomes, threshold_of
from isotone.report.rivals import rival_of
from isotone.report.table import statistics
from isotone.report.table.robust import robustness, shifts_of
from isotone.report.table.sample import Sample, read_sample
from isotone.report.table.stops import describe_stops, stops_of
from isotone.report.verdict import escape
from isotone.typing import Floats

_ADVICE = {  # to those who look at a page that a command wrote
    "target": "name one with --target",
    "shift": "; give your own with --shift NAME=δ",
    "rows": "With isotone report --embed-rows N it also shows rows on the map and offers single "
    "rows to start from.",
    "drawn": "drawn at random with a fixed seed",
}


_DARK = ('body[data-jp-theme-light="false"]', "body.vscode-dark", 'html[theme="dark"]')
_LIGHT = ('body[data-jp-theme-light="true"]', "body.vscode-light", 'html[theme="light"]')
_THEMES = "".join(
    f"{', '.join(f'{each} .isotone-report' for each in themes)} {{ color-scheme: {scheme} }} "
    for themes, scheme in ((_DARK, "dark"), (_LIGHT, "light"))
)


@dataclass(frozen=True, repr=False)
class Shown:
    """A page that notebooks show inline, as light or dark as they are; `html` is all of it."""

    html: str
    height: int = 900

    def __repr__(self) -> str:
        return f"<report, {len(self.html.encode()) / 1e3:,.0f} kB; a notebook shows it>"

    def _repr_html_(self) -> str:
        return (
            f'<style>{_THEMES}</style><iframe class="isotone-report" '
            f'srcdoc="{html_escape(self.html)}" sandbox="allow-scripts allow-downloads '
            f'allow-modals" style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def write(
    frozen: FrozenNetwork,
    path: str | Path,
    table: str | Path | None = None,
    *,
    target: str | None = None,
    threshold: float | None = None,
    weights: str | None = None,
    title: str | None = None,
    table_name: str | None = None,
    embed_rows: int = 0,
    shifts: Mapping[str, float] | None = None,
    against: FrozenNetwork | str | Path | None = None,
    compare: FrozenNetwork | str | Path | None = None,
    points: Points | str | None = None,
    texts: Texts | str | Path | None = None,
    history: Mapping[str, Any] | None = None,
    on_unseen: Rule = "error",
) -> int:
    """Write the report of a network; returns the size of the file in bytes.

    Parameters
    ----------
    path : the HTML file to write, whole or not at all
    table : rows to look at, CSV, Parquet or ROOT, with the columns that the model takes
    target : column of the table that the model predicts; by default the one it was trained on
    threshold : a row is accepted if its score is at least this; 0 for two classes by default
    weights : column of the table that says how much every row counts
    table_name : what the page calls the table; by default the name of its file
    embed_rows : how many rows of the table the file holds at most, fewer if it would be too large
        to be sent around; none by default. Statistics are of all rows
    shifts : how far columns may be off, by name and in raw units: the share of decisions that
        stand all the same is a key figure. By default 1 % of the standard deviation of each
    against : another model, to be shown on the same sliders: a network, a model file, or a column
        of the table that holds the scores of any model (which has no curves on sliders)
    compare : a challenger, to be compared row by row; given in the same ways
    points : the scale of a scorecard, such as "600@50:1,20": scores are shown in points as well
    texts : sentences for reasons, or a TOML file of them
    history : losses of the epochs, as `History.to_dict` gives them
    on_unseen : rows with values never seen in training are an "error", treated as if these were
        "missing", or left out ("skip"); the page says how many were left out
    """
    if embed_rows < 0:
        raise ValueError(f"`embed_rows={embed_rows}` must be 0 or more")
    certificate = certify(frozen)
    outcomes = Outcomes.of(frozen, threshold_of(frozen, threshold), target)
    if table is None:
        _refuse_without_table(target=target, weights=weights)
        _refuse_shifts(shifts)
    sample = None
    if table is not None:
        asked = target is not None
        sample = read_sample(frozen, str(table), outcomes, weights, asked, on_unseen)
        sample = replace(sample, name=table_name)
    data = content(certificate, outcomes, sample, embed_rows, shifts)
    given = {"against": against, "challenger": compare}
    rivals = [rival_of(each, role) for role, each in given.items() if each is not None]
    scores = None if sample is None else frozen.score_features(sample.X).astype(float)
    data["rivals"] = [
        rival.describe(frozen, outcomes, sample, scores, embed_rows) for rival in rivals
    ]
    data |= _words(frozen, points, texts)
    data["history"] = None if history is None else check_history(history)
    parts = {
        "title": escape(title or "Report of a monotonic model"),
        "lead": verdict.lead(certificate, outcomes),
        "badge": verdict.badge(certificate, outcomes),
        "figures": figures.to_html(certificate, outcomes, data),
        "verdict": verdict.to_html(certificate, outcomes),
    }
    text = _fitting(sample, data, lambda: page.assemble(parts, data))
    return write_whole(path, text)


def show(frozen: FrozenNetwork, table: Any = None, *, height: int = 900, **options: Any) -> Shown:
    """The report inside a notebook, without a file of its own.

    Parameters
    ----------
    table : rows to look at: a path, or a data frame
    height : of the frame, in pixels
    options : those of `write`
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        if table is not None and not isinstance(table, str | Path):
            table.to_parquet(path / "table.parquet")
            table = path / "table.parquet"
            options.setdefault("table_name", "the table")
        write(frozen, path / "report.html", table, **options)
        return Shown((path / "report.html").read_text(encoding="utf-8"), height)


def content(
    certificate: Certificate,
    outcomes: Outcomes,
    sample: Sample | None,
    embed_rows: int = 0,
    shifts: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Everything that the scripts of the page read."""
    frozen = certificate.frozen
    controls = controls_of(frozen, sample)
    data = {
        "network": describe_network(certificate),
        "decision": describe_decision(certificate, outcomes.threshold),
        "outcomes": outcomes.to_dict(),
        "controls": controls,
        "start": start_row(frozen, sample),
        "advice": _ADVICE,
        "sample": None,
    }
    if sample is None:
        return data
    scores: Floats = frozen.score_features(sample.X).astype(float)
    stops, effects = stops_of(outcomes, scores), [control["effect"] for control in controls]
    user = shifts_of(certificate, sample, shifts)
    robust, radii = robustness(certificate, outcomes, sample, scores, stops, user, effects)
    if robust is not None:
        robust["usual"] = shifts is None
    return data | {
        "sample": sample.to_dict(),
        "stops": describe_stops(outcomes, sample, scores, stops),
        "presets": presets.typical_rows(frozen, outcomes, sample, scores)
        + (presets.extreme_rows(frozen, outcomes, sample, scores, radii) if embed_rows else []),
        "background": presets.background_rows(frozen, sample, scores),
        "rows": presets.embedded_rows(sample, embed_rows),
        "statistics": statistics.describe(frozen, outcomes, sample, scores, stops),
        "robustness": robust,
    }


def _words(
    frozen: FrozenNetwork, points: Points | str | None, texts: Texts | str | Path | None
) -> dict[str, Any]:
    """The scale of points, and templates of reasons; None where there are none."""
    scale = Points.parse(points) if isinstance(points, str) else points
    if scale is not None:
        scale.check(frozen)
    told = Texts.read(texts, frozen) if isinstance(texts, str | Path) else texts
    return {
        "points": None
        if scale is None
        else {"factor": scale.factor, "even": float(scale.of_score(np.zeros(1))[0])},
        "texts": None if told is None else told.templates,
    }


def _fitting(sample: Sample | None, data: dict[str, Any], assemble: Callable[[], str]) -> str:
    """The page, with as many of its rows as there is room for."""
    text = assemble()
    while page.excess(text) > 0 and sample is not None and data["rows"]["number"]:
        n, size = len(data["rows"]["number"]), len(page.to_json(data["rows"]).encode("utf-8"))
        share = max(0.0, 1.0 - page.excess(text) / size)
        data["rows"] = presets.embedded_rows(sample, min(int(0.98 * share * n), n - 1))
        text = assemble()
    page.refuse_excess(text)
    return text


def _refuse_shifts(shifts: Mapping[str, float] | None) -> None:
    if shifts is not None:
        raise ValueError(
            f"`shifts={dict(shifts)}` move rows but no table is given; give one, or leave them out"
        )


def _refuse_without_table(**options: str | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"`{name}={value}` is a column of a table but no table is given; give one, or "
                "leave it out"
            )
