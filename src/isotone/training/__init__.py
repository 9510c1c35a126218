"""Recipes, rows and the trainers that fit networks to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.names import resolver

if TYPE_CHECKING:
    from isotone.training.fields import Field
    from isotone.training.learners import FusedLearner, make_learner
    from isotone.training.recipe import History
    from isotone.training.rows import Rows

_HOME = {
    "Field": "fields",
    "FusedLearner": "learners",
    "History": "recipe",
    "Rows": "rows",
    "make_learner": "learners",
}

__all__ = ["Field", "FusedLearner", "History", "Rows", "make_learner"]

__getattr__ = resolver(__name__, _HOME)
