"""Key figures: five numbers that the page opens with, as HTML that needs no script."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isotone.certificate.certify import Certificate
from isotone.report.outcomes import Outcomes
from isotone.report.verdict import escape
from isotone.rounding import digits_up

_LETTERS = 12  # of the fingerprint


@dataclass(frozen=True)
class Figure:
    """A number with its name and what it means; `id` if the page changes it."""

    name: str
    text: str
    about: str
    id: str = ""

    def to_html(self) -> str:
        mark = f' id="{self.id}"' if self.id else ""
        return (
            f'<div class="figure"{mark}><dt>{escape(self.name)}</dt>'
            f"<dd><strong>{_joined(self.text)}</strong>"
            f"<span>{_joined(self.about)}</span></dd></div>"
        )


def _joined(text: str) -> str:
    """Text as HTML that no line ends before a percent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def to_html(certificate: Certificate, outcomes: Outcomes, data: Mapping[str, Any]) -> str:
    """The row of figures; without a table those that the model alone gives."""
    figures = [*_measured(outcomes, data), _rows(data), _identity(certificate)]
    return f'<dl class="figures">{"".join(figure.to_html() for figure in figures)}</dl>'


def _measured(outcomes: Outcomes, data: Mapping[str, Any]) -> list[Figure]:
    if data["sample"] is None:
        return [_directions(data)]
    metrics = dict(data["statistics"]["metrics"])
    found = [_quality(outcomes, data, metrics), _calibration(outcomes, metrics)]
    return [*(each for each in found if each is not None), *_certified(data)]


def _quality(
    outcomes: Outcomes, data: Mapping[str, Any], metrics: Mapping[str, float | None]
) -> Figure | None:
    """How well the model ranks, recognizes or predicts."""
    if outcomes.kind == "values":
        share = metrics.get("share of variance explained (R²)")
        return None if share is None else Figure("R²", f"{share:.3f}", "of the variance explained")
    if outcomes.kind == "classes":
        right = metrics.get("accuracy")
        return (
            None
            if right is None
            else Figure("Accuracy", f"{100 * right:.1f} %", "of rows recognized")
        )
    ranking = data["statistics"]["outputs"][0].get("ranking")
    if ranking is None:
        return None
    return Figure("AUC", f"{ranking['area']:.3f}", "area under the ROC curve; 0.5 is chance")


def _calibration(outcomes: Outcomes, metrics: Mapping[str, float | None]) -> Figure | None:
    if outcomes.kind == "values":
        error = metrics.get("mean absolute error")
        return None if error is None else Figure("Mean error", f"{error:.4g}", "absolute, per row")
    off = metrics.get("calibration error")
    if off is None:
        return None
    return Figure("Calibration", f"± {100 * off:.1f} %", "mean gap between predicted and observed")


def _certified(data: Mapping[str, Any]) -> list[Figure]:
    robust = data["robustness"]
    if robust is None:
        return []
    usual = "if every number is off by up to 1 % of its spread"
    about = usual if robust["usual"] else f"if {_shifts(robust['user'])}"
    if "moves" in robust:
        text = f"≤ {digits_up(robust['moves']['most'], 3)}"
        return [Figure("Certified move", text, f"in 95 % of rows {about}", "figure-certified")]
    stops = data["stops"]
    share = robust["certified"][0 if stops is None else stops["start"]]
    text = _down(share)
    return [Figure("Certified decisions", text, about, "figure-certified")]


def _down(share: float) -> str:
    """A share in percent that is never shown larger than it is."""
    return f"{math.floor(share * 1000 + 1e-9) / 10:.1f} %"


def _shifts(user: Mapping[str, float]) -> str:
    named = [f"{name} is off by up to {shift:g}" for name, shift in user.items()]
    return ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")


def _directions(data: Mapping[str, Any]) -> Figure:
    signs = data["network"]["directions"]
    n = sum(any(row[i] for row in signs) for i in range(len(signs[0])))
    return Figure("Proved directions", str(n), f"of {len(signs[0])} features")


def _rows(data: Mapping[str, Any]) -> Figure:
    if data["sample"] is None:
        return Figure("Table", "none", "give one to measure the model")
    return Figure("Rows", f"{data['sample']['n']:,}", f"of {data['sample']['name']}")


def _identity(certificate: Certificate) -> Figure:
    short = certificate.fingerprint[:_LETTERS]
    return Figure("Fingerprint", short, f"{certificate.frozen.n_parameters:,} parameters")
