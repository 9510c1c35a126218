"""Every kind of argument has one check with one message."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotone
from isotone import checks

NAN = float("nan")


@pytest.mark.parametrize(
    ("refuse", "match"),
    [
        (lambda: checks.check_count("n", True), "`n=True` must be a whole number of at least 1"),
        (lambda: checks.check_count("n", 2.0, also=", or 'auto'"), "of at least 1, or 'auto'"),
        (lambda: checks.check_choice("a", "x", ("b", "c")), "`a='x'` is unknown; .* 'b', 'c'$"),
        (lambda: checks.check_choice("--a", "x", ("b", "c")), "`--a x` is unknown; .* b, c$"),
        (lambda: checks.check_positive("rate", 0), "`rate=0` must be positive and finite"),
        (lambda: checks.check_positive("rate", True), "`rate=True` is of type bool but must be a"),
        (lambda: checks.check_positive("rate", np.inf), "`rate=inf` must be positive and finite"),
        (lambda: checks.check_positive("rate", "1"), "`rate='1'` is of type str but must be"),
        (lambda: checks.check_least("tol", -1.0), "`tol=-1.0` must be a number of at least 0"),
        (lambda: checks.check_least("tol", NAN), "`tol=nan` must be a number"),
        (lambda: checks.check_fraction("part", 1.0), "`part=1.0` must lie between 0 and 1"),
        (lambda: checks.check_fraction("--part", 2), "`--part 2` must lie between 0 and 1"),
        (lambda: checks.check_finite("x", np.array([1.0, NAN])), "`x` holds NaN or infinity"),
        (lambda: checks.check_weights("w", [1.0], 2), r"`w` has shape \(1,\); give \(2,\)"),
        (lambda: checks.check_weights("w", np.ones((2, 2)), 2), r"`w` has shape \(2, 2\)"),
        (lambda: checks.check_weights("w", [1.0], 2, 3), r"or \(3, 2\) with one row per member"),
        (lambda: checks.check_weights("w", [1.0, -2.0], 2), r"`w` is -2 in row 1 \(.* must"),
        (lambda: checks.check_weights("w", [NAN, 1.0], 2), "`w` is nan in row 0"),
        (lambda: checks.check_weights("w", [1.0, np.inf], 2), "`w` is inf in row 1"),
        (lambda: checks.check_weights("w", [0.0, 0.0], 2), "`w` is 0 in all rows"),
        (lambda: checks.check_weights("w", [[1.0, 1.0], [0.0, 0.0]], 2, 2), "`w` is 0 in all"),
        (lambda: checks.check_directions("cst", [1], 1, 2), r"`cst` has shape \(1,\); give one"),
        (lambda: checks.check_directions("cst", [1, 2], 1, 2), r"`cst=\[1, 2\]` must hold -1"),
        (
            lambda: checks.refuse_rivals(np.eye(2, dtype=np.int8)[[0, 0, 1]], "ab", "xyz"),
            "x and y",
        ),
        (lambda: checks.refuse_rivals(-np.ones((2, 1), np.int8)), "0 and 1 must all fall with f"),
        (lambda: checks.check_directions("cst", [1, 2], 1, 2, {"b": 2}), "`cst={'b': 2}` must"),
    ],
)
def test_a_wrong_argument_is_named_with_what_must_hold(
    refuse: Callable[[], Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        refuse()


def test_what_is_allowed_comes_back() -> None:
    assert checks.check_count("n", np.int64(3)) == 3
    assert checks.check_choice("a", "b", ("b", "c")) == "b"
    assert checks.check_positive("rate", np.float32(0.5)) == 0.5
    assert checks.check_least("tol", np.inf) == np.inf
    assert checks.check_fraction("part", 0.2) == 0.2
    checks.check_finite("x", np.ones(2))
    for weights in (np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])):
        assert np.array_equal(checks.check_weights("w", weights, 2, 3), weights)
    directions = checks.check_directions("cst", [1, -1.0], 2, 2)
    assert directions.dtype == np.int8
    assert directions.tolist() == [[1, -1], [1, -1]]


@pytest.mark.parametrize(
    ("name", "advice"), [("nope", "no hint"), ("bb", "did you mean 'b'?"), ("INCME", "'income'?")]
)
def test_only_a_name_that_is_close_is_suggested(name: str, advice: str) -> None:
    assert advice in checks.suggest(name, ["income", "b", "debt"], "no hint")


@pytest.mark.parametrize("path", sorted(Path(isotone.__file__).parent.rglob("*.py")), ids=str)
def test_a_message_that_names_a_row_says_where_counting_starts(path: Path) -> None:
    text = re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8"))
    for found in re.finditer(r"\b(row|entry) \{", text):
        # `selftest` speaks of rows that the library made
        assert "counted from 0" in text[found.start() :][:150] or path.stem == "selftest"
