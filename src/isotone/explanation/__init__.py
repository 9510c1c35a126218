"""Explanation: reasons for scores, the least change that flips a decision, and points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import by_name, resolver

if TYPE_CHECKING:
    from isotone.explanation.background import Background as Background
    from isotone.explanation.importance import Importance as Importance
    from isotone.explanation.importance import measure_importance as measure_importance
    from isotone.explanation.points import Points as Points
    from isotone.explanation.reasons import Explainer as Explainer
    from isotone.explanation.reasons import Reasons as Reasons
    from isotone.explanation.reasons import explain as explain
    from isotone.explanation.recourse.changefile import read_changes as read_changes
    from isotone.explanation.recourse.changefile import usual_changes as usual_changes
    from isotone.explanation.recourse.changes import AllowedChange as AllowedChange
    from isotone.explanation.recourse.search import Recourse as Recourse
    from isotone.explanation.recourse.search import find_recourse as find_recourse
    from isotone.explanation.texts import Texts as Texts

_HOME = by_name(
    {
        "background": ("Background",),
        "recourse.changefile": ("read_changes", "usual_changes"),
        "recourse.changes": ("AllowedChange",),
        "importance": ("Importance", "measure_importance"),
        "points": ("Points",),
        "reasons": ("Explainer", "Reasons", "explain"),
        "recourse.search": ("Recourse", "find_recourse"),
        "texts": ("Texts",),
    }
)

__all__ = list(_HOME)

__getattr__ = resolver(__name__, _HOME)
