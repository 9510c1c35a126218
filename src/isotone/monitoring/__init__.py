"""Monitoring: whether new rows are still like those that a model was judged on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import by_name, resolver

if TYPE_CHECKING:
    from isotone.monitoring.drift import Drift as Drift
    from isotone.monitoring.drift import compare as compare
    from isotone.monitoring.levels import Levels as Levels
    from isotone.monitoring.page import write as write
    from isotone.monitoring.summary import TableSummary as TableSummary
    from isotone.monitoring.summary import read_summary as read_summary
    from isotone.monitoring.summary import summarize as summarize

_HOME = by_name(
    {
        "drift": ("Drift", "compare"),
        "levels": ("Levels",),
        "page": ("write",),
        "summary": ("TableSummary", "read_summary", "summarize"),
    }
)

__all__ = list(_HOME)

__getattr__ = resolver(__name__, _HOME)
