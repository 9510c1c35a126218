"""Decisions at the edge of what is known, shifts of either sign, and the table of a radius."""

from __future__ import annotations

import math

import numpy as np

from isotone import Scaling
from isotone.certificate.robustness import Decisions, Radius, shift_ranges
from isotone.frozen.lookup import Copies
from isotone.inputs.columns import Number


def decisions(slope: float, grid: float | None = None) -> Decisions:
    copies = Copies.of((0,), Scaling.identity(1), 8.0, grid, "float64")
    slopes = np.array([slope])
    return Decisions(copies, 0.0, slopes, slopes, np.array([False]), error=0.0)


def test_a_score_that_cannot_move_has_no_radius_where_errors_decide() -> None:
    assert decisions(0.0).radius(np.zeros((1, 1)), np.zeros(1)).scaled.tolist() == [0.0]
    assert decisions(0.0).radius(np.zeros((1, 1)), np.ones(1)).scaled.tolist() == [math.inf]


def test_a_gap_as_small_as_the_slack_leaves_no_radius() -> None:
    """Two nearly equal numbers are subtracted: what is left is rounding."""
    judge = decisions(1.0, grid=2.0**-6)
    slack = float(judge.copies.slack[0])
    scores = slack * (1 + np.array([2.0**-35, 2.0**-31, 2.0**-20]))
    found = judge.radius(np.zeros((3, 1)), scores).scaled
    assert found[:2].tolist() == [0.0, 0.0]
    assert 0.99 * slack * 2.0**-20 < found[2] < slack * 2.0**-20


def test_a_score_without_bounds_is_unsafe_at_every_threshold() -> None:
    low, high = decisions(1.0).unsafe(
        np.array([math.inf, -math.inf]), np.full(2, math.inf), np.full(2, math.inf)
    )
    assert (low[0], high[1]) == (-math.inf, math.inf)


def test_a_shift_is_to_either_side_whatever_its_sign() -> None:
    columns = [Number("a"), Number("b")]
    for shifts in ([-2.0, 1.0], [2.0, -1.0]):
        low, high = shift_ranges(shifts, columns)
        assert (low.tolist(), high.tolist()) == ([-2.0, -1.0], [2.0, 1.0])


def test_the_table_of_a_radius_has_its_first_rows_and_columns() -> None:
    few = Radius(np.array([0.5, 2.0]), np.array([[1.0], [math.inf]]), np.array([[3.0], [4.0]]))
    head, *rows = (line.split() for line in str(few).splitlines())
    assert " ".join(head) == "row together, scaled column 0 down column 0 up"
    assert [row for row in rows if row[0].isdigit()] == [
        *(["0", "0.5", "1", "3"], ["1", "2", "inf", "4"])
    ]
    n = 1000
    many = Radius(np.ones(n), np.ones((n, 2)), np.ones((n, 2)))
    assert "more rows" in str(many)
    assert len(str(many).splitlines()) < n
    assert "column 1 up" in str(many)
