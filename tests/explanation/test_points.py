"""Points: a scale of the logit on which odds double, and contributions add up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotone.explanation import Points, explain
from networks import mixed, small


def test_points_double_the_odds() -> None:
    points = Points.parse("600@50:1,20")
    assert points == Points(600.0, 50.0, 20.0)
    assert points == Points.parse(" 600 @ 100:2, 20 ") == Points.parse("6e2@50,20")
    logits = np.log([50.0, 100.0, 25.0])
    np.testing.assert_allclose(points.of_score(logits), [600.0, 620.0, 580.0], rtol=1e-15)


def test_computed_points_never_move_against_the_score() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = Points(*rng.uniform([-1e3, 1e-3, 1e-3], [1e3, 1e3, 1e2]))
        z = rng.normal(size=1000) * 10.0 ** rng.uniform(-12, 3)
        z = np.sort(np.concatenate([z, np.nextafter(z, np.inf)]))
        assert np.all(np.diff(points.of_score(z)) >= 0)
        falling = Points(points.points, points.odds, -points.to_double)
        assert np.all(np.diff(falling.of_score(z)) <= 0)


@pytest.mark.parametrize("to_double", [20.0, -20.0])
def test_contributions_in_points_add_up_and_keep_what_is_proved(to_double: float) -> None:
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(50, 3)) * 3, rng.normal(size=(6, 3))
    plain = explain(small(), X, B)
    found = plain.in_points(Points(600.0, 50.0, to_double))
    total = found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.score - found.baseline, rtol=0, atol=1e-10)
    assert np.all(found.contributions[found.proved.never_negative] >= 0)
    assert np.all(found.contributions[found.proved.never_positive] <= 0)
    np.testing.assert_array_equal(
        found.proved.signs, math.copysign(1, to_double) * plain.proved.signs
    )


def test_what_is_no_scale_is_refused() -> None:
    for text in ("600", "600@50", "600@50:1", "a@50:1,20", "600@50:1,20,3"):
        with pytest.raises(ValueError, match="must be points@odds,points that double the odds"):
            Points.parse(text)
    with pytest.raises(ValueError, match=r"`odds=-50\.0` must be positive"):
        Points.parse("600@-50:1,20")
    with pytest.raises(ValueError, match="`to_double=0` would give all rows the same points"):
        Points.parse("600@50:1,0")
    with pytest.raises(ValueError, match="`points=nan` must be a finite number"):
        Points(math.nan, 50.0, 20.0)
    with pytest.raises(ValueError, match="points are for one logit of two classes"):
        Points.parse("600@50:1,20").check(mixed(n_outputs=3, outputs="logits"))
