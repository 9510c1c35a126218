"""Hypothesis: the same examples every time, and no deadline on a machine that others use too."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("isotone", deadline=None, derandomize=True)
settings.load_profile("isotone")
