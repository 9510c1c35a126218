"""Trigger candidates, thresholds by rate, and efficiencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import resolver

if TYPE_CHECKING:
    from isotone.trigger.efficiency import Efficiency, by_bin, by_group, in_groups, quantile_edges
    from isotone.trigger.working_point import Exposure, WorkingPoint, best_scores, choose

_HOME = {
    "Efficiency": "efficiency",
    "Exposure": "working_point",
    "WorkingPoint": "working_point",
    "best_scores": "working_point",
    "by_bin": "efficiency",
    "by_group": "efficiency",
    "choose": "working_point",
    "in_groups": "efficiency",
    "quantile_edges": "efficiency",
}

__all__ = [
    "Efficiency",
    "Exposure",
    "WorkingPoint",
    "best_scores",
    "by_bin",
    "by_group",
    "choose",
    "in_groups",
    "quantile_edges",
]

__getattr__ = resolver(__name__, _HOME)
