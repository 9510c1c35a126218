"""Trigger candidates, thresholds by rate, and efficiencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import by_name, resolver

if TYPE_CHECKING:
    from isotone.trigger.curve import RateCurve as RateCurve
    from isotone.trigger.curve import rate_curve as rate_curve
    from isotone.trigger.efficiency import Efficiency as Efficiency
    from isotone.trigger.efficiency import by_bin as by_bin
    from isotone.trigger.efficiency import by_group as by_group
    from isotone.trigger.efficiency import in_groups as in_groups
    from isotone.trigger.efficiency import quantile_edges as quantile_edges
    from isotone.trigger.evaluators import parameters_for as parameters_for
    from isotone.trigger.linefile import Line as Line
    from isotone.trigger.linefile import read_lines as read_lines
    from isotone.trigger.lines import Estimate as Estimate
    from isotone.trigger.lines import Menu as Menu
    from isotone.trigger.record import Point as Point
    from isotone.trigger.record import read_point as read_point
    from isotone.trigger.shares import RateShares as RateShares
    from isotone.trigger.shares import rates_by as rates_by
    from isotone.trigger.tistos import Overlap as Overlap
    from isotone.trigger.tistos import overlap as overlap
    from isotone.trigger.working_point import Exposure as Exposure
    from isotone.trigger.working_point import WorkingPoint as WorkingPoint
    from isotone.trigger.working_point import at_threshold as at_threshold
    from isotone.trigger.working_point import best_scores as best_scores
    from isotone.trigger.working_point import choose as choose

_HOME = by_name(
    {
        "efficiency": ("Efficiency", "by_bin", "by_group", "in_groups", "quantile_edges"),
        "curve": ("RateCurve", "rate_curve"),
        "evaluators": ("parameters_for",),
        "linefile": ("Line", "read_lines"),
        "lines": ("Estimate", "Menu"),
        "record": ("Point", "read_point"),
        "shares": ("RateShares", "rates_by"),
        "tistos": ("Overlap", "overlap"),
        "working_point": ("Exposure", "WorkingPoint", "at_threshold", "best_scores", "choose"),
    }
)

__all__ = list(_HOME)

__getattr__ = resolver(__name__, _HOME)
