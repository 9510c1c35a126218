"""Hypothesis: the same examples every time, and no deadline on a machine that others use too."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported, or a check of estimators skips

settings.register_profile("isotone", deadline=None, derandomize=True)
settings.load_profile("isotone")
