"""The page of a drift: one HTML file with verdict, numbers and histograms, without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from isotone.files import write_whole
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Category
from isotone.monitoring.columns import ColumnDrift
from isotone.monitoring.drift import Drift
from isotone.monitoring.levels import Share
from isotone.monitoring.sketch import Sketch
from isotone.monitoring.summary import ColumnSummary, TableSummary
from isotone.report import page
from isotone.report.verdict import escape
from isotone.typing import Floats

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 460, 190, 8, 26
_N_BARS = 40
_MOST_CATEGORIES = 24  # that are drawn
_WORDS = {"fine": "No drift", "warning": "Warning: some drift", "alarm": "ALARM: drift"}


def write(
    frozen: FrozenNetwork,
    path: str | Path,
    drift: Drift,
    reference: TableSummary,
    new: TableSummary,
    title: str = "Drift",
) -> int:
    """Write the page; returns its size in bytes."""
    text = page.assemble_still(title, _lead(drift), _body(frozen, drift, reference, new))
    return write_whole(path, text)


def _lead(drift: Drift) -> str:
    return (
        f"{drift.n_new:,} new rows compared with {drift.n_reference:,} of the reference, as the "
        f"model <code>{drift.fingerprint[:12]}</code> sees them."
    )


def _body(frozen: FrozenNetwork, drift: Drift, reference: TableSummary, new: TableSummary) -> str:
    mood = "good" if drift.level == "fine" else "bad"
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in drift.reasons)
    statements = "".join(f"<li>{line}</li>" for line in _statements(drift))
    figures = "".join(_figures(frozen, reference, new))
    return (
        f'<section id="verdict"><h2>Verdict</h2><p class="badge {mood}"><strong>'
        f"{_WORDS[drift.level]}</strong></p><ul>{reasons}</ul><ul>{statements}</ul></section>"
        f"<section><h2>Numbers</h2>{_table(drift)}</section>"
        f'<section><h2>Distributions</h2><p class="lead">Filled: the reference. Line: the new '
        "rows. Each has the same area.</p>"
        f'<div class="grid-panels">{figures}</div></section>'
    )


def _statements(drift: Drift) -> Iterator[str]:
    for name, share in drift.decisions.items():
        yield (
            f"Share of <b>{escape(name)}</b> rows: {_percent(share.reference)} before, "
            f"{_percent(share.new)} now; the change is {100 * share.change:+.3g} ± "
            f"{100 * share.error:.2g} percentage points."
        )
    shift = drift.scores[0].distances
    if drift.shift_bound is None or drift.transport is None or shift is None:
        return
    yield (
        f"The scores of both tables are {shift.wasserstein:.4g} apart (Wasserstein), and their "
        f"means differ by {shift.mean_change:+.4g}. If only single columns had drifted, and "
        f"depended on one another as before, the certified slopes would allow at most "
        f"{drift.shift_bound:.4g}."
    )
    if drift.additive:
        yield "The model is proved to be additive: means cannot differ by more than that at all."
    yield (
        f"In changes of the score that the certified slopes allow, the rows have moved by at "
        f"least {drift.transport:.4g}."
    )


def _table(drift: Drift) -> str:
    heads = (
        *("", "verdict", "stability index", "by chance", "Kolmogorov–Smirnov", "Wasserstein"),
        *("missing", "unseen", "can move the mean score by"),
    )
    rows = "".join(_row(column) for column in (*drift.scores, *drift.columns))
    head = "".join(f"<th>{text}</th>" for text in heads)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Numbers by column">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(column: ColumnDrift) -> str:
    found = column.distances
    ks = "–" if column.variation is None else f"variation {column.variation:.3g}"
    ks = ks if found is None else _with(found.ks, found.ks_within)
    cells = (
        column.level if column.level == "fine" else f'<strong class="bad">{column.level}</strong>',
        f"{column.psi:.3g}",
        f"{column.psi_chance:.2g}",
        ks,
        "–" if found is None else _with(found.wasserstein, found.within),
        _change(column.missing),
        _change(column.unseen),
        "–" if column.could_move is None else f"{column.could_move:.3g}",
    )
    body = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    return f'<tr><th scope="row">{escape(column.name)}</th>{body}</tr>'


def _with(value: float, within: float) -> str:
    return f"{value:.3g}" + (f" ± {within:.1g}" if within else "")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _change(share: Share) -> str:
    if share.reference == share.new:
        return _percent(share.new)
    return f"{_percent(share.reference)} → {_percent(share.new)}"


def _figures(frozen: FrozenNetwork, reference: TableSummary, new: TableSummary) -> Iterator[str]:
    for name in reference.scores:
        yield _figure(name, _histogram(reference.scores[name], new.scores[name]))
    for column, p, q in zip(frozen.inputs.columns, reference.columns, new.columns, strict=True):
        if isinstance(column, Category):
            names = [*(str(text) for text in column.categories), "other"]
            yield _figure(column.name, _bars(p, q, names))
        elif p.sketch is not None and q.sketch is not None:
            yield _figure(column.name, _histogram(p.sketch, q.sketch))


def _figure(name: str, drawing: str) -> str:
    label = escape(name)
    return (
        f'<figure><h3>{label}</h3><svg class="chart" role="img" aria-label="{label}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}">{drawing}</svg></figure>'
    )


def _histogram(P: Sketch, Q: Sketch) -> str:
    """Both densities over what either holds, but for the outermost thousandths."""
    if not (P.n and Q.n):
        return _note("no values")
    ends = np.array([sketch.quantile(np.array([0.001, 0.999])) for sketch in (P, Q)])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    high = high if high > low else low + 1.0
    edges = np.linspace(low, high, _N_BARS + 1)
    shares = [np.diff(sketch.cumulative(edges), prepend=0.0)[1:] for sketch in (P, Q)]
    for share, sketch in zip(shares, (P, Q), strict=True):
        share[0] += sketch.cumulative(edges[:1])[0]  # with what lies below
    return _steps(*shares) + _ends(f"{low:.4g}", f"{high:.4g}")


def _bars(p: ColumnSummary, q: ColumnSummary, names: list[str]) -> str:
    assert p.counts is not None
    assert q.counts is not None
    order = np.argsort(-p.counts, kind="stable")[:_MOST_CATEGORIES]
    shares = [counts[order] / max(counts.sum(), 1) for counts in (p.counts, q.counts)]
    return _steps(*shares) + _ends(escape(names[order[0]]), escape(names[order[-1]]))


def _steps(p: Floats, q: Floats) -> str:
    top = max(float(p.max()), float(q.max()), 1e-300)
    return (
        f'<path class="fill c0" d="{_path(p / top)} Z"/>'
        f'<path class="line c1" d="{_path(q / top)}"/>'
    )


def _path(heights: Floats) -> str:
    """Steps from the bottom, and back to it."""
    base = _HEIGHT - _BOTTOM
    x = _LEFT + (_WIDTH - 2 * _LEFT) * np.arange(len(heights) + 1) / len(heights)
    y = base - (base - 8) * heights
    points = [f"M{x[0]:.1f},{base}"]
    for i, height in enumerate(y.tolist()):
        points.append(f"L{x[i]:.1f},{height:.1f} L{x[i + 1]:.1f},{height:.1f}")
    return " ".join([*points, f"L{x[-1]:.1f},{base}"])


def _ends(low: str, high: str) -> str:
    y = _HEIGHT - 6
    return (
        f'<g class="labels"><text x="{_LEFT}" y="{y}">{low}</text>'
        f'<text x="{_WIDTH - _LEFT}" y="{y}" text-anchor="end">{high}</text></g>'
    )


def _note(text: str) -> str:
    return f'<g class="labels"><text x="{_LEFT}" y="20">{text}</text></g>'
