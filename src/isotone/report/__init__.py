"""Report: one HTML file about one frozen network, with the network itself running inside the page.

`write(frozen, "report.html")` needs nothing else; a table of rows adds distributions, curves and
flips. The file opens without a network, from a disk or an e-mail. The page computes scores with
the arithmetic of `isotone.frozen.reference`, in JavaScript doubles: for float64 networks its
scores have the same bits as those of the engine, for float32 both are within the certificate's E
of the exact score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from isotone.certificate.certify import Certificate, certify
from isotone.files import replacing
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Rule
from isotone.report import page, presets, statistics, verdict
from isotone.report.controls import controls_of, start_row
from isotone.report.history import check_history
from isotone.report.numbers import describe_decision, describe_network
from isotone.report.outcomes import Outcomes, threshold_of
from isotone.report.robust import robustness
from isotone.report.sample import Sample, read_sample
from isotone.typing import Floats

MAX_ROWS = 2000


def write(
    frozen: FrozenNetwork,
    path: str | Path,
    table: str | Path | None = None,
    *,
    target: str | None = None,
    threshold: float | None = None,
    weights: str | None = None,
    title: str | None = None,
    max_rows: int = MAX_ROWS,
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
    max_rows : how many rows of the table the file holds at most, fewer if it would be too large
        to be sent around; statistics are of all rows
    history : losses of the epochs, as `History.to_dict` gives them
    on_unseen : rows with values never seen in training are an "error", treated as if these were
        "missing", or left out ("skip"); the page says how many were left out
    """
    if max_rows < 0:
        raise ValueError(f"`max_rows={max_rows}` must be 0 or more")
    certificate = certify(frozen)
    outcomes = Outcomes.of(frozen, threshold_of(frozen, threshold), target)
    if table is None:
        _refuse_without_table(target=target, weights=weights)
    sample = None
    if table is not None:
        asked = target is not None
        sample = read_sample(frozen, str(table), outcomes, weights, asked, on_unseen)
    data = content(certificate, outcomes, sample, max_rows)
    data["history"] = None if history is None else check_history(history)
    lead, found = (part(certificate, outcomes) for part in (verdict.lead, verdict.to_html))
    heading = title or "Report of a monotonic model"
    text = _fitting(sample, data, lambda: page.assemble(heading, lead, found, data))
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return len(text.encode("utf-8"))


def content(
    certificate: Certificate, outcomes: Outcomes, sample: Sample | None, max_rows: int
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
        "sample": None,
    }
    if sample is None:
        return data
    scores: Floats = frozen.score_features(sample.X).astype(float)
    robust, radii = robustness(certificate, outcomes, sample, scores)
    return data | {
        "sample": sample.to_dict(),
        "presets": presets.extreme_rows(frozen, outcomes, sample, scores, radii),
        "rows": presets.embedded_rows(sample, max_rows),
        "statistics": statistics.describe(frozen, outcomes, sample, scores),
        "robustness": robust,
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


def _refuse_without_table(**options: str | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"`{name}={value}` is a column of a table but no table is given; give one, or "
                "leave it out"
            )
